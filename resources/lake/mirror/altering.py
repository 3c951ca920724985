"""Changes of the columns of a mirror (the Delta table with a table's present rows),
step by step. Each step is a Delta commit that is made once, even if a run is
interrupted and tries again.

Delta records no application transaction for an ALTER. So the commit's userMetadata
records it: the application, the transaction, the step's number and values that say what
the step does, besides the metadata of the write that needs the step. Fills and rewrites
also record a transaction, by which Delta skips them at a second try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
from deltalake import DeltaTable

from lockstep.pipeline.mirror.evolution import LOCAL, LOCAL_FEATURE, LOCAL_TYPE, MAPPING
from lockstep.pipeline.model.lake_commit import WriteKind, metadata_of_kind, read_metadata
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    ColumnOrigin,
    DropColumns,
    Fill,
    MirrorStep,
    RenameColumn,
    Rewrite,
    SetProperties,
    WidenColumn,
)
from lockstep.pipeline.ports.mirrors import MirrorCommit
from lockstep.pipeline.schema.types import is_refused
from lockstep.pipeline.values.errors import ForeignCommit, TableError
from lockstep.resources.lake.delta.checksums import add_actions_at, file_list_settings
from lockstep.resources.lake.delta.columns import spelling
from lockstep.resources.lake.delta.delta_log import metadata_since
from lockstep.resources.lake.delta.pin import Head
from lockstep.resources.lake.delta.statement import step_statement
from lockstep.resources.lake.mirror.writing import rewrite
from lockstep.resources.lake.spark.spark import (
    APP_ID_SETTING,
    TXN_VERSION_SETTING,
    USER_METADATA_SETTING,
    session_settings,
)
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_table, lake_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def recorded_steps(
    path: LakePath,
    steps: Sequence[MirrorStep],
    *,
    app_id: str,
    txn_version: int,
    after_version: int,
) -> tuple[MirrorCommit | None, ...]:
    """Return for each step its commit after Delta version `after_version`, or None if
    the step was not committed. Raise `ForeignCommit` if the commit with a step's number
    did something else."""
    commits: dict[int, tuple[MirrorCommit, Mapping[str, Any]]] = {}
    for version, metadata in metadata_since(path, after_version):
        record = read_metadata(metadata) or {}
        is_ours = record.get("app_id") == app_id and record.get("txn_version") == txn_version
        if is_ours and "step" in record:
            commits[int(record["step"])] = (MirrorCommit(version, metadata), record)
    for number, (commit, record) in commits.items():
        if number > len(steps) or record["values"] != step_values(steps[number - 1]):
            raise ForeignCommit(
                f"version {commit.delta_version} of {path} records step {number} of transaction "
                f"{txn_version} of {app_id}, but did something else: {record['does']}",
                hint="set the policies back to what they were when the run was cut off, then run "
                "again; otherwise compare the ledger with the table's history",
            )
    return tuple(
        commits[number][0] if number in commits else None for number in range(1, len(steps) + 1)
    )


def step_metadata(
    step: MirrorStep, number: int, write_metadata: str, *, app_id: str, txn_version: int
) -> str:
    """Return the userMetadata of a step's commit (sorted JSON). `write_metadata`: the
    userMetadata of the write that needs the step."""
    return metadata_of_kind(
        write_metadata,
        WriteKind.ALTER,
        app_id=app_id,
        txn_version=txn_version,
        step=number,
        does=str(step),
        values=step_values(step),
    )


def step_values(step: MirrorStep) -> list[Any]:
    """Return a step as values of JSON: the name of its kind, then its arguments."""
    match step:
        case SetProperties(properties):
            return ["set properties", [list(pair) for pair in properties]]
        case DropColumns(names):
            return ["drop columns", list(names)]
        case RenameColumn(name, new_name):
            return ["rename column", name, new_name]
        case WidenColumn(name, kind):
            return ["widen column", name, str(kind)]
        case AddColumns(fields):
            return ["add columns", [[field.name, str(field.type)] for field in fields]]
        case Fill(values):
            return ["fill", [[name, str(value.type), str(value)] for name, value in values]]
        case Rewrite(schema, columns):
            pairs = zip(schema, columns, strict=True)
            return [
                "rewrite",
                [[field.name, str(field.type), *_column_origin(c)] for field, c in pairs],
            ]
        case _:
            assert_never(step)


def _column_origin(column: ColumnOrigin) -> list[str | None]:
    return [column.source, None if column.value is None else str(column.value)]


def refuse_column_names(table: DeltaTable, steps: Sequence[MirrorStep]) -> None:
    """Raise `TableError` if a step gives a column a name that Delta accepts only with
    column mapping, while the table has no column mapping and gets none by these steps.
    A table that escapes such names takes all of them."""
    spell = spelling(table.metadata().configuration)
    if MAPPING in table.metadata().configuration.items() or any(
        isinstance(step, SetProperties) and MAPPING in step.properties for step in steps
    ):
        return
    for name in chain.from_iterable(map(_new_names, steps)):
        if is_refused(spell(name)):
            raise TableError(
                f"column {name!r} has a character in its name that Delta takes only with column "
                'mapping (space , ; { } ( ) = tab newline), which readers = "any" excludes',
                hint="run `lockstep reload TABLE --reason …`, which makes a mirror with escaped "
                "names",
            )


def _new_names(step: MirrorStep) -> tuple[str, ...]:
    """Return the names that columns get by a step."""
    match step:
        case AddColumns(fields):
            return tuple(fields.names)
        case RenameColumn(_, new_name):
            return (new_name,)
        case Rewrite(schema):
            return tuple(schema.names)
        case _:
            return ()


def commit_step(
    session: SparkSession,
    path: LakePath,
    step: MirrorStep,
    user_metadata: str,
    head: Head,
    *,
    app_id: str,
    txn_version: int,
) -> None:
    """Make a step's commit after `head`."""
    spell = spelling(delta_table(path).metadata().configuration)
    transaction = {APP_ID_SETTING: f"{app_id}/evolve", TXN_VERSION_SETTING: str(txn_version)}
    with session_settings(session, {**head.pin_settings(), USER_METADATA_SETTING: user_metadata}):
        match step:
            case SetProperties():
                _set_properties(session, path, step, head)
            case Rewrite() | Fill():
                with session_settings(session, transaction):
                    rewrite(session, path, step, spell)
            case _:
                session.sql(step_statement(str(path), step, spell))


def enable_features(session: SparkSession, path: LakePath, schema: pa.Schema, head: Head) -> bool:
    """Enable the Delta features that a mirror needs for these columns, in a commit
    after `head`: timestamps without time zone for DATETIME, and column mapping for some
    names. Return whether a commit was needed."""
    with lake_errors(path):
        table = delta_table(path)
        features = table.protocol().reader_features or []
        configuration = table.metadata().configuration
    spell = spelling(configuration)
    needed_properties = []
    if LOCAL_TYPE in schema.types and LOCAL_FEATURE not in features:
        needed_properties.append(LOCAL)
    if MAPPING not in configuration.items() and any(
        is_refused(spell(name)) for name in schema.names
    ):
        needed_properties.append(MAPPING)
    if needed_properties:
        with session_settings(session, head.pin_settings()):
            _set_properties(session, path, SetProperties(tuple(needed_properties)), head)
    return bool(needed_properties)


def _set_properties(session: SparkSession, path: LakePath, step: SetProperties, head: Head) -> None:
    add_actions = add_actions_at(path, head.version)
    with session_settings(session, file_list_settings(path, head.version, add_actions)):
        session.sql(step_statement(str(path), step, str))
