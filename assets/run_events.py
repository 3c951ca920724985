"""The OpenLineage events of a run.

START is sent after something was captured, so an idle run sends nothing. The last event
is sent after the source's lock was released, so that a slow backend cannot delay a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.run import RunRecord
from lockstep.pipeline.run.status.run_news import RunNews, run_news
from lockstep.pipeline.values.decisions import LeaseView
from lockstep.pipeline.values.errors import LeaseLost, LockstepError, SourceBusy
from lockstep.resources.config import Settings
from lockstep.resources.lake.store.paths import ObjectPath
from lockstep.resources.openlineage.sending import EventSender, require_client

if TYPE_CHECKING:
    from lockstep.resources.openlineage.events import DatasetAddresses, Event

_STOPPED_REASON: Final = "The run was stopped before it acknowledged; the next run continues."
_DEAD_REASON: Final = "The run's process is gone; the next run continues where it was."
_NO_NEWS: Final = RunNews(())


class RunEventSender:
    """The sender of one run's events. The run fills `record` while it works."""

    def __init__(
        self,
        settings: Settings,
        record: RunRecord,
        run_id: str,
        note: Callable[[str], None],
    ) -> None:
        """Raise `SetupIncomplete` if the OpenLineage client is not installed."""
        require_client()
        self._settings, self._record, self._note = settings, record, note
        self._run_id = run_id
        lineage = settings.file.lineage
        self._namespace = "" if lineage is None else lineage.namespace
        self._sender = EventSender(settings.lineage_transport, note)
        self._has_started = False

    def send_start(self) -> None:
        """Send START if something was captured."""
        report = self._record.capture_report
        if report is not None and report.batch_id is not None:
            self._send_start_once()

    def send_ends(self, run_ids: Collection[str]) -> None:
        """Send the end of each of these other runs, whose processes died."""
        for run_id in run_ids:
            self._send("ABORT", run_id=run_id, reason=_DEAD_REASON)

    def close(self) -> None:
        self._sender.close()

    def send_end(self, open_ports: Callable[[], RunPorts], *, found_dead: bool) -> None:
        """Send the last event. `open_ports` opens the ports through which tables are
        read. `found_dead`: if this run has lost its lease, another run or a sensor has
        found it dead, and sends the last event instead."""
        is_sent_elsewhere = found_dead and isinstance(self._record.error, LeaseLost)
        type_and_reason = None if is_sent_elsewhere else last_event(self._record)
        if type_and_reason is not None:
            self._send_start_once()
            news = _NO_NEWS
            try:
                news = run_news(
                    open_ports(), self._record.capture_report, self._record.merge_report
                )
            except Exception as error:  # noqa: BLE001 - a failing report must not fail the run
                self._note(f"The OpenLineage event has no tables: {type(error).__name__}: {error}")
            event_type, reason = type_and_reason
            self._send(event_type, news, reason)
        self.close()

    def _send_start_once(self) -> None:
        if not self._has_started:
            self._has_started = True
            self._send("START", at=self._record.began_at)

    def _send(
        self,
        event_type: str,
        news: RunNews = _NO_NEWS,
        reason: str | None = None,
        *,
        run_id: str | None = None,
        at: datetime | None = None,
    ) -> None:
        capture = None if run_id is not None else self._record.capture_report
        moment = at or datetime.now(UTC)

        def make_event() -> Event:
            from lockstep.resources.openlineage.events import run_event

            # The sending thread makes the event and notes errors: reading a secret may
            # fail.
            return run_event(
                event_type,
                self._dataset_addresses(),
                run_id or self._run_id,
                moment,
                capture_report=capture,
                news=news,
                error_text=reason,
            )

        self._sender.send(make_event)

    def _dataset_addresses(self) -> DatasetAddresses:
        from lockstep.resources.openlineage.events import DatasetAddresses

        source = self._settings.source(self._record.source)
        lake = self._settings.lake_path()
        return DatasetAddresses(
            job_namespace=self._namespace,
            source=source.name,
            host=source.host(),
            port=source.section.port,
            lake_namespace=lake.bucket.url if isinstance(lake, ObjectPath) else "file",
            lake_path=lake.key if isinstance(lake, ObjectPath) else str(lake.absolute()),
        )


def dead_run_outside_dagster(previous: LeaseView | None) -> list[str]:
    """Return the id of the previous run if it ran outside Dagster and was killed or
    hung. `assets.dead_runs` finds dead Dagster runs."""
    if previous is None or previous.ended or previous.in_dagster or previous.run_id is None:
        return []
    return [previous.run_id]


def send_ends_of_dead_runs(
    settings: Settings, source: str, run_ids: Collection[str], note: Callable[[str], None]
) -> None:
    """Send the end of dead runs, from a sensor or from a run that has no events of its
    own."""
    if settings.file.lineage is None or not run_ids:
        return
    try:
        events = RunEventSender(settings, RunRecord(source), "", note)
    except LockstepError as error:
        note(f"{error.message}; {error.hint}")
        return
    events.send_ends(run_ids)
    events.close()


def last_event(record: RunRecord) -> tuple[str, str | None] | None:
    """Return the type of a run's last event, and the reason if the run failed. Return
    None, so that no event is sent, if the run had nothing to do or another run had the
    source."""
    capture, merge_report, error = record.capture_report, record.merge_report, record.error
    if record.acknowledge_report is not None:
        captured_nothing = capture is None or capture.batch_id is None
        is_idle = captured_nothing and not (merge_report and merge_report.merges)
        return None if is_idle else ("COMPLETE", None)
    if isinstance(error, SourceBusy):
        return None
    if isinstance(error, LeaseLost):
        return "ABORT", f"{error.message} {error.hint}"
    if error is not None:
        return "FAIL", f"{error.message} {error.hint}"
    if isinstance(record.defect, Exception):
        return "FAIL", f"A defect of Lockstep: {type(record.defect).__name__}"
    if record.defect is not None:  # a signal such as Ctrl-C
        return "ABORT", _STOPPED_REASON
    return ("ABORT", _STOPPED_REASON) if record.began_at is not None else None
