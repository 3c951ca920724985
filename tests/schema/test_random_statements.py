"""Statements that chance makes: followed on real servers or quarantined, never wrong."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.schema.cases import Case
from tests.schema.following import outcomes
from tests.schema.random_statements import random_steps

_STATEMENTS: Final = 15
_SAME: Final = 4
"""Sequences of each run, which are the same in all of them; the soak draws others."""


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@pytest.mark.parametrize("count", [_SAME, pytest.param(1_000, marks=pytest.mark.soak)])
def test_statements(request: pytest.FixtureRequest, flavour: str, count: int) -> None:
    """Whatever a server accepts leads to the tables it has, or is quarantined."""
    stand: MySqlStand = request.getfixturevalue(flavour)
    seeds = range(_SAME) if count == _SAME else by_chance().sample(range(1 << 32), count)
    for seed in seeds:
        name = f"{stand.fresh_name()}_x"
        made = partial(random_steps, seed, name, _STATEMENTS, mariadb=flavour == "mariadb")
        case = Case(f"seed {seed}", (), name, f"{name}%", made=made)
        assert [one for one in outcomes(stand, [case], []) if one.kind == "wrong"] == []
