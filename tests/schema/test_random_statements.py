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


@given(_SEEDS)
@_settings(4, same=True)
def test_mysql(mysql: MySqlStand, seed: int) -> None:
    """Whatever MySQL accepts leads to the tables it has, or is quarantined."""
    _check(mysql, seed, mariadb=False)


@given(_SEEDS)
@_settings(4, same=True)
def test_mariadb(mariadb: MySqlStand, seed: int) -> None:
    """Whatever MariaDB accepts leads to the tables it has, or is quarantined."""
    _check(mariadb, seed, mariadb=True)


@pytest.mark.soak
@given(_SEEDS)
@_settings(1_000)
def test_mysql_for_long(mysql: MySqlStand, seed: int) -> None:
    """Thousands of statements, each followed or quarantined."""
    _check(mysql, seed, mariadb=False)


@pytest.mark.soak
@given(_SEEDS)
@_settings(1_000)
def test_mariadb_for_long(mariadb: MySqlStand, seed: int) -> None:
    """Thousands of statements, each followed or quarantined."""
    _check(mariadb, seed, mariadb=True)
