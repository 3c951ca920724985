"""The buffer's rules as a picture: `python -m pipeline.binlog.stream.diagram docs/binlog.md`.

Rewrites the Mermaid block of that page from `rules.TRANSITIONS`; a test holds them together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pipeline.binlog.stream.rules import TRANSITIONS, BufferAction, EventRole, Phase

FIRST: Final = "<!-- made by pipeline.binlog.stream.diagram -->\n```mermaid\n"
LAST: Final = "```\n"


def diagram() -> str:
    """The states and transitions, in Mermaid's language; what changes nothing is left out."""
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.BETWEEN.name}"]
    lines += [f"    {phase.name}: {phase.words}" for phase in Phase]
    for (phase, following), labels in _grouped().items():
        lines.append(f"    {phase.name} --> {following.name}: {'<br/>'.join(labels)}")
    return "\n".join(lines) + "\n"


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


def rewritten(page: str) -> str:
    """The page with the diagram of today; ValueError if it has no place for one."""
    before, found, rest = page.partition(FIRST)
    _, closed, after = rest.partition(LAST)
    if not (found and closed):
        raise ValueError("the page has no block to rewrite")
    return before + FIRST + diagram() + LAST + after


def main() -> None:
    path = Path(sys.argv[1])
    path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main()
