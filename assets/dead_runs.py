"""Dagster runs whose process is gone: found by the ledger's leases, shown as failed.

A run that is killed stays "started" in Dagster for ever. Whoever takes the source's lock
next, and a sensor, report it. The ledger decides: a run is dead when it had a lease that
is not held any more, or when it neither took one nor said that it waits for one within `GRACE`.

Where the steps of a run are processes, each has a lease of its own, and gives it back. Between two
of them, and while it is at another project's steps, such a run is nobody's here to judge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets.names import RELEASED, SOURCE_TAG, WAITS_TAG, job_name, lease_tag
from pipeline.decisions import Lease, LeaseView

GRACE = timedelta(minutes=10)
"""How long a run may be under way before its first step asks for the lock."""

_UNDER_WAY = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True, slots=True)
class RunUnderWay:
    """A Dagster run that is not at its end; `token` of the lease it had, if any. `since`: its
    process began, or said last that it waits for the lock; what it was queued for does not
    count. `released`: it gave that lease back."""

    run_id: str
    token: int | None
    since: datetime
    released: bool = False


def why_dead(run: RunUnderWay, lease: LeaseView | None, now: datetime) -> str | None:
    """Why a run's process must be gone, in one sentence; None while it may be alive."""
    named = lease is not None and lease.dagster_run == run.run_id
    if lease is not None and lease.live and named:
        return None
    if run.released and not (named and lease is not None and lease.token != run.token):
        return None
    if named or run.token is not None:
        return "The process of this run is gone: its lease on the source is not held any more."
    if now - run.since > GRACE:
        return "The process of this run is gone: it never took its source's lock."
    return None


def runs_under_way(instance: dg.DagsterInstance, source: str) -> list[RunUnderWay]:
    records = instance.get_run_records(
        dg.RunsFilter(statuses=_UNDER_WAY, tags={SOURCE_TAG: source})
    )
    return [
        RunUnderWay(
            run_id=record.dagster_run.run_id,
            token=_token(record.dagster_run.tags, source),
            since=_sign_of_life(record),
            released=RELEASED in record.dagster_run.tags.get(lease_tag(source), ""),
        )
        for record in records
    ]


def report_dead(
    instance: dg.DagsterInstance,
    runs: list[RunUnderWay],
    lease: LeaseView | None,
    now: datetime,
) -> list[str]:
    """Report each dead run as failed; their ids."""
    reported = []
    for run in runs:
        why = why_dead(run, lease, now)
        dagster_run = instance.get_run_by_id(run.run_id) if why else None
        if dagster_run is not None and not dagster_run.is_finished:
            instance.report_run_failed(dagster_run, why)
            reported.append(run.run_id)
    return reported


def take_over(
    instance: dg.DagsterInstance,
    lease: Lease,
    before: LeaseView | None,
    now: datetime,
) -> list[str]:
    """What the holder of a new lease does first: mark its own run, report the dead."""
    source = lease.source
    if lease.dagster_run is not None:
        instance.add_run_tags(
            lease.dagster_run, {SOURCE_TAG: source, lease_tag(source): str(lease.token)}
        )
    others = [run for run in runs_under_way(instance, source) if run.run_id != lease.dagster_run]
    # The lock is ours, so the lease before is not held, whatever the view of it said.
    gone = before and LeaseView(
        before.token, before.holder, before.dagster_run, before.taken_at, live=False
    )
    return report_dead(instance, others, gone, now)


def own_runs(instance: dg.DagsterInstance, source: str, runs: Collection[str]) -> list[str]:
    """Those of the source's own job: runs of others tell no backend of themselves."""
    if not runs:
        return []
    records = instance.get_runs(dg.RunsFilter(run_ids=list(runs), job_name=job_name(source)))
    return [run.run_id for run in records]


def let_go(instance: dg.DagsterInstance, lease: Lease) -> None:
    """Mark the run that gave its lease back, and may go on with other steps."""
    if lease.dagster_run is not None:
        told = {lease_tag(lease.source): f"{lease.token} {RELEASED}"}
        instance.add_run_tags(lease.dagster_run, told)


def _sign_of_life(record: dg.RunRecord) -> datetime:
    began = record.update_timestamp.astimezone(UTC)
    if record.start_time is not None:
        began = datetime.fromtimestamp(record.start_time, UTC)
    waits = record.dagster_run.tags.get(WAITS_TAG)
    with suppress(TypeError, ValueError):
        return max(began, datetime.fromisoformat(waits or ""))
    return began


def _token(tags: Mapping[str, str], source: str) -> int | None:
    text, _, _ = tags.get(lease_tag(source), "").partition(" ")
    return int(text) if text.isdigit() else None
