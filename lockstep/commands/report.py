"""`lockstep report`: one page about a run or a span of the past."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.commands.status import proof_values
from lockstep.commands.versions import version_set_values
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument
from lockstep.report import counted
from pipeline.errors import ConfigurationError
from pipeline.json_values import parts

if TYPE_CHECKING:
    from pipeline.batch import Batch
    from pipeline.replay.spans import Span
    from pipeline.runs.inspecting.span_report import SpanReport
    from resources.lake.paths import LakePath


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """The ledger alone is asked; the page is the one thing that is written."""
    from assets.report.kept import page_path
    from assets.report.page import page
    from pipeline.runs.inspecting.span_report import report_of_run, report_of_span

    span = _span(arguments)
    sources = context.sources(arguments.source)
    if arguments.output or arguments.run or span:
        sources = (context.one_source(arguments.source),)
    payload: dict[str, Any] = {}
    now, lake = datetime.now(UTC), context.settings.lake_path().absolute()
    with context.adapters() as adapters:
        for source in sources:
            ledger, name = adapters.ledger(), source.name
            report = (
                report_of_run(ledger, name, arguments.run, now)
                if span is None
                else report_of_span(ledger, name, span, now)
            )
            kept = page_path(context.settings.state_folder, name, report.about)
            path = Path(arguments.output).absolute() if arguments.output else kept
            _write(path, page(report, lake), kept=path == kept)
            payload[name] = {**_values(report, lake), "page": path}
            context.say(*_lines(report, path))
    return Outcome(exits.DONE, {"sources": payload})


def _span(arguments: argparse.Namespace) -> Span | None:
    """None for a run."""
    from pipeline.replay.spans import Span

    if arguments.since is None and arguments.until is None:
        return None
    if arguments.run is not None:
        raise UsageError("A run, or a span: not both.", hint="leave RUN out, or --from and --to")
    return Span(
        place_argument(arguments.since or "earliest", "--from", "report"),
        place_argument(arguments.until or "latest", "--to", "report"),
    )


def _write(path: Path, text: str, *, kept: bool) -> None:
    from assets.report.kept import keep_page

    try:
        if kept:
            keep_page(path, text)
        else:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"The page cannot be written to {path}: {error.strerror or error}.",
            hint="name another file: --output FILE",
        ) from error


def _lines(report: SpanReport, page: Path) -> Iterator[str]:
    counts = report.counts
    transactions = sum(batch.transactions for batch in report.batches)
    yield (
        f"{report.source}: {report.about}: {counted(transactions, 'transaction')}, "
        f"+{counts.inserted:,} ~{counts.updated:,} -{counts.deleted:,} rows of "
        f"{counted(len(report.totals), 'table')}"
    )
    if report.requests is not None:
        yield f"  requests to the store: {report.requests}"
    yield f"  the page: {page}"


def _values(report: SpanReport, lake: LakePath) -> dict[str, Any]:
    return {
        **parts(report, "about", "made_at"),
        "batches": [_batch_values(batch, report) for batch in report.batches],
        "tables": {
            total.table: {
                **parts(total.counts, "inserted", "updated", "deleted"),
                "read": total.read,
                "bytes": total.size,
                "delta_version": total.written and total.written.delta_version,
            }
            for total in report.totals
        },
        "structures": [
            {
                "table": change.event.table,
                "change": change.event.kind,
                "position": change.event.place,
                "committed_at": change.committed_at,
                "reason": change.event.reason,
                **parts(change, "statement", "effects"),
            }
            for change in report.changes
        ],
        "writes": [
            {
                **parts(write.intent, "table", "first_batch", "last_batch"),
                "delta_version": write.delta_version,
                "begun_at": write.intended_at,
                "settled_at": write.settled_at,
                "reason": write.reason,
            }
            for write in report.writes
        ],
        "quarantined": report.stopped,
        "proofs": proof_values(report.proofs, report.made_at),
        "versions": report.shown and version_set_values(report.shown, lake),
    }


def _batch_values(batch: Batch, report: SpanReport) -> dict[str, Any]:
    rows = [row for row in report.rows if row.batch == batch.id]
    return {
        "batch": batch.id,
        "run": batch.dagster_run,
        **parts(batch, "state", "start", "end", "transactions"),
        "bytes": batch.log_bytes,
        "requests": batch.requests,
        "rows": sum(row.counts.total for row in rows),
        "read": sum(row.read for row in rows),
        **parts(batch, "created_at", "captured_at", "merged_at", "acknowledged_at"),
    }
