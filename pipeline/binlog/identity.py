"""GTIDs out of the index of transactions, as text and as sets."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.binlog.ring import (
    ANONYMOUS,
    GTID_HIGH,
    GTID_KIND,
    GTID_LOW,
    GTID_NUMBER,
    MARIADB,
    TAGGED,
    Integers,
)
from pipeline.errors import DamagedEvent

_64 = (1 << 64) - 1


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


def gtid_intervals(transactions: Integers, sources: Sequence[str]) -> list[tuple[str, int, int]]:
    """The GTIDs as (what stands before the number, first, last), runs of numbers joined;
    DamagedEvent for a number that no server gives."""
    named = transactions[transactions[:, GTID_KIND] != ANONYMOUS]
    if not len(named):
        return []
    identities, which = _identities(named)
    numbers = named[:, GTID_NUMBER]
    if int(numbers.min()) < 1:
        raise DamagedEvent(
            f"a GTID has the number {numbers.min()}",
            hint="nothing was recorded; run again, and if it stays, look at the log with "
            "mysqlbinlog",
        )
    breaks = np.flatnonzero((np.diff(numbers) != 1) | (np.diff(which) != 0)) + 1
    starts = np.concatenate(([0], breaks))
    ends = np.concatenate((breaks, [len(named)])) - 1
    texts = [source_text(kind, high, low, sources) for kind, high, low in identities.tolist()]
    return [
        (texts[which[a]], int(numbers[a]), int(numbers[b]))
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _identities(transactions: Integers) -> tuple[Integers, Integers]:
    """Distinct sources, and for each transaction which of them is its own."""
    columns = transactions[:, [GTID_KIND, GTID_HIGH, GTID_LOW]]
    if (columns == columns[0]).all():
        return columns[:1], np.zeros(len(columns), np.int64)
    distinct, which = np.unique(columns, axis=0, return_inverse=True)
    return distinct, which.reshape(-1).astype(np.int64)
