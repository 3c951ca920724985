"""A replay's report → metadata of the partitions it was about."""

from __future__ import annotations

import dagster as dg

from assets.pages.steps import Metadata, seconds
from pipeline.runs.replaying.report import ReplayReport


def replay_metadata(report: ReplayReport) -> Metadata:
    """How much was read, and what was put right."""
    replaced = [segment for segment in report.segments if segment.replaced]
    found: Metadata = {
        "batches": dg.MetadataValue.int(len(report.batches)),
        "tables": dg.MetadataValue.int(len(report.tables)),
        "files replaced": dg.MetadataValue.int(len(replaced)),
        "rows put right": dg.MetadataValue.int(sum(mirror.wrong for mirror in report.mirrors)),
        "seconds": seconds(report.seconds),
    }
    recorded = {batch.as_recorded for batch in report.batches if batch.as_recorded}
    if recorded:
        found["from the changelog alone"] = dg.MetadataValue.text("\n".join(sorted(recorded)))
    if report.left:
        found["damaged, nothing to replace it with"] = dg.MetadataValue.int(len(report.left))
    return found
