"""The page of a run that acknowledged something: made, and linked from Dagster.

Belongs here: doing it beside the run, which it never fails. Does not: the page (`report`).
"""

from __future__ import annotations

import dagster as dg

from assets.pages.steps import Metadata
from assets.report.kept import keep_page, page_path
from assets.report.page import page
from pipeline.errors import SpanRefused
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.span_report import report_of_run
from resources.config import Settings


def note_page(
    context: dg.AssetExecutionContext, settings: Settings, work: Workplace, run: str
) -> Metadata:
    """Where the page is; nothing where this run captured nothing, or no file can be written."""
    source = work.source.name
    try:
        report = report_of_run(work.ledger, source, run, work.clock())
        path = page_path(settings.state_folder, source, report.about)
        keep_page(path, page(report, settings.lake_path()))
    except SpanRefused:
        return {}
    except OSError as error:
        context.log.warning(f"The run's page was not written: {error}")
        return {}
    return {"report": dg.MetadataValue.path(path)}
