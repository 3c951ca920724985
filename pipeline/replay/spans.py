"""Which batches a span of the past touches. Pure: the ledger's batches are all that is asked.

| a place | a batch lies behind it | a batch lies before it |
|---|---|---|
| a moment | it ends behind where the moment lies | it begins before that |
| a place of a log | it ends behind it | it begins before it |
| a set of GTIDs | it has one that is not in the set | it began without one of the set |
| a run | it is that run's, or a later one | it is that run's, or an earlier one |

Whole batches are replayed: those that have anything between the two. A batch that caught tables up
read again what others had read: among moments it is judged by its own ends alone.

Which transactions of a source a place of the past has behind it:

| a place | what counts |
|---|---|
| a moment | all in front of the place where the end of that moment lies (`pipeline.division`) |
| a place of a log | what ends there, or before |
| a moment in a file | the files before, and of that file as for a moment |
| a set of GTIDs | all up to the last of the set |
| a run, `latest` | all up to where it ended |
| `earliest` | all of the first batch, as for `lockstep versions` |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.batch import Batch, BatchTimes
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.division import Divider, divided, divided_after, microseconds
from pipeline.errors import PastRefused, SpanRefused
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
    moment_text,
)
from pipeline.position import Coordinates, LogFile
from pipeline.upkeep.changes import KEY

_SHOWN = "`lockstep status --json` shows the last batches; `lockstep versions --list` their places"


@dataclass(frozen=True, slots=True)
class Span:
    """From one place to another, as a person or a partition names them."""

    since: Place
    until: Place

    def __str__(self) -> str:
        return f"{self.since} to {self.until}"


def batches_of(
    span: Span,
    chain: Sequence[Batch],
    runs: Mapping[str, int],
    times: Sequence[BatchTimes] | None = None,
) -> tuple[Batch, ...]:
    """The batches that the span touches, oldest first; none where nothing was captured between
    its ends. `chain`: all acknowledged batches, oldest first, or those of `times`, which has all,
    that a span between moments may be about (`wanted`); `runs`: run → its batch's id.
    `SpanRefused` for a span that lies outside of them, or ends before it begins."""
    if not chain:
        raise SpanRefused("nothing was captured yet", hint="`lockstep run` captures")
    if isinstance(span.since, AtMoment) and isinstance(span.until, AtMoment):
        _require_ascending(span, span.since.moment < span.until.moment)
    known = times_of(chain) if times is None else times
    later, earlier = _later(known, span.since), _earlier(known, span.until)
    behind = [batch for batch in chain if _behind(batch, span.since, chain, runs, later)]
    before = [batch for batch in chain if _before(batch, span.until, chain, runs, earlier)]
    if not behind:
        raise SpanRefused(
            f"nothing was captured behind {span.since}: the lake ends at {end_of(chain[-1])}",
            hint=_SHOWN,
        )
    if not before:
        raise SpanRefused(
            f"{span.until} lies before what is known: {beginning(chain[0])}",
            hint=_SHOWN,
        )
    kept = {batch.id for batch in before}
    batches = tuple(batch for batch in behind if batch.id in kept)
    if not batches and not isinstance(span.since, AtMoment):
        _require_ascending(span, behind[0].id <= before[-1].id)
    return batches


def wanted(span: Span, times: Sequence[BatchTimes]) -> list[tuple[int, int]]:
    """Return the batches that a span between moments may be about, as ranges of their numbers:
    those that it touches; and, so that it can be said what lies outside of it, the first and the
    last of all, the first behind its beginning and the last before its end."""
    every = [one.id for one in times]
    behind = sorted(_later(times, span.since) or every)
    before = sorted(_earlier(times, span.until) or every)
    touched = sorted({*behind} & {*before})
    found = [(number, number) for number in (every[0], every[-1], behind[0], before[-1])]
    return [*found, (touched[0], touched[-1])] if touched else found


def beginning(first: Batch) -> str:
    """In words, what lies before the first batch that is known: nothing, or, where it goes on
    behind another one, what is gone up to its end."""
    if first.follows is None:
        return f"the history begins at {first.start}"
    return f"changes up to {end_of(first)} were deleted, as {KEY} says"


def ends_early(span: Span, chain: Sequence[Batch]) -> bool:
    """Whether the span goes on behind what the lake has."""
    last = chain[-1].end
    if not isinstance(span.until, AtMoment) or last is None or last.committed_at is None:
        return False
    return last.committed_at < span.until.moment


def runs_named(span: Span) -> tuple[str, ...]:
    return tuple(one.run for one in (span.since, span.until) if isinstance(one, OfRun))


def _require_ascending(span: Span, ascends: bool) -> None:
    if not ascends:
        raise SpanRefused(
            f"the span ends ({span.until}) before it begins ({span.since})",
            hint="give the earlier place as --from and the later one as --to",
        )


def _later(times: Sequence[BatchTimes], place: Place) -> frozenset[int]:
    """The batches at or after the moment that a place has; none where it has no moment."""
    return at_or_after(times, place.moment) if isinstance(place, AtMoment | InFile) else frozenset()


def _earlier(times: Sequence[BatchTimes], place: Place) -> frozenset[int]:
    """The batches before the moment that a place has; none where it has no moment."""
    return (
        before_moment(times, place.moment) if isinstance(place, AtMoment | InFile) else frozenset()
    )


def _behind(
    batch: Batch,
    place: Place,
    chain: Sequence[Batch],
    runs: Mapping[str, int],
    later: frozenset[int],
) -> bool:
    """Whether the batch has anything at or behind a span's beginning."""
    end = batch.end
    assert end is not None, "an acknowledged batch has an end"
    match place:
        case Earliest():
            return True
        case AtMoment():
            return batch.id in later
        case InFile(file):
            return batch.id in later and _by_log(batch, Coordinates(file, 0), chain, ends=True)
        case AtCoordinates(at):
            return _by_log(batch, at, chain, ends=True)
        case AfterGtids(gtids):
            return not gtids.contains(end.gtid_set)
        case OfRun(run):
            return batch.id >= runs[run]
        case _:
            raise SpanRefused(f"no span begins at {place}", hint="`lockstep replay --help`")


def _before(
    batch: Batch,
    place: Place,
    chain: Sequence[Batch],
    runs: Mapping[str, int],
    earlier: frozenset[int],
) -> bool:
    """Whether the batch has anything before a span's end."""
    start = batch.start
    match place:
        case Latest():
            return True
        case AtMoment():
            return batch.id in earlier
        case InFile(file):
            behind = Coordinates(file, 1 << 62)
            return batch.id in earlier and _by_log(batch, behind, chain, ends=False)
        case AtCoordinates(at):
            return _by_log(batch, at, chain, ends=False)
        case AfterGtids(gtids):
            return not start.gtid_set.contains(gtids)
        case OfRun(run):
            return batch.id <= runs[run]
        case _:
            raise SpanRefused(f"no span ends at {place}", hint="`lockstep replay --help`")


def _by_log(batch: Batch, at: Coordinates, chain: Sequence[Batch], *, ends: bool) -> bool:
    """Whether the batch ends behind a place of a log, or begins before it. Batches of other
    servers are held against the one that read the place."""
    server = server_of(at, chain)
    if batch.start.server_uuid == server and batch.start.at.file.base == at.file.base:
        assert batch.end is not None
        return at < batch.end.at if ends else batch.start.at < at
    there = [
        other
        for other in chain
        if other.start.server_uuid == server and other.start.at.file.base == at.file.base
    ]
    pivot = max((other.id for other in there if other.start.at <= at), default=there[0].id)
    return batch.id > pivot if ends else batch.id < pivot


def server_of(at: Coordinates, chain: Sequence[Batch]) -> str:
    """Whose log has the place; `SpanRefused` where no batch has read it, or several servers'."""
    ranges: dict[str, list[Coordinates]] = {}
    for batch in chain:
        if batch.end is not None and batch.start.at.file.base == at.file.base:
            ranges.setdefault(batch.start.server_uuid, []).extend((batch.start.at, batch.end.at))
    found = [
        server
        for server, ends in ranges.items()
        if min(ends).file.number <= at.file.number <= max(ends).file.number
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise SpanRefused(f"no batch read {at.file}: {beginning(chain[0])}", hint=_SHOWN)
    raise SpanRefused(
        f"{at} is a place in the logs of {len(found)} servers that were read",
        hint="name it by a moment, by GTIDs or by a run",
    )


_BEFORE_ALL: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When the first transaction of a first batch may have been committed: nobody knows."""


def times_of(batches: Iterable[Batch]) -> list[BatchTimes]:
    return [BatchTimes.of(batch) for batch in batches if batch.end is not None]


def at_or_after(times: Sequence[BatchTimes], moment: datetime) -> frozenset[int]:
    """Return the batches that have a transaction committed at the moment or later."""
    counted = [one for one in _with_transactions(times) if one.end is not None]
    chain = [one for one in counted if not one.catches_up]
    place = divided([_ends_at(one) for one in chain], moment).place
    again = [one for one in counted if one.catches_up and _ends_at(one) >= moment]
    return frozenset(one.id for one in (*chain[place:], *again))


def before_moment(times: Sequence[BatchTimes], moment: datetime) -> frozenset[int]:
    """Return the batches that may have a transaction committed before the moment: the one before
    their first was. If the place of the moment is in doubt, it is the last one possible here, and
    the first one in `at_or_after`, so that a span between moments has too much and not too little.
    """
    counted = _with_transactions(times)
    chain = [one for one in counted if not one.catches_up]
    place = divided([_begin(one) for one in chain], moment).last
    again = [one for one in counted if one.catches_up and _begin(one) < moment]
    return frozenset(one.id for one in (*chain[:place], *again))


def _with_transactions(times: Sequence[BatchTimes]) -> Collection[BatchTimes]:
    return [one for one in times if one.transactions]


def _begin(one: BatchTimes) -> datetime:
    return one.begin or _BEFORE_ALL


def _ends_at(one: BatchTimes) -> datetime:
    assert one.end is not None, "only those with a time are asked"
    return one.end


Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

COLUMNS = ("_file", "end_offset", "_gtid", "_committed_at", "last_sequence")
"""What is needed to know of a transaction: see `pipeline.changes.source_tables`."""

_LIST = "`lockstep versions --list` shows the ends of the newest batches"


@dataclass(frozen=True, slots=True)
class Within:
    """A place lies at the end of a batch (`whole`), or in it."""

    batch: Batch
    whole: bool


def batch_at(place: Place, chain: Sequence[Batch], runs: Mapping[str, int]) -> Within:
    """`chain`: acknowledged batches, oldest first, at least the first, the last and those that
    the place may lie in; `runs`: run → its batch's id. `PastRefused` for a place that no batch
    has read."""
    if not chain:
        raise PastRefused("nothing was captured yet", hint="`lockstep run` captures")
    ordinary = [batch for batch in chain if not batch.catches_up]
    match place:
        case Latest():
            return Within(chain[-1], whole=True)
        case Earliest():
            return Within(chain[0], whole=True)
        case OfRun(run):
            return Within(next(batch for batch in chain if batch.id == runs[run]), whole=True)
        case AtMoment(moment):
            return _caught_up(_at_moment(place, ordinary, moment), chain)
        case AtCoordinates(at):
            return _caught_up(_at_coordinates(place, ordinary, at), chain)
        case InFile(file, moment):
            return _caught_up(_in_file(place, ordinary, file, moment), chain)
        case AfterGtids(gtids):
            return _caught_up(_after_gtids(place, ordinary, gtids), chain)
        case Snapshot():
            raise PastRefused(
                "'snapshot' is a way to start, not a place in time",
                hint="`lockstep rebuild --help`",
            )


def _caught_up(within: Within, chain: Sequence[Batch]) -> Within:
    """Behind a whole batch, those that brought tables back to where it ends."""
    newest = within.batch
    for batch in chain:
        if (
            within.whole
            and batch.catches_up
            and batch.follows == newest.id
            and batch.end == newest.end
        ):
            newest = batch
    return replace(within, batch=newest)


def transactions_up_to(place: Place, told: pa.Table, batch: Batch) -> int:
    """How many of a batch's transactions count, which `told` has in their order with the columns
    of `COLUMNS`."""
    match place:
        case AtMoment(moment):
            return _divided(_times(told, batch), moment, batch)
        case InFile(file, moment):
            numbers = _file_numbers(told)
            begin = _leading(numbers < file.number)
            end = begin + _leading(numbers[begin:] == file.number)
            return begin + _divided(_times(told, batch)[begin:end], moment, batch)
        case AtCoordinates(at):
            numbers, ends = _file_numbers(told), told.column("end_offset").to_numpy()
            before = numbers < at.file.number
            return _leading(before | ((numbers == at.file.number) & (ends <= at.offset)))
        case AfterGtids(gtids):
            found = [
                number
                for number, text in enumerate(told.column("_gtid").to_pylist(), start=1)
                if text and _has(gtids, text)
            ]
            if not found:
                raise PastRefused(
                    f"no transaction of {place} was read",
                    hint="name a moment or a place of the log",
                )
            return int(found[-1])
        case _:
            return int(told.num_rows)


def _has(gtids: GtidSet, text: str) -> bool:
    """Whether a set has one transaction, as the log writes it."""
    source, _, number = text.rpartition(":" if ":" in text else "-")
    spans = gtids.intervals.get(source, ())
    return any(first <= int(number) <= last for first, last in spans)


def _leading(inside: Flags) -> int:
    """How many come before the first that is not inside."""
    outside = np.flatnonzero(~inside)
    return int(outside[0]) if outside.size else int(inside.size)


def _times(told: pa.Table, batch: Batch) -> Integers:
    """Their commit times; one that is not known is early. If all of them are later than the one
    that the batch ends with, they were impossible, and it is that one."""
    column = told.column("_committed_at").cast(pa.int64()).fill_null(0)
    times: Integers = column.to_numpy()
    end = _committed(batch)
    if end is None or (times <= microseconds(end)).any():
        return times
    return np.minimum(times, microseconds(end))


def _divided(times: Integers, moment: datetime, batch: Batch) -> int:
    """How many come before the end of a moment."""
    end = _committed(batch)
    divider = Divider(microseconds(moment) + 1, None if end is None else microseconds(end))
    divider.put(times)
    return divider.place


def _file_numbers(told: pa.Table) -> Integers:
    files = told.column("_file").combine_chunks().dictionary_encode()
    numbers = [LogFile.parse(name).number for name in files.dictionary.to_pylist()]
    places: Integers = files.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.array(numbers, np.int64)[places]


# -- the batch ------------------------------------------------------------------------------


def _at_moment(place: Place, chain: Sequence[Batch], moment: datetime) -> Within:
    known = [batch for batch in chain if batch.transactions and _committed(batch) is not None]
    place_there = _ended_by(known, moment)
    if place_there < len(known):
        return Within(known[place_there], whole=False)
    last = _last_commit(chain)
    if last is None or moment > last:
        raise _not_read(place, chain[-1])
    return Within(chain[-1], whole=True)


def _committed(batch: Batch) -> datetime | None:
    return None if batch.end is None else batch.end.committed_at


def _ended_by(batches: Sequence[Batch], moment: datetime) -> int:
    """How many of them end before the end of a moment."""
    ends = [at for at in map(_committed, batches) if at is not None]
    return divided_after(ends, moment).place


def _last_commit(chain: Sequence[Batch]) -> datetime | None:
    return max((at for at in map(_committed, chain) if at is not None), default=None)


def _at_coordinates(place: Place, chain: Sequence[Batch], at: Coordinates) -> Within:
    there = _of_log(chain, at)
    covering = [
        batch for batch in there if batch.end is not None and batch.start.at < at <= batch.end.at
    ]
    if covering:
        end = covering[-1].end
        return Within(covering[-1], whole=end is not None and end.at == at)
    begin = min(batch.start.at for batch in there)
    if at <= begin:
        raise _before_all(place, chain)
    last = there[-1]
    if last.id == chain[-1].id and last.end is not None and at > last.end.at:
        raise _not_read(place, last)
    raise PastRefused(f"no batch has read {place}", hint=_LIST)


def _of_log(chain: Sequence[Batch], at: Coordinates) -> list[Batch]:
    server = server_of(at, chain)
    return [
        batch
        for batch in chain
        if batch.start.server_uuid == server and batch.start.at.file.base == at.file.base
    ]


def _in_file(place: Place, chain: Sequence[Batch], file: LogFile, moment: datetime) -> Within:
    there = _of_log(chain, Coordinates(file, FIRST_OFFSET))
    inside = [batch for batch in there if _ends_in(batch, file) and _committed(batch) is not None]
    beyond = [batch for batch in there if batch.end and batch.end.at.file.number > file.number]
    behind = [*inside[_ended_by(inside, moment) :], *beyond]
    if behind:
        return Within(behind[0], whole=False)
    last = _last_commit(there)
    if there[-1].id == chain[-1].id and (last is None or moment > last):
        raise _not_read(place, chain[-1])
    return Within(there[-1], whole=True)


def _ends_in(batch: Batch, file: LogFile) -> bool:
    return batch.end is not None and batch.end.at.file == file


def _after_gtids(place: Place, chain: Sequence[Batch], gtids: GtidSet) -> Within:
    having = [
        batch for batch in chain if batch.end is not None and batch.end.gtid_set.contains(gtids)
    ]
    if not having:
        raise _not_read(place, chain[-1])
    if having[0].start.gtid_set.contains(gtids):
        raise _before_all(place, chain)
    return Within(having[0], whole=False)


def _not_read(place: Place, last: Batch) -> PastRefused:
    return PastRefused(
        f"the lake does not know yet what {place} has: it ends at {end_of(last)}",
        hint="`lockstep run` reads on; `--as-of latest` is where it ends",
    )


def _before_all(place: Place, chain: Sequence[Batch]) -> PastRefused:
    return PastRefused(f"{place} lies before what is known: {beginning(chain[0])}", hint=_LIST)


def end_of(batch: Batch) -> str:
    end = batch.end
    assert end is not None, "it is acknowledged"
    moment = end.committed_at
    return str(end.at) if moment is None else f"{end.at} ({moment_text(moment)})"
