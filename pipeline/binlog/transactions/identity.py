"""GTIDs in the index of transactions: read from one event, and out again as text and as sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.binlog.stream.control import read_mariadb_gtid, read_tagged_gtid
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import Event, EventType
from pipeline.binlog.stream.outcomes import damaged
from pipeline.binlog.stream.ring import (
    ANONYMOUS,
    COMMITTED_AT,
    GTID_HIGH,
    GTID_KIND,
    GTID_LOW,
    GTID_NUMBER,
    MARIADB,
    MYSQL,
    TAGGED,
    TIME,
    Integers,
)
from pipeline.gtid import GtidSet

IDENTITY: Final = (GTID_KIND, GTID_HIGH, GTID_LOW, GTID_NUMBER, COMMITTED_AT, TIME)
"""Columns of the index that a GTID event gives."""

Identity: TypeAlias = tuple[int, int, int, int, int, int]

_LOGICAL_CLOCK: Final = 2
_55_BITS: Final = (1 << 55) - 1

_64 = (1 << 64) - 1


def read_identity(event: Event, sources: list[str], server_id: int) -> Identity:
    """What a GTID event of any kind says, for the columns IDENTITY; `sources` gets the
    `uuid:tag` of a tagged one, `server_id` is that of the server that wrote the log. DamagedEvent
    for what no index has room for."""
    identity = _read(event, sources, own=event.server_id == server_id)
    if max(identity) >> 63:
        raise damaged("a GTID event has an impossible number or time", event.at)
    return identity


def _read(event: Event, sources: list[str], *, own: bool) -> Identity:
    if event.type is EventType.MARIADB_GTID:
        read = read_mariadb_gtid(event)
        return MARIADB, read.domain, event.server_id, read.number, 0, 0
    if event.type is EventType.GTID_TAGGED:
        source, number, here, first = read_tagged_gtid(event)
        if source not in sources:
            sources.append(source)
        kind, high, low = TAGGED, sources.index(source), 0
    else:
        kind = MYSQL if event.type is EventType.GTID else ANONYMOUS
        high, low, number, here, first = _read_untagged(event)
    # As compiled code sets TIME (`stream`).
    return kind, high, low, number, first, here if own or first > here else first


def _read_untagged(event: Event) -> tuple[int, int, int, int, int]:
    """GTID and ANONYMOUS_GTID share one body: flags 1, UUID 16, number 8, then since
    5.7 a logical clock (1 + 16), since 8.0 commit timestamps of 7 bytes each."""
    reader = Reader(event.body, "a GTID event")
    reader.take(1)
    high, low = (int.from_bytes(reader.take(8), "big", signed=True) for _ in range(2))
    number = reader.integer(8)
    if event.type is EventType.GTID and not 1 <= number < 1 << 63:
        raise damaged(f"a GTID event holds no GTID: its number is {number}", event.at)
    here = first = 0
    if reader.left >= 24 and reader.integer(1) == _LOGICAL_CLOCK:
        reader.take(16)
        immediate = reader.integer(7)
        here = first = immediate & _55_BITS
        if immediate >> 55:
            first = reader.integer(7)
    return high, low, number, here, first


def source_text(kind: int, high: int, low: int, sources: Sequence[str]) -> str:
    """What stands before a GTID's number: `uuid:`, `uuid:tag:`, or `domain-server-`."""
    if kind == TAGGED:
        return f"{sources[high]}:"
    if kind == MARIADB:
        return f"{high}-{low}-"
    return f"{UUID(int=(high & _64) << 64 | low & _64)}:"


def gtid_text(transaction: Integers, sources: Sequence[str]) -> str:
    """A transaction's GTID, "" for an anonymous one; `transaction` is its index row."""
    kind, high, low, number = (int(transaction[c]) for c in _COLUMNS)
    return "" if kind == ANONYMOUS else f"{source_text(kind, high, low, sources)}{number}"


_COLUMNS = (GTID_KIND, GTID_HIGH, GTID_LOW, GTID_NUMBER)


def gtid_texts(transactions: Integers, sources: Sequence[str]) -> pa.Array:
    """The GTID of each transaction as an Arrow string, null for an anonymous one."""
    if not len(transactions):
        return pa.array([], pa.string())
    identities, which = _identities(transactions)
    prefixes = [
        None if kind == ANONYMOUS else source_text(kind, high, low, sources)
        for kind, high, low in identities.tolist()
    ]
    numbers = pa.array(transactions[:, GTID_NUMBER]).cast(pa.string())
    before = pa.array(prefixes, pa.string()).take(pa.array(which))
    return pc.binary_join_element_wise(before, numbers, "")


def gtid_set(transactions: Integers, sources: Sequence[str]) -> GtidSet:
    """The GTIDs as a set; of MariaDB's, all up to each one. DamagedEvent for a number that no
    server gives."""
    read = GtidsRead()
    read.add(transactions, sources)
    return read.set()


class GtidsRead:
    """The set of many transactions' GTIDs, told index by index, and made rarely."""

    def __init__(self) -> None:
        self._set = GtidSet()
        self._waiting: list[Integers] = []
        self._sources: Sequence[str] = ()
        self._count = 0

    def add(self, transactions: Integers, sources: Sequence[str]) -> None:
        """More of them; `sources` may grow, and is another list only after a `set`."""
        named = transactions[transactions[:, GTID_KIND] != ANONYMOUS]
        if sources is not self._sources:
            self.set()
            self._sources = sources
        self._waiting.append(named[:, _COLUMNS])
        self._count += len(named)
        if self._count >= _MANY:
            self.set()

    def set(self) -> GtidSet:
        """All that were told."""
        if self._count:
            self._set = together(self._set, _as_set(np.concatenate(self._waiting), self._sources))
        self._waiting, self._count = [], 0
        return self._set


_MANY = 1 << 18


def _as_set(identities: Integers, sources: Sequence[str]) -> GtidSet:
    """GTIDs, columns `_COLUMNS`: sorted, so that a source's numbers are few intervals however
    sources take turns."""
    order = np.lexsort(identities.T[::-1])
    ordered = identities[order]
    numbers = ordered[:, 3]
    if int(numbers.min()) < 1:
        raise damaged(f"a GTID has the number {numbers.min()}")
    if len(np.unique(ordered[:, 0] == MARIADB)) > 1:
        raise damaged(_MIXED)
    other = (np.diff(ordered[:, :3], axis=0) != 0).any(axis=1)
    breaks = np.flatnonzero(other | (np.diff(numbers) > 1)) + 1
    firsts = np.concatenate(([0], breaks))
    lasts = np.concatenate((breaks, [len(ordered)])) - 1
    parts = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        kind, high, low, end = ordered[last].tolist()
        begin = "" if kind == MARIADB else f"{numbers[first]}-"
        parts.append(f"{source_text(kind, high, low, sources)}{begin}{end}")
    return GtidSet.parse(",".join(parts))


def together(gtids: GtidSet, other: GtidSet) -> GtidSet:
    """What is in either; DamagedEvent if one is MySQL's and the other MariaDB's: no server
    writes both kinds of GTIDs into one log."""
    if gtids and other and gtids.flavour != other.flavour:
        raise damaged(_MIXED)
    return gtids.union(other)


_MIXED: Final = "a log holds GTIDs of MySQL and of MariaDB"


def members(
    transactions: Integers, sources: Sequence[str], gtids: GtidSet
) -> npt.NDArray[np.bool_]:
    """Which transactions of an index are in the set; an anonymous one never is."""
    inside = np.zeros(len(transactions), np.bool_)
    if not len(transactions) or not gtids:
        return inside
    identities, which = _identities(transactions)
    for number, (kind, high, low) in enumerate(identities.tolist()):
        if kind == ANONYMOUS:
            continue
        # A set's sources are without the character before a number.
        spans = gtids.intervals.get(source_text(kind, high, low, sources)[:-1])
        if spans is None:
            continue
        firsts, lasts = np.array(spans, np.int64).T
        own = np.flatnonzero(which == number)
        numbers = transactions[own, GTID_NUMBER]
        at = np.searchsorted(firsts, numbers, side="right") - 1
        inside[own] = (at >= 0) & (numbers <= lasts[at])
    return inside


def _identities(transactions: Integers) -> tuple[Integers, Integers]:
    """Distinct sources, and for each transaction which of them is its own."""
    columns = transactions[:, [GTID_KIND, GTID_HIGH, GTID_LOW]]
    if (columns == columns[0]).all():
        return columns[:1], np.zeros(len(columns), np.int64)
    distinct, which = np.unique(columns, axis=0, return_inverse=True)
    return distinct, which.reshape(-1).astype(np.int64)
