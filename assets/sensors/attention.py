"""Who asks for a person: a source is refused, at risk, quarantined, differs, has a gap.

The sensor tells each trouble once, to `notify` and to the tick's log, and again when it is
another. Does not belong here: what the trouble is (`pipeline.standing.verdict`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import dagster as dg

from assets.hints import evaluated
from assets.sensors.schedules import OpenSite
from assets.sessions import Site
from pipeline.errors import LockstepError
from pipeline.preflight import pause_from_now
from pipeline.runs.context import Unwatched
from pipeline.runs.inspecting.status import stand
from pipeline.standing.verdict import State, Verdict, verdict
from resources.config import Settings
from resources.config.source_settings import SourceSettings

SECONDS = 300

Notify = Callable[[str, Verdict], None]
"""Source, trouble."""

TROUBLE = frozenset(
    {
        State.REFUSED,
        State.CONFIGURATION,
        State.AT_RISK,
        State.QUARANTINED,
        State.DIFFERS,
        State.GAP,
    }
)
"""What no later run mends by itself."""


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
        try:
            with open_site() as adapters:
                for source in settings.sources:
                    trouble = _trouble(adapters, source)
                    if trouble is None:
                        continue
                    now[source.name] = sentence(source.name, trouble)
                    if before.get(source.name) != now[source.name]:
                        context.log.warning(now[source.name])
                        if notify is not None:
                            notify(source.name, trouble)
        except LockstepError as error:
            return dg.SkipReason(f"{error.message} hint: {error.hint}")
        context.update_cursor(json.dumps(now))
        return dg.SkipReason("\n".join(now.values()) or "Nothing needs a person.")

    return look


def sentence(source: str, trouble: Verdict) -> str:
    hint = f" What to do: {trouble.hint}" if trouble.hint else ""
    return f"{source}: {trouble.sentence}.{hint}"


def _trouble(adapters: Site, source: SourceSettings) -> Verdict | None:
    now = datetime.now(UTC)
    plan = source.plan()
    try:
        work = adapters.workplace(source.name, Unwatched())
    except LockstepError as error:
        standing = stand(source.name, plan.patterns, adapters.ledger(), error, now)
    else:
        standing = stand(source.name, plan.patterns, work.ledger, work, now)
    judged = verdict(standing, now, pause_from_now(source.schedule))
    return judged if judged.state in TROUBLE else None
