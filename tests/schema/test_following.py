"""Our own sequences, followed in the logs of real servers, statement by statement."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.schema.cases import OWN, in_databases, read_cases
from tests.schema.follow import report
from tests.schema.following import counted, outcomes

_CASES = {"mysql": 110, "mariadb": 115}
_FOLLOWED = {"mysql": 580, "mariadb": 615}
_QUARANTINED = {"mysql": 0, "mariadb": 1}
_MAPS = {"mysql": 860, "mariadb": 910}


def _names(stand: MySqlStand) -> Iterator[str]:
    first = stand.fresh_name()
    return (f"{first}_{number}x" for number in itertools.count(1))


def _check(
    stand: MySqlStand, flavour: str, metadata: Sequence[str] = (), *, refuses: int = 0
) -> None:
    """`refuses`: how many statements the server does not know yet, at most."""
    refused: list[str] = []
    cases = in_databases(read_cases(OWN, flavour), _names(stand))
    done = outcomes(stand, cases, refused, metadata=metadata)
    print(report(done, len(cases), refused), *refused, sep="\n")
    numbers = counted(done)
    assert len(refused) <= refuses
    assert numbers["wrong"] == 0
    assert _QUARANTINED[flavour] == numbers["quarantined"]
    assert _FOLLOWED[flavour] <= numbers["followed"]
    assert _CASES[flavour] <= len(cases)
    assert _MAPS[flavour] <= sum(one.maps for one in done)


@pytest.mark.thin
@pytest.mark.servers("newest", "8.0")
def test_mysql(mysql: MySqlStand) -> None:
    """Each statement leads to the tables that MySQL has then, and to its TABLE_MAPs, with names
    of columns and without."""
    with mysql.metadata("FULL"):
        refuses = 40 if mysql.version < (8, 0, 16) else 0
        _check(mysql, "mysql", ("FULL", "MINIMAL"), refuses=refuses)


@pytest.mark.parametrize("share", [1 / 3, pytest.param(1, marks=pytest.mark.soak)])
def test_mysql_5_7(mysql57: MySqlStand, share: float) -> None:
    """What MySQL 5.7 does not refuse leads to the tables that it has then, and to its TABLE_MAPs,
    which never name columns: a third of the cases, as chance has it. What a session set for
    TIMESTAMP columns is not told by statements that define none."""
    cases = [case for case in read_cases(OWN, "mysql") if "explicit_defaults" not in str(case)]
    cases = by_chance().sample(cases, round(share * len(cases)))
    refused: list[str] = []
    done = outcomes(mysql57, in_databases(cases, _names(mysql57)), refused)
    print(report(done, len(cases), refused), *refused, sep="\n")
    numbers = counted(done)
    assert numbers["wrong"] == numbers["quarantined"] == 0
    assert numbers["followed"] >= 540 * share / 2
    assert len(refused) <= 100


def test_mariadb(mariadb: MySqlStand) -> None:
    """Each statement leads to the tables that MariaDB has then, and to its TABLE_MAPs."""
    _check(mariadb, "mariadb")


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_names_of_cases(flavour: str) -> None:
    """Each case has a name of its own, and statements."""
    names = Counter(case.name for case in read_cases(OWN, flavour))
    assert [name for name, count in names.items() if count > 1] == []


def test_files(tmp_path: Path) -> None:
    """Files of others hold cases by header or line, for a flavour or for all."""
    (tmp_path / "a.sql").write_text(
        "-- case: one [mariadb]\nselect 1;\n\n-- case: two\n-- mysql:\nselect\n  2;\n"
        "-- mariadb:\nselect 3;\nselect ';';\n"
    )
    (tmp_path / "b.sql").write_text("select 4;\n")
    line = '{"id": "x", "schema": "s", "sql_mode": "ANSI", "statements": ["select 5"]}\n'
    (tmp_path / "c.jsonl").write_text(line)
    found = {case.name: case.statements for case in read_cases(tmp_path, "mysql")}
    expected = {
        "a: two": ("select\n  2", "select ';'"),
        "b": ("select 4",),
        "x": ("set sql_mode = 'ANSI'", "select 5"),
    }
    assert expected == found
