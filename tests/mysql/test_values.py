"""For each type: what the log gives is what SELECT gives, by paths that share no code.

The cases are files: tests/cases/values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

import pyarrow as pa
import pytest

from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.mysql.server import MySqlServer
from tests.chance import by_chance
from tests.mysql.filled import (
    Filled,
    filled,
    filled_again,
    images_by_select,
    one_of_each,
    rows_read,
)
from tests.mysql.hashed import asking, unequal_hashes
from tests.mysql.logged import Logged, Rows, exact, logged
from tests.mysql.oracle import differences, heard, unreadable
from tests.mysql.reading import server
from tests.mysql.value_cases import ValueCase, value_cases

EVERYWHERE = ("mysql", "mysql80", "mysql57", "mariadb", "mariadb11")
SERVERS = [
    "mysql drawn",
    *(f"{one} some" for one in EVERYWHERE[1:]),
    *(pytest.param(f"{one} all", marks=pytest.mark.soak) for one in EVERYWHERE),
]
"""Fixtures, and which cases are tables there: one of each kind, and of the others a third that is
drawn anew in each run, none or all. MariaDB logs widths as MySQL does."""

MOST_UNREAD = 20
"""Number of tables, of a hundred and more, that mysql-replication cannot read at all."""


@dataclass(frozen=True, slots=True)
class Told:
    """Cases as tables: what the log says of them, and whom to ask for the rest."""

    tables: Filled
    source: MySqlServer
    structures: dict[TableName, TableStructure]
    selected: dict[TableName, list[pa.RecordBatch]]
    logged: dict[TableName, Logged]


@pytest.fixture(scope="module", params=SERVERS)
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    fixture, _, cases = request.param.partition(" ")
    stand, flavour = request.getfixturevalue(fixture), fixture.rstrip("0123456789")
    with filled(stand, flavour, _chosen(cases)) as tables:
        source = server(stand)
        structures = {one.name: one for one in source.structures() if one.name in tables.cases}
        with rows_read(stand) as read:
            selected = {name: read(structure) for name, structure in structures.items()}
        known = None if stand.has_metadata else structures
        log = logged(stand, tables.start, tables.database, known)
        yield Told(tables, source, structures, selected, log)


def _chosen(cases: str) -> list[ValueCase]:
    if cases == "all":
        return value_cases()
    found = one_of_each()
    others = [case for case in value_cases() if case not in found]
    return found + by_chance().sample(others, len(others) // 3 if cases == "drawn" else 0)


def test_the_log_says_what_select_says(told: Told) -> None:
    """Inserted, both images of an update, deleted, and the row as it stands are one value;
    the log's structure and information_schema's are one structure."""
    wrong = {
        case.name: found
        for table, case in told.tables.cases.items()
        if (found := _differences(told, table, len(case.rows)))
    }
    assert wrong == {}


def _differences(told: Told, table: TableName, rows: int) -> list[str]:
    log, structure = told.logged[table], told.structures[table]
    if log.structure != structure:
        return [f"structure: {log.structure} in the log, {structure} on the server"]
    selected = images_by_select(told.selected[table])
    if len(selected["delete"]) != rows:
        return [f"{len(selected['delete'])} rows, {rows} were written"]
    try:
        logged_rows = {kind: exact(log.rows(kind)) for kind in selected}
    except TableError as error:
        return [str(error)]
    return [
        f"{kind}: {left} in the log, {right} by SELECT"
        for kind in selected
        for left, right in _unequal(logged_rows[kind], selected[kind])
    ]


def _unequal(log: Rows, selected: Rows) -> Iterator[tuple[object, object]]:
    """Of each pair of rows that differ, `id` and the columns that do."""
    for left, right in zip_longest(log, selected):
        if left is None or right is None:
            yield left, right
        elif left != right:
            names = ["id", *(name for name in right if left.get(name) != right[name])]
            yield {name: left.get(name) for name in names}, {name: right[name] for name in names}


@pytest.mark.parametrize(
    "told",
    [
        "mysql drawn",
        *(pytest.param(f"{server} all", marks=pytest.mark.soak) for server in ("mysql", "mariadb")),
    ],
    indirect=True,
)
def test_mysql_replication_says_what_the_log_says(told: Told) -> None:
    """The same values of every case that it can read, but for its known faults."""
    unread = [table.name for table, log in told.logged.items() if unreadable(log)]
    theirs: dict[TableName, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for table, kind, values in heard(told.tables.stand, told.tables.start, ignored_tables=unread):
        theirs[table][kind].append(values)
    wrong = {
        told.tables.cases[table].name: different
        for table, log in told.logged.items()
        if table.name not in unread and (different := differences(log, theirs[table]))
    }
    assert wrong == {}
    assert len(unread) < MOST_UNREAD


@pytest.mark.parametrize("told", ["mysql drawn", "mariadb some"], indirect=True)
def test_a_server_and_its_log_have_one_sum(told: Told) -> None:
    """Each value inserted, updated and deleted: all images together leave what the server has, by
    its own hashes, row by row too."""
    flavour = told.tables.flavour
    with asking(told.tables.stand, flavour) as asked:
        found = {
            told.tables.cases[table].name: unequal_hashes(
                asked(structure := told.structures[table]),
                structure,
                flavour,
                log,
                told.selected[table],
            )
            for table, log in told.logged.items()
            if log.error is None
        }
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) > 60


@pytest.mark.parametrize("told", ["mysql drawn", "mariadb some"], indirect=True)
def test_the_server_s_structure_stands_in_for_metadata(told: Told) -> None:
    """Written once more, and logged without names: MySQL's default, MINIMAL, logs signs and
    character sets but no names, members and keys; MariaDB's, NO_LOG, none of it. One table of
    each kind: that the log's structures are the server's is in the first test."""
    stand, structures = told.tables.stand, told.structures
    with stand.metadata({"mysql": "minimal", "mariadb": "no_log"}[told.tables.flavour]):
        tables = filled_again(told.tables, one_of_each())
    images = logged(stand, tables.start, tables.database, structures)
    with rows_read(stand) as read:
        wrong = [
            case.name
            for table, case in tables.cases.items()
            if {kind: exact(rows) for kind, rows in images[table].images.items()}
            != images_by_select(read(structures[table]))
        ]
    assert wrong == []
