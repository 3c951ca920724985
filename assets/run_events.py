"""A run's OpenLineage events: when there is one, and what it is made of.

The START is sent once something was captured, so an idle run sends nothing. The end is sent when
the source's lock is free again, whatever became of the acknowledgement: no backend can hold it up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.decisions import LeaseView
from pipeline.errors import LeaseLost, LockstepError, SourceBusy
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.table_news import RunNews, run_news
from pipeline.runs.run import RunRecord
from resources.config import Settings
from resources.lake.paths import ObjectPath
from resources.openlineage.sending import Sending, require_client

if TYPE_CHECKING:
    from resources.openlineage.events import DatasetPlace, Event

_STOPPED: Final = "The run was stopped before it acknowledged; the next one goes on."
_DEAD: Final = "The run's process is gone; the next run goes on where it was."
_NOTHING: Final = RunNews(())


class RunEvents:
    """Of one run of one source. `record` is filled as the run goes on."""

    def __init__(
        self,
        settings: Settings,
        record: RunRecord,
        run: str,
        note: Callable[[str], None],
    ) -> None:
        """`SetupIncomplete` without the client."""
        require_client()
        self._settings, self._record, self._note = settings, record, note
        self._run = run
        lineage = settings.file.lineage
        self._namespace = "" if lineage is None else lineage.namespace
        self._sending = Sending(settings.lineage_transport, note)
        self._started = False

    def captured(self) -> None:
        report = self._record.captured
        if report is not None and report.batch is not None:
            self._start()

    def dead(self, runs: Collection[str]) -> None:
        for run in runs:
            self._send("ABORT", run=run, why=_DEAD)

    def taken_over(self, before: LeaseView | None) -> None:
        """Tell the end of the run before, if it was killed or hung."""
        self.dead(died_elsewhere(before))

    def close(self) -> None:
        self._sending.close()

    def end(self, work: Callable[[], Workplace], *, found_dead: bool) -> None:
        """All that will happen has; `work` is for looking. `found_dead`: if this run lost the
        source, the run that has it now or a sensor tells its end."""
        lost = found_dead and isinstance(self._record.error, LeaseLost)
        ended = None if lost else outcome(self._record)
        if ended is not None:
            self._start()
            news = _NOTHING
            try:
                news = run_news(work(), self._record.captured, self._record.merged)
            except Exception as error:  # noqa: BLE001 - nothing that is told of a run fails it
                self._note(f"OpenLineage is told of no tables: {type(error).__name__}: {error}")
            state, why = ended
            self._send(state, news, why)
        self.close()

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._send("START", at=self._record.began)

    def _send(
        self,
        state: str,
        news: RunNews = _NOTHING,
        why: str | None = None,
        *,
        run: str | None = None,
        at: datetime | None = None,
    ) -> None:
        captured = None if run is not None else self._record.captured
        moment = at or datetime.now(UTC)

        def event() -> Event:
            from resources.openlineage.events import run_event

            # Made where it is sent: to follow references may fail.
            return run_event(state, self._place(), run or self._run, moment, captured, news, why)

        self._sending.send(event)

    def _place(self) -> DatasetPlace:
        from resources.openlineage.events import DatasetPlace

        source, lake = self._settings.source(self._record.source), self._settings.lake_path()
        return DatasetPlace(
            self._namespace,
            source.name,
            source.host(),
            source.part.port,
            lake.bucket.url if isinstance(lake, ObjectPath) else "file",
            lake.key if isinstance(lake, ObjectPath) else str(lake.absolute()),
        )


def died_elsewhere(before: LeaseView | None) -> list[str]:
    """The run before, if it was killed or hung and is not Dagster's, which finds its own itself."""
    if before is None or before.ended or before.in_dagster or before.dagster_run is None:
        return []
    return [before.dagster_run]


def tell_of_dead(
    settings: Settings, source: str, runs: Collection[str], note: Callable[[str], None]
) -> None:
    """For who finds dead runs without being one."""
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
    """How a run ended, and why if not well; None for one that had nothing to do, or that another
    run kept from beginning."""
    captured, merged, error = record.captured, record.merged, record.error
    if record.acknowledged is not None:
        idle = (captured is None or captured.batch is None) and not (merged and merged.merged)
        return None if idle else ("COMPLETE", None)
    if isinstance(error, SourceBusy):
        return None
    if isinstance(error, LeaseLost):
        return "ABORT", f"{error.message} {error.hint}"
    if error is not None:
        return "FAIL", f"{error.message} {error.hint}"
    if isinstance(record.defect, Exception):
        return "FAIL", f"A defect of Lockstep: {type(record.defect).__name__}"
    if record.defect is not None:  # Ctrl-C, or however else the process was asked to end
        return "ABORT", _STOPPED
    return ("ABORT", _STOPPED) if record.began is not None else None
