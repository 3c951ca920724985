"""An operator chooses where the next run starts: looked at first, then recorded.

Belongs here: what a choice would lead to, and refusing one that no run could carry out.
Does not: carrying it out (`begin`), the rules (`pipeline.start`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.decisions import Continuity, Lease, Override
from pipeline.errors import LockstepError, Recovery
from pipeline.places import AtCoordinates, Latest, Place, Snapshot
from pipeline.position import Position
from pipeline.runs.begin import look, tables_touched
from pipeline.runs.context import Workplace
from pipeline.runs.find_place import snapshot_not_chosen
from pipeline.runs.inspecting.plan import cursor_after
from pipeline.runs.repair import foreseen
from pipeline.start.question import Refusal

_PROPOSED = 0
"""The id of a choice that is not recorded yet."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice as it was recorded, and what the next run makes of it: where it starts, what
    then lies between that and `follows`, the end of what was read. `trouble`: why the
    server could not be asked, and then nothing else is known."""

    override: Override
    abandoned: tuple[int, ...] = ()
    position: Position | None = None
    follows: Position | None = None
    continuity: Continuity | None = None
    gap_tables: tuple[str, ...] = ()
    trouble: LockstepError | None = None


def choose_start(work: Workplace, lease: Lease, place: Place, reason: str, author: str) -> Choice:
    """Record where the next run is to start, in place of an earlier choice.

    `StartBehindCursor` and `StartUnreachable`, and other refusals of the log's searches:
    nothing is recorded. A server that cannot be asked keeps nobody from choosing.
    """
    if isinstance(place, Snapshot):
        raise snapshot_not_chosen()
    proposed = Override(_PROPOSED, str(place), reason, author, work.clock())
    try:
        found = _foreseen(work, proposed)
    except LockstepError as error:
        if error.recovery is not Recovery.RETRY:
            raise
        found = Choice(proposed, trouble=error)
    if isinstance(place, Latest) and found.position is not None:
        place = AtCoordinates(found.position.at)  # the end as it is now, not as a run finds it
    override = work.ledger.choose_start(lease, place=str(place), reason=reason, author=author)
    return replace(found, override=override)


def _foreseen(work: Workplace, proposed: Override) -> Choice:
    abandoned = list(foreseen(work, proposed))
    cursor = cursor_after(work, abandoned)
    proposal = look(work, cursor, proposed)
    decision = proposal.decision
    if isinstance(decision, Refusal):
        raise decision.error
    return Choice(
        proposed,
        abandoned=tuple(abandonment.batch.id for abandonment in abandoned),
        position=proposal.run_start.start if proposal.run_start else None,
        follows=cursor.position if cursor else None,
        continuity=decision.continuity,
        gap_tables=tables_touched(work, decision),
    )
