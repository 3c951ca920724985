"""A mirror's columns changed step by step, each a Delta commit that is made once.

Belongs here: what a step's commit says of itself, and whether it is in the history. Delta
records no transaction for an ALTER, so its userMetadata is the record: application,
transaction, number of the step and what it does, as values, besides what the write says that it
belongs to. Fills and rewrites record a transaction of their own besides, which Delta skips at a
second try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
from deltalake import DeltaTable

from pipeline.changes.evolution import LOCAL, LOCAL_FEATURE, LOCAL_TYPE, MAPPING
from pipeline.errors import ForeignCommit, TableError
from pipeline.lake_commit import WriteKind, restamped, said_of
from pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    Fill,
    MirrorStep,
    PartColumn,
    RenameColumn,
    Rewrite,
    SetProperties,
    WidenColumn,
)
from pipeline.ports.mirrors import MirrorCommit
from pipeline.schema.column_names import is_refused
from resources.lake.columns import spelling
from resources.lake.delta_log import files_listed, needs_no_list, said_since
from resources.lake.direct import UNLISTED
from resources.lake.paths import LakePath
from resources.lake.pin import Head
from resources.lake.spark import APP_ID, TXN_VERSION, USER_METADATA, stamped
from resources.lake.statement import step_statement
from resources.lake.storage import delta_table, lake_errors
from resources.lake.writing import rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def recorded_steps(
    table: LakePath, steps: Sequence[MirrorStep], *, app_id: str, txn_version: int, after: int
) -> tuple[MirrorCommit | None, ...]:
    """The commits of the steps behind Delta version `after`, None where there is none."""
    found: dict[int, tuple[MirrorCommit, Mapping[str, Any]]] = {}
    for version, metadata in said_since(table, after):
        record = _record(metadata)
        if record.get("app_id") == app_id and record.get("txn_version") == txn_version:
            found[int(record["step"])] = (MirrorCommit(version, metadata), record)
    for number, (commit, record) in found.items():
        if number > len(steps) or record["values"] != step_values(steps[number - 1]):
            raise ForeignCommit(
                f"version {commit.delta_version} of {table} is step {number} of {txn_version} of "
                f"{app_id}, but did something else: {record['does']}",
                hint="set the policies back to what they were when the run was cut off, then run "
                "again; else compare the ledger with the table's history",
            )
    return tuple(
        found[number][0] if number in found else None for number in range(1, len(steps) + 1)
    )


def words(step: MirrorStep, number: int, told: str, *, app_id: str, txn_version: int) -> str:
    """The userMetadata of a step's commit (JSON, keys sorted); `told`: that of its write."""
    return restamped(
        told,
        WriteKind.ALTER,
        app_id=app_id,
        txn_version=txn_version,
        step=number,
        does=str(step),
        values=step_values(step),
    )


def step_values(step: MirrorStep) -> list[Any]:
    """What a step does, as values of JSON: its name, then what it is about."""
    match step:
        case SetProperties(properties):
            return ["set properties", [list(pair) for pair in properties]]
        case DropColumns(names):
            return ["drop columns", list(names)]
        case RenameColumn(name, to):
            return ["rename column", name, to]
        case WidenColumn(name, kind):
            return ["widen column", name, str(kind)]
        case AddColumns(fields):
            return ["add columns", [[field.name, str(field.type)] for field in fields]]
        case Fill(values):
            return ["fill", [[name, str(value.type), str(value)] for name, value in values]]
        case Rewrite(schema, columns):
            pairs = zip(schema, columns, strict=True)
            return ["rewrite", [[field.name, str(field.type), *_origin(c)] for field, c in pairs]]
        case _:
            assert_never(step)


def _origin(column: PartColumn) -> list[str | None]:
    return [column.source, None if column.value is None else str(column.value)]


def _record(metadata: str) -> Mapping[str, Any]:
    found = said_of(metadata)
    return found if found is not None and "step" in found else {}


def refuse_names(table: DeltaTable, steps: Sequence[MirrorStep]) -> None:
    """`TableError` for a column that is to come under a name that needs column mapping, where the
    table has none, nor the steps bring it, nor are its columns' names escaped."""
    spell = spelling(table.metadata().configuration)
    mapped = table.metadata().configuration.get(MAPPING[0]) == MAPPING[1]
    if mapped or any(isinstance(one, SetProperties) and MAPPING in one.properties for one in steps):
        return
    for name in (name for step in steps for name in _names_given(step)):
        if is_refused(spell(name)):
            raise TableError(
                f"column {name!r} has a character in its name that Delta takes with column mapping "
                'alone (space , ; { } ( ) = tab newline), and readers = "any" has none',
                hint="`lockstep reload TABLE --reason …` makes the mirror for every reader, with "
                "such names escaped",
            )


def _names_given(step: MirrorStep) -> tuple[str, ...]:
    """The names that columns have after a step and need not have had before."""
    match step:
        case AddColumns(fields):
            return tuple(fields.names)
        case RenameColumn(_, to):
            return (to,)
        case Rewrite(schema):
            return tuple(schema.names)
        case _:
            return ()


def carry_out(
    session: SparkSession,
    table: LakePath,
    step: MirrorStep,
    said: str,
    head: Head,
    *,
    app_id: str,
    txn_version: int,
) -> None:
    """Make a step's commit behind `head`."""
    spell = spelling(delta_table(table).metadata().configuration)
    recorded = {APP_ID: f"{app_id}/evolve", TXN_VERSION: str(txn_version)}
    with stamped(session, {**head.pin(), USER_METADATA: said}):
        match step:
            case SetProperties():
                _set_properties(session, table, step, head)
            case Rewrite() | Fill():
                with stamped(session, recorded):
                    rewrite(session, table, step, spell)
            case _:
                session.sql(step_statement(str(table), step, spell))


def enable(session: SparkSession, table: LakePath, schema: pa.Schema, head: Head) -> bool:
    """Let a mirror have these columns, in a commit behind `head` that changes nothing else: an
    older one DATETIME, one without column mapping names that need it. Whether there was a need
    to."""
    with lake_errors(table):
        there = delta_table(table)
        features = there.protocol().reader_features or []
        configuration = there.metadata().configuration
    spell = spelling(configuration)
    mapped = MAPPING[0] in configuration
    needed = []
    if LOCAL_TYPE in schema.types and LOCAL_FEATURE not in features:
        needed.append(LOCAL)
    if not mapped and any(is_refused(spell(name)) for name in schema.names):
        needed.append(MAPPING)
    if needed:
        with stamped(session, head.pin()):
            _set_properties(session, table, SetProperties(tuple(needed)), head)
    return bool(needed)


def _set_properties(
    session: SparkSession, table: LakePath, step: SetProperties, head: Head
) -> None:
    """Delta would run a query to list the files that the last commit did not list. Where the log
    near by tells them, it is told not to."""
    spared = needs_no_list(table, head.version, files_listed(table, head.version))
    with stamped(session, UNLISTED if spared else {}):
        session.sql(step_statement(str(table), step, str))
