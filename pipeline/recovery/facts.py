"""Facts about a source that are read from its lake: mirrors, and batches that commits record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.foreign_commits import foreign
from lockstep.pipeline.model.lake_commit import LakeCommit, WriteKind
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class RecordedCursor:
    """The cursor at the end of a batch, as a commit records it. `gtids` is None if the set was too
    long for the commit. `sequence`: the number of the last change up to there."""

    server: str
    gtids: GtidSet | None
    by_gtid: bool
    anchor: Anchor
    sequence: int


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A commit's record of a batch. `whole`: the commit was made to `_transactions`, which is the
    last step of publishing. Only such a record has the following.

    `touched`: tables with anything in the batch. `still`: tables that were not captured any more at
    its end, with their conditions. `partial`: partial tables, with the places where they begin.
    `prepared`: number of prepared XA transactions. `structures`: key of the file with the
    structures that the batch recorded.
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
    """A Delta version of a mirror that shows the end of batch `last` of a ledger. `structure`: key
    of the table's structure; `shape`: fingerprint of the rules by which it is shown, None if it is
    unchanged. `words`: the commit's user metadata."""

    version: int
    last: int
    ledger: str
    structure: str | None = None
    shape: str | None = None
    words: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MirrorFacts:
    """A mirror as read from its log.

    `shown`: versions that show the end of a batch, newest first. Other versions were written by
    other programs, are steps of a write, or have unreadable metadata. `begins`: the first batches
    of its writes. `published`: batches with files in its changelogs. `generation`: the highest
    under which it was written. `told`: records of the last batches of its writes.
    """

    table: TableName
    folder: str
    newest: int
    shown: tuple[ShownBatch, ...] = ()
    begins: frozenset[int] = frozenset()
    published: frozenset[int] = frozenset()
    generation: int = 1
    told: tuple[BatchRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class LakeFacts:
    """The facts about a source's folder.

    `owner`: the ledger in the claim, or None. `told`: records in commits to `_transactions`.
    `unmirrored`: tables with changes but no mirror, with the first batch that has some. `void`:
    batches that were undone, by the claim, or because `_transactions` no longer lists them.
    `complete`: as in `Claim`. `highest`: the highest batch number in the claim, in commits of
    changelogs, and in names of listed files.
    """

    owner: str | None
    told: tuple[BatchRecord, ...]
    mirrors: tuple[MirrorFacts, ...]
    unmirrored: tuple[tuple[TableName, int], ...] = ()
    void: tuple[BatchSpan, ...] = ()
    complete: bool = True
    highest: int = 0

    def counts(self, batch: int) -> bool:
        """Return whether a batch is not void."""
        return not any(batch in span for span in self.void)

    def counting(self, through: int) -> tuple[BatchSpan, ...]:
        """Return the spans of batches up to `through` that are not void."""
        edges = {0, through}
        for span in self.void:
            edges |= {edge for edge in (span.after, span.through) if edge < through}
        spans = pairwise(sorted(edges))
        return tuple(BatchSpan(after, last) for after, last in spans if self.counts(last))


@dataclass(frozen=True, slots=True)
class Adopted:
    """A table whose mirror the new ledger continues from a version. If that is not the newest one,
    the mirror is set back to it."""

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
    """The plan for a new ledger, which continues after the batch of `told`. `reloads`: tables that
    must be read from the source, and why. `left`: mirrors that stay unchanged because their tables
    were dropped. `batch`: the highest batch number in the lake. `doubts`: sentences about facts
    that the lake lacks."""

    told: BatchRecord
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
    """Return a commit's record of its last batch, or None if it has none that can be read. `whole`:
    it is a commit to `_transactions`."""
    said = commit.said
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
    """Return the last batch whose changes a table's commits have deleted, or 0."""
    last = 0
    for commit in commits:
        said = commit.said or {}
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
    """The state while a mirror's log is read from its oldest commit on. `now`: the last version
    read, if it shows the end of a batch. `foreign`: another program's changes are in the mirror."""

    table: TableName | None = None
    generation: int = 0
    now: ShownBatch | None = None
    foreign: bool = False
    shown: list[ShownBatch] = field(default_factory=list)
    begins: set[int] = field(default_factory=set)
    told: dict[int, BatchRecord] = field(default_factory=dict)

    def take(self, commit: LakeCommit) -> None:
        """Read the next commit. Its version can be continued if it shows the end of a batch, or if
        the commit left such a version's rows unchanged. Another program's changes stay in all
        later versions until all rows are replaced."""
        for name in commit.transactions:
            self._wrote(name)
        before, self.now = self.now, None
        others = foreign(commit) is not None
        said = commit.said or {}
        if commit.repeats is not None and not others and before is None:
            # If the log begins after the version that is repeated, this commit describes it.
            if not self.shown and not self.foreign:
                self._wrote(str(said.get("app_id")))
                self._shows(commit)
        elif commit.ours and (commit.repeats is None or others):
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
        said = commit.said or {}
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
        self.told[last] = record
        key = said.get("structure")
        structure = key if isinstance(key, str) else None
        before = self.shown[-1].shape if self.shown else None
        # A write without a shape in its metadata has the structure and the shape of the last one.
        shape = said.get("shape") if "shape" in said else before
        self.foreign &= said.get("kind") not in (WriteKind.REWRITE, WriteKind.RESTORE)
        if self.foreign:
            return
        words = commit.user_metadata or ""
        self.now = ShownBatch(commit.delta_version, last, record.ledger, structure, shape, words)
        self.shown.append(self.now)

    def _go_back(self, last: int) -> None:
        """Forget the writes of batches after `last`, which a RESTORE undid."""
        self.begins = {begin for begin in self.begins if begin <= last}
        self.shown = [version for version in self.shown if version.last <= last]
        self.told = {batch: record for batch, record in self.told.items() if batch <= last}


def _writes_mirror(name: str) -> bool:
    match = _APPLICATION.fullmatch(name)
    return match is not None and match["part"] == "mirror" and match["step"] is None


def table_named(said: Mapping[str, Any]) -> TableName:
    """Return the table in a commit's user metadata."""
    database, name = said["name"]
    return TableName(str(database), str(name))


def mirror_facts(folder: str, newest_first: Sequence[LakeCommit]) -> MirrorFacts | None:
    """Return the facts of a mirror's log, or None if no Lockstep wrote a mirror there."""
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
        told=tuple(log.told.values()),
    )


def newest_of_each(mirrors: Iterable[MirrorFacts], through: int) -> list[MirrorFacts]:
    """Return one mirror for each table: if it has several folders, the one that shows the newest
    batch up to `through`."""

    def last(mirror: MirrorFacts) -> tuple[int, int]:
        batch = next((version.last for version in mirror.shown if version.last <= through), 0)
        return batch, mirror.generation

    newest: dict[TableName, MirrorFacts] = {}
    for mirror in mirrors:
        other = newest.get(mirror.table)
        if other is None or last(other) < last(mirror):
            newest[mirror.table] = mirror
    return [newest[table] for table in sorted(newest)]
