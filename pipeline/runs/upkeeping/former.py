"""Folders that mirrors had before: which of them upkeep deletes, and deleting them.

A mirror gets another folder if the settings call it otherwise, if its folder was lost, or if it was
made for other readers. The folder before has versions that version sets name. It is deleted as a
whole once none of them is promised any more: the time begins when a newer version set names the
other folder.
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
    """A folder that a mirror had before. `kept`: why it stays, in a sentence; None: it is deleted,
    or was."""

    folder: str
    kept: str | None = None


def plan_former(work: Workplace, keep: timedelta) -> tuple[FormerMirror, ...]:
    """`keep`: how long a version stays readable after it was replaced. Writes nothing."""
    ledger, source = work.ledger, work.source.name
    folders = former_places(ledger, source)
    if not folders:
        return ()
    looked, left = ledger.looked(source), ledger.left_at(source, folders)
    now, held = ledger.clock(), last_held(work)
    found = []
    for folder in folders:
        kept: str | None
        try:
            newest = next(iter(work.mirrors.history(folder)), None)
            if newest is None:
                kept = None  # somebody deleted it: the ledger is to know
            elif newest.delta_version != looked[folder]:
                kept = "somebody else wrote to it; delete it yourself"
            elif folder in left and left[folder] is None:
                kept = "the newest versions that are acknowledged name it"
            else:
                moments = [newest.committed_at, left.get(folder)]
                since = max((one for one in moments if one is not None), default=None)
                doubt = doubt_of(work.clock(), now, newest.committed_at, held, keep)
                kept = doubt or _promised(since, now, keep)
        except (LockstepError, TableError) as error:
            kept = str(error)
        found.append(FormerMirror(folder, kept))
    return tuple(found)


def _promised(since: datetime | None, now: datetime, keep: timedelta) -> str | None:
    """Why versions that were replaced then are still there."""
    if since is None:
        return "nothing tells when its versions were replaced; delete it yourself"
    until = since + keep
    return None if until <= now else f"its versions are promised until {until:%Y-%m-%d %H:%M} UTC"


def let_former_go(
    work: Workplace, plan: Sequence[FormerMirror], holder: str
) -> tuple[FormerMirror, ...]:
    """Do it; what became of each."""
    due = [former.folder for former in plan if former.kept is None]
    gone: list[str] = []
    if due and not under_lock(
        work, holder, lambda lease: gone.extend(delete_former(work, lease, due))
    ):
        later = "a run has the source: the next upkeep deletes it"
        return tuple(replace(one, kept=one.kept or later) for one in plan)
    for folder in gone:
        work.progress.note(f"{folder}, where a mirror was before, is deleted")
    return tuple(plan)
