"""`lockstep run`: one bounded run of each source, in this process."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from lockstep import exits
from lockstep.arguments import place_option
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import MOST_NAMES, pluralize
from lockstep.printing import comparison_lines, partial_table_lines, show_stopped_tables, show_table
from lockstep.resources.holders import holder_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lockstep.assets.run_events import RunEventSender
    from lockstep.pipeline.run.progress import Progress
    from lockstep.pipeline.run.reports import (
        AcknowledgeReport,
        CaptureReport,
        MergeReport,
        TableMerge,
        VerifyReport,
    )
    from lockstep.pipeline.run.run import RunAdapters, RunRecord
    from lockstep.pipeline.source_plan import RereadRows
    from lockstep.pipeline.values.decisions import Lease, LeaseView
    from lockstep.pipeline.values.places import Place
    from lockstep.pipeline.values.table import TableName
    from lockstep.resources.adapters import Adapters
    from lockstep.resources.config import Settings


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Run the sources one after another. If one fails, the next are run all the same."""
    sources = context.sources(arguments.source)
    until = place_option(arguments, "--until")
    outcomes: dict[str, tuple[int, dict[str, Any]]] = {}
    with context.adapters() as adapters:
        for source in sources:  # report missing secrets before anything is created
            try:
                adapters.server(source.name)
            except LockstepError as error:
                outcomes[source.name] = context.report_error(source.name, error)
        runnable = [source.name for source in sources if source.name not in outcomes]
        if runnable:
            outcomes |= run_sources(context, adapters, runnable, until=until)
        if context.settings.notify_references:
            from lockstep.assets.notices import notify_people

            names = [source.name for source in sources]
            notify_people(context.settings, adapters, names, context.note)
    return Outcome.of_sources(outcomes)


def run_sources(
    context: CommandContext,
    adapters: Adapters,
    sources: Sequence[str],
    *,
    until: Place | None = None,
    reread: RereadRows | None = None,
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Run the sources one after another, with one ledger connection and one JVM, and
    return each source's exit code and its values in `--json`. `reread`: rows of one
    table that are read again; `sources` then has one source."""
    adapters.warm(sources)  # in the background, while this thread imports the engine
    outcomes = {}
    for source in sources:
        with context.watch(source) as progress:
            record = run_source(
                context.settings, source, adapters, progress, until=until, reread=reread
            )
        context.raise_if_signalled()
        code, values = _print_report(record, context)
        outcomes[source] = code, values
        figures = {name: values.get(name) for name in ("acknowledged", "transactions", "seconds")}
        context.log.write("info", "run ended", source=source, exit_code=code, **figures)
    return outcomes


def run_source(
    settings: Settings,
    source: str,
    adapters: RunAdapters,
    progress: Progress,
    *,
    until: Place | None = None,
    reread: RereadRows | None = None,
) -> RunRecord:
    """Carry out one run and write its page. The last OpenLineage event is sent after
    the source's lock is released, so that a slow backend cannot delay the next run."""
    from lockstep.pipeline.run.run import RunRecord, RunSession, run
    from lockstep.resources.full_disk import disk_full_error

    record, run_id = RunRecord(source), str(uuid4())
    sender: RunEventSender | None = None
    if settings.file.lineage is not None:
        from lockstep.assets.run_events import RunEventSender, dead_run_outside_dagster

        try:
            sender = RunEventSender(settings, record, run_id, progress.note)
        except LockstepError as error:
            record.error = error
            return record

    def on_lease(_: Lease, previous: LeaseView | None) -> None:
        if sender is not None:
            sender.send_ends(dead_run_outside_dagster(previous))

    session = RunSession(
        adapters=adapters,
        source=source,
        holder=holder_name("run"),
        run_id=run_id,
        progress=progress,
        pause=time.sleep,
        on_lease=on_lease,
        record=record,
        until=until,
        reread=reread,
        translate_error=disk_full_error,
        on_captured=lambda: None if sender is None else sender.send_start(),
    )
    try:
        run(session)
        _update_pages(settings, record, adapters, run_id, progress)
    finally:
        if sender is not None:
            # If another run took the lease, its `on_lease` sends the end of this run.
            sender.send_end(partial(adapters.ports, source, progress), found_dead=True)
    return record


def _update_pages(
    settings: Settings, record: RunRecord, adapters: RunAdapters, run_id: str, progress: Progress
) -> None:
    """Write the list of tables that Dagster declares at its next load, and the run's
    page. Only pages need them, so an error becomes a note."""
    from lockstep.assets.run_page import store_page_of_run
    from lockstep.assets.state_files import note_write_errors
    from lockstep.assets.table_list import table_entries, update_table_list

    if record.capture_report is None:
        return
    try:
        ports = adapters.ports(record.source, progress)
        entries = table_entries(ports.ledger.table_states(record.source))
        with note_write_errors("The list of tables for Dagster", progress.note):
            update_table_list(settings.state_folder, record.source, entries, complete=False)
        if record.acknowledge_report is not None and record.acknowledge_report.acknowledged_batches:
            store_page_of_run(settings, ports, run_id)
    except LockstepError as error:
        progress.note(f"The run's page was not written: {error.message}")


# -- the report of a run ---------------------------------------------------------------


def _print_report(record: RunRecord, context: CommandContext) -> tuple[int, dict[str, Any]]:
    """Print the run's report; return its exit code and its values in `--json`."""
    values = _record_values(record, str(context.settings.lake_path()))
    _print_steps(context, record)
    if record.error is not None:
        code, refusal = context.report_error(record.source, record.error)
        return code, {**values, **refusal}
    if record.catalog_report is not None:
        context.say(*(f"  catalog: {line}" for line in record.catalog_report.lines()))
        if record.catalog_report.trouble is not None:
            context.say(f"    hint: {record.catalog_report.trouble.hint}")
    codes = [exits.DONE]
    acknowledgement = record.acknowledge_report
    if acknowledgement is not None and acknowledgement.quarantined:
        codes.append(exits.QUARANTINED)
    if acknowledgement is not None and (sample := acknowledgement.sample_report) is not None:
        context.say(*sample_lines(record.source, sample))
        values["compared"] = {comparison.table: comparison for comparison in sample.tables}
        if sample.differs:
            codes.append(exits.DIFFERENCES)
    return exits.most_serious(codes), values


_PLACE_KEYS: Final = (
    "capture_report.batch_id as batch, capture_report.start as start, "
    "capture_report.end as end, acknowledge_report.position as acknowledged"
)
_COUNT_KEYS: Final = (
    "capture_report.transactions as transactions, capture_report.rows as rows, "
    "capture_report.log_bytes as bytes, capture_report.passed_statements as passed_statements"
)
_SECONDS_KEYS: Final = (
    "capture_report.start_seconds as start, capture_report.capture_seconds as capture, "
    "merge_report.publish_seconds as publish, merge_report.merge_seconds as merge, "
    "acknowledge_report.seconds as acknowledge"
)


def _record_values(record: RunRecord, lake: str) -> dict[str, Any]:
    """Return the run's values in `--json`. Values of steps that were not reached are
    null or empty."""
    capture, merge_report = record.capture_report, record.merge_report
    acknowledgement = record.acknowledge_report
    reread_counts = capture.reread_counts if capture else None
    return {
        **attributes(record, _PLACE_KEYS),
        **{name: count or 0 for name, count in attributes(record, _COUNT_KEYS).items()},
        "requests": record.request_counts,
        "seconds": attributes(record, _SECONDS_KEYS),
        "tables": _table_values(merge_report, lake) if merge_report else {},
        "stopped": acknowledgement.quarantined if acknowledgement else (),
        "partial": acknowledgement.partial_tables if acknowledgement else (),
        "reading": {load.table: load for load in capture.unfinished_loads} if capture else {},
        "loaded": {load.table: load.rows for load in capture.finished_loads} if capture else {},
        "reread": {} if reread_counts is None else {str(reread_counts.table): reread_counts},
        "softened": capture.softened_counts if capture else {},
        "held": acknowledgement.waiting_batches if acknowledgement else {},
        "catalog": record.catalog_report,
    }


def _table_values(merge_report: MergeReport, lake: str) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {
        str(last_merge.table): {
            **attributes(counts, "inserted, updated, deleted"),
            **attributes(last_merge, "delta_version, reason"),
            "path": f"{lake}/{last_merge.mirror}",
            "state": "following",
        }
        for last_merge, counts in _merges_by_table(merge_report)
    }
    for quarantine in merge_report.quarantined:
        tables.setdefault(str(quarantine.table), {})["state"] = "stopped"
    return tables


def _merges_by_table(merge_report: MergeReport) -> list[tuple[TableMerge, RowCounts]]:
    """Return each table's last merge of the run, and the rows of all its merges."""
    tables: dict[TableName, tuple[TableMerge, RowCounts]] = {}
    for merge in merge_report.merges:
        counts = tables[merge.table][1] if merge.table in tables else RowCounts()
        tables[merge.table] = merge, counts + merge.counts
    return list(tables.values())


def _print_steps(context: CommandContext, record: RunRecord) -> None:
    capture, merge_report = record.capture_report, record.merge_report
    acknowledgement = record.acknowledge_report
    if capture is None or merge_report is None or acknowledgement is None:
        return
    context.say(f"{record.source}: {_summary(capture, merge_report, acknowledgement)}")
    first_batch = min((merge.first_batch for merge in merge_report.merges), default=None)
    if first_batch is not None and (capture.batch_id is None or first_batch < capture.batch_id):
        context.say(f"  what earlier runs captured, from batch {first_batch} on, was merged, too")
    if record.request_counts is not None:
        context.say(f"  requests to the store: {record.request_counts}")
    loads = capture.finished_loads
    loaded_tables = {load.table for load in loads}
    rows = [
        (merge.table, counts.inserted, counts.updated, counts.deleted, merge.delta_version)
        for merge, counts in _merges_by_table(merge_report)
        if merge.table not in loaded_tables or counts.total
    ]
    show_table(context, ("table", "inserted", "updated", "deleted", "version"), rows)
    for batch, tables in acknowledgement.waiting_batches.items():
        context.say(
            f"batch {batch} is not acknowledged: it waits for {', '.join(map(str, tables))}"
        )
    if len(loads) > MOST_NAMES:
        row_count = sum(load.rows for load in loads)
        context.say(f"all {row_count:,} rows of {len(loads)} tables were read from the source")
    else:
        context.say(*(f"{load.sentence()} read from the source" for load in loads))
    for load in capture.unfinished_loads:
        context.say(f"{load.sentence()}: the next run continues reading")
    show_stopped_tables(context, acknowledgement.quarantined)
    context.say(*partial_table_lines(acknowledgement.partial_tables))


def _summary(
    capture: CaptureReport, merge_report: MergeReport, acknowledgement: AcknowledgeReport
) -> str:
    """Return a line with the positions between which the run read the log, the numbers
    of transactions and rows, and the seconds."""
    if capture.batch_id is None and not merge_report.merges:
        return capture.reason if capture.is_past_end else f"nothing new at {capture.end}"
    rows_read = [merge.rows_read for merge in merge_report.merges if merge.rows_read]
    rows, tables = pluralize(sum(rows_read), "row"), pluralize(len(rows_read), "table")
    from_source = f"; {rows} of {tables} read from the source" if rows_read else ""
    seconds = capture.start_seconds + capture.capture_seconds + merge_report.publish_seconds
    seconds += merge_report.merge_seconds + acknowledgement.seconds
    return (
        f"{capture.start} → {acknowledgement.position or capture.end}: "
        f"{pluralize(capture.transactions, 'transaction')}, {pluralize(capture.rows, 'row')}"
        f"{from_source}, {seconds:.1f} s"
    )


def sample_lines(source: str, report: VerifyReport) -> Iterator[str]:
    """Yield what the run found when it compared samples of tables; nothing if it
    compared none."""
    if not report.tables:
        return
    rows = sum(comparison.compared or 0 for comparison in report.tables)
    differing_tables = [comparison for comparison in report.tables if not comparison.equal]
    tables = pluralize(len(differing_tables), "table DIFFERS", "tables DIFFER")
    result = f"{tables} from MySQL" if differing_tables else "all equal to MySQL"
    yield f"{source}: {pluralize(rows, 'row')} compared at {report.position}: {result}"
    for comparison in differing_tables:
        yield from comparison_lines(comparison)
        yield f"  `lockstep verify {comparison.table.word}` finds all of them"
