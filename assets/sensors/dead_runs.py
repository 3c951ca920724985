"""Who notices that a run died whose process is gone."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from assets.dead_runs import own_runs, report_dead, runs_under_way
from assets.hints import evaluated
from assets.run_events import tell_of_dead
from assets.sensors.schedules import OpenSite
from pipeline.errors import LockstepError
from resources.config import Settings

SECONDS = 60


def dead_run_sensor(settings: Settings, open_site: OpenSite) -> dg.SensorDefinition:
    """Reports runs as failed whose process is gone."""
    sources = [source.name for source in settings.sources]

    @dg.sensor(
        name="lockstep_dead_runs",
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    @evaluated
    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        runs_of_sources = {source: runs_under_way(context.instance, source) for source in sources}
        runs_of_sources = {source: runs for source, runs in runs_of_sources.items() if runs}
        if not runs_of_sources:
            return dg.SkipReason("No run is under way.")
        reported: list[str] = []
        try:
            with open_site() as adapters:
                for source, runs in runs_of_sources.items():
                    lease = adapters.ledger().lease(source)
                    dead = report_dead(context.instance, runs, lease, datetime.now(UTC))
                    own = own_runs(context.instance, source, dead)
                    tell_of_dead(settings, source, own, context.log.warning)
                    reported += dead
        except LockstepError as error:
            return dg.SkipReason(f"{error.message} hint: {error.hint}")
        if reported:
            return dg.SkipReason(f"Reported as failed: {', '.join(reported)}.")
        return dg.SkipReason("Every run under way is alive.")

    return look
