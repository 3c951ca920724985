"""When runs begin by the clock.

A schedule per source that has one in lockstep.toml; it skips, with a sentence, while
another run holds the source.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import dagster as dg

from assets.hints import evaluated
from assets.names import SOURCE_TAG, job_name
from pipeline.decisions import LeaseView
from pipeline.errors import LockstepError
from pipeline.runs.run import Site

OpenSite = Callable[[], AbstractContextManager[Site]]


def source_schedule(source: str, cron: str, open_site: OpenSite) -> dg.ScheduleDefinition:
    """The source's job by cron; on from the start, for it was asked for in the file."""

    @dg.schedule(
        name=f"{job_name(source)}_schedule",
        job_name=job_name(source),
        cron_schedule=cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    @evaluated
    def tick() -> dg.RunRequest | dg.SkipReason:
        busy = why_busy(source, _lease(source, open_site))
        if busy is not None:
            return dg.SkipReason(busy)
        return dg.RunRequest(tags={SOURCE_TAG: source})

    return tick


def why_busy(source: str, lease: LeaseView | None) -> str | None:
    """Who works on the source now, in one sentence; None when nobody does."""
    if lease is None or not lease.live:
        return None
    run = f", run {lease.dagster_run}" if lease.dagster_run else ""
    return (
        f"{source} is being worked on by {lease.holder}{run}, since "
        f"{lease.taken_at:%Y-%m-%d %H:%M:%S} UTC; the next tick tries again."
    )


def _lease(source: str, open_site: OpenSite) -> LeaseView | None:
    """The newest lease. A ledger out of reach is the run's to report, not the tick's."""
    try:
        with open_site() as adapters:
            return adapters.ledger().lease(source)
    except LockstepError:
        return None
