"""`lockstep run`: one bounded run of each source, in this process."""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import place_option
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import NAMED
from lockstep.printing import (
    difference_lines,
    partial_table_lines,
    pluralize,
    show_stopped_tables,
    show_table,
)
from lockstep.resources.holders import holder_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lockstep.assets.run_events import RunEvents
    from lockstep.pipeline.run.context import Progress
    from lockstep.pipeline.run.reports import MergeReport, TableMerge, VerifyReport
    from lockstep.pipeline.run.run import RunRecord, Site
    from lockstep.pipeline.source_plan import RereadRows
    from lockstep.pipeline.values.decisions import Lease, LeaseView
    from lockstep.pipeline.values.places import Place
    from lockstep.pipeline.values.table import TableName
    from lockstep.resources.adapters import Adapters
    from lockstep.resources.config import Settings


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Run the sources one after another. A source that fails does not stop the others."""
    sources = context.sources(arguments.source)
    until = place_option(arguments, "--until")
    outcomes: dict[str, tuple[int, dict[str, Any]]] = {}
    with context.adapters() as adapters:
        for source in sources:  # report missing secrets before anything is created
            try:
                adapters.server(source.name)
            except LockstepError as error:
                outcomes[source.name] = context.report_error(source.name, error)
        ready = [source.name for source in sources if source.name not in outcomes]
        if ready:
            outcomes |= run_sources(ready, adapters, until, context)
        if context.settings.notify_references:
            from lockstep.assets.notices import notify_people

            names = [source.name for source in sources]
            notify_people(context.settings, adapters, names, context.note)
    return Outcome.of_sources(outcomes)


def run_sources(
    sources: Sequence[str],
    adapters: Adapters,
    until: Place | None,
    context: CommandContext,
    part: RereadRows | None = None,
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Run the sources one after another, with one ledger connection and one JVM, and
    return each source's exit code and values. `part`: rows of one table that are read
    again; `sources` then has one source."""
    adapters.warm(sources)  # in the background, while this thread imports the engine
    outcomes = {}
    for source in sources:
        with context.watch(source) as progress:
            record = run_source(context.settings, source, adapters, progress, until, part)
        context.raise_if_signalled()
        code, values = outcomes[source] = _report(record, context)
        figures = {name: values.get(name) for name in ("acknowledged", "transactions", "seconds")}
        context.log.write("info", "run ended", source=source, exit_code=code, **figures)
    return outcomes


def run_source(
    settings: Settings,
    source: str,
    site: Site,
    progress: Progress,
    until: Place | None = None,
    part: RereadRows | None = None,
) -> RunRecord:
    """Carry out one run and write its page. The last OpenLineage event is sent after
    the source's lock is released, so that a slow backend cannot delay the next run."""
    from lockstep.pipeline.run.run import RunRecord, RunSession, run
    from lockstep.resources.full_disk import disk_full_error

    record, run_id = RunRecord(source), str(uuid4())
    events: RunEvents | None = None
    if settings.file.lineage is not None:
        from lockstep.assets.run_events import RunEvents

        try:
            events = RunEvents(settings, record, run_id, progress.note)
        except LockstepError as error:
            record.error = error
            return record

    def on_lease(_: Lease, previous: LeaseView | None) -> None:
        if events is not None:
            events.taken_over(previous)

    session = RunSession(
        adapters=site,
        source=source,
        holder=holder_name("run"),
        run_id=run_id,
        progress=progress,
        pause=time.sleep,
        on_lease=on_lease,
        record=record,
        until=until,
        reread=part,
        translate_error=lambda error: disk_full_error(error, [Path(tempfile.gettempdir())]),
        on_captured=lambda: None if events is None else events.captured(),
    )
    try:
        run(session)
        _update_pages(settings, record, site, run_id, progress)
    finally:
        if events is not None:
            events.end(partial(site.workplace, source, progress), found_dead=True)
    return record


def _update_pages(
    settings: Settings, record: RunRecord, site: Site, run_id: str, progress: Progress
) -> None:
    """Write the list of tables that Dagster declares at its next load, and the run's
    page."""
    from lockstep.assets.catalogue import entries_of, update_catalogue
    from lockstep.assets.run_page import keep_page_of_run

    if record.capture_report is None:
        return
    try:
        work = site.workplace(record.source, progress)
        entries = entries_of(work.ledger.table_states(record.source))
        update_catalogue(settings.state_folder, record.source, entries, complete=False)
        if record.acknowledge_report is not None and record.acknowledge_report.acknowledged_batches:
            keep_page_of_run(settings, work, run_id)
    except LockstepError as error:
        progress.note(f"The run's page was not written: {error.message}")


# -- the report of a run -----------------------------------------------------------------------


def _report(record: RunRecord, context: CommandContext) -> tuple[int, dict[str, Any]]:
    """Print the run's report; return its exit code and its values in `--json`."""
    values = _values(record, str(context.settings.lake_path()))
    _show(context, record)
    if record.error is not None:
        code, refusal = context.report_error(record.source, record.error)
        return code, {**values, **refusal}
    if record.catalog_report is not None:
        context.say(*(f"  catalog: {line}" for line in record.catalog_report.lines()))
        if record.catalog_report.trouble is not None:
            context.say(f"    hint: {record.catalog_report.trouble.hint}")
    done = record.acknowledge_report
    quarantined = exits.QUARANTINED if done is not None and done.quarantined else exits.DONE
    if done is None or done.sample_report is None:
        return quarantined, values
    context.say(*_sample_lines(record.source, done.sample_report))
    compared = exits.DIFFERENCES if done.sample_report.differs else exits.DONE
    values["compared"] = {table.table: table for table in done.sample_report.tables}
    return exits.most_serious([quarantined, compared]), values


_COUNTS: Final = (
    "capture_report.transactions as transactions, capture_report.rows as rows, "
    "capture_report.log_bytes as bytes, "
    "capture_report.passed_statements as passed_statements"
)
_SECONDS: Final = (
    "capture_report.start_seconds as start, capture_report.capture_seconds as capture, "
    "merge_report.publish_seconds as publish, merge_report.merge_seconds as merge, "
    "acknowledge_report.seconds as acknowledge"
)


def _values(record: RunRecord, lake: str) -> dict[str, Any]:
    """Return the run's values in `--json`. Values of steps that were not reached are
    null or empty."""
    captured, merged, done = record.capture_report, record.merge_report, record.acknowledge_report
    loading, loaded = (captured.unfinished_loads, captured.finished_loads) if captured else ((), ())
    refreshed = captured.reread_counts if captured else None
    return {
        **attributes(record, "capture_report.batch as batch, capture_report.start as start"),
        **attributes(record, "capture_report.end as end"),
        **attributes(record, "acknowledge_report.position as acknowledged"),
        **{name: count or 0 for name, count in attributes(record, _COUNTS).items()},
        "requests": record.request_counts,
        "seconds": attributes(record, _SECONDS),
        "tables": _table_values(merged, lake) if merged else {},
        "stopped": done.quarantined if done else (),
        "partial": done.partial_tables if done else (),
        "reading": {str(progress.table): progress for progress in loading},
        "loaded": {str(progress.table): progress.rows for progress in loaded},
        "refreshed": {} if refreshed is None else {str(refreshed.table): refreshed},
        "softened": captured.softened_counts if captured else {},
        "held": done.waiting_tables if done else {},
        "catalog": record.catalog_report,
    }


def _table_values(merged: MergeReport, lake: str) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {
        str(last.table): {
            **attributes(counts, "inserted", "updated", "deleted"),
            **attributes(last, "delta_version", "reason"),
            "path": f"{lake}/{last.mirror}",
            "state": "following",
        }
        for last, counts in _by_table(merged)
    }
    for quarantine in merged.quarantined:
        tables.setdefault(str(quarantine.table), {})["state"] = "stopped"
    return tables


def _by_table(merged: MergeReport) -> list[tuple[TableMerge, RowCounts]]:
    """Return each table's last merge of the run, and the rows of all its merges."""
    tables: dict[TableName, tuple[TableMerge, RowCounts]] = {}
    for merge in merged.merges:
        counts = tables[merge.table][1] if merge.table in tables else RowCounts()
        tables[merge.table] = merge, counts + merge.counts
    return list(tables.values())


def _show(context: CommandContext, record: RunRecord) -> None:
    captured, merged, done = record.capture_report, record.merge_report, record.acknowledge_report
    if captured is None or merged is None or done is None:
        return
    seconds = captured.start_seconds + captured.capture_seconds + merged.publish_seconds
    seconds += merged.merge_seconds + done.seconds
    if captured.batch is None and not merged.merges:
        nothing = captured.reason if captured.is_end_passed else f"nothing new at {captured.end}"
        context.say(f"{record.source}: {nothing}")
    else:
        read = [merge.rows_read for merge in merged.merges if merge.rows_read]
        tables_read = pluralize(len(read), "table")
        rows_read = f" and {pluralize(sum(read), 'row')} read from {tables_read}" if read else ""
        context.say(
            f"{record.source}: {captured.start} → {done.position or captured.end}: "
            f"{pluralize(captured.transactions, 'transaction')}, {pluralize(captured.rows, 'row')}"
            f"{rows_read}, {seconds:.1f} s"
        )
    if record.request_counts is not None:
        context.say(f"  requests to the store: {record.request_counts}")
    loaded = {progress.table for progress in captured.finished_loads}
    rows = [
        (last.table, counts.inserted, counts.updated, counts.deleted, last.delta_version)
        for last, counts in _by_table(merged)
        if last.table not in loaded or counts.total
    ]
    show_table(context, ("table", "inserted", "updated", "deleted", "version"), rows)
    for batch, tables in done.waiting_tables.items():
        context.say(f"batch {batch} is not acknowledged: waits for {', '.join(map(str, tables))}")
    if len(captured.finished_loads) > NAMED:
        number = sum(load.rows for load in captured.finished_loads)
        context.say(
            f"all {number:,} rows of {len(captured.finished_loads)} tables "
            "were read from the source"
        )
    else:
        context.say(
            *(f"{load.sentence()} were read from the source" for load in captured.finished_loads)
        )
    for load in captured.unfinished_loads:
        context.say(f"{load.sentence()}: the next run continues reading")
    show_stopped_tables(context, done.quarantined)
    context.say(*partial_table_lines(done.partial_tables))


def _sample_lines(source: str, report: VerifyReport) -> Iterator[str]:
    rows = sum(difference.compared or 0 for difference in report.tables)
    differing = [difference for difference in report.tables if not difference.equal]
    tables = pluralize(len(differing), "table DIFFERS", "tables DIFFER")
    result = f"{tables} from MySQL" if differing else "all equal to MySQL"
    yield f"{source}: {pluralize(rows, 'row')} compared at {report.position}: {result}"
    for difference in differing:
        yield from difference_lines(difference)
        yield f"  `lockstep verify {difference.table}` finds all of them"
