"""Decides whether a ledger (the Postgres database with positions and structures)
follows its lake or the lake its ledger. For a ledger that is made from a lake, decides
after which batch it continues. Pure.

Not here: finding the batch's end in a log, and structures
(`pipeline.run.recovery.recover`).

A batch is the part of the log that one run captured; batches are numbered. A mirror is
the Delta table with a table's current rows. A mirror shows exactly the end of batch N
if it has a version whose last batch is M, at most N, and no batch from M + 1 to N
concerns the table. A batch concerns it if the table's changelog has files of the batch,
if the batch's commit to `_transactions` (the lake's table of transactions) lists the
table, or if a later write begins with the batch. The new ledger continues with that
version; if the mirror has a newer one, the mirror is restored to it. So no change is
applied twice, even to rows without a key, whatever happened to the columns. A table
that occurs only in later batches is captured as a new one.

N is one of the `NEAR` newest batches: the one for which the fewest tables must be read
from the source; among equals, the newest. If the source's log no longer reaches back to
any of these, N is an older batch. N must have been published in all tables:
`_transactions` has it, or a mirror shows it. If a person names a batch to go back to, N
is the newest such batch up to that one.

If a run was undone, or another ledger continued from an earlier batch, the lake went
back to that batch. Later batches that it still has are void. The folder's claim, a file
that names the owning ledger, lists them (`pipeline.model.claim`). A claim may be
incomplete. Then N is a batch that `_transactions` has, because that table does not list
void batches.

| commits of | |
|---|---|
| the ledger that owns the folder | count |
| a ledger whose batches all have lower numbers, so that the owner continued it | count |
| any other ledger | do not count |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.foreign_commits import judge_foreign
from lockstep.pipeline.model.lake_commit import LakeCommit, WriteKind
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates
from lockstep.pipeline.values.table import TableName

# -- facts that are read from the lake ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordedCursor:
    """The cursor (how the run after a batch finds its place in the log), as a commit
    records it. `gtids`: None if the set was too long for the commit. `by_gtid`: the
    place is found by GTID, not by file and offset. `anchor`: the checksum of the event
    before the place. `sequence`: the number of the last change up to there."""

    server: str
    gtids: GtidSet | None
    by_gtid: bool
    anchor: Anchor
    sequence: int


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A commit's record of a batch. `at`: where the batch ends in the log. `whole`: the
    commit was made to `_transactions`, which is the last step of publishing. Only a
    whole record has the fields below.

    `touched`: tables with anything in the batch. `still`: tables that were no longer
    captured at its end, with their conditions (quarantined, dropped). `partial`: tables
    whose mirrors lack older rows, with the places where they begin. `prepared`: number
    of prepared XA transactions. `structures`: key of the file with the structures that
    the batch recorded.
    """

    batch: int
    ledger: str
    at: Coordinates
    cursor: RecordedCursor
    whole: bool = False
    touched: frozenset[TableName] = frozenset()
    still: Mapping[TableName, str] = field(default_factory=lambda: MappingProxyType({}))
    partial: Mapping[TableName, Coordinates] = field(default_factory=lambda: MappingProxyType({}))
    prepared: int = 0
    structures: str | None = None


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """A Delta version of a mirror that shows the end of batch `last` of a ledger.
    `structure`: key of the file with the table's structure. `shape`: fingerprint of the
    settings that select and mask columns and rows; None if all are shown unchanged.
    `words`: the commit's user metadata."""

    version: int
    last: int
    ledger: str
    structure: str | None = None
    shape: str | None = None
    words: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MirrorFacts:
    """The facts that a mirror's Delta log gives.

    `newest`: its newest Delta version. `shown`: the versions that show the end of a
    batch, newest first. Other versions were written by other programs, are intermediate
    steps of a write, or have unreadable metadata. `begins`: the first batch of each
    write. `published`: batches with files in the table's changelogs. `generation`: the
    highest number of its successive lives (`pipeline.mirror.generations`). `records`:
    the record of each write's last batch.
    """

    table: TableName
    folder: str
    newest: int
    shown: tuple[ShownBatch, ...] = ()
    begins: frozenset[int] = frozenset()
    published: frozenset[int] = frozenset()
    generation: int = 1
    records: tuple[BatchRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class LakeFacts:
    """The facts about a source's folder in the lake.

    `owner`: the ledger that the claim names, or None. `records`: records in commits to
    `_transactions`. `unmirrored`: tables with changes but no mirror, with the first
    batch that has some. `void`: batches that were undone, by the claim, or because
    `_transactions` no longer lists them. `complete`: the claim is known to list all
    void batches. `highest`: the highest batch number in the claim, in commits of
    changelogs, and in names of listed files.
    """

    owner: str | None
    records: tuple[BatchRecord, ...]
    mirrors: tuple[MirrorFacts, ...]
    unmirrored: tuple[tuple[TableName, int], ...] = ()
    void: tuple[BatchSpan, ...] = ()
    complete: bool = True
    highest: int = 0

    def counts(self, batch: int) -> bool:
        """Return whether a batch is not void."""
        return not any(batch in span for span in self.void)

    def counting(self, through: int) -> tuple[BatchSpan, ...]:
        """Return the spans of batches from the first to `through` that are not void."""
        edges = {0, through}
        for span in self.void:
            edges |= {edge for edge in (span.after, span.through) if edge < through}
        spans = pairwise(sorted(edges))
        return tuple(BatchSpan(after, last) for after, last in spans if self.counts(last))


@dataclass(frozen=True, slots=True)
class Adopted:
    """A table that the new ledger takes over with a version of its mirror. If a newer
    version exists, the mirror is restored to this one."""

    mirror: MirrorFacts
    shown: ShownBatch

    @property
    def version(self) -> int:
        return self.shown.version

    @property
    def restored(self) -> bool:
        return self.version != self.mirror.newest


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The plan for a new ledger. `lake_end`: the batch after which it continues.
    `reloads`: tables that must be read from the source, and why. `left`: mirrors that
    stay unchanged because their tables were dropped. `batch`: the highest batch number
    in the lake. `doubts`: sentences about facts that the lake lacks."""

    lake_end: BatchRecord
    adopted: tuple[Adopted, ...]
    reloads: tuple[tuple[TableName, str], ...]
    left: tuple[MirrorFacts, ...] = ()
    batch: int = 0
    doubts: tuple[str, ...] = ()


_APPLICATION: Final = re.compile(
    r"lockstep/.+/(?P<part>mirror|changelog)(@(?P<within>\d+))?/(?P<generation>\d+)(?P<step>/evolve)?"
)
_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def record_of(commit: LakeCommit, *, whole: bool = False) -> BatchRecord | None:
    """Return a commit's record of its last batch, or None if it has none that can be
    read. `whole`: the commit was made to `_transactions`."""
    said = commit.metadata
    if said is None:
        return None
    try:
        record = BatchRecord(
            batch=int(said["batches"][1]),
            ledger=str(said["ledger"]),
            at=Coordinates.parse(said["position"]),
            cursor=_cursor(said["cursor"]),
            whole=whole and said["kind"] == WriteKind.PUBLISH,
        )
        if not record.whole:
            return record
        return replace(
            record,
            touched=frozenset(TableName(*name) for name in said["touched"]),
            still={TableName(*name): str(condition) for *name, condition in said["still"]},
            partial={TableName(*name): Coordinates.parse(at) for *name, at in said["partial"]},
            prepared=int(said["prepared"]),
            structures=said["structures"],
        )
    except _UNREADABLE:
        return None


def forgotten_of(commits: Iterable[LakeCommit]) -> int:
    """Return the last batch whose changes were deleted on purpose, by a table's
    commits; 0 for none."""
    last = 0
    for commit in commits:
        said = commit.metadata or {}
        if said.get("kind") == WriteKind.FORGET and (record := record_of(commit)) is not None:
            last = max(last, record.batch)
    return last


def _cursor(said: Mapping[str, Any]) -> RecordedCursor:
    return RecordedCursor(
        server=str(said["server"]),
        gtids=None if said["gtids"] is None else GtidSet.parse(said["gtids"]),
        by_gtid=bool(said["by_gtid"]),
        anchor=Anchor(*said["anchor"]),
        sequence=int(said["sequence"]),
    )


@dataclass(slots=True)
class _Log:
    """The state while a mirror's Delta log is read, oldest commit first. `now`: the
    last version read, if it shows the end of a batch. `foreign`: the mirror has another
    program's changes. The other fields: see `MirrorFacts`."""

    table: TableName | None = None
    generation: int = 0
    now: ShownBatch | None = None
    foreign: bool = False
    shown: list[ShownBatch] = field(default_factory=list)
    begins: set[int] = field(default_factory=set)
    records: dict[int, BatchRecord] = field(default_factory=dict)

    def take(self, commit: LakeCommit) -> None:
        """Read the next commit. A ledger can continue with a version that shows the end
        of a batch. It can also if later commits left the rows of such a version
        unchanged, as OPTIMIZE does. Another program's changes stay in all later
        versions until all rows are replaced."""
        for name in commit.transactions:
            self._wrote(name)
        before, self.now = self.now, None
        others = judge_foreign(commit) is not None
        said = commit.metadata or {}
        if commit.repeated_version is not None and not others and before is None:
            # The log no longer has the version whose rows this commit repeats.
            if not self.shown and not self.foreign:
                self._wrote(str(said.get("app_id")))
                self._shows(commit)
        elif commit.is_ours and (commit.repeated_version is None or others):
            restored = said.get("kind") == WriteKind.RESTORE
            if restored or any(map(_writes_mirror, commit.transactions)):
                self._shows(commit, restored=restored)
        elif others:
            self.foreign = True
        elif before is not None:
            self.now = self.shown[-1] = replace(before, version=commit.delta_version)

    def _wrote(self, app_id: str) -> None:
        if (match := _APPLICATION.fullmatch(app_id)) is not None:
            self.generation = max(self.generation, int(match["generation"]))

    def _shows(self, commit: LakeCommit, *, restored: bool = False) -> None:
        """Take a commit's record: the mirror shows the end of its last batch, unless
        another program's changes are in it."""
        said = commit.metadata or {}
        record = record_of(commit)
        if record is None:
            return
        try:
            first, last = map(int, said["batches"])
            self.table = table_named(said)
        except _UNREADABLE:
            return
        if restored:
            self._go_back(last)
        self.begins.add(first)
        self.records[last] = record
        key = said.get("structure")
        structure = key if isinstance(key, str) else None
        before = self.shown[-1].shape if self.shown else None
        # A write without a shape in its metadata has the structure and the shape of the
        # last one.
        shape = said.get("shape") if "shape" in said else before
        self.foreign &= said.get("kind") not in (WriteKind.REWRITE, WriteKind.RESTORE)
        if self.foreign:
            return
        words = commit.user_metadata or ""
        self.now = ShownBatch(commit.delta_version, last, record.ledger, structure, shape, words)
        self.shown.append(self.now)

    def _go_back(self, last: int) -> None:
        """Forget the writes of batches after `last`, because a RESTORE undid them."""
        self.begins = {begin for begin in self.begins if begin <= last}
        self.shown = [version for version in self.shown if version.last <= last]
        self.records = {batch: record for batch, record in self.records.items() if batch <= last}


def _writes_mirror(name: str) -> bool:
    match = _APPLICATION.fullmatch(name)
    return match is not None and match["part"] == "mirror" and match["step"] is None


def table_named(said: Mapping[str, Any]) -> TableName:
    """Return the table in a commit's user metadata."""
    database, name = said["name"]
    return TableName(str(database), str(name))


def mirror_facts(folder: str, newest_first: Sequence[LakeCommit]) -> MirrorFacts | None:
    """Return the facts of a mirror's log, or None if Lockstep never wrote to it."""
    log = _Log()
    for commit in reversed(newest_first):
        log.take(commit)
    if log.table is None:
        return None
    return MirrorFacts(
        log.table,
        folder,
        newest_first[0].delta_version,
        tuple(reversed(log.shown)),
        frozenset(log.begins),
        generation=max(log.generation, 1),
        records=tuple(log.records.values()),
    )


def newest_of_each(mirrors: Iterable[MirrorFacts], through: int) -> list[MirrorFacts]:
    """Return one mirror for each table. Of several folders, it is the one that shows
    the newest batch up to `through`."""

    def last(mirror: MirrorFacts) -> tuple[int, int]:
        batch = next((version.last for version in mirror.shown if version.last <= through), 0)
        return batch, mirror.generation

    newest: dict[TableName, MirrorFacts] = {}
    for mirror in mirrors:
        other = newest.get(mirror.table)
        if other is None or last(other) < last(mirror):
            newest[mirror.table] = mirror
    return [newest[table] for table in sorted(newest)]


# -- the decision -------------------------------------------------------------------------------


NEAR: Final = 8
"""Number of newest batches among which the number of tables to be read decides."""

DROPPED: Final = "dropped"
"""The condition of a table that was dropped at the source."""


class LedgerContent(StrEnum):
    """What a ledger has recorded about a source. `MADE`: only what an unfinished
    recovery from the lake recorded."""

    NOTHING = "nothing"
    MADE = "made"
    HOLDS = "holds"


class Case(StrEnum):
    """The action of `lockstep recover`."""

    AGREE = "agree"
    """Nothing, because ledger and lake agree."""
    FROM_LAKE = "from-lake"
    """It makes the ledger from the lake."""
    FINISH = "finish"
    """It ends an earlier recovery from the lake: the ledger claims the folder."""
    KEEP_LEDGER = "keep-ledger"
    """It keeps the ledger, and the lake goes back to it."""
    START_OVER = "start-over"
    """It moves the folder away, so that the next run is the first one."""
    REFUSED = "refused"
    """It refuses, because the ledger still has the source. It can only show what it
    would do if the ledger were given up."""


def case_of(
    standing: LedgerContent,
    differs: Callable[[], bool],
    has_folder: Callable[[], bool],
    *,
    back_to: bool = False,
    start_over: bool = False,
) -> Case:
    """Return what `lockstep recover` does. `differs`: returns whether ledger and lake
    disagree; `has_folder`: returns whether the lake has the source's folder. Each is
    called only if needed. `back_to`, `start_over`: whether a person gave that
    option."""
    if standing is LedgerContent.NOTHING:
        if not start_over:
            return Case.FROM_LAKE
        return Case.START_OVER if has_folder() else Case.AGREE
    if start_over:
        return Case.REFUSED
    if standing is LedgerContent.MADE:
        return Case.FINISH
    if back_to:
        return Case.REFUSED
    return Case.KEEP_LEDGER if differs() else Case.AGREE


def decide(
    facts: LakeFacts, reached: Callable[[BatchRecord], bool], after_batch: int | None = None
) -> RecoveryPlan | None:
    """Return the plan for the best batch whose end the source's log has, or None if
    there is none. `reached`: returns whether the log has a batch's end; the best batch
    is asked first. `after_batch`: the batch to which a person wants to go back; None to
    choose."""
    highest = highest_of(facts)
    facts, doubts = _trusted(facts)
    points = _points(facts)
    if after_batch is not None:
        near = [point.batch for point in points if point.batch <= after_batch]
        points = [point for point in points if point.batch == max(near, default=None)]
    plans = [_as_of(facts, point) for point in points]
    plans.sort(key=lambda plan: -plan.lake_end.batch)
    plans[:NEAR] = sorted(plans[:NEAR], key=lambda plan: (len(plan.reloads), -plan.lake_end.batch))
    best = next((plan for plan in plans if reached(plan.lake_end)), None)
    if best is None:
        return None
    return replace(best, batch=highest, doubts=(*doubts, *_doubts(facts, best.lake_end)))


def nameable_batches(facts: LakeFacts) -> range:
    """Return the batches that a person may name. If a ledger cannot continue after the
    named batch, `decide` takes the newest one before it."""
    points = [point.batch for point in _points(_trusted(facts)[0])]
    return range(min(points), highest_of(facts) + 1) if points else range(0)


def highest_of(facts: LakeFacts) -> int:
    """Return the highest number of any batch in the lake, including void ones."""
    return max(_numbers(facts), default=0)


def _trusted(facts: LakeFacts) -> tuple[LakeFacts, list[str]]:
    """Return the facts without void batches and without ledgers that wrote at the same
    time as the owner of the folder; `records` also has the records of all mirrors'
    commits. Return also a doubt for each of these ledgers."""
    records = [*facts.records, *(record for mirror in facts.mirrors for record in mirror.records)]
    batches: dict[str, set[int]] = {}
    for record in records:
        if facts.counts(record.batch):
            batches.setdefault(record.ledger, set()).add(record.batch)
    owner = facts.owner
    if owner not in batches:
        owner = max(batches, key=lambda ledger: max(batches[ledger]), default=None)
    if owner is None:
        return replace(facts, records=()), []
    first = min(batches[owner])
    others = {ledger for ledger, own in batches.items() if ledger != owner and max(own) >= first}

    def counts(batch: int, ledger: str) -> bool:
        return facts.counts(batch) and ledger not in others

    mirrors = tuple(
        replace(
            mirror,
            shown=tuple(shown for shown in mirror.shown if counts(shown.last, shown.ledger)),
            begins=frozenset(filter(facts.counts, mirror.begins)),
            published=frozenset(filter(facts.counts, mirror.published)),
        )
        for mirror in facts.mirrors
    )
    doubts = [
        f"the ledger {other} wrote to this lake as well as {owner}: its commits do not count"
        for other in sorted(others)
    ]
    trusted = tuple(record for record in records if counts(record.batch, record.ledger))
    return replace(facts, owner=owner, records=trusted, mirrors=mirrors), doubts


def _points(facts: LakeFacts) -> list[BatchRecord]:
    """Return the most complete record of each batch after which a ledger can continue."""
    shown = max((version.last for mirror in facts.mirrors for version in mirror.shown), default=-1)
    if not facts.complete and any(record.whole for record in facts.records):
        shown = -1
    points: dict[int, BatchRecord] = {}
    for record in sorted(
        facts.records,
        key=lambda record: (record.whole, record.cursor.gtids is not None),
        reverse=True,
    ):
        if record.whole or record.batch <= shown:
            points.setdefault(record.batch, record)
    return list(points.values())


def _as_of(facts: LakeFacts, lake_end: BatchRecord) -> RecoveryPlan:
    """Return the plan for a ledger that continues after one batch."""
    said = max(
        (record for record in facts.records if record.whole and record.batch <= lake_end.batch),
        key=lambda record: record.batch,
        default=None,
    )
    adopted, reloads, left = [], [], []
    for mirror in newest_of_each(facts.mirrors, lake_end.batch):
        shown = _exact(facts, mirror, lake_end.batch)
        condition = None if said is None else said.still.get(mirror.table)
        resumed = said is not None and shown is not None and shown.last > said.batch
        if condition == DROPPED and not resumed:
            left.append(mirror)
        elif condition is not None and not resumed:
            reloads.append((mirror.table, f"it was {condition} by then"))
        elif min(_touching(facts, mirror), default=0) > lake_end.batch:
            continue
        elif shown is None:
            why = f"no version of its mirror shows exactly the table at {lake_end.at}"
            reloads.append((mirror.table, why))
        else:
            adopted.append(Adopted(mirror, shown))
    for table, first in facts.unmirrored:
        if first <= lake_end.batch:
            reloads.append((table, "it has no mirror in the lake"))
    return RecoveryPlan(lake_end, tuple(adopted), tuple(reloads), tuple(left))


def _exact(facts: LakeFacts, mirror: MirrorFacts, batch: int) -> ShownBatch | None:
    """Return the mirror's version that shows exactly the end of the batch, or None."""
    shown = next((version for version in mirror.shown if version.last <= batch), None)
    if shown is None or any(shown.last < other <= batch for other in _touching(facts, mirror)):
        return None
    return shown


def _touching(facts: LakeFacts, mirror: MirrorFacts) -> Iterator[int]:
    """Yield the batches that concern the mirror's table."""
    yield from mirror.published
    yield from mirror.begins
    for record in facts.records:
        if mirror.table in record.touched:
            yield record.batch


def _numbers(facts: LakeFacts) -> Iterator[int]:
    yield facts.highest
    yield from (span.through for span in facts.void)
    yield from (record.batch for record in facts.records)
    for mirror in facts.mirrors:
        yield from (version.last for version in mirror.shown)
        yield from mirror.published
        yield from mirror.begins


def _doubts(facts: LakeFacts, lake_end: BatchRecord) -> Iterator[str]:
    if not lake_end.whole:
        yield (
            "no commit to _transactions describes this batch, so it is unknown which tables were "
            "quarantined or partial"
        )
    if not facts.complete and not lake_end.whole:
        yield (
            "the folder's claim may lack batches that were undone, and this one may be among them"
        )
    if lake_end.prepared:
        yield (
            f"{lake_end.prepared} XA transactions were prepared by then: a run that finds one of "
            "them committed stops there"
        )
