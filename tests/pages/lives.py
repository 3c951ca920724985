"""The life of a table, as a picture: `pipeline.model.life`."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.model import life as events
from lockstep.pipeline.model.life import TRANSITIONS
from tests.pages.made import MadePart

WORDS: Final[dict[type[events.Event], str]] = {
    events.Followed: "followed",
    events.Loaded: "loaded",
    events.Dropped: "dropped",
    events.TableStopped: "stopped",
    events.Reloaded: "reloaded",
    events.Rejoined: "rejoined",
    events.MirrorWritten: "mirror written",
    events.MirrorHandedOver: "mirror handed over",
    events.MirrorReplaced: "mirror replaced",
    events.MirrorRemoved: "mirror removed",
    events.LakeRestarted: "lake restarted",
    events.BatchAbandoned: "batch abandoned",
}
"""What an event is called."""


def picture() -> str:
    """States, and what leads from one to another, in Mermaid's language."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (life, event), after in TRANSITIONS.items():
        if life is not after:
            start = "[*]" if life is None else life.value
            arrows.setdefault((start, after.value), []).append(WORDS[event])
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {a} --> {b}: {'<br/>'.join(told)}" for (a, b), told in arrows.items()]
    return "\n".join([*lines, "```"])


PART: Final = MadePart("lives", "docs/tables.md", picture)
