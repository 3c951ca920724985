"""`lockstep report`: one HTML page about a run or a span of the past."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import place_argument
from lockstep.commands.status import proof_values
from lockstep.commands.versions import version_set_values
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.batch import Batch, CapturedRows
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.status.span_report import SpanReport, report_of_run, report_of_span
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.shown import batch_words, pluralize, utc_text
from lockstep.resources.lake.store.paths import LakePath
from lockstep.streams import file_errors


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Write a page about the last run of each source, or one about the run or the span
    that was named. A page is made from the ledger alone: MySQL and the lake may be
    down."""
    from lockstep.assets.run_page import page_path, render_page, store_page

    span = _span_of(arguments)
    sources = context.sources(arguments.source)
    if arguments.output or arguments.run or span:
        sources = (context.one_source(arguments.source),)
    answers: dict[str, tuple[int, dict[str, Any]]] = {}
    now = datetime.now(UTC)
    lake = context.settings.lake_path().absolute()
    with context.adapters() as adapters:
        for source in sources:
            ledger, name = adapters.ledger(), source.name
            try:
                report = (
                    report_of_run(ledger, name, arguments.run, now)
                    if span is None
                    else report_of_span(ledger, name, span, now)
                )
            except SpanRefused as error:
                if len(sources) == 1:
                    raise
                answers[name] = context.report_error(name, error)
                continue
            default_path = page_path(context.settings.state_folder, name, report.title)
            path = Path(arguments.output).absolute() if arguments.output else default_path
            with file_errors("The page", path, "--output"):
                if path == default_path:
                    store_page(path, render_page(report, lake))
                else:  # In a folder that is not Lockstep's, no old pages are deleted.
                    path.write_text(render_page(report, lake), encoding="utf-8")
            answers[name] = exits.DONE, {**_report_values(report, lake), "page": path}
            context.say(*_report_lines(report, path))
    return Outcome.of_sources(answers)


def _span_of(arguments: argparse.Namespace) -> Span | None:
    """Return the span from `--from` to `--to`; None if neither was given."""
    since, until = arguments.from_, arguments.to
    if since is None and until is None:
        return None
    if arguments.run is not None:
        raise UsageError(
            "A page is about a run or about a span, not about both.",
            hint="leave RUN out, or --from and --to",
        )
    return Span(
        place_argument(arguments, "--from", "earliest" if since is None else since),
        place_argument(arguments, "--to", "latest" if until is None else until),
    )


def _report_lines(report: SpanReport, path: Path) -> Iterator[str]:
    counts = report.counts
    transactions = sum(batch.transactions for batch in report.batches)
    yield (
        f"{report.source}: {report.title}: {pluralize(transactions, 'transaction')}, "
        f"+{counts.inserted:,} ~{counts.updated:,} -{counts.deleted:,} rows of "
        f"{pluralize(len(report.totals), 'table')}"
    )
    first, last = report.batches[0], report.batches[-1]
    end = f" to {_place_text(last.end)}" if last.end is not None else ""
    yield f"  the whole of {batch_words(first.id, last.id)}, from {_place_text(first.start)}{end}"
    if report.request_counts is not None:
        yield f"  requests to the store: {report.request_counts}"
    if report.version_set is not None:
        yield from (f"  {line}" for line in report.version_set.lines_on_gaps())
    yield f"  the page: {path}"


def _place_text(position: Position) -> str:
    committed = position.committed_at
    return f"{position.at}, {utc_text(committed)}" if committed else str(position.at)


_CHANGE_KEYS: Final = (
    "event.table as table, event.kind as change, event.place as place, committed_at, "
    "event.reason as reason, statement, effects"
)
_WRITE_KEYS: Final = (
    "intent.table as table, intent.first_batch as first_batch, intent.last_batch as last_batch, "
    "delta_version, intended_at, settled_at, reason"
)


def _report_values(report: SpanReport, lake: LakePath) -> dict[str, Any]:
    rows_by_batch: dict[int, list[CapturedRows]] = {batch.id: [] for batch in report.batches}
    for rows in report.captured_rows:
        if rows.batch in rows_by_batch:
            rows_by_batch[rows.batch].append(rows)
    return {
        **attributes(report, "title as about, created_at"),
        "batches": [_batch_values(batch, rows_by_batch[batch.id]) for batch in report.batches],
        "tables": {
            total.table: {
                **attributes(total.counts, "inserted, updated, deleted"),
                **attributes(
                    total,
                    "rows_read as read, size_bytes as bytes, "
                    "last_write.delta_version as delta_version",
                ),
            }
            for total in report.totals
        },
        "structures": [attributes(change, _CHANGE_KEYS) for change in report.structure_changes],
        "writes": [attributes(write, _WRITE_KEYS) for write in report.writes],
        "stopped": report.stopped_tables,
        "proofs": proof_values(report.proofs, report.created_at),
        "versions": report.version_set and version_set_values(report.version_set, lake),
    }


def _batch_values(batch: Batch, captured_rows: Sequence[CapturedRows]) -> dict[str, Any]:
    return {
        **attributes(batch, "id as batch, run_id as run, state, start, end"),
        **attributes(batch, "transactions, log_bytes as bytes, requests"),
        "rows": sum(rows.counts.total for rows in captured_rows),
        "read": sum(rows.rows_read for rows in captured_rows),
        **attributes(batch, "created_at, captured_at, merged_at, acknowledged_at"),
    }
