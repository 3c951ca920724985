"""Rules that choose how a mirror (the Delta table with a table's current rows) is
written, each decision with its reason.

Pure: `choose` and `scale` turn facts into a decision. `pipeline.run.write.mirror_write`
gathers the facts for `choose` and carries the decision out;
`resources.lake.mirror.mirror` does so for `scale`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lockstep.pipeline.mirror.coalescing import OTHER_KEY_REASON, RESUME_HINT
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.segment import RowCounts

BUCKET_IMAGES: Final = 1_000_000
BUCKET_BYTES: Final = 64 << 20
"""Most row images, and most bytes of their values, that are folded (reduced to the last
image of each key) at once for a table. Larger writes are divided by key into buckets of
this size on average, which are folded one after the other."""

MOST_IMAGES: Final = 16 * BUCKET_IMAGES
"""Most row images in a bucket. Buckets differ in size if images leave columns out: then
all images of a key are in the same bucket, and so are the images of keys between which
an update moved a row."""


UNSTAMPED: Final = "without a key nothing tells which copy of a row changed, so there are no stamps"
UNSTAMPED_HINT: Final = (
    "give the table a PRIMARY KEY, or set stamps = [] in a [[sources.table]] for it"
)


_REPEATED: Final = (
    "part of the log was read twice, and without a key nothing tells which rows are counted twice"
)


class Way(StrEnum):
    """The ways in which a table's changes are written to its mirror."""

    APPEND = "append"
    MERGE = "merge"
    COUNT = "count"
    """Merge into a table without a key: equal rows are copies, which are counted."""
    REPLACE = "replace"
    RECOUNT = "recount"
    """Replace all rows of a table without a key."""


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """The facts about one table's write that are known before its images are read.

    `has_key`: a key identifies the rows. `has_stamps`: the mirror has columns that
    describe each row's last change. `keeps_deleted`: rows that were deleted at the
    source stay in the mirror. `may_have_kept_rows`: the mirror may already have such
    rows. `replaces`: the mirror's earlier rows do not matter. `image_count`: number of
    row images to merge. `unpacked_bytes`: their bytes in memory.
    `has_partial_images`: some images leave columns out. `inserts_only`: all changes are
    inserts. `inserts_are_new`: no inserted row can be in the mirror yet. `may_repeat`:
    some of the changes may have been read by an earlier batch, too.
    `fills_columns`: columns that were read from the source by key are filled.
    `replace_reason`: why the earlier rows do not matter, if that is known: a sentence.
    """

    has_key: bool
    keeps_deleted: bool = False
    replaces: bool = False
    has_partial_images: bool = False
    image_count: int = 0
    unpacked_bytes: int = 0
    inserts_only: bool = False
    inserts_are_new: bool = True
    may_repeat: bool = False
    may_have_kept_rows: bool = False
    fills_columns: bool = False
    has_stamps: bool = False
    replace_reason: str = ""


@dataclass(frozen=True, slots=True)
class Strategy:
    """The chosen way, and its reason. `bucket_count`: number of buckets of keys in
    which the images are folded to one per key; 0 if they are not folded."""

    way: Way
    reason: str
    bucket_count: int = 0


def choose(facts: WriteFacts) -> Strategy:
    """Return how a table's changes are written. Raise `TableError` if the settings ask
    for what the table cannot have, or if images of a table without a key leave columns
    out or may be counted twice."""
    if facts.keeps_deleted and not facts.has_key:
        raise TableError(
            "deleted rows cannot be kept in a table without a key",
            hint='give the table a PRIMARY KEY, or set deletes = "remove" and truncates = "delete" '
            "for it",
        )
    if facts.has_stamps and not facts.has_key:
        raise TableError(UNSTAMPED, hint=UNSTAMPED_HINT)
    if facts.replaces:
        reason = facts.replace_reason or (
            "the table was created, emptied or read from MySQL, so earlier rows do not count"
        )
        if facts.has_key:
            return _folding(Way.REPLACE, reason, facts)
        _require_no_repeat(facts)
        return _counting(Way.RECOUNT, reason, facts)
    if facts.fills_columns:
        return _folding(Way.MERGE, "columns were read from the source by key", facts)
    if not facts.image_count:
        return Strategy(Way.APPEND, "no row of the table changed")
    if facts.inserts_only and facts.inserts_are_new and not facts.may_have_kept_rows:
        return Strategy(Way.APPEND, "the log only inserts rows, and none of them is there yet")
    if not facts.has_key:
        _require_no_repeat(facts)
        reason = "the table has no key, so copies of its rows are counted"
        return _counting(Way.COUNT, reason, facts)
    return _folding(Way.MERGE, _reason_to_merge(facts), facts)


def _require_no_repeat(facts: WriteFacts) -> None:
    """Raise `TableError` if changes of a table without a key may be counted twice."""
    if facts.may_repeat:
        hint = "the next run reads it from the source"
        raise TableError(_REPEATED, hint=hint, need=Need.ROWS, by=StoppedBy.RUN)


def _reason_to_merge(facts: WriteFacts) -> str:
    if not facts.inserts_only:
        return "the log updates or deletes rows"
    if facts.may_have_kept_rows:
        return "the log inserts a row that the mirror may have kept"
    return "the mirror may have an inserted row already: part of the log is read again or missing"


def _counting(way: Way, reason: str, facts: WriteFacts) -> Strategy:
    if facts.has_partial_images:  # All values of copies are compared, so none may be left out.
        raise TableError(OTHER_KEY_REASON, hint=RESUME_HINT)
    return Strategy(way, reason)


def _folding(way: Way, reason: str, facts: WriteFacts) -> Strategy:
    if not facts.image_count:
        return Strategy(way, reason)
    buckets = buckets_for(facts.image_count, facts.unpacked_bytes)
    if buckets > 1:
        reason += f"; {facts.image_count:,} row images are folded in {buckets} buckets of keys"
    return Strategy(way, reason, buckets)


def buckets_for(images: int, unpacked: int) -> int:
    """Return the number of buckets for `images` row images of `unpacked` bytes, so that
    the images of one bucket fit into memory."""
    return max(1, -(-images // BUCKET_IMAGES), -(-unpacked // BUCKET_BYTES))


def only_inserts(counts: Iterable[RowCounts]) -> bool:
    """Return whether all changes are inserts. Such changes can be appended as they are
    if they continue where the mirror ends: MySQL's primary key forbids that a key is
    inserted twice, or that an existing key is inserted."""
    total = sum(counts, RowCounts())
    return total.updated == total.deleted == 0


# -- small mirrors ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """Rows and bytes of some files."""

    rows: int
    bytes: int

    def __add__(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.bytes + other.bytes)

    def fits(self, limit: Size) -> bool:
        return self.rows <= limit.rows and self.bytes <= limit.bytes


FEW: Final = Size(10_000, 1 << 20)
"""Largest size of a mirror and a write together that counts as few rows. The limit of
bytes bounds the space that each run takes, since the file that it replaces is kept for
a month."""

MOST_UNPACKED_BYTES: Final = 64 << 20
"""Most bytes of values that this process computes a mirror's rows from. Files within
the limit of `FEW` may have a thousand times their size, unpacked."""

NO_FEW_ROWS: Final = Size(-1, -1)
"""A limit with which every write counts as one of many rows."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The way to carry out a write of some size. `is_few_rows`: Spark uses settings for
    few rows. `in_memory`: this process computes the mirror's rows after the write, and
    commits them without a Spark query."""

    is_few_rows: bool
    in_memory: bool = False

    @property
    def reason(self) -> str:
        if self.in_memory:
            return "the rows are few, so they were put together in memory"
        return f"Spark is set for {'few' if self.is_few_rows else 'many'} rows"


def scale(
    present: Size | None, brought: Size | None, *, without_query: bool = False, limit: Size = FEW
) -> Scale:
    """Return the way to carry out a write.

    `present`: the size of the mirror. `brought`: the size of the files that are written
    to it. Either is None if it is unknown. `without_query`: the mirror's rows after the
    write can be computed without Spark. `limit`: the largest size that counts as few
    rows.

    Even for few rows, Spark needs several queries for a merge and one for any other
    write, but none to commit a finished file (`python -m benchmarks small`).
    """
    few = present is not None and brought is not None and (present + brought).fits(limit)
    return Scale(few, few and without_query)
