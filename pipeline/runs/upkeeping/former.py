"""The deletion of folders that mirrors had before.

A mirror gets another folder if the settings give it another name, if its folder was lost, or if it
was made for other readers. Version sets name versions in its former folder, so that is deleted as a
whole only once none of them is promised any more: the time counts from the moment when a newer
version set names the new folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pipeline.errors import LockstepError, TableError
from pipeline.runs.context import Workplace
from pipeline.runs.mirror_places import delete_former, former_places
from pipeline.runs.upkeeping.gather import last_held, under_lock
from pipeline.upkeep.decide import doubt_of


@dataclass(frozen=True, slots=True)
class FormerMirror:
    """A folder that a mirror had before. `kept`: a sentence on why it stays; None if it is
    deleted."""

    folder: str
    kept: str | None = None


def plan_former(work: Workplace, keep: timedelta) -> tuple[FormerMirror, ...]:
    """Plan the deletion; nothing is written. `keep`: how long a version stays readable after it was
    replaced."""
    ledger, source = work.ledger, work.source.name
    folders = former_places(ledger, source)
    if not folders:
        return ()
    looked, left = ledger.looked(source), ledger.left_at(source, folders)
    now, held = ledger.clock(), last_held(work)
    plan = []
    for folder in folders:
        kept: str | None
        try:
            newest = next(iter(work.mirrors.history(folder)), None)
            if newest is None:
                kept = None  # Somebody deleted it: the ledger must record that.
            elif newest.delta_version != looked[folder]:
                kept = "somebody else wrote to it; delete it yourself"
            elif folder in left and left[folder] is None:
                kept = "the newest versions that are acknowledged name it"
            else:
                moments = [newest.committed_at, left.get(folder)]
                since = max((moment for moment in moments if moment is not None), default=None)
                doubt = doubt_of(work.clock(), now, newest.committed_at, held, keep)
                kept = doubt or _promised(since, now, keep)
        except (LockstepError, TableError) as error:
            kept = str(error)
        plan.append(FormerMirror(folder, kept))
    return tuple(plan)


def _promised(since: datetime | None, now: datetime, keep: timedelta) -> str | None:
    """Return why versions that were replaced at a moment are still kept, or None."""
    if since is None:
        return "it is unknown when its versions were replaced; delete it yourself"
    until = since + keep
    return None if until <= now else f"its versions are promised until {until:%Y-%m-%d %H:%M} UTC"


def let_former_go(
    work: Workplace, plan: Sequence[FormerMirror], holder: str
) -> tuple[FormerMirror, ...]:
    """Carry out the plan, and return what became of each folder."""
    due = [former.folder for former in plan if former.kept is None]
    deleted: list[str] = []
    if due and not under_lock(
        work, holder, lambda lease: deleted.extend(delete_former(work, lease, due))
    ):
        later = "a run has the source: the next upkeep deletes it"
        return tuple(replace(former, kept=former.kept or later) for former in plan)
    for folder in deleted:
        work.progress.note(f"{folder}, where a mirror was before, is deleted")
    return tuple(plan)
