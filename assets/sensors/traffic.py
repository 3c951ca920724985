"""When runs begin because the source was written to.

A sensor for each source that says in lockstep.toml how much log is enough. Where the server may
soon purge what was not read, any is enough.
"""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from assets.hints import evaluated
from assets.names import SOURCE_TAG, job_name
from assets.sensors.schedules import OpenSite, why_busy
from pipeline.errors import LockstepError
from pipeline.preflight import pause_from_now
from pipeline.runs.context import Unwatched
from pipeline.runs.inspecting.status import distance
from pipeline.standing.facts import Headroom, Lag
from pipeline.standing.verdict import at_risk
from resources.config.source_settings import SourceSettings
from resources.config.sources import TriggerSection

SECONDS = 30


def traffic_sensor(source: SourceSettings, open_site: OpenSite) -> dg.SensorDefinition:
    """On from the start, for it was asked for in the file."""
    name, trigger = source.name, source.trigger
    assert trigger is not None, "asked for where there is one"

    @dg.sensor(
        name=f"{job_name(name)}_traffic",
        job_name=job_name(name),
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Starts a run of {name} when enough was written to its log.",
    )
    @evaluated
    def look() -> dg.RunRequest | dg.SkipReason:
        try:
            with open_site() as adapters:
                ledger = adapters.ledger()
                busy = why_busy(name, ledger.lease(name))
                if busy is not None:
                    return dg.SkipReason(busy)
                if ledger.acknowledged_cursor(name) is None:
                    return dg.SkipReason(f"The first run of {name} is a person's to start.")
                work = adapters.workplace(name, Unwatched())
                lag, room = distance(work, work.clock())
        except LockstepError as error:
            return dg.SkipReason(f"{error.message} hint: {error.hint}")
        why = why_now(name, trigger, lag, room, pause_from_now(source.schedule))
        if why is None:
            return dg.SkipReason(f"Too little was written to the log of {name}.")
        return dg.RunRequest(tags={SOURCE_TAG: name, "lockstep/reason": why})

    return look


def why_now(
    source: str,
    trigger: TriggerSection,
    lag: Lag,
    room: Headroom | None,
    pause: timedelta | None,
) -> str | None:
    """Why a run is to begin now, in a few words; None where none is."""
    behind = lag.log_bytes
    if behind == 0:
        return None
    if room is not None and at_risk(source, room, pause) is not None:
        return "the log may be purged soon"
    if trigger.bytes is not None and behind is not None and behind >= trigger.bytes:
        return f"{behind} bytes of log"
    if trigger.seconds is not None and lag.seconds is not None and lag.seconds >= trigger.seconds:
        return f"{lag.seconds:.0f} seconds behind"
    return None
