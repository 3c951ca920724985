"""What commits in the lake say of themselves, so that a lake tells all that a new ledger needs.

Every commit says to which source, ledger, table and batches it belongs, what kind of write it is,
and the cursor behind the last of the batches. A commit to `_transactions` also says what no other
commit can: which tables the batch touched, which ones stand still and which are partial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pipeline.batch import Batch
from pipeline.intent import SettledWrite
from pipeline.lake_commit import (
    FORMAT,
    WriteKind,
    digest,
    restamped,
    stamp,
    structures_key,
    structures_text,
)
from pipeline.ports.ledger import content_of
from pipeline.runs.context import Workplace
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.segment import SegmentFile, SourceTable
from pipeline.table import TableName

if TYPE_CHECKING:
    from pipeline.recovery.facts import Told

NOT_CAPTURED: Final = "not captured"
"""How a complete table stands still: the batch lacks its changes."""

GTIDS: Final = 4096
"""A longer set is told by commits to `_transactions` alone: there is one for each batch."""


def commit_metadata(
    work: Workplace,
    kind: WriteKind,
    table: TableName | SourceTable,
    batches: Iterable[Batch],
    files: Iterable[SegmentFile] | None,
    *,
    version: SchemaVersion | None = None,
) -> str:
    """Of a write that shows these batches (JSON, keys sorted). `files`: None where it is not known
    which ones it was made of. `version`: of the structure that the table's rows have from here on,
    whose file `keep_structures` makes. Structures that a commit to `_transactions` names are kept
    here."""
    ordered = list(batches)
    last = ordered[-1]
    said = _said(work, kind, table, (ordered[0].id, last.id), last)
    if files is not None:
        said["files"] = digest(file.sha256 for file in files)
    if version is not None and version.schema is not None:
        said["structure"] = structures_key(structures_text([version.schema]))
        said["shape"] = version.shape
    if table is SourceTable.TRANSACTIONS:
        said |= _standing(work, last)
    return stamp(said)


def upkept_metadata(write: SettledWrite, said: str) -> str:
    """Of a commit that leaves the rows of a mirror as this write, which said that, made them."""
    return restamped(
        said,
        WriteKind.UPKEEP,
        app_id=write.intent.app_id,
        txn_version=write.intent.txn_version,
        shows=write.delta_version,
    )


def restated_metadata(work: Workplace, table: TableName | SourceTable, batch: int) -> str:
    """Of the commit after which a changelog lists what is acknowledged."""
    batches = work.ledger.live_batches(work.source.name, batch, batch) if batch else []
    last = batches[0] if batches else None
    said = _said(work, WriteKind.RESTATE, table, (batch, batch), last)
    return stamp({**said, "restated": True})


def recovered_metadata(work: Workplace, table: TableName | SourceTable, told: Told) -> str:
    """The same where another ledger tells of the batch, which this one does not have."""
    said = _said(work, WriteKind.RESTATE, table, (told.batch, told.batch), None)
    of_told = {"ledger": told.ledger, "position": str(told.at), "restated": True}
    return stamp(said | of_told)


def revised_metadata(
    work: Workplace,
    table: TableName,
    batches: tuple[int, int],
    files: Iterable[SegmentFile],
    revision: int,
) -> str:
    """Of the commit that gives a changelog other files for these batches: its newest batch stays
    what it was."""
    [last] = work.ledger.live_batches(work.source.name, batches[1], batches[1])
    said = _said(work, WriteKind.REVISE, table, batches, last)
    said["files"] = digest(file.sha256 for file in files)
    return stamp({**said, "revision": revision})


def forgotten_metadata(
    work: Workplace, table: TableName | SourceTable, above: int, through: int
) -> str:
    """Of the commit after which a table lists no file of batches up to `through`."""
    [last] = work.ledger.live_batches(work.source.name, through, through)
    return stamp(_said(work, WriteKind.FORGET, table, (above + 1, through), last))


def cleared_metadata(work: Workplace, table: SourceTable, through: int) -> str:
    """Of the commit after which a table of the source's own has other files for batches up to
    `through`, without values that are not shown any more."""
    [last] = work.ledger.live_batches(work.source.name, through, through)
    return stamp(_said(work, WriteKind.REVISE, table, (1, through), last))


def _said(
    work: Workplace,
    kind: WriteKind,
    table: TableName | SourceTable,
    batches: tuple[int, int],
    last: Batch | None,
) -> dict[str, Any]:
    end = None if last is None else last.end
    said: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind.value,
        "ledger": work.ledger.identity(),
        "source": work.source.name,
        "table": str(table),
        "batches": list(batches),
        "position": None if end is None else str(end.at),
    }
    if isinstance(table, TableName):
        said["name"] = _name(table)
    if last is not None and (cursor := _cursor(last, whole=not isinstance(table, TableName))):
        said["cursor"] = cursor
    return said


def _cursor(batch: Batch, *, whole: bool) -> dict[str, Any]:
    end, witness = batch.end, batch.witness
    if end is None or witness is None:
        return {}
    gtids = str(end.gtid_set)
    return {
        "server": end.server_uuid,
        "gtids": gtids if whole or len(gtids) <= GTIDS else None,
        "by_gtid": batch.by_gtid,
        "committed_at": None if end.committed_at is None else end.committed_at.isoformat(),
        "witness": [
            witness.offset,
            witness.length,
            witness.crc32,
            witness.gtid,
            witness.file_created,
        ],
        "sequence": batch.base + batch.changes,
    }


def _standing(work: Workplace, batch: Batch) -> Mapping[str, Any]:
    """What a commit to `_transactions` says besides, of the tables behind its batch."""
    ledger, source = work.ledger, batch.source
    states = ledger.table_states(source)
    still = dict.fromkeys(_not_captured(work, batch, states), NOT_CAPTURED) | {
        table: "being read" if state.loading else state.condition.value
        for table, state in states.items()
        if not state.complete
    }
    structures = _new_structures(work, batch)
    return {
        "touched": [_name(table) for table in sorted(_touched(work, batch))],
        "still": [[*_name(table), still[table]] for table in sorted(still)],
        "partial": [
            [*_name(extent.table), str(extent.begins)] for extent in ledger.partial(source)
        ],
        "prepared": len(ledger.open_prepared(source)),
        "structures": work.claims.keep_structures(source, structures) if structures else None,
    }


def _touched(work: Workplace, batch: Batch) -> set[TableName]:
    return content_of(work.ledger, batch.source, batch.id).tables


def _not_captured(
    work: Workplace, batch: Batch, tables: Iterable[TableName]
) -> Iterator[TableName]:
    """Tables that are complete now and that the batch lacks: its patterns left them out, or a later
    batch, which is not merged yet, brought them back."""
    ledger, source = work.ledger, batch.source
    scopes = [scope for scope in ledger.capture_scopes(source) if scope.batch <= batch.id]
    yield from (table for table in tables if scopes and not scopes[-1].patterns.matches(table))
    for later in ledger.unfinished(source):
        if later.id > batch.id and later.catches_up:
            yield from _touched(work, later)
        elif later.id > batch.id:
            yield from (
                snapshot.table for snapshot in content_of(ledger, source, later.id).snapshots
            )


def _new_structures(work: Workplace, batch: Batch) -> list[TableSchema]:
    """What the batch found tables to have, or statements in it made of them."""
    if batch.end is None:
        return []
    versions = work.ledger.schemas_at(batch.source, batch=batch.id, place=batch.end.at)
    return [
        version.schema
        for version in versions
        if version.batch == batch.id
        and version.knowledge is Knowledge.KNOWN
        and version.schema is not None
    ]


def keep_structures(work: Workplace, structures: Sequence[TableSchema]) -> None:
    """Durable in the source's folder before a commit names them; once for each content."""
    if structures:
        work.claims.keep_structures(work.source.name, structures)


def _name(table: TableName) -> list[str]:
    return [table.database, table.name]
