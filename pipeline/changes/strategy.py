"""How a mirror is written: the one place that decides it, each decision with its reason.

Pure: from facts to a decision. Gathering the facts and carrying it out is
`pipeline.runs.merging.mirror_write`, and `resources.lake.mirror` for the size of a mirror.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.changes.coalescing import HINT, OTHER_KEY
from pipeline.errors import TableError
from pipeline.segment import RowCounts

FOLDED_IMAGES: Final = 4_000_000
FOLDED_BYTES: Final = 192 << 20
"""Up to which a table's changes are folded at once: row images, and bytes of their values."""

BUCKET_IMAGES: Final = 1_000_000
BUCKET_BYTES: Final = 64 << 20
"""What a bucket of keys has, on average, where they are folded one bucket after the other."""

MOST_IMAGES: Final = 4 * FOLDED_IMAGES
"""What a bucket may have at most: images of one key, and of keys that rows were moved between,
are in one."""


UNSTAMPED: Final = "nothing tells which copy of a row changed without a key, so there are no stamps"
UNSTAMPED_HINT: Final = (
    "give the table a PRIMARY KEY, or set stamps = [] in a [[sources.table]] for it"
)


class Way(StrEnum):
    """What becomes of a table's changes in its mirror."""

    APPEND = "append"
    MERGE = "merge"
    COUNT = "count"
    REPLACE = "replace"
    RECOUNT = "recount"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one table's write before its images are read.

    `keyed`: a key tells the rows apart. `stamped`: rows are to have stamps of their last change.
    `keeps`: rows that are gone at the source are to stay; `kept`: some may be there already.
    `replaces`: the mirror's rows of before do not matter. `images`: row images to be merged, of
    `unpacked` bytes; `partial`: some leave columns out. `inserts_only`: the log inserts rows and
    does nothing else. `all_new`: a row that the log inserts cannot be in the mirror yet.
    `completes`: columns are filled that were read from the source by key. `copied`: what rows it
    begins with that another table had, as a sentence.
    """

    keyed: bool
    keeps: bool = False
    replaces: bool = False
    partial: bool = False
    images: int = 0
    unpacked: int = 0
    inserts_only: bool = False
    all_new: bool = True
    kept: bool = False
    completes: bool = False
    stamped: bool = False
    copied: str = ""


@dataclass(frozen=True, slots=True)
class Strategy:
    """`buckets`: in how many buckets of keys the images are folded to one per key; 0 where they
    are not folded."""

    way: Way
    reason: str
    buckets: int = 0


def choose(facts: Facts) -> Strategy:
    """How a table's changes are written. TableError where they cannot be."""
    if facts.keeps and not facts.keyed:
        raise TableError(
            "rows that are gone cannot be kept in a table without a key",
            hint='give the table a PRIMARY KEY, or set deletes = "remove" and truncates = "delete" '
            "for it",
        )
    if facts.stamped and not facts.keyed:
        raise TableError(UNSTAMPED, hint=UNSTAMPED_HINT)
    if facts.replaces:
        why = "the table was emptied or re-read from MySQL, so its earlier rows do not count"
        why = facts.copied or why
        return (
            _folding(Way.REPLACE, why, facts) if facts.keyed else _counting(Way.RECOUNT, why, facts)
        )
    if facts.completes:
        return _folding(Way.MERGE, "columns were read from the source by key", facts)
    if not facts.images:
        return Strategy(Way.APPEND, "no row of it changed")
    if facts.inserts_only and facts.all_new and not facts.kept:
        return Strategy(Way.APPEND, "the log only inserts rows, and none of them is there yet")
    if not facts.keyed:
        why = "the table has no key, so copies of its rows are counted"
        return _counting(Way.COUNT, why, facts)
    return _folding(Way.MERGE, _why_merge(facts), facts)


def _why_merge(facts: Facts) -> str:
    if not facts.inserts_only:
        return "the log updates or deletes rows"
    if facts.kept:
        return "a row that the log inserts may be there, kept when it was deleted"
    return "a row that the log inserts may be there: part of the log is read again, or is missing"


def _counting(way: Way, reason: str, facts: Facts) -> Strategy:
    """Copies are told apart by all their values."""
    if facts.partial:
        raise TableError(OTHER_KEY, hint=HINT)
    return Strategy(way, reason)


def _folding(way: Way, reason: str, facts: Facts) -> Strategy:
    if not facts.images:
        return Strategy(way, reason)
    buckets = buckets_for(facts.images, facts.unpacked)
    if buckets > 1:
        reason += f"; {facts.images:,} row images are folded in {buckets} buckets of keys"
    return Strategy(way, reason, buckets)


def buckets_for(images: int, unpacked: int) -> int:
    """In how many buckets that many images are folded, so that each fits into memory."""
    if images <= FOLDED_IMAGES and unpacked <= FOLDED_BYTES:
        return 1
    return max(-(-images // BUCKET_IMAGES), -(-unpacked // BUCKET_BYTES))


def only_inserts(counts: Iterable[RowCounts]) -> bool:
    """Whether the changes can be appended as they are.

    A range of the log that follows on what the mirror holds, and holds inserts only,
    has each key once and none that the mirror has: MySQL's primary key forbids both.
    """
    total = sum(counts, RowCounts())
    return total.updated == total.deleted == 0


# -- small mirrors -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows some files hold, and the files' bytes."""

    rows: int
    bytes: int

    def __add__(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.bytes + other.bytes)

    def within(self, limit: Size) -> bool:
        return self.rows <= limit.rows and self.bytes <= limit.bytes


FEW: Final = Size(10_000, 1 << 20)
"""Up to which the rows of a mirror, and of what is written to it, are few. The bytes bound what
each run leaves behind: the file that it replaced is kept for a month."""

NOTHING: Final = Size(-1, -1)
"""The limit that makes any number of rows many."""


@dataclass(frozen=True, slots=True)
class Scale:
    """`few`: Spark is told not to prepare for many rows. `in_memory`: the rows that the write
    leaves are put together in this process, and committed without a query."""

    few: bool
    in_memory: bool = False

    @property
    def reason(self) -> str:
        if self.in_memory:
            return "the rows are few, so they were put together in memory"
        return f"Spark is set for {'few' if self.few else 'many'} rows"


def scale(
    there: Size | None, brought: Size | None, *, without_query: bool = False, limit: Size = FEW
) -> Scale:
    """For how many rows a write is made. `there`: what the mirror has, `brought`: what is written
    to it; None where that is not known. `without_query`: what it leaves can be put together without
    Spark.

    Spark needs several queries for a merge and one for anything else, however few the rows, and
    none to commit a file that is there (`python -m benchmarks small`).
    """
    few = there is not None and brought is not None and (there + brought).within(limit)
    return Scale(few, few and without_query)
