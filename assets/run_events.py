"""The OpenLineage events of a run.

START is sent after something was captured, so an idle run sends nothing. The last event
is sent after the source's lock was released, so that a slow backend cannot delay a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.run import RunRecord
from lockstep.pipeline.run.status.run_news import RunNews, run_news
from lockstep.pipeline.values.decisions import LeaseView
from lockstep.pipeline.values.errors import LeaseLost, LockstepError, SourceBusy
from lockstep.resources.config import Settings
from lockstep.resources.lake.store.paths import ObjectPath
from lockstep.resources.openlineage.sending import EventSender, require_client

if TYPE_CHECKING:
    from lockstep.resources.openlineage.events import DatasetAddresses, Event

_STOPPED: Final = "The run was stopped before it acknowledged; the next run continues."
_DEAD: Final = "The run's process is gone; the next run continues where it was."
_NOTHING: Final = RunNews(())


class RunEvents:
    """The sender of one run's events. The run fills `record` while it works."""

    def __init__(
        self,
        settings: Settings,
        record: RunRecord,
        run: str,
        note: Callable[[str], None],
    ) -> None:
        """Raise `SetupIncomplete` if the OpenLineage client is not installed."""
        require_client()
        self._settings, self._record, self._note = settings, record, note
        self._run = run
        lineage = settings.file.lineage
        self._namespace = "" if lineage is None else lineage.namespace
        self._sending = EventSender(settings.lineage_transport, note)
        self._started = False

    def captured(self) -> None:
        """Send START if something was captured."""
        report = self._record.capture_report
        if report is not None and report.batch is not None:
            self._start()

    def dead(self, runs: Collection[str]) -> None:
        """Send the end of each of these other runs, whose processes died."""
        for run in runs:
            self._send("ABORT", run=run, why=_DEAD)

    def taken_over(self, previous: LeaseView | None) -> None:
        """Send the end of the previous run if it was killed or hung."""
        self.dead(died_elsewhere(previous))

    def close(self) -> None:
        self._sending.close()

    def end(self, work: Callable[[], Workplace], *, found_dead: bool) -> None:
        """Send the last event. `work` opens the workplace from which tables are read.
        `found_dead`: if this run lost its lease, the run or sensor that found it dead
        sends its end."""
        lost = found_dead and isinstance(self._record.error, LeaseLost)
        result = None if lost else outcome(self._record)
        if result is not None:
            self._start()
            news = _NOTHING
            try:
                news = run_news(work(), self._record.capture_report, self._record.merge_report)
            except Exception as error:  # noqa: BLE001 - a failing report must not fail the run
                self._note(f"The OpenLineage event has no tables: {type(error).__name__}: {error}")
            state, why = result
            self._send(state, news, why)
        self.close()

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._send("START", at=self._record.began_at)

    def _send(
        self,
        state: str,
        news: RunNews = _NOTHING,
        why: str | None = None,
        *,
        run: str | None = None,
        at: datetime | None = None,
    ) -> None:
        captured = None if run is not None else self._record.capture_report
        moment = at or datetime.now(UTC)

        def event() -> Event:
            from lockstep.resources.openlineage.events import run_event

            # Made by the sending thread, which notes errors: reading a secret may fail.
            return run_event(state, self._place(), run or self._run, moment, captured, news, why)

        self._sending.send(event)

    def _place(self) -> DatasetAddresses:
        from lockstep.resources.openlineage.events import DatasetAddresses

        source, lake = self._settings.source(self._record.source), self._settings.lake_path()
        return DatasetAddresses(
            self._namespace,
            source.name,
            source.host(),
            source.section.port,
            lake.bucket.url if isinstance(lake, ObjectPath) else "file",
            lake.key if isinstance(lake, ObjectPath) else str(lake.absolute()),
        )


def died_elsewhere(previous: LeaseView | None) -> list[str]:
    """Return the previous run if it was killed or hung outside Dagster. Dead Dagster
    runs are found by `dead_runs`."""
    if previous is None or previous.ended or previous.in_dagster or previous.dagster_run is None:
        return []
    return [previous.dagster_run]


def tell_of_dead(
    settings: Settings, source: str, runs: Collection[str], note: Callable[[str], None]
) -> None:
    """Send the end of dead runs, from a sensor or from a run that has no events of its
    own."""
    if settings.file.lineage is None or not runs:
        return
    try:
        events = RunEvents(settings, RunRecord(source), "", note)
    except LockstepError as error:
        note(f"{error.message}; {error.hint}")
        return
    events.dead(runs)
    events.close()


def outcome(record: RunRecord) -> tuple[str, str | None] | None:
    """Return the type of a run's last event, and the reason if the run failed. Return
    None, so that no event is sent, if the run had nothing to do or another run had the
    source."""
    captured, merged, error = record.capture_report, record.merge_report, record.error
    if record.acknowledge_report is not None:
        idle = (captured is None or captured.batch is None) and not (merged and merged.merges)
        return None if idle else ("COMPLETE", None)
    if isinstance(error, SourceBusy):
        return None
    if isinstance(error, LeaseLost):
        return "ABORT", f"{error.message} {error.hint}"
    if error is not None:
        return "FAIL", f"{error.message} {error.hint}"
    if isinstance(record.defect, Exception):
        return "FAIL", f"A defect of Lockstep: {type(record.defect).__name__}"
    if record.defect is not None:  # a signal such as Ctrl-C
        return "ABORT", _STOPPED
    return ("ABORT", _STOPPED) if record.began_at is not None else None
