"""Who asks for a person: a source is refused, at risk, quarantined, differs, has a gap.

The sensor tells each trouble once, to `notify`, to the tick's log and to the addresses of
`[notify]`, and again when it is another. Does not belong here: what the trouble is
(`pipeline.standing.verdict`), which addresses know of it (`assets.notices`).
"""

from __future__ import annotations

import json
from collections.abc import Callable

import dagster as dg

from assets.hints import evaluated
from assets.notices import judged, tell, told_of
from assets.sensors.schedules import OpenSite
from pipeline.errors import LockstepError
from pipeline.standing.verdict import State, Verdict
from resources.config import Settings

SECONDS = 300

Notify = Callable[[str, Verdict], None]
"""Source, trouble."""


def attention_sensor(
    settings: Settings, open_site: OpenSite, notify: Notify | None
) -> dg.SensorDefinition:
    """Its cursor holds what was told last of each source."""

    @dg.sensor(
        name="lockstep_attention",
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports trouble that no later run mends, with what to do.",
    )
    @evaluated
    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        before: dict[str, str] = json.loads(context.cursor or "{}")
        now: dict[str, str] = {}
        told: list[str] = []
        try:
            with open_site() as adapters:
                for source in settings.sources:
                    found = judged(adapters, source)
                    tell(settings, source.name, found, context.log.warning)
                    if found.state is State.BUSY and source.name in before:
                        now[source.name] = before[source.name]
                    if not found.needs_a_person:
                        continue
                    now[source.name] = found.trouble
                    told.append(told_of(source.name, found))
                    if before.get(source.name) != now[source.name]:
                        context.log.warning(told[-1])
                        if notify is not None:
                            notify(source.name, found)
        except LockstepError as error:
            return dg.SkipReason(f"{error.message} hint: {error.hint}")
        context.update_cursor(json.dumps(now))
        return dg.SkipReason("\n".join(told) or "Nothing needs a person.")

    return look
