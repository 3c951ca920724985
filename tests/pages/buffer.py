"""The buffer's rules as a picture, in Mermaid's language: `pipeline.binlog.stream.rules`."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.binlog.stream.rules import TRANSITIONS, BufferAction, EventRole, Phase
from tests.pages.made import MadePart


def diagram() -> str:
    """The states and transitions, in Mermaid's language; what changes nothing is left out."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Phase.BETWEEN.name}"]
    lines += [f"    {phase.name}: {phase.words}" for phase in Phase]
    for (phase, following), labels in _grouped().items():
        lines.append(f"    {phase.name} --> {following.name}: {'<br/>'.join(labels)}")
    return "\n".join([*lines, "```"])


def _grouped() -> dict[tuple[Phase, Phase], list[str]]:
    """One arrow for all inputs that lead from one phase to another."""
    found: dict[tuple[Phase, Phase], list[str]] = {}
    for (phase, event), (action, following) in TRANSITIONS.items():
        if action is not BufferAction.PASS or following is not phase:
            found.setdefault((phase, following), []).append(_label(event, action))
    return found


def _label(event: EventRole, action: BufferAction) -> str:
    words = event.words.replace(",", " or").replace(" …", "")
    return f"{words} / {action.words}"


PART: Final = MadePart("buffer", "docs/how-it-works.md", diagram)
