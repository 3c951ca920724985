"""What happens to a captured table, as values; `rules` says which are allowed, and what they do.

Changes of its rows and of its structure are no such events (`TableEvent`).
"""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.pipeline.model.table_state import Stopped
from lockstep.pipeline.values.errors import Need, StoppedBy


@dataclass(frozen=True, slots=True)
class Followed:
    """A batch captured rows, a statement or a structure of the table, into this changelog. `mirror`
    counts for a new table. `need`: ROWS if all rows are being read from the source from here on."""

    changelog: str
    changelog_generation: int
    mirror: str
    need: Need | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """All rows are read, and a batch captured the log up to the last of them."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The table was dropped at the source."""

    changelog: str
    changelog_generation: int
    mirror: str
    stopped: Stopped


@dataclass(frozen=True, slots=True)
class TableStopped:
    """Somebody stopped the table. `position`: the place in words, None for that of `stopped`, which
    is None if nothing was captured yet."""

    by: StoppedBy
    reason: str
    hint: str
    stopped: Stopped | None
    position: str | None = None
    need: Need | None = None


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A person ordered that the mirror is written again. A table that is followed stops until the
    next run does that."""

    reason: str
    hint: str
    stopped: Stopped | None


@dataclass(frozen=True, slots=True)
class Rejoined:
    """A capture carried out the order to start the table again: it is where the others are."""


@dataclass(frozen=True, slots=True)
class MirrorWritten:
    """The mirror shows that version of the table's structure."""

    version: int


@dataclass(frozen=True, slots=True)
class MirrorHandedOver:
    """A ledger continues a mirror that another ledger made (`lockstep recover`), and that was found
    at `delta_version` and showing `version`."""

    generation: int
    mirror: str
    delta_version: int
    version: int


@dataclass(frozen=True, slots=True)
class MirrorReplaced:
    """The mirror was lost, or is not Lockstep's any more: the next write makes another one, in that
    folder."""

    mirror: str


@dataclass(frozen=True, slots=True)
class MirrorRemoved:
    """The mirror of a dropped table was deleted."""


@dataclass(frozen=True, slots=True)
class LakeRestarted:
    """The lake and the ledger disagree about the table: its lake tables begin a new generation."""


@dataclass(frozen=True, slots=True)
class BatchAbandoned:
    """The batch never happened. The event changes nothing by itself: the table's other events are
    applied again from the first (`rules.replayed`)."""

    batch: int


Event = (
    Followed
    | Loaded
    | Dropped
    | TableStopped
    | Reloaded
    | Rejoined
    | MirrorWritten
    | MirrorHandedOver
    | MirrorReplaced
    | MirrorRemoved
    | LakeRestarted
    | BatchAbandoned
)

MirrorEvent = MirrorReplaced | MirrorRemoved | LakeRestarted
"""What a step of a run records of a mirror by itself."""
