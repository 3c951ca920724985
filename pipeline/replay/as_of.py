"""Which transactions of a source a place of the past has behind it. Pure.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.batch import Batch
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.division import Divider, divided_after, microseconds
from pipeline.errors import PastRefused
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
from pipeline.replay.spans import beginning, server_of

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
        raise _before(place, chain)
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
        raise _before(place, chain)
    return Within(having[0], whole=False)


def _not_read(place: Place, last: Batch) -> PastRefused:
    return PastRefused(
        f"the lake does not know yet what {place} has: it ends at {end_of(last)}",
        hint="`lockstep run` reads on; `--as-of latest` is where it ends",
    )


def _before(place: Place, chain: Sequence[Batch]) -> PastRefused:
    return PastRefused(f"{place} lies before what is known: {beginning(chain[0])}", hint=_LIST)


def end_of(batch: Batch) -> str:
    end = batch.end
    assert end is not None, "it is acknowledged"
    moment = end.committed_at
    return str(end.at) if moment is None else f"{end.at} ({moment_text(moment)})"
