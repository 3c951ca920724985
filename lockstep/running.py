"""Bounded runs of sources in this process, and what a person reads about them.

Belongs here: what `lockstep run` shares with commands that begin runs: the session of a run, its
page, its OpenLineage events. Does not: the run itself (`pipeline.runs.run`), the choice of sources
(`lockstep.commands`). Dagster's sensor asks the ledger for these runs.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lockstep import exits
from lockstep.context import CommandContext
from lockstep.holder import holder
from pipeline.errors import LockstepError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assets.run_events import RunEvents
    from pipeline.decisions import Lease, LeaseView
    from pipeline.places import Place
    from pipeline.runs.context import Progress
    from pipeline.runs.run import RunRecord, Site
    from pipeline.source_plan import PartOrder
    from resources.adapters import Adapters
    from resources.config import Settings


def run_sources(
    sources: Sequence[str],
    adapters: Adapters,
    until: Place | None,
    context: CommandContext,
    part: PartOrder | None = None,
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Each in turn, by the same ledger and JVM. `part`: rows that are read from the source again,
    of a table of the only one."""
    adapters.warm(sources)  # while the engine is imported
    from pipeline.runs.run import WithPart

    site: Site = adapters if part is None else WithPart(adapters, part)
    outcomes = {}
    for source in sources:
        with context.watch(source) as progress:
            record = run_source(context.settings, source, site, progress, until)
        context.leave_if_asked()
        code, told = outcomes[source] = _told(record, context)
        reached = {name: told.get(name) for name in ("acknowledged", "transactions", "seconds")}
        context.log.tell("info", "run ended", source=source, exit_code=code, **reached)
    return outcomes


def run_source(
    settings: Settings, source: str, site: Site, progress: Progress, until: Place | None = None
) -> RunRecord:
    """Carry out one run, write its page, and send the last OpenLineage event when the source's lock
    is free again, so that no backend can hold up a run."""
    from pipeline.runs.run import RunRecord, RunSession, run
    from resources.full_disk import disk_full

    record, run_id = RunRecord(source), str(uuid4())
    events: RunEvents | None = None
    if settings.lineage is not None:
        from assets.run_events import RunEvents  # few projects have a backend

        try:
            events = RunEvents(settings, record, run_id, progress.note)
        except LockstepError as error:
            record.error = error
            return record

    def on_lease(_: Lease, before: LeaseView | None) -> None:
        if events is not None:
            events.taken_over(before)

    session = RunSession(
        adapters=site,
        source=source,
        holder=holder("run"),
        run_id=run_id,
        progress=progress,
        pause=time.sleep,
        on_lease=on_lease,
        record=record,
        until=until,
        refusal=lambda error: disk_full(error, [Path(tempfile.gettempdir())]),
        on_captured=lambda: None if events is None else events.captured(),
    )
    try:
        run(session)
        _note(settings, record, site, run_id, progress)
    finally:
        if events is not None:
            events.end(partial(site.workplace, source, progress), found_dead=True)
    return record


def _note(
    settings: Settings, record: RunRecord, site: Site, run_id: str, progress: Progress
) -> None:
    """Keep the list of tables that Dagster's next load declares, and write the run's page."""
    from assets.catalogue import entries_of, update_catalogue
    from assets.report.kept import keep_page_of_run

    if record.captured is None:
        return
    try:
        work = site.workplace(record.source, progress)
        entries = entries_of(work.ledger.table_states(record.source))
        update_catalogue(settings.state_folder, record.source, entries, complete=False)
        if record.acknowledged is not None and record.acknowledged.acknowledged:
            keep_page_of_run(settings, work, run_id)
    except LockstepError as error:
        progress.note(f"The run's page was not written: {error.message}")


def _told(record: RunRecord, context: CommandContext) -> tuple[int, dict[str, Any]]:
    """What a record means: exit code and JSON; people are told here too."""
    from lockstep import report

    told = {
        **report.run_values(record, str(context.settings.lake_path())),
        "catalog": record.registered,
    }
    if record.error is not None:
        if record.acknowledged is not None:
            report.show_run(context, record)
        code, refusal = report.refused(context, record.source, record.error)
        return code, {**told, **refusal}
    report.show_run(context, record)
    if record.registered is not None:
        for line in report.catalog_lines(record.registered):
            context.say(line)
    done = record.acknowledged
    quarantined = exits.QUARANTINED if done is not None and done.quarantined else exits.DONE
    if done is None or done.sampled is None:
        return quarantined, told
    report.show_sampled(context, record.source, done.sampled)
    compared = exits.DIFFERENCES if done.sampled.differs else exits.DONE
    told["compared"] = {table.table: table for table in done.sampled.tables}
    return exits.most_serious([quarantined, compared]), told
