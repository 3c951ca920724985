"""What a table looked like at a place of the log, and how it came to that.

A place is answered from the ledger; the server is asked for `earliest` and for a moment in
one file alone, which the ledger has no index of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import pairwise, takewhile
from typing import Final

from pipeline.batch import BatchTimes
from pipeline.division import divided
from pipeline.errors import LockstepError, NothingMatches, NotYet, SchemaUnknownAt
from pipeline.gtid import GtidSet
from pipeline.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
    Snapshot,
)
from pipeline.ports.ledger import Ledger
from pipeline.position import Coordinates
from pipeline.runs.context import Workplace
from pipeline.runs.find_place import resolve_end
from pipeline.runs.known_batches import but_known, no_such_run
from pipeline.schema.compare import differences
from pipeline.schema.history import SchemaStatement, SchemaVersion, VersionOrigin
from pipeline.table import TableName

_NEAR: Final = 3
_BATCHES: Final = 1_000_000_000
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ShownSchema:
    """`shown`: the version in force at the place; `versions`: all of them, in order."""

    table: TableName
    shown: ToldVersion
    versions: tuple[ToldVersion, ...]


def show_schema(
    ledger: Ledger,
    source: str,
    table: TableName,
    place: Place | None,
    work: Callable[[], Workplace],
) -> ShownSchema:
    """The table's structure now (None), or at a place.

    `NothingMatches` for a table that the history has nothing of, with the names nearest to
    it; `SchemaUnknownAt` for a place that no batch read. `work` is called where the server
    has to be asked.
    """
    versions = ledger.schema_versions(source, table)
    if not versions:
        raise unknown_table(table, ledger.last_versions(source), f"the history of {source}")
    told = tuple(told_versions(ledger, source, versions))
    found = versions[-1] if place is None else _at(ledger, source, told, place, work)
    if found is None:
        raise SchemaUnknownAt(
            f"how {table} was built at {place} is not in the history, which begins at "
            f"{versions[0].since}",
            hint=f"`lockstep schema {table}` lists the versions there are",
        )
    return ShownSchema(table, next(version for version in told if version.version == found), told)


def unknown_table(table: TableName, known: Iterable[TableName], where: str) -> NothingMatches:
    """The refusal of a name that nobody knows, with those nearest to it."""
    names = sorted(map(str, known))
    folded = {name.lower(): name for name in names}
    near = [
        folded[name] for name in get_close_matches(str(table).lower(), folded, n=_NEAR, cutoff=0.7)
    ]
    hint = f"did you mean {' or '.join(near)}?" if near else "`lockstep tables` lists what there is"
    return NothingMatches(f"{where} has no table {table}", hint=hint)


def _at(
    ledger: Ledger,
    source: str,
    versions: Sequence[ToldVersion],
    place: Place,
    work: Callable[[], Workplace],
) -> SchemaVersion | None:
    table = versions[0].version.table
    match place:
        case Latest():
            return versions[-1].version
        case AtCoordinates(at):
            return _at_coordinates(ledger, source, table, at, _servers(ledger, source))
        case AtMoment(moment):
            return _at_moment(ledger, source, versions, moment, work)
        case AfterGtids(gtids):
            return _after(ledger, source, versions, gtids)
        case OfRun(run):
            batch = ledger.captured_batch(source, run=run)
            if batch is None or batch.end is None:
                raise _never_read(source, no_such_run(ledger, source, run))
            return ledger.schema_at(source, table, batch=batch.id, place=batch.end.at)
        case Earliest() | InFile():
            workplace = work()
            facts = workplace.server.facts()
            cursor = ledger.cursors(source).captured
            if cursor is None:
                raise _never_read(source, "nothing was captured")
            at = resolve_end(workplace, place, facts, cursor.position)
            return _at_coordinates(ledger, source, table, at, [facts.server_uuid])
        case Snapshot():
            raise NotYet(
                "'snapshot' is a way to start, not a place in time", hint="`lockstep schema --help`"
            )


def _servers(ledger: Ledger, source: str) -> list[str]:
    """Those the source was read from, the last one first."""
    return list(dict.fromkeys(reign.server_uuid for reign in reversed(ledger.lineage(source))))


def _at_coordinates(
    ledger: Ledger, source: str, table: TableName, at: Coordinates, servers: Sequence[str]
) -> SchemaVersion | None:
    for server in servers:
        batch = ledger.captured_batch(source, server_uuid=server, at=at)
        if batch is not None:
            return ledger.schema_at(source, table, batch=batch.id, place=at)
    raise _never_read(source, f"no batch read {at}{but_known(ledger, source)}")


def _at_moment(
    ledger: Ledger,
    source: str,
    versions: Sequence[ToldVersion],
    moment: datetime,
    work: Callable[[], Workplace],
) -> SchemaVersion | None:
    """What the statements before it made, in the order they were read: those of earlier batches,
    and of the batch that the moment lies in as far as their commit times tell. Behind the last
    transaction that was read the server is asked whether there are more."""
    began = _began(ledger, source, versions)
    if began is not None and moment < began:
        raise SchemaUnknownAt(
            f"{source}: the history of {versions[0].version.table} begins at {began.isoformat()}, "
            f"after {moment.isoformat()}",
            hint=f"`lockstep schema {versions[0].version.table}` lists the versions there are",
        )
    times = ledger.batch_times(source)
    found = [_reaching(times, server, moment) for server in _servers(ledger, source)]
    numbers = [number for number in found if number is not None]
    if not numbers:
        if _quiet(ledger, source, moment, work()):
            return versions[-1].version
        raise _never_read(source, f"nothing committed at or after {moment.isoformat()} was read")

    first = last = min(numbers)
    begin = times[0].begin
    later = begin is not None and begin >= moment
    if ledger.pruned_through(source) and last == times[0].id and later:
        # It lies in one of the batches that the ledger has forgotten.
        first, last = 0, last - 1
    before = [version for version in versions if version.version.batch < first]
    within = [version for version in versions if first <= version.version.batch <= last]
    made = [version.statement and version.statement.committed_at for version in within]
    return _last([*before, *within[: divided([at or _EARLIEST for at in made], moment).place]])


def _reaching(times: Sequence[BatchTimes], server: str, moment: datetime) -> int | None:
    """The batch from that server in which a moment lies; None if it comes after them all."""
    known = [(one.id, one.end) for one in times if one.server_uuid == server and one.end]
    place = divided([end for _, end in known], moment).place
    return known[place][0] if place < len(known) else None


def _began(ledger: Ledger, source: str, versions: Sequence[ToldVersion]) -> datetime | None:
    """The first moment that the history is known to reach back to; None where a statement
    made the table, and nothing was known of it before."""
    if versions[0].statement is not None:
        return versions[0].statement.committed_at
    batches = ledger.batches(source, limit=_BATCHES)
    first = next((batch for batch in batches if batch.id == versions[0].version.batch), None)
    if first is None:
        return None
    if first.start.committed_at is not None:
        return first.start.committed_at
    known = [first.created_at, None if first.end is None else first.end.committed_at]
    known += [
        version.statement.committed_at for version in versions if version.statement is not None
    ]
    return min(one for one in known if one is not None)


def _quiet(ledger: Ledger, source: str, moment: datetime, work: Workplace) -> bool:
    """Whether the moment is past, and all that was committed before it was read."""
    cursor, facts = ledger.cursors(source).captured, work.server.facts()
    if cursor is None or moment > work.clock() or cursor.position.server_uuid != facts.server_uuid:
        return False
    if cursor.position.at == facts.head:
        return True
    return resolve_end(work, AtMoment(moment), facts, cursor.position) <= cursor.position.at


def _after(
    ledger: Ledger, source: str, versions: Sequence[ToldVersion], gtids: GtidSet
) -> SchemaVersion | None:
    """What the statements of the set made; and what was found where a batch began that
    begins inside the set."""
    cursor = ledger.cursors(source).captured
    if cursor is None or not cursor.position.gtid_set.contains(gtids):
        raise _never_read(source, f"transactions of {gtids.shortened()} were not read")

    batches = {batch.id: batch for batch in ledger.batches(source, limit=_BATCHES)}

    def before(version: ToldVersion) -> bool:
        if version.statement is not None:
            return bool(version.statement.gtid) and gtids.contains(
                GtidSet.parse(version.statement.gtid)
            )
        batch = batches.get(version.version.batch)
        return batch is None or gtids.contains(batch.start.gtid_set)

    return _last(takewhile(before, versions))


def _last(told: Iterable[ToldVersion]) -> SchemaVersion | None:
    versions = list(told)
    return versions[-1].version if versions else None


def _never_read(source: str, why: str) -> LockstepError:
    return SchemaUnknownAt(
        f"{source}: {why}",
        hint=f"`lockstep status --source {source}` shows what was read; without --at the newest "
        "version is shown",
    )


# -- what each version is otherwise than the one before -----------------------------------------


@dataclass(frozen=True, slots=True)
class ToldVersion:
    """A version, the statement that made it if one did, and what is otherwise than in the
    version before: "what: before, now"."""

    version: SchemaVersion
    statement: SchemaStatement | None
    changes: tuple[str, ...]


def _statement(ledger: Ledger, source: str, version: SchemaVersion) -> SchemaStatement | None:
    number = version.statement
    return None if number is None else ledger.statements(source, [number])[number]


def told_versions(
    ledger: Ledger, source: str, versions: Sequence[SchemaVersion]
) -> Iterator[ToldVersion]:
    yield ToldVersion(versions[0], _statement(ledger, source, versions[0]), ())
    for before, now in pairwise(versions):
        yield ToldVersion(now, _statement(ledger, source, now), tuple(_changes(before, now)))


def _changes(before: SchemaVersion, now: SchemaVersion) -> Iterator[str]:
    """What is otherwise in the later one: columns by where they come from, then each part
    as "what: before, now"."""
    if now.schema is None or before.schema is None:
        return
    parts = differences(before.schema, now.schema)
    columns = list(_columns(before, now))
    for part in parts:
        if columns and part.startswith("columns: "):
            yield from columns
        else:
            yield part
    if not parts and now.origin is VersionOrigin.CARRIED:
        yield f"nothing: as in version {before.version}"


def _columns(before: SchemaVersion, now: SchemaVersion) -> Iterator[str]:
    """Columns that are new, renamed or gone; none where the rows of before are not this
    table's, or nothing of that happened."""
    if now.schema is None or before.schema is None or now.columns_from is None:
        return
    for column, origin in zip(now.schema.columns, now.columns_from, strict=True):
        if origin is None:
            yield f"column {column.name}: new"
        elif origin != column.name:
            yield f"column {origin}: now {column.name}"
    for old in before.schema.columns:
        if old.name not in now.columns_from:
            yield f"column {old.name}: dropped"
