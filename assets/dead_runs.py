"""Detection of Dagster runs whose process died, and their report as failed.

A run that was killed stays "started" in Dagster for ever. The next run of the source,
or a sensor, reports it as failed. The leases in the ledger show which runs died: a run
holds the lease of its source while it works. A run is dead if its lease is no longer
held, or if within `GRACE` it neither took a lease nor noted that it waits for one. To
hold the lock of a source is to hold its newest lease.

If the steps of a run are separate processes, each takes a lease and releases it. Such a
run does not count as dead between two steps, nor during steps that are not Lockstep's.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from lockstep.assets.names import RELEASED, SOURCE_TAG, WAITS_TAG, job_name, lease_tag
from lockstep.pipeline.values.decisions import Lease, LeaseView

GRACE = timedelta(minutes=10)
"""Longest time that a run may take before its first step asks for a lease."""

_ID_LETTERS = 8
"""Number of leading letters of a run's id that Dagster's page shows."""

_UNDER_WAY_STATUSES = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True, slots=True)
class RunUnderWay:
    """A Dagster run that has not ended. `token`: the token of its last lease, or None.
    `last_sign_at`: the time at which its process began, or last noted that it waits for
    a lease. `has_released`: the run released that lease."""

    run_id: str
    token: int | None
    last_sign_at: datetime
    has_released: bool = False


def reason_dead(run: RunUnderWay, lease: LeaseView | None, now: datetime) -> str | None:
    """Return the reason why the run's process must be gone, or None if it may be alive."""
    own_lease = lease if lease is not None and lease.run_id == run.run_id else None
    if own_lease is not None and own_lease.live:
        return None
    # A run that released its lease may be between two steps. It is dead only if a later
    # step took another lease, which is not held any more.
    took_another = own_lease is not None and own_lease.token != run.token
    if run.has_released and not took_another:
        return None
    if own_lease is not None or run.token is not None:
        return "The process of this run is gone: its lease on the source is not held any more."
    if now - run.last_sign_at > GRACE:
        return "The process of this run is gone: it never took a lease on the source."
    return None


def runs_under_way(instance: dg.DagsterInstance, source: str) -> list[RunUnderWay]:
    """Return the Dagster runs of the source that have not ended. Runs of upkeep are
    left out: they take a lease only to record, so nothing shows that one of them is
    dead."""
    records = instance.get_run_records(
        dg.RunsFilter(statuses=_UNDER_WAY_STATUSES, tags={SOURCE_TAG: source})
    )
    return [
        RunUnderWay(
            run_id=record.dagster_run.run_id,
            token=token,
            last_sign_at=_last_sign_of_life(record),
            has_released=has_released,
        )
        for record in records
        for token, has_released in [_read_lease_tag(record.dagster_run, source)]
        if record.dagster_run.job_name != job_name(source, "upkeep")
    ]


def report_dead_runs(
    instance: dg.DagsterInstance,
    runs: list[RunUnderWay],
    lease: LeaseView | None,
    now: datetime,
) -> list[str]:
    """Report each dead run as failed; return the ids of these runs."""
    reported = []
    for run in runs:
        reason = reason_dead(run, lease, now)
        dagster_run = instance.get_run_by_id(run.run_id) if reason else None
        if dagster_run is not None and not dagster_run.is_finished:
            instance.report_run_failed(dagster_run, reason)
            reported.append(run.run_id)
    return reported


def report_dead_before(
    instance: dg.DagsterInstance,
    lease: Lease,
    previous: LeaseView | None,
    now: datetime,
) -> list[str]:
    """Report the source's dead runs once a run has taken the lease; return their ids.
    `previous`: the lease before it."""
    runs = runs_under_way(instance, lease.source)
    other_runs = [run for run in runs if run.run_id != lease.run_id]
    # This run holds the lease now, so the previous lease is not live any more.
    former_lease = previous and replace(previous, live=False)
    return report_dead_runs(instance, other_runs, former_lease, now)


def ids_of_own_runs(
    instance: dg.DagsterInstance, source: str, run_ids: Collection[str]
) -> list[str]:
    """Return those of the ids that are runs of the source's own job. Only these runs
    have sent OpenLineage events."""
    if not run_ids:
        return []
    records = instance.get_runs(dg.RunsFilter(run_ids=list(run_ids), job_name=job_name(source)))
    return [run.run_id for run in records]


def tag_lease(instance: dg.DagsterInstance, lease: Lease) -> None:
    """Tag the run that took the lease."""
    if lease.run_id is not None:
        tags = {SOURCE_TAG: lease.source, lease_tag(lease.source): lease_text(lease)}
        instance.add_run_tags(lease.run_id, tags)


def tag_release(instance: dg.DagsterInstance, lease: Lease) -> None:
    """Tag the run that released its lease and may continue with other steps."""
    if lease.run_id is not None:
        tags = {lease_tag(lease.source): f"{lease_text(lease)} {RELEASED}"}
        instance.add_run_tags(lease.run_id, tags)


def lease_text(lease: Lease) -> str:
    """Return the tag's text for a lease that a Dagster run holds."""
    assert lease.run_id is not None, "a Dagster run holds it"
    return f"{lease.token} {lease.run_id[:_ID_LETTERS]}"


def _last_sign_of_life(record: dg.RunRecord) -> datetime:
    began_at = record.update_timestamp.astimezone(UTC)
    if record.start_time is not None:
        began_at = datetime.fromtimestamp(record.start_time, UTC)
    waited_at_text = record.dagster_run.tags.get(WAITS_TAG, "")
    with suppress(TypeError, ValueError):
        return max(began_at, datetime.fromisoformat(waited_at_text))
    return began_at


def _read_lease_tag(run: dg.DagsterRun, source: str) -> tuple[int | None, bool]:
    """Return the token of the run's last lease, if any, and whether it was released. A
    run that executes another one again begins with the tags of that one; the lease in
    them is not its own."""
    token, _, rest = run.tags.get(lease_tag(source), "").partition(" ")
    run_id, _, note = rest.partition(" ")
    if not token.isdigit() or run_id != run.run_id[:_ID_LETTERS]:
        return None, False
    return int(token), note == RELEASED
