"""Shows a table's structure at a place of the log, and the changes that led to it.

The ledger answers for most places. The server is asked only for `earliest`, for a
moment in a given log file (the ledger has no index of log files), and for a moment
after the last captured transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import takewhile
from typing import Final

from lockstep.pipeline.model.batch import BatchTimes
from lockstep.pipeline.ports.ledger import Batches, Ledger, Structures
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.find_place import resolve_end
from lockstep.pipeline.run.unpruned_batches import batch_of_run, pruned_clause
from lockstep.pipeline.schema.compare import differences
from lockstep.pipeline.schema.history import SchemaStatement, SchemaVersion, VersionOrigin
from lockstep.pipeline.values.division import find_moment
from lockstep.pipeline.values.errors import (
    LockstepError,
    NothingMatches,
    SchemaUnknownAt,
    SpanRefused,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
)
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

_MOST_SIMILAR_NAMES: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ShownSchema:
    """The versions of a table's structure, oldest first. `shown_version`: the one in
    force at the place."""

    table: TableName
    shown_version: ShownVersion
    versions: tuple[ShownVersion, ...]


def show_schema(
    ledger: Ledger,
    source: str,
    table: TableName,
    place: Place | None,
    open_ports: Callable[[], RunPorts],
) -> ShownSchema:
    """Return the table's structure at a place, or the newest one if `place` is None.

    `open_ports` is called only if the server has to be asked.
    Raise `NothingMatches` for a table that is not in the history, and `SchemaUnknownAt`
    for a place that no batch captured.
    """
    versions = ledger.schema_versions(source, table)
    if not versions:
        raise unknown_table_error(table, ledger.last_versions(source), f"the history of {source}")
    history = tuple(_with_changes(ledger, source, versions))
    version = (
        versions[-1] if place is None else _version_at(ledger, source, history, place, open_ports)
    )
    if version is None:
        raise SchemaUnknownAt(
            f"the structure of {table} at {place} is not in the history, which begins at "
            f"{versions[0].since}",
            hint=f"`lockstep schema {table.word}` lists all versions",
        )
    shown_version = next(shown for shown in history if shown.version == version)
    return ShownSchema(table, shown_version, history)


def unknown_table_error(
    table: TableName,
    tables: Iterable[TableName],
    where: str,
    hint: str = "`lockstep tables` lists all tables",
) -> NothingMatches:
    """Return the error for an unknown table, with the most similar names as its hint.
    `hint`: the hint if no names are similar."""
    names = sorted(map(str, tables))
    names_in_lower_case = {name.lower(): name for name in names}
    similar_names = [
        names_in_lower_case[name]
        for name in get_close_matches(
            str(table).lower(), names_in_lower_case, n=_MOST_SIMILAR_NAMES, cutoff=0.7
        )
    ]
    if similar_names:
        hint = f"did you mean {' or '.join(similar_names)}?"
    return NothingMatches(f"{where} has no table {table}", hint=hint)


def _version_at(
    ledger: Ledger,
    source: str,
    versions: Sequence[ShownVersion],
    place: Place,
    open_ports: Callable[[], RunPorts],
) -> SchemaVersion | None:
    table = versions[0].version.table
    match place:
        case Latest():
            return versions[-1].version
        case AtCoordinates(at):
            return _version_at_coordinates(ledger, source, table, at, _servers(ledger, source))
        case AtMoment(moment):
            return _version_at_moment(ledger, source, versions, moment, open_ports)
        case AfterGtids(gtids):
            return _version_after_gtids(ledger, source, versions, gtids)
        case OfRun(run):
            try:
                batch = batch_of_run(ledger, source, run)
            except SpanRefused as error:
                raise _not_captured_error(source, error.message) from error
            return ledger.schema_at(source, table, batch=batch.id, place=batch.captured_end.at)
        case Earliest() | InFile():
            ports = open_ports()
            facts = ports.server.facts()
            cursor = ledger.cursors(source).captured
            if cursor is None:
                raise _not_captured_error(source, "nothing was captured")
            at = resolve_end(ports, place, facts, cursor.position)
            return _version_at_coordinates(ledger, source, table, at, [facts.server_uuid])


def _servers(ledger: Batches, source: str) -> list[str]:
    """Return the UUIDs of the servers from which the source was read, newest first."""
    return list(
        dict.fromkeys(period.server_uuid for period in reversed(ledger.server_periods(source)))
    )


def _version_at_coordinates(
    ledger: Ledger, source: str, table: TableName, at: Coordinates, servers: Sequence[str]
) -> SchemaVersion | None:
    for server in servers:
        batch = ledger.captured_batch(source, server, at)
        if batch is not None:
            return ledger.schema_at(source, table, batch=batch.id, place=at)
    raise _not_captured_error(source, f"no batch captured {at}{pruned_clause(ledger, source)}")


def _version_at_moment(
    ledger: Ledger,
    source: str,
    versions: Sequence[ShownVersion],
    moment: datetime,
    open_ports: Callable[[], RunPorts],
) -> SchemaVersion | None:
    """Return the version in force at a moment: the last that precedes it. All versions
    of earlier batches than the one that contains the moment precede it. A version of
    that batch does if its statement committed before the moment. If the moment is after
    the last captured transaction, the server is asked whether it has later ones."""
    history_begin = _history_begin(ledger, source, versions)
    if history_begin is not None and moment < history_begin:
        raise SchemaUnknownAt(
            f"{source}: the history of {versions[0].version.table} begins at "
            f"{history_begin.isoformat()}, after {moment.isoformat()}",
            hint=f"`lockstep schema {versions[0].version.table.word}` lists all versions",
        )
    times = ledger.batch_times(source)
    reaching = [_first_batch_reaching(times, server, moment) for server in _servers(ledger, source)]
    batch_ids = [batch_id for batch_id in reaching if batch_id is not None]
    if not batch_ids:
        if _is_captured_until(ledger, source, moment, open_ports()):
            return versions[-1].version
        raise _not_captured_error(
            source, f"nothing committed at or after {moment.isoformat()} was captured"
        )
    first = last = min(batch_ids)
    begin = times[0].begin
    if (
        ledger.pruned_through(source)
        and last == times[0].id
        and begin is not None
        and begin >= moment
    ):
        # The moment is in one of the batches that the ledger has pruned.
        first, last = 0, last - 1
    before = [version for version in versions if version.version.batch < first]
    within = [version for version in versions if first <= version.version.batch <= last]
    count = find_moment([version.committed_at or _EPOCH for version in within], moment).place
    return _last_version([*before, *within[:count]])


def _first_batch_reaching(times: Sequence[BatchTimes], server: str, moment: datetime) -> int | None:
    """Return the server's first batch that ends at or after a moment; None if all end
    before it."""
    ends = [(batch, batch.end) for batch in times if batch.server_uuid == server and batch.end]
    weights = [max(batch.transactions, 1) for batch, _ in ends]
    place = find_moment([end for _, end in ends], moment, weights).place
    return ends[place][0].id if place < len(ends) else None


def _history_begin(
    ledger: Batches, source: str, versions: Sequence[ShownVersion]
) -> datetime | None:
    """Return when a table's history begins: at the commit of the statement that created
    it, or at the start of the batch that first read its structure. Return None if that
    is unknown."""
    if versions[0].statement is not None:
        return versions[0].statement.committed_at
    batch_id = versions[0].version.batch
    first = next(iter(ledger.live_batches(source, batch_id, batch_id)), None)
    if first is None:
        return None
    if first.start.committed_at is not None:
        return first.start.committed_at
    moments = [first.created_at, first.captured_end.committed_at]
    moments += [version.committed_at for version in versions]
    return min(moment for moment in moments if moment is not None)


def _is_captured_until(ledger: Batches, source: str, moment: datetime, ports: RunPorts) -> bool:
    """Return whether the moment is in the past and every earlier commit has been
    captured."""
    cursor, facts = ledger.cursors(source).captured, ports.server.facts()
    if cursor is None or cursor.position.server_uuid != facts.server_uuid:
        return False
    if moment > ports.clock():
        return False
    if cursor.position.at == facts.head:
        return True
    return resolve_end(ports, AtMoment(moment), facts, cursor.position) <= cursor.position.at


def _version_after_gtids(
    ledger: Batches, source: str, versions: Sequence[ShownVersion], gtids: GtidSet
) -> SchemaVersion | None:
    """Return the last version before the first one that the GTID set does not include.
    The set includes a version that a statement made if it contains the statement's
    GTID, and any other version if it contains all transactions before the version's
    batch."""
    cursor = ledger.cursors(source).captured
    if cursor is None or not cursor.position.gtid_set.contains(gtids):
        raise _not_captured_error(
            source, f"transactions of {gtids.shortened_text()} were not captured"
        )
    batches = {batch.id: batch for batch in ledger.batches(source, limit=None)}

    def is_included(version: ShownVersion) -> bool:
        if version.statement is not None:
            return bool(version.statement.gtid) and gtids.contains(
                GtidSet.parse(version.statement.gtid)
            )
        batch = batches.get(version.version.batch)
        return batch is None or gtids.contains(batch.start.gtid_set)

    return _last_version(takewhile(is_included, versions))


def _last_version(versions: Iterable[ShownVersion]) -> SchemaVersion | None:
    version_list = list(versions)
    return version_list[-1].version if version_list else None


def _not_captured_error(source: str, reason: str) -> LockstepError:
    return SchemaUnknownAt(
        f"{source}: {reason}",
        hint="leave --at out to see the newest version; "
        f"`lockstep status --source {source}` shows what was captured",
    )


# -- the changes from version to version -----------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """A version of a structure, the statement that made it (None if it was read from
    the server), and its differences from the version before, each as "what: before,
    now"."""

    version: SchemaVersion
    statement: SchemaStatement | None
    changes: tuple[str, ...]

    @property
    def committed_at(self) -> datetime | None:
        return None if self.statement is None else self.statement.committed_at


def _with_changes(
    ledger: Structures, source: str, versions: Sequence[SchemaVersion]
) -> Iterator[ShownVersion]:
    """Yield the versions with their statements and their differences."""
    numbers = [version.statement_number for version in versions]
    statements = ledger.statements(source, [number for number in numbers if number is not None])
    for before, after, number in zip([None, *versions], versions, numbers, strict=False):
        statement = None if number is None else statements[number]
        yield ShownVersion(after, statement, tuple(_changes(before, after)))


def _changes(before: SchemaVersion | None, after: SchemaVersion) -> Iterator[str]:
    """Yield the differences of two versions, each as "what: before, now". Renamed
    columns are recognized if the history records the earlier name of each column."""
    if before is None or after.schema is None or before.schema is None:
        return
    parts = differences(before.schema, after.schema)
    columns = list(_column_changes(before, after))
    for part in parts:
        if columns and part.startswith("columns: "):
            yield from columns
        else:
            yield part
    if not parts and after.origin is VersionOrigin.CARRIED:
        yield f"nothing: as in version {before.version}"


def _column_changes(before: SchemaVersion, after: SchemaVersion) -> Iterator[str]:
    """Yield the columns that were added, renamed or dropped. Yield nothing if the
    history does not record the earlier name of each column, as for a table that a new
    one replaced."""
    if after.schema is None or before.schema is None or after.columns_from is None:
        return
    for column, origin in zip(after.schema.columns, after.columns_from, strict=True):
        if origin is None:
            yield f"column {column.name}: new"
        elif origin != column.name:
            yield f"column {origin}: now {column.name}"
    for old in before.schema.columns:
        if old.name not in after.columns_from:
            yield f"column {old.name}: dropped"
