"""Statements that chance makes: followed on real servers or quarantined, never wrong."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tests.fix_mysql import MySqlStand
from tests.schema.cases import Case
from tests.schema.following import outcomes
from tests.schema.random_statements import random_steps

_STATEMENTS = 15
_SEEDS = st.integers(0, 2**32)


def _check(stand: MySqlStand, seed: int, *, mariadb: bool) -> None:
    name = f"{stand.fresh_name()}_x"
    made = functools.partial(random_steps, seed, name, _STATEMENTS, mariadb=mariadb)
    case = Case(f"seed {seed}", (), name, f"{name}%", made=made)
    wrong = [outcome for outcome in outcomes(stand, [case], []) if outcome.kind == "wrong"]
    for one in wrong:
        note(f"{one.statement}\n    " + "\n    ".join(one.why))
    assert wrong == []


def _settings(examples: int, *, same: bool = False) -> settings:
    """`same`: the same seeds in every run. None shrinks to a simpler sequence."""
    return settings(
        max_examples=examples,
        derandomize=same,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        deadline=None,
        print_blob=False,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@given(seed=_SEEDS)
@_settings(4, same=True)
def test_statements(request: pytest.FixtureRequest, flavour: str, seed: int) -> None:
    """Whatever a server accepts leads to the tables it has, or is quarantined."""
    _check(request.getfixturevalue(flavour), seed, mariadb=flavour == "mariadb")


@pytest.mark.soak
@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
@given(seed=_SEEDS)
@_settings(1_000)
def test_statements_for_long(request: pytest.FixtureRequest, flavour: str, seed: int) -> None:
    """Thousands of statements, each followed or quarantined."""
    _check(request.getfixturevalue(flavour), seed, mariadb=flavour == "mariadb")
