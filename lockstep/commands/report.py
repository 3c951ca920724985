"""`lockstep report`: one page about a run or a span of the past."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.replay.spans import Span


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """The ledger alone is asked; the page is the one thing that is written."""
    from assets.report.kept import page_path
    from assets.report.page import page
    from lockstep.span_report import span_report_json, span_report_lines
    from pipeline.runs.inspecting.span_report import report_of_run, report_of_span
    from resources.adapters import Adapters

    span = _span(arguments)
    sources = context.sources(arguments.source)
    if len(sources) > 1 and (arguments.output or arguments.run or span):
        raise UsageError(
            f"That belongs to one source, and there are {len(sources)}.",
            hint="say which one: --source NAME",
        )
    payload: dict[str, Any] = {}
    now, lake = datetime.now(UTC), context.settings.lake_path().absolute()
    with Adapters(context.settings, on_warning=context.note) as adapters:
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
            payload[name] = {**span_report_json(report, lake), "page": str(path)}
            for line in span_report_lines(report, path):
                context.say(line)
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
