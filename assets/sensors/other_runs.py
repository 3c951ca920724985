"""A sensor that asks the ledger for runs that Dagster did not start.

Belongs here: when it asks, and its cursor. Does not: a run's events (`assets.other_runs`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import dagster as dg

from assets.declared import Declaration
from assets.hints import evaluated
from assets.other_runs import Gathered, Reported, report
from assets.sensors.schedules import OpenSite
from pipeline.errors import LockstepError
from pipeline.runs.context import Unwatched
from resources.config import Settings

SECONDS = 60

MOST = 200
"""Largest number of tables in one tick: Dagster takes tens of milliseconds for each event, and a
tick may take a minute."""


def other_runs_sensor(
    settings: Settings, declared: Mapping[str, Declaration], open_site: OpenSite
) -> dg.SensorDefinition:
    """Its cursor holds how far each source is reported."""

    @dg.sensor(
        name="lockstep_other_runs",
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Shows what runs did that Dagster did not start.",
    )
    @evaluated
    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        kept = json.loads(context.cursor or "{}")
        gathered = Gathered(context.log, context.instance)
        try:
            with open_site() as adapters:
                for name, declaration in declared.items():
                    if (room := MOST - len(gathered.events)) <= 0:
                        break
                    before = Reported.of(kept.get(name, {}))
                    found = Gathered(context.log, context.instance)
                    try:
                        work = adapters.workplace(name, Unwatched())
                        after = report(
                            found,
                            settings,
                            declaration,
                            work,
                            adapters.consumers(),
                            before,
                            room,
                        )
                    except LockstepError as error:
                        gathered.sentences.append(f"{name}: {error.message} hint: {error.hint}")
                        continue
                    gathered.events += found.events
                    gathered.sentences += found.sentences
                    kept[name] = after.kept()
        except LockstepError as error:
            return dg.SkipReason(f"{error.message} hint: {error.hint}")
        if not gathered.events:
            context.update_cursor(json.dumps(kept))
            said = gathered.sentences or ["Dagster knows of every run."]
            return dg.SkipReason("\n".join(said))
        said = [f"{len(gathered.events)} events of runs that Dagster did not start."]
        return dg.SensorResult(
            asset_events=gathered.events,
            skip_reason="\n".join([*said, *gathered.sentences]),
            cursor=json.dumps(kept),
        )

    return look
