"""Consumers of the changelog for `lockstep status`: as JSON, and as a person sees them.

Values in, text or JSON out; nothing here asks anybody anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.consumers import Consumer


def consumers_json(consumers: Iterable[Consumer]) -> list[dict[str, Any]]:
    """`cursor` is a batch's id, null before the first; the others are counts."""
    return [
        {
            "name": consumer.name,
            "cursor": consumer.cursor,
            "batches_behind": consumer.behind,
            "changes_behind": consumer.changes,
            "out": consumer.out,
            "made_at": consumer.made_at.isoformat(),
        }
        for consumer in consumers
    ]


def consumer_pairs(told: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What `consumers_json` told, for `report.lines`."""
    return {f"consumer {one['name']}": _sentence(one) for one in told}


def _sentence(one: Mapping[str, Any]) -> str:
    place = "before the first batch" if one["cursor"] is None else f"after batch {one['cursor']}"
    behind = "nothing behind"
    if one["batches_behind"]:
        behind = (
            f"{_counted(one['batches_behind'], 'batch', 'batches')} behind "
            f"({_counted(one['changes_behind'], 'change', 'changes')})"
        )
    out = ""
    if one["out"]:
        out = f", {_counted(one['out'], 'delivery', 'deliveries')} out"
    return f"{place}, {behind}{out}"


def _counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"
