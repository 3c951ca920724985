"""Sensors that report troubles, dead runs, new tables and runs outside Dagster; and the
schedule and the sensor that start runs.

Loading them needs no server. `pipeline.status.verdict` decides whether a source has a
trouble, `notices` sends it to people, `other_runs` makes the events of runs outside
Dagster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import dagster as dg

from lockstep.assets.coverage import fingerprint, read_coverage
from lockstep.assets.dagster_interop import evaluate_annotations
from lockstep.assets.dead_runs import ids_of_own_runs, report_dead_runs, runs_under_way
from lockstep.assets.declaration import Declaration
from lockstep.assets.names import SOURCE_TAG, job_name
from lockstep.assets.notices import assess_source, notify_addresses, trouble_sentence
from lockstep.assets.other_runs import OtherRunsReporter, ReportCursor
from lockstep.assets.run_events import send_ends_of_dead_runs
from lockstep.assets.sessions import OpenAdapters
from lockstep.assets.table_list import read_table_list
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.ports.ledger import live_lease
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.status.status import log_state
from lockstep.pipeline.status.facts import Headroom, Lag
from lockstep.pipeline.status.verdict import Verdict, risk_verdict
from lockstep.pipeline.values.decisions import LeaseView
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.shown import utc_text
from lockstep.resources.config import Settings
from lockstep.resources.config.settings import SourceSettings
from lockstep.resources.config.sources import TriggerSection

Evaluate = Callable[[dg.SensorEvaluationContext], dg.RunRequest | dg.SensorResult | dg.SkipReason]

Notify = Callable[[str, Verdict], None]
"""A function that receives a source's name and its trouble."""

Reload = Callable[[str, str], str]
"""A function that receives the page's address and the name of a code location, and
makes the page reload the location. It returns the error, or ""."""

MAX_TABLES = 200
"""Largest number of tables in one tick: Dagster takes tens of milliseconds for each
event, and a tick may take a minute."""

_RELOAD_SECONDS = 30
"""Longest time, in seconds, that the page may take to answer."""


def _sensor(
    name: str, seconds: int, description: str, evaluate: Evaluate, job: str | None = None
) -> dg.SensorDefinition:
    """Return a sensor that is on by default. A `LockstepError` becomes the tick's
    message."""

    def tick(
        context: dg.SensorEvaluationContext,
    ) -> dg.RunRequest | dg.SensorResult | dg.SkipReason:
        try:
            return evaluate(context)
        except LockstepError as error:
            return dg.SkipReason(f"{error.message} hint: {error.hint}")

    return dg.sensor(
        name=name,
        job_name=job,
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=description,
    )(evaluate_annotations(tick))


def attention_sensor(
    settings: Settings, open_adapters: OpenAdapters, notify: Notify | None
) -> dg.SensorDefinition:
    """Return the sensor that reports each trouble once to `notify`, to the tick's log
    and to the addresses of `[notify]`. Its cursor keeps the `Verdict.trouble_key` of
    each source's last reported trouble."""

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        last_keys: dict[str, str] = json.loads(context.cursor or "{}")
        keys: dict[str, str] = {}
        sentences: list[str] = []
        with open_adapters() as adapters:
            for source in settings.sources:
                _, verdict = assess_source(adapters, source, datetime.now(UTC))
                notify_addresses(settings, source.name, verdict, context.log.warning)
                if verdict.is_undecided and source.name in last_keys:
                    keys[source.name] = last_keys[source.name]
                if not verdict.needs_a_person:
                    continue
                keys[source.name] = verdict.trouble_key
                sentences.append(trouble_sentence(source.name, verdict))
                if last_keys.get(source.name) != keys[source.name]:
                    context.log.warning(sentences[-1])
                    if notify is not None and (error := _error_of(notify, source.name, verdict)):
                        sentences.append(f"`notify` failed: {error}; the next tick tries again.")
                        keys[source.name] = last_keys.get(source.name, "")
        context.update_cursor(json.dumps(keys))
        return dg.SkipReason("\n".join(sentences) or "Nothing needs a person.")

    description = "Reports troubles that no later run cures, with what to do."
    return _sensor("lockstep_attention", 300, description, evaluate)


def _error_of(notify: Notify, source: str, trouble: Verdict) -> str:
    """Notify of a trouble and return the error, or ""."""
    try:
        notify(source, trouble)
    except Exception as error:  # noqa: BLE001 - other troubles must be reported, too
        return f"{type(error).__name__}: {error}"
    return ""


def dead_run_sensor(settings: Settings, open_adapters: OpenAdapters) -> dg.SensorDefinition:
    """Return the sensor that reports runs as failed if their process is gone."""
    sources = [source.name for source in settings.sources]

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        under_way = {source: runs_under_way(context.instance, source) for source in sources}
        if not any(under_way.values()):
            return dg.SkipReason("No run is under way.")
        reported_ids: list[str] = []
        with open_adapters() as adapters:
            for source, runs in under_way.items():
                lease = adapters.ledger().newest_lease(source) if runs else None
                dead_ids = report_dead_runs(context.instance, runs, lease, datetime.now(UTC))
                own_ids = ids_of_own_runs(context.instance, source, dead_ids)
                send_ends_of_dead_runs(settings, source, own_ids, context.log.warning)
                reported_ids += dead_ids
        if reported_ids:
            return dg.SkipReason(f"Reported as failed: {', '.join(reported_ids)}.")
        return dg.SkipReason("Every run under way is alive.")

    description = "Reports runs as failed if their process is gone."
    return _sensor("lockstep_dead_runs", 60, description, evaluate)


def reload_location(address: str, location: str) -> str:
    """Make the page at that address reload the location; return the error, or ""."""
    from dagster_graphql import DagsterGraphQLClient, ReloadRepositoryLocationStatus

    url = urlsplit(address)
    try:
        client = DagsterGraphQLClient(
            url.hostname or "",
            port_number=url.port,
            use_https=url.scheme == "https",
            path_prefix=url.path.rstrip("/"),
            timeout=_RELOAD_SECONDS,
        )
        answer = client.reload_repository_location(location)
    except Exception as error:  # noqa: BLE001 - the tick shows any error
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    if answer.status is ReloadRepositoryLocationStatus.SUCCESS:
        return ""
    return answer.message or str(answer.failure_type)


def new_table_sensor(
    settings: Settings, loaded_fingerprint: str, reload: Reload = reload_location
) -> dg.SensorDefinition:
    """Return the sensor that has the page reload the definitions when the list of
    tables changed or the past of a source began. If the page's address is not
    configured, the tick asks a person to reload them. `loaded_fingerprint`: the
    fingerprint of the lists from which these definitions were made. The cursor keeps
    the fingerprint that the page has, because Dagster's daemon may load the definitions
    again without the page."""

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        names = [source.name for source in settings.sources]
        present_fingerprint = fingerprint(
            {name: read_table_list(settings.state_folder, name) for name in names},
            {name: read_coverage(settings.state_folder, name) for name in names},
        )
        address, location = settings.webserver(), settings.file.dagster.location
        shown_fingerprint = loaded_fingerprint
        if address is not None and context.cursor:
            shown_fingerprint = context.cursor
        if present_fingerprint == shown_fingerprint:
            context.update_cursor(present_fingerprint)
            return dg.SkipReason("The definitions are up to date.")
        if address is None:
            return dg.SkipReason(
                "Assets are new or changed: reload definitions on the page; with `webserver` under "
                "[dagster] in lockstep.toml, that happens by itself."
            )
        error = reload(address, location)
        if error:
            return dg.SkipReason(
                f"{address} did not reload the location {location}: {error} hint: correct "
                "`webserver` and `location` under [dagster] in lockstep.toml"
            )
        context.update_cursor(present_fingerprint)
        return dg.SkipReason(
            f"Assets are new or changed; {address} reloads the location {location}."
        )

    description = "Has the page reload the definitions when the list of tables changed."
    return _sensor("lockstep_new_tables", 60, description, evaluate)


def other_runs_sensor(
    settings: Settings, declarations: Mapping[str, Declaration], open_adapters: OpenAdapters
) -> dg.SensorDefinition:
    """Return the sensor that reports runs which Dagster did not start. Its cursor
    keeps, for each source, the point up to which it is reported."""

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor = json.loads(context.cursor or "{}")
        events: list[Any] = []
        sentences: list[str] = []
        with open_adapters() as adapters:
            for name, declaration in declarations.items():
                if (remaining := MAX_TABLES - len(events)) <= 0:
                    break
                try:
                    reporter = OtherRunsReporter(
                        log=context.log,
                        instance=context.instance,
                        settings=settings,
                        names=declaration.names,
                        ports=adapters.ports(name, SilentProgress()),
                        consumers=adapters.consumers(),
                    )
                    last = ReportCursor.of(cursor.get(name, {}))
                    new_cursor = reporter.report(last, remaining)
                except LockstepError as error:
                    sentences.append(f"{name}: {error.message} hint: {error.hint}")
                    continue
                events += reporter.events
                sentences += reporter.sentences
                cursor[name] = asdict(new_cursor)
        if events:
            sentences.insert(0, f"{len(events)} events of runs that Dagster had no record of.")
        return dg.SensorResult(
            asset_events=events,
            skip_reason="\n".join(sentences or ["Dagster shows every run."]),
            cursor=json.dumps(cursor),
        )

    description = "Shows what runs outside Dagster did."
    return _sensor("lockstep_other_runs", 60, description, evaluate)


# -- starting runs ---------------------------------------------------------------------

_WAITING_STATUSES = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING]


def source_schedule(source: str, cron: str, open_adapters: OpenAdapters) -> dg.ScheduleDefinition:
    """Return the schedule that starts the source's job by cron, unless
    `reason_not_to_start` has a reason. It is switched on by default."""

    @dg.schedule(
        name=f"{job_name(source)}_schedule",
        job_name=job_name(source),
        cron_schedule=cron,
        description=f"Starts a run of {source}, unless another run has the source or waits.",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    @evaluate_annotations
    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        lease: LeaseView | None = None
        # If the ledger cannot be reached, a run is started, which reports that.
        with suppress(LockstepError), open_adapters() as adapters:
            lease = live_lease(adapters.ledger(), source)
        reason = reason_not_to_start(context.instance, source, lease)
        return dg.RunRequest(tags={SOURCE_TAG: source}) if reason is None else dg.SkipReason(reason)

    return tick


def reason_not_to_start(
    instance: dg.DagsterInstance, source: str, lease: LeaseView | None
) -> str | None:
    """Return a sentence if a run of the source waits to begin, for instance in a queue,
    or if `lease` shows that somebody holds the source's lock; else None."""
    filters = dg.RunsFilter(job_name=job_name(source), statuses=_WAITING_STATUSES)
    for run_id in instance.get_run_ids(filters, limit=1):
        return f"Run {run_id} of {source} waits to begin."
    if lease is None:
        return None
    run = f", run {lease.run_id}" if lease.run_id else ""
    return (
        f"{source} is being worked on by {lease.holder}{run}, since {utc_text(lease.taken_at)}; "
        "the next tick tries again."
    )


def traffic_sensor(source: SourceSettings, open_adapters: OpenAdapters) -> dg.SensorDefinition:
    """Return the sensor that starts the source's job once the unread log exceeds the
    limits of `trigger`."""
    name, trigger = source.name, source.section.trigger
    assert trigger is not None, "the source has a trigger"

    def evaluate(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        with open_adapters() as adapters:
            ledger = adapters.ledger()
            reason = reason_not_to_start(context.instance, name, live_lease(ledger, name))
            if reason is not None:
                return dg.SkipReason(reason)
            if ledger.cursors(name).acknowledged is None:
                return dg.SkipReason(f"A person must start the first run of {name}.")
            ports = adapters.ports(name, SilentProgress())
            _, lag, headroom = log_state(ports, ports.clock())
        pause = longest_pause_from_now(source.schedule)
        reason = reason_to_start(name, trigger, lag, headroom, pause)
        if reason is None:
            return dg.SkipReason(f"Too little was written to the log of {name}.")
        return dg.RunRequest(tags={SOURCE_TAG: name, "lockstep/reason": reason})

    description = f"Starts a run of {name} when enough was written to its log."
    return _sensor(f"{job_name(name)}_traffic", 30, description, evaluate, job_name(name))


def reason_to_start(
    source: str,
    trigger: TriggerSection,
    lag: Lag,
    headroom: Headroom | None,
    pause: timedelta | None,
) -> str | None:
    """Return the reason why a run should begin now, or None if it should not. If the
    server may soon purge unread log, a run begins however little log is unread."""
    unread = lag.log_bytes
    if unread == 0:
        return None
    if risk_verdict(source, headroom, pause) is not None:
        return "the log may be purged soon"
    if trigger.bytes is not None and unread is not None and unread >= trigger.bytes:
        return f"{unread} bytes of log"
    if trigger.seconds is not None and lag.seconds is not None and lag.seconds >= trigger.seconds:
        return f"{lag.seconds:.0f} seconds behind"
    return None
