"""What happens to a captured table, as values.

Not here: which of them are allowed, and what they do (`rules`), changes of rows and structure
(`TableEvent`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import Remedy
from pipeline.table_state import Stopped


@dataclass(frozen=True, slots=True)
class Followed:
    """A batch has rows, a statement or a structure of it; its changelog from here on."""

    changelog: str
    changelog_generation: int
    mirror: str
    """Counts for a table that is seen for the first time."""


@dataclass(frozen=True, slots=True)
class LoadBegun:
    """A batch captures it from the place on that rows are read behind, chunk by chunk."""

    changelog: str
    changelog_generation: int
    mirror: str
    """Counts for a table that is seen for the first time."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """All its rows are read, and a batch has captured the log behind them."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The source has it no more."""

    changelog: str
    changelog_generation: int
    mirror: str
    stopped: Stopped


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The system keeps it out. `stopped`: None where nothing was captured yet."""

    reason: str
    hint: str
    position: str
    remedy: Remedy
    stopped: Stopped | None


@dataclass(frozen=True, slots=True)
class Paused:
    """A person keeps it out. `stopped`: where the captures are; it counts for a table that is
    active, any other stays where it had stopped."""

    reason: str
    hint: str
    remedy: Remedy | None
    stopped: Stopped | None


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A person has its mirror written anew, for which it stops, if it is active."""

    reason: str
    hint: str
    stopped: Stopped | None


@dataclass(frozen=True, slots=True)
class Resumed:
    """A person, or the next run by itself, has it continue; the next capture carries that out."""


@dataclass(frozen=True, slots=True)
class Rejoined:
    """A capture carried out what was ordered: it is where the other tables are."""


@dataclass(frozen=True, slots=True)
class MirrorWritten:
    """Its mirror shows that version of its structure."""

    version: int


@dataclass(frozen=True, slots=True)
class MirrorHandedOver:
    """A ledger goes on with a mirror that it did not make (`lockstep recover`). `delta_version` and
    `version`: what was found there."""

    generation: int
    mirror: str
    delta_version: int
    version: int


@dataclass(frozen=True, slots=True)
class MirrorReplaced:
    """Its mirror was lost, or is not ours any more: the next write makes another, there."""

    mirror: str


@dataclass(frozen=True, slots=True)
class MirrorRemoved:
    """The mirror of a dropped table was removed."""


@dataclass(frozen=True, slots=True)
class LakeRestarted:
    """The lake and the ledger disagree about it: its lake tables begin a new generation."""


@dataclass(frozen=True, slots=True)
class BatchAbandoned:
    """What that batch told never happened. By itself it changes nothing: all other events are
    gone through again (`step.replayed`)."""

    batch: int


Event = (
    Followed
    | LoadBegun
    | Loaded
    | Dropped
    | Quarantined
    | Paused
    | Reloaded
    | Resumed
    | Rejoined
    | MirrorWritten
    | MirrorHandedOver
    | MirrorReplaced
    | MirrorRemoved
    | LakeRestarted
    | BatchAbandoned
)

MirrorEvent = MirrorReplaced | MirrorRemoved | LakeRestarted
"""What a step of a run tells of a mirror by itself."""
