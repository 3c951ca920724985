"""The system tables: Delta tables that Lockstep adds for each source. `_transactions`
has a row for each transaction, `_ddl` one for each statement that can change a
structure. Pure.

A column that begins with `_` has the same meaning as in changelogs (the Delta tables
with all changes of a table). Other columns exist only here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import MARKS
from lockstep.pipeline.mirror.marks import TransactionMarks
from lockstep.pipeline.schema.consequences import Consequence
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.schema.history import BatchHistory, SchemaStatement, SchemaVersion
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName

TRANSACTIONS: Final = pa.schema(
    [
        MARKS.field("_file"),
        MARKS.field("_offset"),
        pa.field("end_offset", pa.int64()),
        MARKS.field("_gtid"),
        MARKS.field("_committed_at"),
        MARKS.field("_server_id"),
        pa.field("rows", pa.int64()),
        pa.field("first_sequence", pa.int64()),
        pa.field("last_sequence", pa.int64()),
        MARKS.field("_batch"),
        pa.field("statements", pa.list_(pa.string())),
        pa.field("statements_cut", pa.bool_()),
    ]
)
"""One row for each transaction. `_offset` to `end_offset`: its bytes in the log file
`_file`. `rows`: number of changed rows of captured tables; an update counts once.
`first_sequence` to `last_sequence`: the numbers of its changes in changelogs; NULL if
it has none. `statements`: the texts of its statements; NULL if the server logs no
texts, or if the transaction changed no row of a captured table, because then its texts
concern other tables. `statements_cut`: part of a text is left out."""

_TOUCHED: Final = pa.struct(
    [
        pa.field("database", pa.string()),
        pa.field("name", pa.string()),
        pa.field("effect", pa.string()),
        pa.field("schema_version", pa.int32()),
        pa.field("action", pa.string()),
        pa.field("reason", pa.string()),
    ]
)

DDL: Final = pa.schema(
    [
        MARKS.field("_sequence"),
        MARKS.field("_file"),
        MARKS.field("_offset"),
        pa.field("end_offset", pa.int64()),
        MARKS.field("_gtid"),
        MARKS.field("_committed_at"),
        MARKS.field("_executed_at"),
        MARKS.field("_server_id"),
        pa.field("database", pa.string()),
        pa.field("statement", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("tables", pa.list_(_TOUCHED)),
        MARKS.field("_batch"),
    ]
)
"""One row for each statement that can change a structure. `_sequence`: the number of
the last change before it. `_offset` to `end_offset`: the bytes of its transaction in
the log file. `database`: the session's default database. `kind`: a `StatementKind`.
`outcome`: as in `SchemaStatement`. `tables`: the tables that it names or changes, each
with its new version; a captured table also with the action that followed in the
lake."""

SYSTEM_TABLE_SCHEMAS: Final[Mapping[SystemTable, pa.Schema]] = {
    SystemTable.DDL: DDL,
    SystemTable.TRANSACTIONS: TRANSACTIONS,
}

Integers = npt.NDArray[np.int64]


def system_table_path(source: str, table: SystemTable) -> str:
    """Return the table's folder, relative to the lake. No database's folder begins with
    `_`."""
    return f"{source}/{table}"


def system_table_app_id(source: str, table: SystemTable) -> str:
    return f"lockstep/{source}/{table}"


# -- transactions ----------------------------------------------------------------------


def transaction_rows(
    marks: TransactionMarks,
    *,
    begin: Integers,
    end: Integers,
    server_id: Integers,
    rows: Integers,
    sequences: tuple[Integers, Integers],
    statements: pa.ListArray,
    cut: npt.NDArray[np.bool_],
    batch: int,
) -> pa.RecordBatch:
    """Return the rows of `_transactions`, in the order of the log.

    Each array has one entry per transaction. `begin`, `end`: its offsets in the log
    file. `server_id`: the server that ran it first. `rows`: number of its changed rows
    of captured tables. `sequences`: the `_sequence` of its first change and that of its
    last, both 0 if it has none. `statements`: the texts of its statements, NULL if none
    is logged. `cut`: part of a text is cut off. `batch`: the batch of them all.
    """
    first_sequence, last_sequence = sequences
    has_no_change = first_sequence == 0
    texts = pc.if_else(pa.array(rows > 0), statements, None)
    columns = {
        "_file": marks.file,
        "_offset": pa.array(begin),
        "end_offset": pa.array(end),
        "_gtid": marks.gtid,
        "_committed_at": pa.array(marks.committed_at).view(MARKS.field("_committed_at").type),
        "_server_id": pa.array(server_id),
        "rows": pa.array(rows),
        "first_sequence": pa.array(first_sequence, mask=has_no_change),
        "last_sequence": pa.array(last_sequence, mask=has_no_change),
        "_batch": pa.repeat(pa.scalar(batch, pa.int64()), len(begin)),
        "statements": texts,
        "statements_cut": pa.array(cut, mask=texts.is_null().to_numpy(zero_copy_only=False)),
    }
    return pa.RecordBatch.from_arrays([columns[n] for n in TRANSACTIONS.names], schema=TRANSACTIONS)


# -- statements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlacedStatement:
    """A statement, its effects (`followed`), and its place among the changes.
    `actions`: for each captured table what followed in the lake. `sequence`: the number
    of the last change before it."""

    logged: LoggedStatement
    followed: FollowedStatement
    actions: Mapping[TableName, Consequence]
    sequence: int


def statement_rows(
    history: BatchHistory, statements: Sequence[PlacedStatement], *, batch: int
) -> pa.Table:
    """Return the rows of `_ddl`; `statements` are those of the history, in the same
    order."""
    versions: dict[int, list[SchemaVersion]] = {}
    for version in history.versions:
        if version.statement_number is not None:
            versions.setdefault(version.statement_number, []).append(version)
    rows = [
        _statement_row(recorded, placed, versions.get(number, ()), batch)
        for number, (recorded, placed) in enumerate(
            zip(history.statements, statements, strict=True)
        )
    ]
    return pa.Table.from_pylist(rows, schema=DDL)


def _statement_row(
    recorded: SchemaStatement,
    placed: PlacedStatement,
    versions: Iterable[SchemaVersion],
    batch: int,
) -> dict[str, Any]:
    logged = placed.logged
    return {
        "_sequence": placed.sequence,
        "_file": str(logged.begin.file),
        "_offset": logged.begin.offset,
        "end_offset": logged.end.offset,
        "_gtid": logged.gtid or None,
        "_committed_at": logged.committed_at,
        "_executed_at": logged.executed_at,
        "_server_id": logged.server_id,
        "database": _text(recorded.database) or None,
        "statement": _text(recorded.text),
        "kind": placed.followed.kind,
        "outcome": recorded.outcome,
        "tables": _tables(placed, recorded, versions),
        "_batch": batch,
    }


def _tables(
    placed: PlacedStatement, recorded: SchemaStatement, versions: Iterable[SchemaVersion]
) -> list[dict[str, Any]]:
    """Return the values of the column `tables`. For a table that the statement changes
    without an effect that names it, `effect` says what is known of its structure."""
    effects: dict[TableName, list[str]] = {}
    for effect in recorded.effects:
        if effect.table is not None:
            effects.setdefault(effect.table, []).append(effect.words)
    version_numbers = {}
    for version in versions:
        version_numbers[version.table] = version.version
        effects.setdefault(version.table, [version.knowledge.value])
    for table in placed.actions:
        effects.setdefault(table, [])
    touched = [(table, effects[table], placed.actions.get(table)) for table in effects]
    return [
        {
            "database": _text(table.database),
            "name": _text(table.name),
            "effect": _text("; ".join(sentences)) or None,
            "schema_version": version_numbers.get(table),
            "action": consequence.action.value if consequence is not None else None,
            "reason": _text(consequence.reason) if consequence is not None else None,
        }
        for table, sentences, consequence in touched
    ]


def _text(text: str) -> str:
    """Return a text that is valid UTF-8. A byte that is invalid in its character set,
    which Python holds as a surrogate, becomes `\\xff`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
