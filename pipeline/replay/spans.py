"""Which batches a span of the past touches. Pure: the ledger's batches are all that is asked.

| a place | a batch lies behind it | a batch lies before it |
|---|---|---|
| a moment | it ends behind where the moment lies | it begins before that |
| a place of a log | it ends behind it | it begins before it |
| a set of GTIDs | it has one that is not in the set | it began without one of the set |
| a run | it is that run's, or a later one | it is that run's, or an earlier one |

Whole batches are replayed: those that have anything between the two. A batch that caught tables up
read again what others had read: among moments it is judged by its own ends alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pipeline.batch import Batch, BatchTimes
from pipeline.division import divided
from pipeline.errors import SpanRefused
from pipeline.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
)
from pipeline.position import Coordinates
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
            f"nothing was captured behind {span.since}: the lake ends at {_end(chain[-1])}",
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
    return f"changes up to {_end(first)} were deleted, as {KEY} says"


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


def _end(batch: Batch) -> str:
    end = batch.end
    if end is None:
        return str(batch.start)
    return (
        f"{end}" if end.committed_at is None else f"{end} ({end.committed_at:%Y-%m-%d %H:%M} UTC)"
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
