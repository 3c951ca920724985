"""Version sets as a person sees them, and as JSON. Values in, text or JSON out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.report import lines
from pipeline.gtid import GtidSet
from pipeline.runs.inspecting.version_sets import ShownVersions
from resources.lake.paths import LakePath


def version_set_json(shown: ShownVersions, lake: LakePath) -> dict[str, Any]:
    return {
        **_which(shown),
        "tables": {
            str(entry.table): {
                "path": str(lake / entry.mirror),
                "delta_version": entry.delta_version,
                "table_id": entry.table_id,
            }
            for entry in shown.entries
        },
        "missing": {
            str(gap.table): {"reason": gap.reason, "hint": gap.hint} for gap in shown.missing
        },
    }


def listed_json(shown: ShownVersions) -> dict[str, Any]:
    return {
        **_which(shown),
        "tables": len(shown.entries),
        "missing": [str(gap.table) for gap in shown.missing],
    }


def _which(shown: ShownVersions) -> dict[str, Any]:
    return {
        "batch": shown.batch.id,
        "run": shown.batch.dagster_run,
        "position": shown.position,
    }


def version_set_lines(shown: ShownVersions, lake: LakePath) -> Iterator[str]:
    """Where it is as of, what to read, what is missing."""
    yield f"{shown.source}: as of {_place(shown)}"
    gtids = shown.position.gtid_set
    if gtids != GtidSet():
        yield f"  executed: {gtids.shortened()}"
    yield lines(
        {
            str(entry.table): f"{entry.delta_version}  {lake / entry.mirror}"
            for entry in shown.entries
        }
    )
    if shown.missing:
        yield "missing:"
        yield lines({str(gap.table): f"{gap.reason}; {gap.hint}" for gap in shown.missing})


def listed_rows(shown: list[ShownVersions]) -> list[tuple[str, ...]]:
    """A row for each set."""
    return [
        (
            str(versions.position),
            _moment(versions),
            str(versions.batch.id),
            versions.batch.dagster_run or "",
            str(len(versions.entries)),
            ", ".join(str(lacks.table) for lacks in versions.missing),
        )
        for versions in shown
    ]


def _place(shown: ShownVersions) -> str:
    moment = _moment(shown)
    committed = f", committed {moment}" if moment else ""
    return f"{shown.position}{committed} (batch {shown.batch.id})"


def _moment(shown: ShownVersions) -> str:
    committed = shown.position.committed_at
    return "" if committed is None else committed.isoformat()
