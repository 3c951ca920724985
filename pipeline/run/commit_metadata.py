"""The user metadata of Delta commits, from which a lost ledger (in Postgres) can be
recovered.

Every commit names its source, ledger, table and batches, the kind of the write, and the
position after the last of the batches. A batch is a part of the log that a run captured
at once. Each batch makes exactly one commit to `_transactions`, the Delta table of the
source's transactions. So this commit also has facts about the whole batch: the tables
with changes, the tables that are no longer captured, and the tables whose earlier rows
are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.lake_commit import (
    BEING_READ,
    METADATA_FORMAT,
    NEEDS_CONSENT,
    NOT_CAPTURED,
    WriteKind,
    files_digest,
    metadata_of_kind,
    metadata_text,
    structures_key,
    structures_text,
)
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.consent import tables_needing_consent
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.intent import SettledWrite
from lockstep.pipeline.values.segment import SegmentFile, SystemTable
from lockstep.pipeline.values.table import TableName, patterns_of

if TYPE_CHECKING:
    from lockstep.pipeline.recovery import BatchRecord

_MOST_GTID_CHARACTERS: Final = 4096
"""Largest length of a GTID set in a commit to a table. A longer set is left out. A
commit to `_transactions` has a set of any length."""


def commit_metadata(
    ports: RunPorts,
    kind: WriteKind,
    table: TableName | SystemTable,
    batches: Iterable[Batch],
    files: Iterable[SegmentFile] | None,
    *,
    version: SchemaVersion | None = None,
    has_rows_without_log: bool = False,
) -> str:
    """Return the metadata of a commit with the changes of these batches (JSON, keys
    sorted).

    - `files`: the segment files with the rows; None if they are not known.
    - `version`: the structure of the table's rows after the commit. The caller stores
      it in the lake (`Claims.store_structures`). For a commit to `_transactions`, this
      function stores the structures that the metadata names.
    - `has_rows_without_log`: rows of the commit came from elsewhere than the log. A
      recovery that undoes the commit has to know that.
    """
    batch_list = list(batches)
    last = batch_list[-1]
    fields = _common_fields(ports, kind, table, (batch_list[0].id, last.id), last)
    if files is not None:
        fields["files"] = files_digest(file.sha256 for file in files)
    if version is not None and version.schema is not None:
        fields["structure"] = structures_key(structures_text([version.schema]))
        fields["shape"] = version.shape_fingerprint
    if has_rows_without_log:
        fields["rows_without_log"] = True
    if table is SystemTable.TRANSACTIONS:
        # The lake gets the structures before the commit that names them.
        fields["structures"] = _store_new_structures(ports, last)
        fields |= _batch_fields(ports, last)
    return metadata_text(fields)


def upkeep_metadata(write: SettledWrite, write_metadata: str) -> str:
    """Return the metadata of a commit that changes no row of a mirror, such as a
    compaction. `write`: the last write that changed rows. `write_metadata`: its
    metadata."""
    return metadata_of_kind(
        write_metadata,
        WriteKind.UPKEEP,
        app_id=write.intent.app_id,
        txn_version=write.intent.txn_version,
        shows=write.delta_version,
    )


def restatement_metadata(ports: RunPorts, table: TableName | SystemTable, batch: int) -> str:
    """Return the metadata of a correcting commit, after which a changelog lists exactly
    the files of the acknowledged batches. `batch`: the last of them; 0 if there are
    none."""
    batches = ports.ledger.live_batches(ports.source.name, batch, batch) if batch else []
    last = batches[0] if batches else None
    fields = _common_fields(ports, WriteKind.RESTATE, table, (batch, batch), last)
    return metadata_text({**fields, "restated": True})


def recovery_metadata(ports: RunPorts, table: TableName | SystemTable, record: BatchRecord) -> str:
    """Return the metadata of a correcting commit, after which a changelog lists exactly
    the files up to a batch of a lost ledger. `record`: what the metadata of an earlier
    commit says of this batch."""
    fields = _common_fields(ports, WriteKind.RESTATE, table, (record.batch, record.batch), None)
    return metadata_text(
        fields | {"ledger": record.ledger, "place": str(record.end), "restated": True}
    )


def revision_metadata(
    ports: RunPorts,
    table: TableName,
    batches: tuple[int, int],
    files: Iterable[SegmentFile],
    revision: int,
) -> str:
    """Return the metadata of a commit that replaces a changelog's files because their
    batches were captured again. `batches`: the first and the last batch. `files`: the
    new files. `revision`: the number of the replacement."""
    last = _live_batch(ports, batches[1])
    fields = _common_fields(ports, WriteKind.REVISE, table, batches, last)
    fields["files"] = files_digest(file.sha256 for file in files)
    return metadata_text({**fields, "revision": revision})


def removal_metadata(
    ports: RunPorts,
    kind: WriteKind,
    table: TableName | SystemTable,
    batches: tuple[int, int],
) -> str:
    """Return the metadata of a commit that removes data from a changelog: whole files,
    or values that the settings now hide, by files without these values. `batches`: the
    first and the last batch of the files."""
    last = _live_batch(ports, batches[1])
    return metadata_text(_common_fields(ports, kind, table, batches, last))


def _live_batch(ports: RunPorts, number: int) -> Batch:
    [batch] = ports.ledger.live_batches(ports.source.name, number, number)
    return batch


def _common_fields(
    ports: RunPorts,
    kind: WriteKind,
    table: TableName | SystemTable,
    batches: tuple[int, int],
    last: Batch | None,
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": METADATA_FORMAT,
        "kind": kind.value,
        "ledger": ports.ledger.identity(),
        "source": ports.source.name,
        "table": str(table),
        "batches": list(batches),
        "place": None if last is None else str(last.captured_end.at),
    }
    if last is not None:
        assert last.captured_at is not None, "only captured batches are in the lake"
        fields["captured_at"] = last.captured_at.isoformat()
    if isinstance(table, TableName):
        fields["name"] = _name_parts(table)
    if last is not None:
        fields["cursor"] = _cursor_fields(last, any_length=not isinstance(table, TableName))
    return fields


def _cursor_fields(batch: Batch, *, any_length: bool) -> dict[str, Any]:
    """Return what a recovered ledger needs to continue after the batch. `any_length`:
    include a GTID set of any length."""
    end, anchor = batch.captured_end, batch.captured_cursor.anchor
    gtids = str(end.gtid_set)
    return {
        "server_uuid": end.server_uuid,
        "gtid_set": gtids if any_length or len(gtids) <= _MOST_GTID_CHARACTERS else None,
        "by_gtid": batch.by_gtid,
        "committed_at": None if end.committed_at is None else end.committed_at.isoformat(),
        "anchor": [
            anchor.offset,
            anchor.length,
            anchor.crc32,
            anchor.gtid,
            anchor.file_created,
        ],
        "sequence": batch.sequence_before + batch.changes,
    }


def _batch_fields(ports: RunPorts, batch: Batch) -> Mapping[str, Any]:
    """Return metadata that only commits to `_transactions` have: the state of all
    tables after the batch."""
    ledger, source = ports.ledger, batch.source
    states = ledger.table_states(source)
    standings = dict.fromkeys(_uncaptured_tables(ports, batch, states), NOT_CAPTURED) | {
        table: _standing(state) for table, state in states.items() if not state.is_complete
    }
    standings |= dict.fromkeys(tables_needing_consent(ports), NEEDS_CONSENT)
    touched_tables = batch_content(ledger, source, batch.id).tables
    return {
        "touched": [_name_parts(table) for table in sorted(touched_tables)],
        "not_following": [[*_name_parts(table), standings[table]] for table in sorted(standings)],
        "partial": [
            [*_name_parts(extent.table), str(extent.begins)]
            for extent in ledger.partial_tables(source)
        ],
        "prepared": len(ledger.open_prepared(source)),
    }


def _standing(state: TableState) -> str:
    if state.need is Need.CONSENT:
        return NEEDS_CONSENT
    return BEING_READ if state.is_loading else state.condition.value


def _uncaptured_tables(
    ports: RunPorts, batch: Batch, tables: Iterable[TableName]
) -> Iterator[TableName]:
    """Yield tables that the batch did not capture: its patterns excluded them, or a
    later batch that is not merged yet brought them back. The ledger has such a table as
    followed already. A batch that catches up has only tables that were stopped before
    it; another later batch brought back those whose rows it read from the source."""
    ledger, source = ports.ledger, batch.source
    patterns = patterns_of(ledger.capture_scopes(source), batch.id)
    if patterns is not None:
        yield from (table for table in tables if not patterns.matches(table))
    for later in ledger.unfinished_batches(source):
        if later.id > batch.id:
            content = batch_content(ledger, source, later.id)
            read_tables = {snapshot.table for snapshot in content.snapshots}
            yield from content.tables if later.catches_up else read_tables


def _store_new_structures(ports: RunPorts, batch: Batch) -> str | None:
    """Store in the lake the table structures that the batch recorded, after statements
    or from the server. Return their key, or None if there are none."""
    place = batch.captured_end.at
    versions = ports.ledger.schemas_at(batch.source, batch=batch.id, place=place)
    structures = [
        version.schema
        for version in versions
        if version.batch == batch.id
        and version.knowledge is Knowledge.KNOWN
        and version.schema is not None
    ]
    return ports.claims.store_structures(batch.source, structures) if structures else None


def _name_parts(table: TableName) -> list[str]:
    return [table.database, table.name]
