"""What a lake shows of a source: its mirrors, and the batches that its commits tell of. Values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from pipeline.claim import BatchSpan
from pipeline.gtid import GtidSet
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
    its commit says is `words`. `structure`: the key of the table's structure there."""

    version: int
    last: int
    ledger: str
    structure: str | None = None
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
