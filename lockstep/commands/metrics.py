"""`lockstep metrics`: how sources stand, as numbers for a monitoring system."""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from pipeline.errors import ConfigurationError, SpanRefused

if TYPE_CHECKING:
    from lockstep.metrics import SourceFigures
    from pipeline.ports.ledger import Ledger
    from pipeline.runs.context import Workplace
    from pipeline.runs.inspecting.span_report import SpanReport
    from resources.adapters import Adapters
    from resources.config import SourceSettings


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """On standard output, or in a file that is replaced as a whole. A source that is in trouble
    is a number, and no error; without the ledger nothing is told."""
    from lockstep.metrics import metrics_text
    from resources.adapters import Adapters

    with Adapters(context.settings, on_warning=context.note) as adapters:
        figures = [
            _figures(adapters, source, files=arguments.files)
            for source in context.sources(arguments.source)
        ]
    text = metrics_text(figures, datetime.now(UTC))
    if arguments.output is not None:
        _replace(Path(arguments.output), text)
    else:
        context.say(text.rstrip("\n"))
    return Outcome(exits.DONE, {"metrics": text})


def _figures(adapters: Adapters, source: SourceSettings, *, files: bool) -> SourceFigures:
    from lockstep.commands.status import workplace_or_why
    from lockstep.metrics import SourceFigures
    from pipeline.errors import LockstepError
    from pipeline.preflight import pause_from_now
    from pipeline.runs.inspecting.status import stand
    from pipeline.standing.verdict import verdict

    now, ledger, name = datetime.now(UTC), adapters.ledger(), source.name
    work = workplace_or_why(adapters, name)
    standing = stand(name, source.plan().patterns, ledger, work, now)
    judged = verdict(standing, now, pause_from_now(source.schedule))
    states = ledger.table_states(name)
    tables = Counter(state.condition for state in states.values())
    count = None if isinstance(work, LockstepError) or not files else _files(work)
    return SourceFigures(standing, judged, _last(ledger, name, now), tables, count)


def _last(ledger: Ledger, source: str, now: datetime) -> SpanReport | None:
    from pipeline.runs.inspecting.span_report import report_of_run

    try:
        return report_of_run(ledger, source, None, now)
    except SpanRefused:
        return None


def _files(work: Workplace) -> int:
    """Of all mirrors, from their logs: some milliseconds for each."""
    count = 0
    for state in work.ledger.table_states(work.source.name).values():
        version = work.mirrors.version(state.mirror)
        size = None if version is None else work.mirrors.size(state.mirror, version)
        count += 0 if size is None else size.files
    return count


def _replace(path: Path, text: str) -> None:
    """Whoever collects it sees the old text or the new one."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"The metrics cannot be written to {path}: {error.strerror or error}.",
            hint="name another file: --output FILE",
        ) from error
