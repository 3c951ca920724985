"""The sessions of a Dagster run, as a resource that steps, checks and replays share. A
session holds a source's lock and the open adapters for all steps of the run. When it
gets the lock, it reports earlier runs that died: to Dagster as failed, to OpenLineage
as aborted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

import dagster as dg

from lockstep.assets.dagster_interop import dagster_failures, evaluate_annotations
from lockstep.assets.dead_runs import ids_of_own_runs, report_dead_before, tag_lease, tag_release
from lockstep.assets.names import JOB_SUFFIXES, UNTIL_TAG, WAITS_TAG, job_name
from lockstep.assets.run_events import (
    RunEventSender,
    dead_run_outside_dagster,
    send_ends_of_dead_runs,
)
from lockstep.assets.table_news import Log
from lockstep.pipeline.run.progress import StepProgress
from lockstep.pipeline.run.run import RunAdapters, RunRecord, RunSession
from lockstep.pipeline.values.decisions import Lease, LeaseView
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.places import Place, parse_end
from lockstep.resources.config import Settings
from lockstep.resources.full_disk import disk_full_error
from lockstep.resources.holders import holder_name

SESSIONS = "lockstep_sessions"
"""The name of the resource."""

OpenAdapters = Callable[[], AbstractContextManager[RunAdapters]]

_CANCELED_STATUSES: Final = (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED)
"""The second one is that of a run whose termination was forced; its process may go on."""

_FIGURES_SECONDS: Final = 10.0
"""Shortest time between two figures in a run's log."""


def session_of(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, source: str
) -> RunSession:
    """Return the session of the source in this Dagster run."""
    sessions: RunSessions = getattr(context.resources, SESSIONS)
    with dagster_failures():
        return sessions.of(source)


def sessions_resource(
    settings: Settings, open_adapters: OpenAdapters, make_record: Callable[[str], RunRecord]
) -> dg.ResourceDefinition:
    """Return the resource that opens the adapters of a Dagster run and a session for
    each of its sources, and closes them when the run ends, even if it fails."""

    @dg.resource(description="The sessions of a run, which hold the locks of its sources.")
    @evaluate_annotations
    def sessions(context: dg.InitResourceContext) -> Iterator[RunSessions]:
        instance, run = context.instance, context.run
        if instance is None or run is None or context.log is None:
            raise dg.DagsterInvariantViolationError("sessions are for Dagster runs only")
        progress = LoggedProgress(context.log)
        with (
            open_adapters() as adapters,
            closing(
                RunSessions(settings, adapters, make_record, instance, run, progress)
            ) as run_sessions,
        ):
            yield run_sessions

    return sessions


@dataclass(slots=True)
class RunSessions:
    """The sessions of one Dagster run. Each is opened when a step first asks for it.

    `_senders`: the senders of OpenLineage events, by source. Only a run of the source's
    own job has one. `_dead_runs`: by source without a sender, the ids of dead runs
    whose ends have to be sent.
    """

    settings: Settings
    adapters: RunAdapters
    make_record: Callable[[str], RunRecord]
    instance: dg.DagsterInstance
    run: dg.DagsterRun
    progress: LoggedProgress
    _open_sessions: dict[str, RunSession] = field(default_factory=dict)
    _senders: dict[str, RunEventSender] = field(default_factory=dict)
    _dead_runs: dict[str, list[str]] = field(default_factory=dict)

    def of(self, source: str) -> RunSession:
        """Return the source's session to a step that begins. Raise
        `DagsterExecutionInterruptedError` if somebody canceled the run."""
        self._stop_if_canceled()
        if source not in self._open_sessions:
            self._open_sessions[source] = self._make_session(source)
        return self._open_sessions[source]

    def _stop_if_canceled(self) -> None:
        # Dagster has a signal raise its error wherever the process is at that moment.
        # In a callback of the garbage collector Python only prints the error, so the
        # step goes on although the run was canceled.
        run = self.instance.get_run_by_id(self.run.run_id)
        if run is not None and run.status in _CANCELED_STATUSES:
            raise dg.DagsterExecutionInterruptedError

    def close(self) -> None:
        """Release the locks, then send the last OpenLineage events, so that a slow
        backend cannot delay the next run. An error does not prevent the rest."""
        with ExitStack() as stack:  # calls the last callback first
            stack.callback(self._send_last_events)
            for session in self._open_sessions.values():
                stack.callback(session.close)

    def _make_session(self, source: str) -> RunSession:
        record = self.make_record(source)
        sender: RunEventSender | None = None
        if self.settings.file.lineage is not None and self.run.job_name == job_name(source):
            sender = RunEventSender(self.settings, record, self.run.run_id, self.progress.note)
            self._senders[source] = sender
        return RunSession(
            adapters=self.adapters,
            source=source,
            holder=holder_name(),
            run_id=self.run.run_id,
            progress=self.progress,
            pause=time.sleep,
            on_lease=self._on_lease,
            record=record,
            until=_end_of_run(self.run),
            in_dagster=True,
            translate_error=disk_full_error,
            on_wait=self._on_wait,
            on_release=self._on_release,
            on_captured=lambda: None if sender is None else sender.send_start(),
        )

    def _on_lease(self, lease: Lease, previous: LeaseView | None) -> None:
        """Tag this run, and report the runs that died. Unfinished runs that held the lock
        before must be dead, because this run got it."""
        tag_lease(self.instance, lease)
        dead_ids = report_dead_before(self.instance, lease, previous, datetime.now(UTC))
        for run_id in dead_ids:
            self.progress.note(f"Run {run_id} had died; it is reported as failed.")
        ids_with_events = [
            *ids_of_own_runs(self.instance, lease.source, dead_ids),
            *dead_run_outside_dagster(previous),
        ]
        if lease.source in self._senders:
            self._senders[lease.source].send_ends(ids_with_events)
        else:
            self._dead_runs.setdefault(lease.source, []).extend(ids_with_events)

    def _on_wait(self) -> None:
        self.instance.add_run_tags(self.run.run_id, {WAITS_TAG: datetime.now(UTC).isoformat()})

    def _on_release(self, lease: Lease) -> None:
        # A run of one of the source's own jobs ends with its lease. A run of another
        # project's job, or of assets that a person selected on the page, may continue.
        if self.run.job_name not in {job_name(lease.source, suffix) for suffix in JOB_SUFFIXES}:
            tag_release(self.instance, lease)

    def _send_last_events(self) -> None:
        # If Dagster shows this run as finished although it still works, somebody
        # reported it as dead.
        dagster_run = self.instance.get_run_by_id(self.run.run_id)
        found_dead = dagster_run is not None and dagster_run.is_finished
        for source, sender in self._senders.items():
            open_ports = partial(self.adapters.ports, source, self.progress)
            sender.send_end(open_ports, found_dead=found_dead)
        for source, run_ids in self._dead_runs.items():
            send_ends_of_dead_runs(self.settings, source, run_ids, self.progress.note)


def _end_of_run(run: dg.DagsterRun) -> Place | None:
    """Return the end of the run from its tag, which a person may set on Dagster's page;
    None without the tag."""
    text = run.tags.get(UNTIL_TAG)
    if not text:
        return None
    try:
        return parse_end(text)
    except ValueError as error:
        raise ConfigurationError(
            f"The run's tag {UNTIL_TAG} names no place where a run can end: {error}.",
            hint="launch the run again with a place of that form",
        ) from error


class LoggedProgress:
    """A `pipeline.run.progress.Progress` that writes to a Dagster run's log: every note,
    and figures from time to time. The step's materialization has the final figures.
    Figures of the merge are left out: its materializations show them."""

    def __init__(self, log: Log, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log, self._monotonic = log, monotonic
        self._last_figures_at = float("-inf")

    def tell(self, step: StepProgress) -> None:
        now = self._monotonic()
        if step.step != "merge" and now - self._last_figures_at >= _FIGURES_SECONDS:
            self._last_figures_at = now
            self._log.info(f"{step.step} so far: {step.text}")

    def note(self, sentence: str) -> None:
        self._log.warning(sentence)
