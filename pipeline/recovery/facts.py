"""What a lake shows of a source: its mirrors, and the batches that its commits tell of. Values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from pipeline.claim import BatchSpan
from pipeline.foreign_commits import foreign
from pipeline.gtid import GtidSet
from pipeline.lake_commit import LakeCommit, WriteKind
from pipeline.position import Coordinates, Witness
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class CursorSaid:
    """The cursor behind a batch as a commit tells it. `gtids` None: too long for that commit.
    `sequence`: the number of the last change up to there."""

    server: str
    gtids: GtidSet | None
    by_gtid: bool
    witness: Witness
    sequence: int


@dataclass(frozen=True, slots=True)
class Told:
    """What commits tell of a batch. `whole`: a commit to `_transactions` does, which is the last
    one of its publishing; only that one knows which tables the batch `touched`, which of them
    stood `still` behind it (and how), which were `partial` (and from where), how many XA
    transactions were `prepared`, and under which key the `structures` are that it recorded.
    """

    batch: int
    ledger: str
    at: Coordinates
    cursor: CursorSaid
    whole: bool = False
    touched: frozenset[TableName] = frozenset()
    still: Mapping[TableName, str] = field(default_factory=lambda: MappingProxyType({}))
    partial: Mapping[TableName, Coordinates] = field(default_factory=lambda: MappingProxyType({}))
    prepared: int = 0
    structures: str | None = None


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """A Delta version of a mirror that shows the end of batch `last`, by that ledger's word: what
    its commit says is `words`. `structure`: the key of the table's structure there; `shape`: the
    fingerprint of how it is shown, None: as it is."""

    version: int
    last: int
    ledger: str
    structure: str | None = None
    shape: str | None = None
    words: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MirrorFacts:
    """A mirror as its log tells. `shown`: versions that show whole batches, newest first; any
    other version is somebody else's, a step of a write, or says nothing that can be read.
    `begins`: the first batches of its writes. `published`: batches with files in its
    changelogs. `generation`: the highest that it was written under. `told`: what those versions
    tell of their last batches."""

    table: TableName
    folder: str
    newest: int
    shown: tuple[ShownBatch, ...] = ()
    begins: frozenset[int] = frozenset()
    published: frozenset[int] = frozenset()
    generation: int = 1
    told: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class LakeFacts:
    """`owner`: the ledger that the folder says it belongs to; None where it says nothing.
    `told`: by commits to `_transactions`. `unmirrored`: tables with changes and no mirror, and the
    first batch that has some. `void`: batches that the folder went back from, and those that
    `_transactions` listed and no longer lists; `complete`: as in `Claim`. `highest`: no
    batch that the claim, a changelog's commit, or the name of a file that is listed tells of has a
    higher number."""

    owner: str | None
    told: tuple[Told, ...]
    mirrors: tuple[MirrorFacts, ...]
    unmirrored: tuple[tuple[TableName, int], ...] = ()
    void: tuple[BatchSpan, ...] = ()
    complete: bool = True
    highest: int = 0

    def counts(self, batch: int) -> bool:
        """Return whether what the lake shows of a batch counts."""
        return not any(batch in span for span in self.void)

    def counting(self, through: int) -> tuple[BatchSpan, ...]:
        """Return the batches up to that one that count, in spans."""
        edges = {0, through}
        for span in self.void:
            edges |= {edge for edge in (span.after, span.through) if edge < through}
        spans = pairwise(sorted(edges))
        return tuple(BatchSpan(a, b) for a, b in spans if self.counts(b))


@dataclass(frozen=True, slots=True)
class Adopted:
    """A table whose mirror is taken as it is at a version: the newest one, or else it is made the
    newest once more."""

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
    """Where a new ledger goes on: behind batch `told.batch`. `reloads`: tables that must be read
    from the source, and why; `left`: those whose mirrors stay as they are because the source had
    dropped them. `batch`: the highest number in the lake. `doubts`: what the lake does not
    tell."""

    told: Told
    adopted: tuple[Adopted, ...]
    reloads: tuple[tuple[TableName, str], ...]
    left: tuple[MirrorFacts, ...] = ()
    batch: int = 0
    doubts: tuple[str, ...] = ()


_APPLICATION: Final = re.compile(
    r"lockstep/.+/(?P<part>mirror|changelog)(@(?P<within>\d+))?/(?P<generation>\d+)(?P<step>/evolve)?"
)
_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def told_of(commit: LakeCommit, *, whole: bool = False) -> Told | None:
    """What a commit tells of the last of its batches. `whole`: it is one to `_transactions`."""
    said = commit.said
    if said is None:
        return None
    try:
        told = Told(
            batch=int(said["batches"][1]),
            ledger=str(said["ledger"]),
            at=Coordinates.parse(said["position"]),
            cursor=_cursor(said["cursor"]),
            whole=whole and said["kind"] == WriteKind.PUBLISH,
        )
        if not told.whole:
            return told
        return replace(
            told,
            touched=frozenset(TableName(*one) for one in said["touched"]),
            still={TableName(one[0], one[1]): str(one[2]) for one in said["still"]},
            partial={
                TableName(one[0], one[1]): Coordinates.parse(one[2]) for one in said["partial"]
            },
            prepared=int(said["prepared"]),
            structures=said["structures"],
        )
    except _UNREADABLE:
        return None


def forgotten_of(commits: Iterable[LakeCommit]) -> int:
    """Up to which batch changes are kept no longer, by a table's commits; 0 where none says so."""
    found = 0
    for commit in commits:
        said = commit.said or {}
        if said.get("kind") == WriteKind.FORGET and (told := told_of(commit)) is not None:
            found = max(found, told.batch)
    return found


def _cursor(said: Mapping[str, Any]) -> CursorSaid:
    return CursorSaid(
        server=str(said["server"]),
        gtids=None if said["gtids"] is None else GtidSet.parse(said["gtids"]),
        by_gtid=bool(said["by_gtid"]),
        witness=Witness(*said["witness"]),
        sequence=int(said["sequence"]),
    )


@dataclass(slots=True)
class _Log:
    """A mirror's log, gone through from its oldest commit that is still there."""

    table: TableName | None = None
    generation: int = 0
    now: ShownBatch | None = None
    foreign: bool = False
    shown: list[ShownBatch] = field(default_factory=list)
    begins: set[int] = field(default_factory=set)
    told: dict[int, Told] = field(default_factory=dict)

    def take(self, commit: LakeCommit) -> None:
        """One that shows whole batches, or leaves the table as it was, is a version to go on
        from; any other is not. What somebody else wrote is in all that follows, until all rows
        are written anew."""
        for name in commit.transactions:
            self._wrote(name)
        before, self.now = self.now, None
        others = foreign(commit) is not None
        said = commit.said or {}
        if commit.repeats is not None and not others and before is None:
            # Where the log does not go back to the version that is repeated, this one tells of it.
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
        told = told_of(commit)
        if told is None:
            return
        try:
            first, last = (int(one) for one in said["batches"])
            self.table = table_named(said)
        except _UNREADABLE:
            return
        if restored:
            self._go_back(last)
        self.begins.add(first)
        self.told[last] = told
        key = said.get("structure")
        structure = key if isinstance(key, str) else None
        before = self.shown[-1].shape if self.shown else None
        # A write that keeps the structure keeps what is shown of it.
        shape = said.get("shape") if "shape" in said else before
        self.foreign &= said.get("kind") not in (WriteKind.REWRITE, WriteKind.RESTORE)
        if self.foreign:
            return
        words = commit.user_metadata or ""
        self.now = ShownBatch(commit.delta_version, last, told.ledger, structure, shape, words)
        self.shown.append(self.now)

    def _go_back(self, last: int) -> None:
        """What later batches wrote is undone."""
        self.begins = {begin for begin in self.begins if begin <= last}
        self.shown = [one for one in self.shown if one.last <= last]
        self.told = {batch: one for batch, one in self.told.items() if batch <= last}


def _writes_mirror(name: str) -> bool:
    match = _APPLICATION.fullmatch(name)
    return match is not None and match["part"] == "mirror" and match["step"] is None


def table_named(said: Mapping[str, Any]) -> TableName:
    """Whose table a commit is of."""
    database, name = said["name"]
    return TableName(str(database), str(name))


def mirror_facts(folder: str, newest_first: Sequence[LakeCommit]) -> MirrorFacts | None:
    """None for what no Lockstep wrote as a mirror."""
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
    """One for each table: of several folders the one that was written last as of that batch."""

    def last(mirror: MirrorFacts) -> tuple[int, int]:
        shown = next((one.last for one in mirror.shown if one.last <= through), 0)
        return shown, mirror.generation

    found: dict[TableName, MirrorFacts] = {}
    for mirror in mirrors:
        other = found.get(mirror.table)
        if other is None or last(other) < last(mirror):
            found[mirror.table] = mirror
    return [found[table] for table in sorted(found)]
