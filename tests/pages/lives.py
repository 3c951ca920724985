"""The life of a table, as a picture and a table: `pipeline.model.life`."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.model import life as events
from lockstep.pipeline.model.life import TRANSITIONS
from lockstep.pipeline.model.table_state import TableCondition
from tests.pages.made import MadePart, row

WORDS: Final[dict[type[events.Event], tuple[str, str]]] = {
    events.Followed: ("followed", "a batch has rows of it, or a statement about it"),
    events.Loaded: ("loaded", "all its rows are read, and the log up to the last is captured"),
    events.Dropped: ("dropped", "the source drops it"),
    events.TableStopped: (
        "stopped",
        "it cannot be captured or written as it is, or `lockstep pause TABLE --reason …`",
    ),
    events.Reloaded: ("reloaded", "`lockstep reload TABLE --reason …`"),
    events.Rejoined: (
        "rejoined",
        "a capture carried out an order: `lockstep resume`, `lockstep reload`, or a run's own for "
        "a table that a run stopped",
    ),
    events.MirrorWritten: ("mirror written", "a write shows another version of its structure"),
    events.MirrorHandedOver: (
        "mirror handed over",
        "a ledger continues a mirror that it found in the lake",
    ),
    events.MirrorReplaced: ("mirror replaced", "the mirror was lost: another folder"),
    events.MirrorRemoved: ("mirror removed", "the mirror of a dropped table is deleted"),
    events.LakeRestarted: ("lake restarted", "`lockstep recover`: a new generation"),
    events.BatchAbandoned: (
        "batch abandoned",
        "what a batch recorded never happened: all other events are applied again",
    ),
}
"""What an event is called, and when it happens."""


def picture() -> str:
    """States, and what leads from one to another, in Mermaid's language."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (life, event), after in TRANSITIONS.items():
        if life is not after:
            start = "[*]" if life is None else life.value
            arrows.setdefault((start, after.value), []).append(WORDS[event][0])
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {a} --> {b}: {'<br/>'.join(told)}" for (a, b), told in arrows.items()]
    return "\n".join([*lines, "```"])


def table() -> str:
    """A row for each event that changes a state: when it happens, and the state after it for each
    state before."""
    lives: list[TableCondition | None] = [None, *TableCondition]
    moving = {event for (life, event), after in TRANSITIONS.items() if life not in (None, after)}
    heads = ["new" if life is None else life.value for life in lives]
    lines = [row(["event", "when", *heads]), "|---" * (2 + len(heads)) + "|"]
    for event in (event for event in WORDS if event in moving):
        name, when = WORDS[event]
        cells = [_cell(life, TRANSITIONS.get((life, event))) for life in lives]
        lines.append(row([name, when, *cells]))
    return "\n".join(lines)


def _cell(before: TableCondition | None, after: TableCondition | None) -> str:
    if after is None:
        return "refused"
    return "stays" if before is after else after.value


def picture_and_table() -> str:
    return f"{picture()}\n\n{table()}"


PART: Final = MadePart("lives", "docs/tables.md", picture_and_table)
