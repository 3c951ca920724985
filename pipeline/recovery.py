"""Decides whether a ledger (the Postgres database with positions and structures)
follows its lake or the lake its ledger. For a ledger that is made from a lake, decides
after which batch it continues. Pure.

Not here: finding the batch's end in a log, and structures
(`pipeline.run.recovery.recover`).

A batch is a part of the log that a run captured at once; batches are numbered. A mirror
is the Delta table with a table's current rows. A mirror shows exactly the end of batch
N if it has a version whose last batch is M, at most N, and no batch from M + 1 to N
concerns the table. A batch concerns it if the table's changelog has files of the batch,
if the batch's commit to `_transactions` (the lake's table of transactions) lists the
table, or if a later write begins with the batch. The new ledger continues with that
version; if the mirror has a newer one, the mirror is restored to it. So no change is
applied twice, even to rows without a key, whatever happened to the columns. A table
that occurs only in later batches is captured as a new one.

N is one of the `RECENT_BATCHES` newest batches: the one for which the fewest tables
must be read from the source; if several need as few, the newest of these. If the
source's log no longer reaches back to any of them, N is an older batch. N must have
been published in all tables: `_transactions` has it, or a mirror shows it. If a person
names a batch to go back to, N is the newest such batch up to that one.

If a run was undone, or another ledger continued from an earlier batch, the lake went
back to that batch. Later batches that the lake still has are void. The folder's claim,
a file that names the owning ledger, lists them (`pipeline.model.claim`). If the claim
may be incomplete, N is a batch that `_transactions` has, because that table does not
list void batches.

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
from datetime import datetime
from enum import StrEnum
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Any, Final

from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.foreign_commits import judge_foreign
from lockstep.pipeline.model.lake_commit import NEEDS_CONSENT, LakeCommit, WriteKind
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName

# -- facts that are read from the lake -------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordedCursor:
    """The cursor (how the run after a batch finds its place in the log), as a commit
    records it. `gtids`: None if the set was too long for the commit. `by_gtid`: the
    place is found by GTID, not by file and offset. `anchor`: the checksum of the event
    before the place. `sequence`: the number of the last change up to there.
    `committed_at`: the newest commit time up to there, or None if unknown."""

    server: str
    gtids: GtidSet | None
    by_gtid: bool
    anchor: Anchor
    sequence: int
    committed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A commit's record of a batch. `end`: where the batch ends in the log. `is_whole`:
    the commit was made to `_transactions`, which is the last step of publishing. Only a
    whole record has these fields:

    - `touched_tables`: tables with anything in the batch.
    - `stopped_tables`: tables that were no longer captured at its end, with their
      conditions (quarantined, dropped).
    - `mirror_begins`: the places where the mirrors begin that lack older rows.
    - `prepared_count`: number of prepared XA transactions.
    - `structures_key`: key of the file with the structures that the batch recorded.
    """

    batch: int
    ledger: str
    end: Coordinates
    cursor: RecordedCursor
    is_whole: bool = False
    touched_tables: frozenset[TableName] = frozenset()
    stopped_tables: Mapping[TableName, str] = field(default_factory=lambda: MappingProxyType({}))
    mirror_begins: Mapping[TableName, Coordinates] = field(
        default_factory=lambda: MappingProxyType({})
    )
    prepared_count: int = 0
    structures_key: str | None = None


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """A Delta version of a mirror that shows the end of a ledger's batch.
    `structure_key`: key of the file with the table's structure. `shape`: fingerprint of
    the settings that select and mask columns and rows; None if all are shown
    unchanged. `user_metadata`: the commit's."""

    version: int
    batch: int
    ledger: str
    structure_key: str | None = None
    shape: str | None = None
    user_metadata: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MirrorFacts:
    """The facts that a mirror's Delta log gives.

    - `newest_version`: its newest Delta version.
    - `shown_batches`: the versions that show the end of a batch, newest first. Other
      versions were written by other programs, are intermediate steps of a write, or
      have unreadable metadata.
    - `first_batches`: the first batch of each write.
    - `published_batches`: batches with files in the table's changelogs.
    - `generation`: its table's highest `TableState.generation`, from application ids.
    - `records`: the record of each write's last batch.
    - `last_without_log`: the last batch whose write had rows from elsewhere than the
      log; 0 for none. It stays after the write was undone, because the log does not
      have these rows.
    """

    table: TableName
    folder: str
    newest_version: int
    shown_batches: tuple[ShownBatch, ...] = ()
    first_batches: frozenset[int] = frozenset()
    published_batches: frozenset[int] = frozenset()
    generation: int = 1
    records: tuple[BatchRecord, ...] = ()
    last_without_log: int = 0


@dataclass(frozen=True, slots=True)
class LakeFacts:
    """The facts about a source's folder in the lake.

    - `owner`: the ledger that the claim names, or None.
    - `records`: records in commits to `_transactions`.
    - `tables_without_mirror`: tables with changes but no mirror, with the first batch
      that has changes of the table.
    - `void_spans`: batches that the claim declares void, and batches that
      are missing in `_transactions` and were not deleted on purpose.
    - `is_claim_complete`: the claim is known to list all void batches.
    - `highest_batch`: the highest batch number in the claim, in commits of changelogs,
      and in names of listed files.
    """

    owner: str | None
    records: tuple[BatchRecord, ...]
    mirrors: tuple[MirrorFacts, ...]
    tables_without_mirror: tuple[tuple[TableName, int], ...] = ()
    void_spans: tuple[BatchSpan, ...] = ()
    is_claim_complete: bool = True
    highest_batch: int = 0

    def is_valid(self, batch: int) -> bool:
        """Return whether a batch is not void."""
        return not any(batch in span for span in self.void_spans)

    def valid_spans(self, through: int) -> tuple[BatchSpan, ...]:
        """Return the spans of batches from the first to `through` that are not void."""
        edges = {0, through}
        for span in self.void_spans:
            edges |= {edge for edge in (span.after, span.through) if edge < through}
        spans = pairwise(sorted(edges))
        return tuple(BatchSpan(after, last) for after, last in spans if self.is_valid(last))


@dataclass(frozen=True, slots=True)
class Adoption:
    """A table that the new ledger takes over with a version of its mirror. If a newer
    version exists, the mirror is restored to this one."""

    mirror: MirrorFacts
    shown_batch: ShownBatch

    @property
    def version(self) -> int:
        return self.shown_batch.version

    @property
    def needs_restore(self) -> bool:
        return self.version != self.mirror.newest_version


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The plan for a new ledger. `lake_end`: the batch after which it continues.
    `reloads`: tables that must be read from the source, and why. `unchanged_mirrors`:
    those of dropped tables. `highest_batch`: the highest batch number in the lake.
    `doubts`: sentences about facts that the lake lacks. `tables_needing_consent`: those
    that wait for somebody's consent to show them."""

    lake_end: BatchRecord
    adoptions: tuple[Adoption, ...]
    reloads: tuple[tuple[TableName, str], ...]
    unchanged_mirrors: tuple[MirrorFacts, ...] = ()
    highest_batch: int = 0
    doubts: tuple[str, ...] = ()
    tables_needing_consent: frozenset[TableName] = frozenset()


_APP_ID: Final = re.compile(
    r"lockstep/.+/(?P<part>mirror|changelog)(@\d+)?/(?P<generation>\d+)(?P<step>/evolve)?"
)
_PARSE_ERRORS: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def record_of(commit: LakeCommit, *, in_transactions: bool = False) -> BatchRecord | None:
    """Return a commit's record of its last batch, or None if it has none that can be
    read. `in_transactions`: the commit was made to `_transactions`."""
    metadata = commit.metadata
    if metadata is None:
        return None
    try:
        record = BatchRecord(
            batch=int(metadata["batches"][1]),
            ledger=str(metadata["ledger"]),
            end=Coordinates.parse(metadata["place"]),
            cursor=_recorded_cursor(metadata["cursor"]),
            is_whole=in_transactions and metadata["kind"] == WriteKind.PUBLISH,
        )
        if not record.is_whole:
            return record
        begins = {TableName(*name): Coordinates.parse(at) for *name, at in metadata["partial"]}
        return replace(
            record,
            touched_tables=frozenset(TableName(*name) for name in metadata["touched"]),
            stopped_tables={
                TableName(*name): str(state) for *name, state in metadata["not_following"]
            },
            mirror_begins=begins,
            prepared_count=int(metadata["prepared"]),
            structures_key=metadata["structures"],
        )
    except _PARSE_ERRORS:
        return None


LEAST_COMMITS: Final = 200
"""Smallest number of newest commits that are read from each table's Delta log."""

_BATCH_KINDS: Final = frozenset(
    {
        WriteKind.PUBLISH,
        WriteKind.MERGE,
        WriteKind.REWRITE,
        WriteKind.RESTORE,
        WriteKind.UPKEEP,
    }
)
"""The kinds of commits whose version shows the end of their last batch."""


def needed_commits(
    newest_first: Iterable[LakeCommit],
    void_spans: Sequence[BatchSpan],
    after_batch: int | None,
    least: int = LEAST_COMMITS,
) -> list[LakeCommit]:
    """Return the commits of a table that a recovery needs, newest first: at least
    `least`, and all back to the newest that shows a batch which is not void.
    `after_batch`: the batch to which a person wants to go back; a commit that shows a
    later batch does not suffice then. If no commit suffices, return the whole log."""

    def suffices(commit: LakeCommit) -> bool:
        record = record_of(commit)
        return (
            record is not None
            and (commit.metadata or {}).get("kind") in _BATCH_KINDS
            and (after_batch is None or record.batch <= after_batch)
            and not any(record.batch in span for span in void_spans)
        )

    commits = []
    is_sufficient = False
    for commit in newest_first:
        commits.append(commit)
        is_sufficient = is_sufficient or suffices(commit)
        if is_sufficient and len(commits) >= least:
            break
    return commits


def last_deleted_batch(commits: Iterable[LakeCommit]) -> int:
    """Return the last batch whose changes were deleted on purpose, by a table's
    commits; 0 for none."""
    last = 0
    for commit in commits:
        is_deletion = (commit.metadata or {}).get("kind") == WriteKind.FORGET
        if is_deletion and (record := record_of(commit)) is not None:
            last = max(last, record.batch)
    return last


def _recorded_cursor(values: Mapping[str, Any]) -> RecordedCursor:
    committed_at = values.get("committed_at")
    return RecordedCursor(
        server=str(values["server_uuid"]),
        gtids=None if values["gtid_set"] is None else GtidSet.parse(values["gtid_set"]),
        by_gtid=bool(values["by_gtid"]),
        anchor=Anchor(*values["anchor"]),
        sequence=int(values["sequence"]),
        committed_at=None if committed_at is None else datetime.fromisoformat(committed_at),
    )


@dataclass(slots=True)
class _MirrorLog:
    """The state while a mirror's Delta log is read, oldest commit first. `last_shown`:
    the last version read, if it shows the end of a batch. `has_foreign_changes`:
    the mirror's rows contain changes of another program. `MirrorFacts` explains the
    other fields."""

    table: TableName | None = None
    generation: int = 0
    last_shown: ShownBatch | None = None
    has_foreign_changes: bool = False
    shown_batches: list[ShownBatch] = field(default_factory=list)
    first_batches: set[int] = field(default_factory=set)
    records: dict[int, BatchRecord] = field(default_factory=dict)
    last_without_log: int = 0

    def read_commit(self, commit: LakeCommit) -> None:
        """Read the next commit. A ledger can continue with a version that shows the end
        of a batch, or with a later one if all commits between them left the rows
        unchanged, as OPTIMIZE does. Another program's changes stay in all later
        versions until all rows are replaced."""
        for name in commit.transactions:
            self._note_generation(name)
        previous = self.last_shown
        self.last_shown = None
        metadata = commit.metadata or {}
        is_neutral = judge_foreign(commit) is None
        copies_version = is_neutral and commit.copied_version is not None
        if commit.is_ours and not copies_version:
            is_restore = metadata.get("kind") == WriteKind.RESTORE
            if is_restore or any(map(_writes_mirror, commit.transactions)):
                self._note_record(commit, is_restore=is_restore)
        elif not is_neutral:
            self.has_foreign_changes = True
        elif previous is not None:
            self.last_shown = replace(previous, version=commit.delta_version)
            self.shown_batches[-1] = self.last_shown
        elif copies_version and not self.shown_batches and not self.has_foreign_changes:
            # The log no longer has the version whose rows this commit repeats.
            self._note_generation(str(metadata.get("app_id")))
            self._note_record(commit)

    def _note_generation(self, app_id: str) -> None:
        if (match := _APP_ID.fullmatch(app_id)) is not None:
            self.generation = max(self.generation, int(match["generation"]))

    def _note_record(self, commit: LakeCommit, *, is_restore: bool = False) -> None:
        """Take a commit's record: the mirror shows the end of its last batch, unless
        another program's changes are in it."""
        metadata = commit.metadata or {}
        record, table = record_of(commit), commit.table
        if record is None or table is None:
            return
        try:
            first, last = map(int, metadata["batches"])
        except _PARSE_ERRORS:
            return
        self.table = table
        if is_restore:
            self._forget_after(last)
        self.first_batches.add(first)
        self.records[last] = record
        if metadata.get("rows_without_log"):
            self.last_without_log = max(self.last_without_log, last)
        structure_key, shape = metadata.get("structure"), metadata.get("shape")
        if "shape" not in metadata and self.shown_batches:
            # The write did not change the structure or the shape.
            previous = self.shown_batches[-1]
            structure_key, shape = previous.structure_key, previous.shape
        replaces_rows = metadata.get("kind") in (WriteKind.REWRITE, WriteKind.RESTORE)
        self.has_foreign_changes &= not replaces_rows
        if self.has_foreign_changes:
            return
        self.last_shown = ShownBatch(
            version=commit.delta_version,
            batch=last,
            ledger=record.ledger,
            structure_key=structure_key if isinstance(structure_key, str) else None,
            shape=shape,
            user_metadata=commit.user_metadata or "",
        )
        self.shown_batches.append(self.last_shown)

    def _forget_after(self, last: int) -> None:
        """Forget the writes of batches after `last`, because a RESTORE undid them."""
        self.first_batches = {batch for batch in self.first_batches if batch <= last}
        self.shown_batches = [shown for shown in self.shown_batches if shown.batch <= last]
        self.records = {batch: record for batch, record in self.records.items() if batch <= last}


def _writes_mirror(name: str) -> bool:
    match = _APP_ID.fullmatch(name)
    return match is not None and match["part"] == "mirror" and match["step"] is None


def mirror_facts(folder: str, newest_first: Sequence[LakeCommit]) -> MirrorFacts | None:
    """Return the facts of a mirror's log, or None if Lockstep never wrote to it."""
    log = _MirrorLog()
    for commit in reversed(newest_first):
        log.read_commit(commit)
    if log.table is None:
        return None
    return MirrorFacts(
        log.table,
        folder,
        newest_version=newest_first[0].delta_version,
        shown_batches=tuple(reversed(log.shown_batches)),
        first_batches=frozenset(log.first_batches),
        generation=max(log.generation, 1),
        records=tuple(log.records.values()),
        last_without_log=log.last_without_log,
    )


def newest_mirrors(mirrors: Iterable[MirrorFacts], through: int) -> list[MirrorFacts]:
    """Return one mirror for each table. Of several folders, it is the one that shows
    the newest batch up to `through`."""

    def rank(mirror: MirrorFacts) -> tuple[int, int]:
        batches = (shown.batch for shown in mirror.shown_batches)
        newest_batch = next((batch for batch in batches if batch <= through), 0)
        return newest_batch, mirror.generation

    newest: dict[TableName, MirrorFacts] = {}
    for mirror in mirrors:
        other = newest.get(mirror.table)
        if other is None or rank(other) < rank(mirror):
            newest[mirror.table] = mirror
    return [newest[table] for table in sorted(newest)]


# -- the decision ----------------------------------------------------------------------


RECENT_BATCHES: Final = 8
"""Number of newest batches from which the one with the fewest reloads is chosen."""

DROPPED: Final = "dropped"
"""The condition of a table that was dropped at the source."""


class LedgerContent(StrEnum):
    """What a ledger has recorded about a source. `RECOVERING`: only what an unfinished
    recovery from the lake recorded."""

    NOTHING = "nothing"
    RECOVERING = "recovering"
    RECORDED = "recorded"


class RecoveryCase(StrEnum):
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
    content: LedgerContent,
    disagree: Callable[[], bool],
    has_folder: Callable[[], bool],
    *,
    back_to: bool = False,
    start_over: bool = False,
) -> RecoveryCase:
    """Return what `lockstep recover` does. `disagree`: returns whether ledger and lake
    disagree; `has_folder`: returns whether the lake has the source's folder. Each is
    called only if needed. `back_to`, `start_over`: whether a person gave that
    option."""
    if content is LedgerContent.NOTHING:
        if not start_over:
            return RecoveryCase.FROM_LAKE
        return RecoveryCase.START_OVER if has_folder() else RecoveryCase.AGREE
    if start_over:
        return RecoveryCase.REFUSED
    if content is LedgerContent.RECOVERING:
        return RecoveryCase.FINISH
    if back_to:
        return RecoveryCase.REFUSED
    return RecoveryCase.KEEP_LEDGER if disagree() else RecoveryCase.AGREE


def decide(
    facts: LakeFacts, is_reached: Callable[[BatchRecord], bool], after_batch: int | None = None
) -> RecoveryPlan | None:
    """Return the plan for the best batch whose end the source's log has, or None if
    there is none. `is_reached`: returns whether the log has a batch's end; it is called
    for the best batch first. `after_batch`: the batch to which a person wants to go
    back; None to choose."""
    highest = highest_batch_of(facts)
    facts, doubts = _trusted_facts(facts)
    ends = _possible_ends(facts)
    if after_batch is not None:
        ends = [end for end in ends if end.batch <= after_batch][:1]
    recent = [_plan_after(facts, end) for end in ends[:RECENT_BATCHES]]
    recent.sort(key=lambda plan: len(plan.reloads))
    older = (_plan_after(facts, end) for end in ends[RECENT_BATCHES:])
    best = next((plan for plan in chain(recent, older) if is_reached(plan.lake_end)), None)
    if best is None:
        return None
    return replace(
        best, highest_batch=highest, doubts=(*doubts, *_doubts_about(facts, best.lake_end))
    )


def nameable_batches(facts: LakeFacts) -> range:
    """Return the batches that a person may name. If a ledger cannot continue after the
    named batch, `decide` takes the newest one before it."""
    batches = [end.batch for end in _possible_ends(_trusted_facts(facts)[0])]
    return range(min(batches), highest_batch_of(facts) + 1) if batches else range(0)


def highest_batch_of(facts: LakeFacts) -> int:
    """Return the highest number of any batch in the lake, including void ones."""
    batches = {facts.highest_batch, *(span.through for span in facts.void_spans)}
    batches.update(record.batch for record in facts.records)
    for mirror in facts.mirrors:
        batches.update(mirror.published_batches, mirror.first_batches)
        batches.update(shown.batch for shown in mirror.shown_batches)
    return max(batches)


def _trusted_facts(facts: LakeFacts) -> tuple[LakeFacts, list[str]]:
    """Return the facts without void batches and without ledgers that wrote at the same
    time as the owner of the folder; `records` also has the records of all mirrors'
    commits. Return also a doubt for each of these ledgers."""
    records = [*facts.records, *(record for mirror in facts.mirrors for record in mirror.records)]
    batches: dict[str, set[int]] = {}
    for record in records:
        if facts.is_valid(record.batch):
            batches.setdefault(record.ledger, set()).add(record.batch)
    owner = facts.owner
    if owner not in batches:
        owner = max(batches, key=lambda ledger: max(batches[ledger]), default=None)
    if owner is None:
        return replace(facts, records=()), []
    first = min(batches[owner])
    intruders = {ledger for ledger, own in batches.items() if ledger != owner and max(own) >= first}

    def is_trusted(batch: int, ledger: str) -> bool:
        return facts.is_valid(batch) and ledger not in intruders

    mirrors = tuple(
        replace(
            mirror,
            shown_batches=tuple(
                shown for shown in mirror.shown_batches if is_trusted(shown.batch, shown.ledger)
            ),
            first_batches=frozenset(filter(facts.is_valid, mirror.first_batches)),
            published_batches=frozenset(filter(facts.is_valid, mirror.published_batches)),
        )
        for mirror in facts.mirrors
    )
    doubts = [
        f"the ledger {other} wrote to this lake as well as {owner}: its commits do not count"
        for other in sorted(intruders)
    ]
    trusted = tuple(record for record in records if is_trusted(record.batch, record.ledger))
    return replace(facts, owner=owner, records=trusted, mirrors=mirrors), doubts


def _possible_ends(facts: LakeFacts) -> list[BatchRecord]:
    """Return the most complete record of each batch after which a ledger can continue,
    newest first."""
    last_shown = max(
        (shown.batch for mirror in facts.mirrors for shown in mirror.shown_batches), default=-1
    )
    if not facts.is_claim_complete and any(record.is_whole for record in facts.records):
        last_shown = -1  # only whole records count: `_transactions` lists no void batch
    ends: dict[int, BatchRecord] = {}
    for record in sorted(
        facts.records,
        key=lambda record: (record.batch, record.is_whole, record.cursor.gtids is not None),
        reverse=True,
    ):
        if record.is_whole or record.batch <= last_shown:
            ends.setdefault(record.batch, record)
    return list(ends.values())


def _plan_after(facts: LakeFacts, lake_end: BatchRecord) -> RecoveryPlan:
    """Return the plan for a ledger that continues after one batch."""
    whole_records = [record for record in facts.records if record.is_whole]
    newest_whole = max(
        (record for record in whole_records if record.batch <= lake_end.batch),
        key=lambda record: record.batch,
        default=lake_end,
    )
    lake_end = replace(lake_end, mirror_begins=newest_whole.mirror_begins)
    adoptions, reloads, unchanged = [], [], []
    stopped = dict(newest_whole.stopped_tables)
    for mirror in newest_mirrors(facts.mirrors, lake_end.batch):
        batches = _batches_of_table(whole_records, mirror)
        shown = _exact_version(mirror, batches, lake_end.batch)
        if shown is not None and shown.batch > newest_whole.batch:
            stopped.pop(mirror.table, None)  # it was resumed
        condition = stopped.get(mirror.table)
        if condition == DROPPED:
            unchanged.append(mirror)
        elif condition is not None:
            reloads.append((mirror.table, f"it was {condition} by then"))
        elif min(batches, default=0) > lake_end.batch:
            continue
        elif shown is None:
            reason = f"no version of its mirror shows exactly the table at {lake_end.end}"
            reloads.append((mirror.table, reason))
        else:
            adoptions.append(Adoption(mirror, shown))
            if mirror.last_without_log > lake_end.batch:
                reason = (
                    "rows of it were read from the source, or corrected by a replay, after "
                    f"{lake_end.end}"
                )
                reloads.append((mirror.table, reason))
    for table, first in facts.tables_without_mirror:
        if first <= lake_end.batch:
            reloads.append((table, "it has no mirror in the lake"))
    return RecoveryPlan(
        lake_end,
        tuple(adoptions),
        tuple(reloads),
        tuple(unchanged),
        tables_needing_consent=frozenset(
            table for table, condition in stopped.items() if condition == NEEDS_CONSENT
        ),
    )


def _exact_version(mirror: MirrorFacts, batches: Iterable[int], through: int) -> ShownBatch | None:
    """Return the mirror's version that shows exactly the end of batch `through`, or
    None. `batches`: the batches that concern the table."""
    shown = next((shown for shown in mirror.shown_batches if shown.batch <= through), None)
    if shown is None or any(shown.batch < batch <= through for batch in batches):
        return None
    return shown


def _batches_of_table(whole_records: Iterable[BatchRecord], mirror: MirrorFacts) -> frozenset[int]:
    touching = (record.batch for record in whole_records if mirror.table in record.touched_tables)
    return mirror.published_batches.union(mirror.first_batches, touching)


def _doubts_about(facts: LakeFacts, lake_end: BatchRecord) -> Iterator[str]:
    if not lake_end.is_whole:
        yield (
            "no commit to _transactions describes this batch, so it is unknown which tables were "
            "quarantined or partial"
        )
        if not facts.is_claim_complete:
            yield (
                "the folder's claim may lack batches that were undone, and this one may be among "
                "them"
            )
    if lake_end.prepared_count:
        yield (
            f"{pluralize(lake_end.prepared_count, 'XA transaction')} had been prepared by then: a "
            "run that finds one of them committed stops there"
        )
