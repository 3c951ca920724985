"""Where a run starts: `decide_start`, from facts to a named decision with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.position import Coordinates


@dataclass(frozen=True, slots=True)
class StartChoice:
    """`start` of a source, as configured: `earliest`, `latest`, or coordinates."""

    kind: str
    at: Coordinates | None = None
