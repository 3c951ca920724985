"""The GTIDs of transactions: read from events into columns of the index of transactions
(`ring`), and returned from it as texts and as sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.binlog.stream.commit_times import exact_commit_time
from lockstep.pipeline.binlog.stream.control import read_gtid, read_mariadb_gtid, read_tagged_gtid
from lockstep.pipeline.binlog.stream.framing import Event, EventType, damaged
from lockstep.pipeline.binlog.stream.ring import (
    ANONYMOUS,
    COMMIT_TIME,
    GTID_HIGH,
    GTID_KIND,
    GTID_LOW,
    GTID_NUMBER,
    MARIADB,
    MYSQL,
    ORIGINAL_TIME,
    TAGGED,
    Integers,
)
from lockstep.pipeline.values.gtid import GtidSet

_GTID_COLUMNS: Final = (GTID_KIND, GTID_HIGH, GTID_LOW, GTID_NUMBER)
IDENTITY_COLUMNS: Final = (*_GTID_COLUMNS, ORIGINAL_TIME, COMMIT_TIME)
"""Columns of the index that are read from a GTID event."""

Identity: TypeAlias = tuple[int, int, int, int, int, int]

_64_BITS: Final = (1 << 64) - 1

_COUNT_TO_MERGE: Final = 1 << 18
"""Number of GTIDs that are collected before they are merged into the set."""

_MIXED: Final = "a log holds GTIDs of MySQL and of MariaDB"


def read_identity(event: Event, gtid_sources: list[str]) -> Identity:
    """Return the values of the IDENTITY_COLUMNS for a GTID event of any kind.
    `gtid_sources`: the list to which the `uuid:tag` of a tagged GTID is added.
    DamagedEvent if a value has more than 63 bits."""
    identity = _read_values(event, gtid_sources)
    if max(identity) >> 63:
        raise damaged("a GTID event has an impossible number or time", event.at)
    return identity


def _read_values(event: Event, gtid_sources: list[str]) -> Identity:
    if event.type is EventType.MARIADB_GTID:
        gtid = read_mariadb_gtid(event)
        return MARIADB, gtid.domain, event.server_id, gtid.number, 0, 0
    if event.type is EventType.GTID_TAGGED:
        source, number, immediate, original = read_tagged_gtid(event)
        if source not in gtid_sources:
            gtid_sources.append(source)
        kind, high, low = TAGGED, gtid_sources.index(source), 0
    else:
        kind = MYSQL if event.type is EventType.GTID else ANONYMOUS
        high, low, number, immediate, original = read_gtid(event)
    is_own = event.server_id == event.log_server_id
    time = exact_commit_time(immediate, original, is_own)
    return kind, high, low, number, original, time


def gtid_prefix(kind: int, high: int, low: int, gtid_sources: Sequence[str]) -> str:
    """Return the part of a GTID before its number: `uuid:`, `uuid:tag:`, or
    `domain-server-`."""
    if kind == TAGGED:
        return f"{gtid_sources[high]}:"
    if kind == MARIADB:
        return f"{high}-{low}-"
    return f"{UUID(int=(high & _64_BITS) << 64 | low & _64_BITS)}:"


def gtid_text(transaction: Integers, gtid_sources: Sequence[str]) -> str:
    """Return the GTID of an index row, "" for an anonymous transaction."""
    kind, high, low, number = (int(transaction[c]) for c in _GTID_COLUMNS)
    return "" if kind == ANONYMOUS else f"{gtid_prefix(kind, high, low, gtid_sources)}{number}"


def gtid_texts(transactions: Integers, gtid_sources: Sequence[str]) -> pa.Array:
    """Return the GTID of each transaction as an Arrow string, null for an anonymous
    one."""
    if not len(transactions):
        return pa.array([], pa.string())
    sources, source_indexes = _distinct_sources(transactions)
    prefixes = [
        None if kind == ANONYMOUS else gtid_prefix(kind, high, low, gtid_sources)
        for kind, high, low in sources.tolist()
    ]
    numbers = pa.array(transactions[:, GTID_NUMBER]).cast(pa.string())
    prefix_of_row = pa.array(prefixes, pa.string()).take(pa.array(source_indexes))
    return pc.binary_join_element_wise(prefix_of_row, numbers, "")


def gtid_set(transactions: Integers, gtid_sources: Sequence[str]) -> GtidSet:
    """Return the GTIDs as a set. For MariaDB a GTID stands for all up to its number.
    DamagedEvent for a number below 1, or for GTIDs of both flavours."""
    collector = GtidCollector()
    collector.add(transactions, gtid_sources)
    return collector.merged_set()


class GtidCollector:
    """Collects the GTIDs of many transactions. It rarely merges them into its set,
    because that is costly."""

    def __init__(self) -> None:
        self._set = GtidSet()
        self._waiting: list[Integers] = []
        self._gtid_sources: Sequence[str] = ()
        self._count = 0

    def add(self, transactions: Integers, gtid_sources: Sequence[str]) -> None:
        """Add the GTIDs of an index of transactions. If `gtid_sources` is the same list
        as before, it may only have grown."""
        with_gtid = transactions[transactions[:, GTID_KIND] != ANONYMOUS]
        if gtid_sources is not self._gtid_sources:
            self._merge_waiting()
            self._gtid_sources = gtid_sources
        self._waiting.append(with_gtid[:, _GTID_COLUMNS])
        self._count += len(with_gtid)
        if self._count >= _COUNT_TO_MERGE:
            self._merge_waiting()

    def merged_set(self) -> GtidSet:
        """Return the set of all GTIDs that were added."""
        self._merge_waiting()
        return self._set

    def _merge_waiting(self) -> None:
        if self._count:
            self._set = union(self._set, _as_set(np.concatenate(self._waiting), self._gtid_sources))
        self._waiting, self._count = [], 0


def _as_set(gtids: Integers, gtid_sources: Sequence[str]) -> GtidSet:
    """Return the set of GTIDs (columns `_GTID_COLUMNS`). They are sorted first, so that
    each source has few intervals even if sources alternate."""
    order = np.lexsort(gtids.T[::-1])
    ordered = gtids[order]
    numbers = ordered[:, 3]
    if int(numbers.min()) < 1:
        raise damaged(f"a GTID has the number {numbers.min()}")
    if len(np.unique(ordered[:, 0] == MARIADB)) > 1:
        raise damaged(_MIXED)
    is_next_source = (np.diff(ordered[:, :3], axis=0) != 0).any(axis=1)
    breaks = np.flatnonzero(is_next_source | (np.diff(numbers) > 1)) + 1
    firsts = np.concatenate(([0], breaks))
    lasts = np.concatenate((breaks, [len(ordered)])) - 1
    parts = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        kind, high, low, end = ordered[last].tolist()
        begin = "" if kind == MARIADB else f"{numbers[first]}-"
        parts.append(f"{gtid_prefix(kind, high, low, gtid_sources)}{begin}{end}")
    return GtidSet.parse(",".join(parts))


def union(gtids: GtidSet, other: GtidSet) -> GtidSet:
    """Return the union; DamagedEvent if one set is MySQL's and the other MariaDB's,
    because no server writes both flavours into one log."""
    if gtids and other and gtids.flavour != other.flavour:
        raise damaged(_MIXED)
    return gtids.union(other)


def membership(
    transactions: Integers, gtid_sources: Sequence[str], gtids: GtidSet
) -> npt.NDArray[np.bool_]:
    """Return a boolean for each transaction of an index: True if `gtids` has its GTID."""
    is_member = np.zeros(len(transactions), np.bool_)
    if not len(transactions) or not gtids:
        return is_member
    sources, source_indexes = _distinct_sources(transactions)
    for index, (kind, high, low) in enumerate(sources.tolist()):
        if kind == ANONYMOUS:
            continue
        # The keys of `intervals` lack the separator before the number.
        spans = gtids.intervals.get(gtid_prefix(kind, high, low, gtid_sources)[:-1])
        if spans is None:
            continue
        firsts, lasts = np.array(spans, np.int64).T
        rows = np.flatnonzero(source_indexes == index)
        numbers = transactions[rows, GTID_NUMBER]
        span_indexes = np.searchsorted(firsts, numbers, side="right") - 1
        is_member[rows] = (span_indexes >= 0) & (numbers <= lasts[span_indexes])
    return is_member


def _distinct_sources(transactions: Integers) -> tuple[Integers, Integers]:
    """Return the distinct GTID sources as rows of (kind, high, low), and for each
    transaction the index of its source."""
    sources = transactions[:, [GTID_KIND, GTID_HIGH, GTID_LOW]]
    if (sources == sources[0]).all():
        return sources[:1], np.zeros(len(sources), np.int64)
    distinct, indexes = np.unique(sources, axis=0, return_inverse=True)
    return distinct, indexes.reshape(-1).astype(np.int64)
