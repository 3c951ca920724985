"""`lockstep replay`: a span of the past once more; the live position stays where it is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument
from lockstep.holder import holder
from lockstep.table_names import table_name

if TYPE_CHECKING:
    from pipeline.replay.spans import Span
    from pipeline.runs.context import Workplace
    from pipeline.runs.replaying.report import ReplayReport
    from pipeline.table import TableName


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """4 where `--compare` finds a difference, or a damaged file could not be replaced; 6 where
    tables could not be compared."""
    from lockstep.replay_report import exit_code, replay_json, show_replay
    from pipeline.replay.spans import Span
    from resources.adapters import Adapters

    if arguments.show_values and not arguments.compare:
        raise UsageError(
            "--show-values is for --compare: a replay that writes tells of no rows.",
            hint="add --compare, or leave --show-values out",
        )
    since = place_argument(arguments.since, "--from", "replay")
    until = place_argument(arguments.until, "--to", "replay")
    only = frozenset(map(table_name, arguments.tables)) or None
    sources = context.sources(arguments.source)
    if len(sources) > 1:
        raise UsageError(
            f"A span belongs to one source, and there are {len(sources)}.",
            hint="say which one: --source NAME",
        )
    [source] = sources
    with (
        Adapters(context.settings, on_warning=context.note) as adapters,
        context.watch(source.name) as progress,
    ):
        work = adapters.workplace(source.name, progress)
        done = _done(arguments, context, work, Span(since, until), only)
    show_replay(context, source.name, done, planned=arguments.dry_run)
    code = exits.DONE if arguments.dry_run else exit_code(done)
    return Outcome(code, {"source": source.name, **replay_json(done)})


def _done(
    arguments: argparse.Namespace,
    context: CommandContext,
    work: Workplace,
    span: Span,
    only: frozenset[TableName] | None,
) -> ReplayReport:
    from pipeline.runs.replaying.replay import plan_replay, replay
    from pipeline.runs.replaying.waiting import lock_when_free

    if arguments.dry_run:
        return plan_replay(work, span, only)
    with lock_when_free(work.ledger, work.source.name, holder("replay"), context.note) as lease:
        compares, shows = arguments.compare, arguments.show_values
        return replay(work, lease, span, only, commit=not compares, show_values=shows)
