"""What `lockstep recover` and `lockstep undo` say of a ledger that is made from a lake.

Belongs here: the plan as lines and as values. Does not: who asked for it, and what to type next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.consumers import Consumer
    from pipeline.recovery.facts import RecoveryPlan
    from pipeline.runs.recovering.recover import RecoveryOutcome


def recovery_json(done: RecoveryOutcome) -> dict[str, Any]:
    plan = done.plan
    if plan is None:
        return {"position": None, "tables": {}, "read_again": {}, "cut": [], "doubts": []}
    return {
        "position": str(plan.told.at),
        "batch": plan.told.batch,
        "highest_batch": plan.batch,
        "tables": {
            str(adoption.mirror.table): {
                "mirror": adoption.mirror.folder,
                "version": adoption.version,
                "restored": adoption.restored,
            }
            for adoption in plan.adopted
        },
        "read_again": {str(table): why for table, why in done.reloads},
        "left": [mirror.folder for mirror in plan.left],
        "cut": list(done.cut),
        "doubts": list(plan.doubts),
    }


def recovery_lines(
    source: str, done: RecoveryOutcome, plan: RecoveryPlan, readers: Sequence[Consumer]
) -> Iterator[str]:
    yield (
        f"{source}: the ledger goes on after batch {plan.told.batch} of the ledger "
        f"{plan.told.ledger}, at {plan.told.at}"
    )
    if plan.batch > plan.told.batch:
        yield f"  batches {plan.told.batch + 1} to {plan.batch} are undone; the log is read again"
    yield f"  {len(plan.adopted)} tables go on with their mirrors"
    for adoption in plan.adopted:
        if adoption.restored:
            yield (
                f"  {adoption.mirror.table}: its mirror shows version {adoption.version} once "
                f"more, since version {adoption.mirror.newest} is not of that place"
            )
    for folder in done.cut:
        yield f"  {folder} no longer lists what came after that place: it is read again"
    for table, why in done.reloads:
        yield f"  the next run reads {table} from the source: {why}"
    for mirror in plan.left:
        yield f"  {mirror.folder} stays as it is: the source had dropped {mirror.table}"
    for doubt in plan.doubts:
        yield f"  in doubt: {doubt}; `lockstep verify` compares every row"
    for reader in readers:
        yield f"  the consumer {reader.name} {_read_on(reader.cursor or 0, plan.told.batch)}"


def _read_on(cursor: int, behind: int) -> str:
    """What going back to a batch means for a consumer that is done up to another."""
    done = f"is done up to batch {cursor}" if cursor else "is done with no batch yet"
    if cursor < behind:
        return f"{done}: let it read on first, else it never gets what is up to batch {behind}"
    again = f": what came after batch {behind} comes to it again" if cursor > behind else ""
    return f"{done}{again}; make it again before the next run (docs/recovery.md)"
