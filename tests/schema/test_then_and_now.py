"""A log that is decoded only after all of it happened is decoded as it happened.

The log has MySQL's default metadata, which names no column: by the time it is read, the
server's tables are built otherwise, and only the history tells what its rows meant. Two pipelines
read it: one that reads along, one that reads it when all is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest

from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.schema.compare import disagreements
from lockstep.pipeline.schema.history import SchemaVersion, VersionOrigin
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE
from tests.schema.mixed_log import minimal_log, mixed_log
from tests.schema.reader import ALL, CHANGES, Reader, Rows, without_values


@pytest.mark.parametrize(
    ("seed", "statements"),
    [(1, 15), *(pytest.param(seed, 50, marks=pytest.mark.soak) for seed in range(2, 42))],
)
def test_later_is_as_along(mysql: MySqlStand, seed: int, statements: int) -> None:
    """Statements of chance between rows: both changelogs, both histories and the server agree."""
    with minimal_log(mysql) as name:
        along, later = (Reader(server(mysql), [f"{name}_*.*"]) for _ in range(2))
        assert wrong(mysql, name, seed, along, later, statements=statements) == []


def wrong(
    stand: MySqlStand,
    name: str,
    seed: int,
    along: Reader,
    later: Reader,
    *,
    statements: int,
) -> list[str]:
    """Mix a log while one of them reads along after every third statement, then let the other
    read it; both know the structures of the beginning only. What is not as it should be, a
    sentence each."""
    for reader in (along, later):
        reader.run()
    for number, _ in enumerate(mixed_log(stand, name, seed, statements), start=1):
        if number % 3 == 0:
            along.run()
    along.run_whole()
    later.run_whole()
    found = [f"along: {told}" for told in along.wrong()]
    found += [f"later: {told}" for told in later.wrong()]
    found += _quarantined(along, later)
    both = compared(along, later)
    if both.rows < 2 * statements:
        found.append(f"only {both.rows} rows were compared")
    return found + list(both.differences)


def _quarantined(along: Reader, later: Reader) -> Iterator[str]:
    """The same tables, for the same reasons. A table that one of them read from the source
    behind a statement that nobody can follow, it has no reason to quarantine."""
    here, there = along.quarantined(), later.quarantined()
    for table in sorted(here.keys() | there.keys()):
        other = later if table in here else along
        if (table in here) != (table in there) and table in other.read_anew():
            continue
        if here.get(table) != there.get(table):
            yield f"{table} is quarantined: {here.get(table)}, later {there.get(table)}"


@dataclass(frozen=True, slots=True)
class Compared:
    """`differences`: sentences; `rows`: of the changelogs, that both readers have."""

    differences: tuple[str, ...]
    rows: int


def compared(along: Reader, later: Reader) -> Compared:
    """Changelogs row by row, and histories version by version.

    Rows of a table that was read from the source between two places may be in one
    changelog only: those that are in both are equal.
    """
    here, there = along.changelogs(), later.changelogs()
    partly = (
        along.read_anew()
        | later.read_anew()
        | along.quarantined().keys()
        | later.quarantined().keys()
    )
    folders = {changelog_path(SOURCE, table).removeprefix(CHANGES) for table in partly}
    differences: list[str] = []
    both = 0
    for folder in sorted({*here, *there}):
        one = along.rows(folder, here.get(folder))
        other = later.rows(folder, there.get(folder))
        partial = folder.partition("@")[0] in folders
        differences += [f"{folder}: {told}" for told in _unequal(one, other, partial=partial)]
        both += len(one.keys() & other.keys())
    differences += _histories(along, later)
    if along.of_the_source() != later.of_the_source():
        differences.append("the system tables differ")
    return Compared(tuple(differences), both)


def _unequal(one: Rows, other: Rows, *, partial: bool) -> Iterator[str]:
    shared = [place for place in one if place in other]
    for place in shared:
        # A column that only one of the changelogs has is NULL in the other's rows.
        names = one[place].keys() | other[place].keys()
        mine, yours = one[place], other[place]
        for name in sorted(names):
            if mine.get(name) != yours.get(name):
                yield f"{place} {name}: {mine.get(name)!r}, later {yours.get(name)!r}"
    if shared != [place for place in other if place in one]:
        yield "the rows have another order"
    if not partial:
        for told, alone in (
            ("along", one.keys() - other.keys()),
            ("later", other.keys() - one.keys()),
        ):
            yield from (f"only read {told}: {place}" for place in sorted(alone))


def _histories(along: Reader, later: Reader) -> Iterator[str]:
    """Versions and statements, apart from what was recorded when a table was read anew."""
    here, there = _history(along), _history(later)
    for table in sorted(here.keys() | there.keys()):
        one, other = here.get(table, []), there.get(table, [])
        if len(one) != len(other):
            yield f"the history of {table}: {len(one)} versions, later {len(other)}"
        for pair in zip(one, other, strict=False):
            told = "; ".join(_otherwise(*pair))
            if told:
                yield f"the history of {table} since {pair[0].since}: {told}"
    if _statements(along) != _statements(later):
        yield f"{_statements(along)} statements, later {_statements(later)}"


def _otherwise(one: SchemaVersion, other: SchemaVersion) -> Iterator[str]:
    """What two versions differ in; structures as the server's would be compared, because a
    table that was read anew has its expressions as the server prints them."""
    if one.schema is not None and other.schema is not None:
        yield from disagreements(one.schema, other.schema)
        one, other = replace(one, schema=other.schema), other
    for name in (part.name for part in fields(SchemaVersion)):
        if getattr(one, name) != getattr(other, name):
            yield f"{name} {getattr(one, name)}, later {getattr(other, name)}"


def _history(reader: Reader) -> dict[TableName, list[SchemaVersion]]:
    ledger = reader.ledger
    first = ledger.batches(SOURCE, limit=ALL)[-1].id
    return {
        table: [
            replace(version, version=0, statement_number=None, batch=0)
            for version in ledger.schema_versions(SOURCE, table)
            if version.origin is not VersionOrigin.BASELINE or version.batch == first
        ]
        for table in ledger.last_versions(SOURCE)
    }


def _statements(reader: Reader) -> list[Mapping[str, Any]]:
    found = reader.ledger.schema_statements(SOURCE, limit=ALL, after=0)
    return [
        {
            "begin": one.begin,
            "end": one.end,
            "gtid": one.gtid,
            "committed_at": one.committed_at,
            "database": one.database,
            "text": one.text,
            "outcome": one.outcome,
            "effects": [without_values(str(effect)) for effect in one.effects],
            "context": dict(one.context),
        }
        for one in found
    ]
