"""Finds the batches in a span of the past, and the batch at a place of the past. A
batch is a part of the log that a run captured at once; its id is its number. Pure: only
the ledger's batches are needed.

A span has every batch with something after its first place and something before its
second:

| a place | a batch has something after it | a batch has something before it |
|---|---|---|
| a moment | it ends after the moment's place | it begins before the moment's place |
| a place of a log | it ends after the place | it begins before the place |
| a set of GTIDs | not all GTIDs at its end are in it | a GTID of it is not at its start |
| a run | it is the run's batch or a later one | it is the run's batch or an earlier one |

A moment is searched in the sequence of batches by their commit times. A batch that
caught tables up read older transactions again, so its commit times would be out of
order there. Its own ends are compared with the moment instead.

These transactions are before a place of the past:

| a place | transactions |
|---|---|
| a moment | all before the place of the moment's end (`pipeline.values.division`) |
| a place of a log | all that end there or earlier |
| a moment in a file | all of earlier files, and those of the file as for a moment |
| a set of GTIDs | all up to the last of the set |
| a run, `latest` | all up to its end |
| `earliest` | all of the first batch, as for `lockstep versions` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.model.batch import Batch, BatchTimes
from lockstep.pipeline.upkeep.changes import KEEP_CHANGES
from lockstep.pipeline.values.division import Divider, find_moment, find_moment_end, microseconds
from lockstep.pipeline.values.errors import PastRefused, SpanRefused
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
    moment_text,
)
from lockstep.pipeline.values.position import Coordinates, LogFile, Position

_SPAN_HINT: Final = (
    "`lockstep status --json` shows the last batches; `lockstep versions --list` their places"
)


@dataclass(frozen=True, slots=True)
class Span:
    """The part of the past between two places, which a person or a Dagster partition
    gave."""

    since: Place
    until: Place

    def __str__(self) -> str:
        return f"{self.since} to {self.until}"


def batches_in_span(
    span: Span,
    chain: Sequence[Batch],
    runs: Mapping[str, int],
    times: Sequence[BatchTimes] | None = None,
    begin: datetime | None = None,
) -> tuple[Batch, ...]:
    """Return the batches in the span, oldest first; none if nothing was captured in it.

    `chain`: all acknowledged batches, oldest first; or, if both places are moments, at
    least those in the ranges of `needed_id_ranges`; `times` then has the times of all.
    `runs`: the batch id of each run. `begin`: a moment before which the batches have no
    transaction, if that is known. Raise SpanRefused for a span that begins before all
    batches (unless with `earliest`), lies after all batches, or ends before it begins.
    """
    if not chain:
        raise SpanRefused("nothing was captured yet", hint="`lockstep run` captures")
    if isinstance(span.since, AtMoment) and isinstance(span.until, AtMoment):
        _require_ascending(span, span.since.moment < span.until.moment)
    times = times or list(map(BatchTimes.of, chain))
    for place in (span.until, span.since):
        if is_before_history(place, chain, begin):
            raise SpanRefused(
                f"no transaction up to {place} is known: {beginning_sentence(chain[0], begin)}",
                hint=f"`--from earliest` begins there; {_SPAN_HINT}",
            )
    after = _batches_after(span.since, chain, runs, times)
    before = _batches_before(span.until, chain, runs, times)
    if not after:
        raise SpanRefused(
            f"nothing was captured after {span.since}: the lake ends at {end_text(chain[-1])}",
            hint=_SPAN_HINT,
        )
    if not before:
        raise SpanRefused(
            f"no transaction up to {span.until} is known: {beginning_sentence(chain[0])}",
            hint=_SPAN_HINT,
        )
    _require_read_once(span.since, chain, after, are_newest=True)
    _require_read_once(span.until, chain, before, are_newest=False)
    earlier_ids = {batch.id for batch in before}
    batches = tuple(batch for batch in after if batch.id in earlier_ids)
    if not batches and not isinstance(span.since, AtMoment):
        _require_ascending(span, after[0].id <= before[-1].id)
    return batches


def needed_id_ranges(span: Span, times: Sequence[BatchTimes]) -> list[tuple[int, int]]:
    """Return the ranges of batch ids that `batches_in_span` needs for a span between
    moments: the batches in it. For messages it also needs the first and the last of all
    batches, the first after the span's beginning, and the last before its end."""
    after = before = ids = [batch.id for batch in times]
    if isinstance(span.since, AtMoment):
        after = sorted(ids_at_or_after(times, span.since.moment)) or ids
    if isinstance(span.until, AtMoment):
        before = sorted(ids_before(times, span.until.moment)) or ids
    inside = sorted({*after} & {*before})
    ranges = [(number, number) for number in (ids[0], ids[-1], after[0], before[-1])]
    return [*ranges, (inside[0], inside[-1])] if inside else ranges


def is_before_history(place: Place, chain: Sequence[Batch], begin: datetime | None) -> bool:
    """Return whether a place is certainly before the first batch of `chain`, before
    which there is no history. `begin`: as for `batches_in_span`."""
    first = chain[0]
    if first.previous_batch is not None:  # Earlier history was deleted.
        return False
    match place:
        case AtMoment(moment):
            return begin is not None and moment < begin
        case AfterGtids(gtids):
            start_gtids = first.start.gtid_set
            return gtids != start_gtids and start_gtids.contains(gtids)
        case AtCoordinates(at):
            same_log = _batches_of_log(chain, at)
            return same_log[0] is first and at < first.start.at
        case _:
            return False


def beginning_sentence(first: Batch, begin: datetime | None = None) -> str:
    """Return a sentence which says that the history begins with the ledger's first
    batch, or that earlier changes were deleted. `begin`: as for `batches_in_span`."""
    if first.previous_batch is None:
        moment = "" if begin is None else f" ({moment_text(begin)})"
        return f"the history begins at {first.start}{moment}"
    return f"changes up to {end_text(first)} were deleted, as {KEEP_CHANGES} says"


def begins_before(span: Span, batches: tuple[Batch, ...], last_batch: int, end: Position) -> bool:
    """Return whether a span begins before `end`, the end of `last_batch`, up to which
    changes were deleted. `batches`: the batches that the span touches. A span from
    `earliest` begins after `last_batch`."""
    since = span.since
    committed_at = end.committed_at
    if isinstance(since, Earliest):
        return False
    if any(batch.id <= last_batch for batch in batches):
        return True
    return isinstance(since, AtMoment) and committed_at is not None and since.moment <= committed_at


def ends_early(span: Span, chain: Sequence[Batch]) -> bool:
    """Return whether the lake's last commit is earlier than the span's end, which is a
    moment."""
    last = chain[-1].end
    if not isinstance(span.until, AtMoment) or last is None or last.committed_at is None:
        return False
    return last.committed_at < span.until.moment


def named_runs(span: Span) -> tuple[str, ...]:
    return tuple(place.run for place in (span.since, span.until) if isinstance(place, OfRun))


def _require_ascending(span: Span, ascends: bool) -> None:
    if not ascends:
        raise SpanRefused(
            f"the span ends ({span.until}) before it begins ({span.since})",
            hint="give the earlier place as --from and the later one as --to",
        )


def _require_read_once(
    place: Place, chain: Sequence[Batch], batches: Sequence[Batch], *, are_newest: bool
) -> None:
    """Raise SpanRefused if a place that is not a moment does not divide the chain into
    older and newer batches. `batches`: those after the place if `are_newest`, otherwise
    those before it."""
    if isinstance(place, AtCoordinates | AfterGtids):
        ids = {batch.id for batch in batches}
        inside = [batch.id in ids for batch in chain if not batch.catches_up]
        if inside != sorted(inside, reverse=not are_newest):
            raise _occurs_again_error(place)


def _occurs_again_error(place: Place) -> SpanRefused:
    """Return the error for a place that occurs twice in what was read: a server that
    was reset gives the same coordinates and GTIDs to other transactions."""
    return SpanRefused(
        f"{place} occurs more than once in what was read: the server's log was reset, or a run was "
        "told to read a part of it again",
        hint="name the place by a run: `lockstep versions --list` shows them",
    )


def _batches_after(
    place: Place, chain: Sequence[Batch], runs: Mapping[str, int], times: Sequence[BatchTimes]
) -> list[Batch]:
    """Return the batches with something at or after the beginning of a span."""
    match place:
        case Earliest():
            return list(chain)
        case AtMoment(moment):
            later_ids = ids_at_or_after(times, moment)
            return [batch for batch in chain if batch.id in later_ids]
        case InFile(file, moment):
            batches = _batches_ending_after(Coordinates(file, FIRST_OFFSET), chain)
            in_file = {batch.id: batch for batch in batches if batch.captured_end.at.file == file}
            later_ids = ids_at_or_after(list(map(BatchTimes.of, in_file.values())), moment)
            return [batch for batch in batches if batch.id not in in_file or batch.id in later_ids]
        case AtCoordinates(at):
            return _batches_ending_after(at, chain)
        case AfterGtids(gtids):
            return [batch for batch in chain if not gtids.contains(batch.captured_end.gtid_set)]
        case OfRun(run):
            return [batch for batch in chain if batch.id >= runs[run]]
        case Latest():
            raise SpanRefused(f"no span begins at {place}", hint="`lockstep replay --help`")


def _batches_before(
    place: Place, chain: Sequence[Batch], runs: Mapping[str, int], times: Sequence[BatchTimes]
) -> list[Batch]:
    """Return the batches with something before the end of a span."""
    match place:
        case Latest():
            return list(chain)
        case AtMoment(moment):
            earlier_ids = ids_before(times, moment)
            return [batch for batch in chain if batch.id in earlier_ids]
        case InFile(file, moment):
            batches = _batches_beginning_before(Coordinates(file, 1 << 62), chain)
            # The commit time of a batch that begins at a file's first offset is that of
            # a transaction in the file before.
            in_file = {
                batch.id: batch
                for batch in batches
                if batch.start.at.file == file and batch.start.at.offset > FIRST_OFFSET
            }
            earlier_ids = ids_before(list(map(BatchTimes.of, in_file.values())), moment)
            return [
                batch for batch in batches if batch.id not in in_file or batch.id in earlier_ids
            ]
        case AtCoordinates(at):
            return _batches_beginning_before(at, chain)
        case AfterGtids(gtids):
            return [batch for batch in chain if not batch.start.gtid_set.contains(gtids)]
        case OfRun(run):
            return [batch for batch in chain if batch.id <= runs[run]]
        case Earliest():
            raise SpanRefused(f"no span ends at {place}", hint="`lockstep replay --help`")


def _batches_ending_after(at: Coordinates, chain: Sequence[Batch]) -> list[Batch]:
    """Return the batches that end after a place of a log. A place cannot be compared
    with another server's log. So a batch of another log counts if its id is above
    `last_begun`, the last batch of this log that begins before the place."""
    same_log, last_begun = _log_and_last_begun(chain, at)
    return [
        batch
        for batch in chain
        if (at < batch.captured_end.at if batch.id in same_log else batch.id > last_begun)
    ]


def _batches_beginning_before(at: Coordinates, chain: Sequence[Batch]) -> list[Batch]:
    """Return the batches that begin before a place of a log. For other servers' logs,
    ids are compared as in `_batches_ending_after`."""
    same_log, last_begun = _log_and_last_begun(chain, at)
    return [
        batch
        for batch in chain
        if (batch.start.at < at if batch.id in same_log else batch.id < last_begun)
    ]


def _log_and_last_begun(chain: Sequence[Batch], at: Coordinates) -> tuple[frozenset[int], int]:
    """Return the ids of the batches of the place's log, and the id of the last of these
    batches that begins at or before the place; of the first if none does."""
    same_log = _batches_of_log(chain, at)
    begun = (batch.id for batch in same_log if batch.start.at <= at)
    ids = frozenset(batch.id for batch in same_log)
    return ids, max(begun, default=same_log[0].id)


def _batches_of_log(chain: Sequence[Batch], at: Coordinates) -> list[Batch]:
    server = _server_of(at, chain)
    return [
        batch
        for batch in chain
        if batch.start.server_uuid == server and batch.start.at.file.base == at.file.base
    ]


def _server_of(at: Coordinates, chain: Sequence[Batch]) -> str:
    """Return the UUID of the server whose log has the place. Raise SpanRefused unless
    batches read it from exactly one server."""
    ranges: dict[str, list[Coordinates]] = {}
    for batch in chain:
        if batch.start.at.file.base == at.file.base:
            ends = ranges.setdefault(batch.start.server_uuid, [])
            ends += (batch.start.at, batch.captured_end.at)
    servers = [
        server
        for server, ends in ranges.items()
        if min(ends).file.number <= at.file.number <= max(ends).file.number
    ]
    if len(servers) == 1:
        return servers[0]
    if not servers:
        beginning = beginning_sentence(chain[0])
        raise SpanRefused(f"no batch read {at.file}: {beginning}", hint=_SPAN_HINT)
    raise SpanRefused(
        f"{at} is a place in the logs of {len(servers)} servers that were read",
        hint="name it by a moment, by GTIDs or by a run",
    )


_UNKNOWN_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The commit time that stands for the unknown beginning of the first batch."""


def ids_at_or_after(times: Sequence[BatchTimes], moment: datetime) -> frozenset[int]:
    """Return the ids of the batches with a transaction committed at the moment or
    later."""
    ends = [(batch, batch.end) for batch in times if batch.transactions and batch.end is not None]
    chain = [(batch, end) for batch, end in ends if not batch.catches_up]
    weights = [batch.transactions for batch, _ in chain]
    place = find_moment([end for _, end in chain], moment, weights).place
    caught_up = [(batch, end) for batch, end in ends if batch.catches_up and end >= moment]
    return frozenset(batch.id for batch, _ in (*chain[place:], *caught_up))


def ids_before(times: Sequence[BatchTimes], moment: datetime) -> frozenset[int]:
    """Return the ids of the batches that may have a transaction committed before the
    moment. The commit time of a batch's first transaction is not known, so that of the
    last transaction before the batch counts. Commit times need not ascend. If several
    places divide them equally well, `ids_before` takes the last place and
    `ids_at_or_after` the first: a span then has too many batches rather than too
    few."""
    begins = [(batch, batch.begin or _UNKNOWN_BEGINNING) for batch in times if batch.transactions]
    chain = [(batch, begin) for batch, begin in begins if not batch.catches_up]
    weights = [batch.transactions for batch, _ in chain]
    place = find_moment([begin for _, begin in chain], moment, weights).last_place
    caught_up = [(batch, begin) for batch, begin in begins if batch.catches_up and begin < moment]
    return frozenset(batch.id for batch, _ in (*chain[:place], *caught_up))


# -- the batch at a place --------------------------------------------------------------


_VERSIONS_HINT: Final = "`lockstep versions --list` shows the ends of the newest batches"


@dataclass(frozen=True, slots=True)
class PlaceInBatch:
    """The batch that has a place. `is_batch_end`: the place is the batch's end;
    otherwise it is inside the batch."""

    batch: Batch
    is_batch_end: bool


def batch_at(
    place: Place,
    chain: Sequence[Batch],
    runs: Mapping[str, int],
    read_until: datetime | None = None,
) -> PlaceInBatch:
    """Return the batch at a place. `chain`: acknowledged batches, oldest first: the
    first, the last, and those in which the place may be. `runs`: the batch id of each
    run. `read_until`: as for `is_unread`. Raise PastRefused for a place that no batch
    has read."""
    if not chain:
        raise PastRefused("nothing was captured yet", hint="`lockstep run` captures")
    ordinary = [batch for batch in chain if not batch.catches_up]
    match place:
        case Latest():
            return PlaceInBatch(chain[-1], is_batch_end=True)
        case Earliest():
            return PlaceInBatch(chain[0], is_batch_end=True)
        case OfRun(run):
            batch = next(batch for batch in chain if batch.id == runs[run])
            return PlaceInBatch(batch, is_batch_end=True)
        case AtMoment(moment):
            return _moved_to_newest(_batch_at_moment(place, ordinary, moment, read_until), chain)
        case AtCoordinates(at):
            return _moved_to_newest(_batch_at_coordinates(place, ordinary, at), chain)
        case InFile(file, moment):
            return _moved_to_newest(
                _batch_in_file(place, ordinary, file, moment, read_until), chain
            )
        case AfterGtids(gtids):
            return _moved_to_newest(_batch_after_gtids(place, ordinary, gtids), chain)


def _moved_to_newest(place: PlaceInBatch, chain: Sequence[Batch]) -> PlaceInBatch:
    """Return the place. If it is a batch's end at which later batches end too, return
    the end of the last of these: they caught tables up, or read rows from the source,
    and read no more of the log."""
    newest = place.batch
    for batch in chain:
        if place.is_batch_end and batch.previous_batch == newest.id and batch.end == newest.end:
            newest = batch
    return replace(place, batch=newest)


def is_unread(moment: datetime, chain: Sequence[Batch], read_until: datetime | None) -> bool:
    """Return whether a moment is after all that the batches read. `read_until`: when a
    run last found nothing after the last of them in the log; None if unknown."""
    times = [*map(_committed_at, chain), read_until]
    return moment > max((at for at in times if at is not None), default=_UNKNOWN_BEGINNING)


def _batch_at_moment(
    place: Place, chain: Sequence[Batch], moment: datetime, read_until: datetime | None
) -> PlaceInBatch:
    begin = chain[0].start.committed_at
    if chain[0].previous_batch is None and begin is not None and moment < begin:
        raise _too_early_error(place, chain)
    timed = [batch for batch in chain if batch.transactions and _committed_at(batch) is not None]
    ended_count = _count_ended_by(timed, moment)
    if ended_count < len(timed):
        return PlaceInBatch(timed[ended_count], is_batch_end=False)
    if is_unread(moment, chain, read_until):
        raise _unread_error(place, chain[-1])
    return PlaceInBatch(chain[-1], is_batch_end=True)


def _committed_at(batch: Batch) -> datetime | None:
    return batch.captured_end.committed_at


def _count_ended_by(batches: Sequence[Batch], moment: datetime) -> int:
    """Return the number of batches that end before the end of a moment."""
    ends = [(batch, at) for batch in batches if (at := _committed_at(batch)) is not None]
    weights = [max(batch.transactions, 1) for batch, _ in ends]
    return find_moment_end([at for _, at in ends], moment, weights).place


def _batch_at_coordinates(place: Place, chain: Sequence[Batch], at: Coordinates) -> PlaceInBatch:
    same_log = _batches_of_log(chain, at)
    covering = [batch for batch in same_log if batch.start.at < at <= batch.captured_end.at]
    if len(covering) > 1:
        raise _occurs_again_error(place)
    if covering:
        return PlaceInBatch(covering[0], is_batch_end=covering[0].captured_end.at == at)
    if at == same_log[0].captured_end.at:  # A ledger made from the lake knows only this end.
        return PlaceInBatch(same_log[0], is_batch_end=True)
    begin = min(batch.start.at for batch in same_log)
    if at <= begin:
        raise _too_early_error(place, chain)
    last = same_log[-1]
    if last.id == chain[-1].id and at > last.captured_end.at:
        raise _unread_error(place, last)
    raise PastRefused(f"no batch has read {place}", hint=_VERSIONS_HINT)


def _batch_in_file(
    place: Place,
    chain: Sequence[Batch],
    file: LogFile,
    moment: datetime,
    read_until: datetime | None,
) -> PlaceInBatch:
    same_log = _batches_of_log(chain, Coordinates(file, FIRST_OFFSET))
    in_file = [
        batch
        for batch in same_log
        if batch.captured_end.at.file == file and batch.captured_end.committed_at is not None
    ]
    later = [batch for batch in same_log if batch.captured_end.at.file.number > file.number]
    after = [*in_file[_count_ended_by(in_file, moment) :], *later]
    if after:
        return PlaceInBatch(after[0], is_batch_end=False)
    if same_log[-1].id == chain[-1].id and is_unread(moment, same_log, read_until):
        raise _unread_error(place, chain[-1])
    return PlaceInBatch(same_log[-1], is_batch_end=True)


def _batch_after_gtids(place: Place, chain: Sequence[Batch], gtids: GtidSet) -> PlaceInBatch:
    batches = [batch for batch in chain if batch.captured_end.gtid_set.contains(gtids)]
    if not batches:
        raise _unread_error(place, chain[-1])
    first, *later = batches
    is_begin = first.start.gtid_set.contains(gtids)
    if is_begin and first.captured_end.gtid_set != gtids:
        raise _too_early_error(place, chain)
    if not all(batch.start.gtid_set.contains(gtids) for batch in later):
        raise _occurs_again_error(place)
    # Of the first batch in a ledger made from the lake, only the end is known.
    return PlaceInBatch(first, is_batch_end=first.captured_end.gtid_set == gtids)


def _unread_error(place: Place, last: Batch) -> PastRefused:
    return PastRefused(
        f"the lake does not show {place} yet: it ends at {end_text(last)}",
        hint="`lockstep run` reads on; the place `latest` is where the lake ends",
    )


def _too_early_error(place: Place, chain: Sequence[Batch]) -> PastRefused:
    sentence = f"no transaction up to {place} is known: {beginning_sentence(chain[0])}"
    return PastRefused(sentence, hint=_VERSIONS_HINT)


def end_text(batch: Batch) -> str:
    """Return the end of an acknowledged batch as text, with its commit time if that is
    known."""
    end = batch.captured_end
    moment = end.committed_at
    return str(end.at) if moment is None else f"{end.at} ({moment_text(moment)})"


# -- the transactions before a place ---------------------------------------------------


Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

TRANSACTION_COLUMNS: Final = ("_file", "end_offset", "_gtid", "_committed_at", "last_sequence")
"""The columns of `_transactions`, the lake's table of transactions, that are needed
here."""


def count_transactions_up_to(place: Place, transactions: pa.Table, batch: Batch) -> int:
    """Return the number of a batch's transactions before a place. `transactions`: the
    columns `TRANSACTION_COLUMNS`, in the order of the log."""
    match place:
        case AtMoment(moment):
            return _count_before_end_of(_commit_times(transactions, batch), moment, batch)
        case InFile(file, moment):
            numbers = _file_numbers(transactions)
            begin = _count_leading(numbers < file.number)
            end = begin + _count_leading(numbers[begin:] == file.number)
            times = _commit_times(transactions, batch)[begin:end]
            return begin + _count_before_end_of(times, moment, batch)
        case AtCoordinates(at):
            numbers, ends = _file_numbers(transactions), transactions["end_offset"].to_numpy()
            before = numbers < at.file.number
            return _count_leading(before | ((numbers == at.file.number) & (ends <= at.offset)))
        case AfterGtids(gtids):
            counts = [
                count
                for count, gtid in enumerate(transactions["_gtid"].to_pylist(), start=1)
                if gtid and _contains(gtids, gtid)
            ]
            if not counts:
                raise PastRefused(
                    f"no transaction of {place} was read",
                    hint="name a moment or a place of the log",
                )
            return counts[-1]
        case _:
            return int(transactions.num_rows)


def _contains(gtids: GtidSet, text: str) -> bool:
    """Return whether a set has a GTID. `text`: the GTID as MySQL or MariaDB writes it."""
    source, _, number = text.rpartition(":" if ":" in text else "-")
    spans = gtids.intervals.get(source, ())
    return any(first <= int(number) <= last for first, last in spans)


def _count_leading(inside: Flags) -> int:
    """Return the number of true values before the first false value."""
    outside = np.flatnonzero(~inside)
    return int(outside[0]) if outside.size else int(inside.size)


def _commit_times(transactions: pa.Table, batch: Batch) -> Integers:
    """Return the commit times in microseconds since 1970, 0 if unknown. If all are
    later than the commit time of the batch's end, they are wrong and are lowered to
    that time."""
    times: Integers = transactions["_committed_at"].cast(pa.int64()).fill_null(0).to_numpy()
    end = _committed_at(batch)
    if end is None or (times <= microseconds(end)).any():
        return times
    return np.minimum(times, microseconds(end))


def _count_before_end_of(times: Integers, moment: datetime, batch: Batch) -> int:
    end = _committed_at(batch)
    divider = Divider(microseconds(moment) + 1, None if end is None else microseconds(end))
    return divider.divide(times).place


def _file_numbers(transactions: pa.Table) -> Integers:
    files = transactions["_file"].combine_chunks().dictionary_encode()
    numbers = [LogFile.parse(name).number for name in files.dictionary.to_pylist()]
    indexes: Integers = files.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.array(numbers, np.int64)[indexes]
