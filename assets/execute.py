"""A source's job executed in this process: what `lockstep run` and the demo call.

The same job that a schedule runs, on the same Dagster instance, so it is on the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from assets.names import CLI_TAG, SOURCE_TAG, UNTIL_TAG
from assets.run_job import resolved_job
from assets.sessions import RunRecord, Site, WithPart
from assets.timeline import run_in_process
from pipeline.places import Place
from pipeline.runs.context import Progress
from pipeline.source_plan import PartOrder
from resources.config import Settings


def execute(
    settings: Settings,
    source: str,
    *,
    adapters: Site,
    instance: dg.DagsterInstance,
    watcher: Progress | None,
    until: Place | None = None,
    part: PartOrder | None = None,
) -> RunRecord:
    """One run, to `until` or the log's head; what went wrong is in the record, not raised,
    Ctrl-C excepted. `part`: rows that it reads from the source again.

    `adapters` stays open: several runs of one process share its ledger and its JVM.
    Declares no mirrors and no other source, so its cost grows with neither's number.
    """
    record = RunRecord(source)

    @contextmanager
    def the_site() -> Iterator[Site]:
        yield adapters if part is None else WithPart(adapters, part)

    job = resolved_job(settings, source, the_site, record=lambda _: record, watcher=watcher)
    try:
        result = run_in_process(
            job,
            instance,
            location=settings.dagster.location,
            tags={
                SOURCE_TAG: source,
                CLI_TAG: "true",
                **({UNTIL_TAG: str(until)} if until is not None else {}),
            },
        )
    except dg.DagsterExecutionInterruptedError as error:
        raise KeyboardInterrupt from error
    if isinstance(record.defect, KeyboardInterrupt | dg.DagsterExecutionInterruptedError):
        raise KeyboardInterrupt
    if not result.success and record.error is None and record.defect is None:
        failed = [event.message or "" for event in result.all_events if event.is_failure]
        record.defect = dg.DagsterError("; ".join(failed) or "the Dagster run failed")
    return record
