"""`lockstep adopt`: a ledger goes on with a source's folder in the lake, or with mirrors that
somebody else loaded; once, recorded."""

from __future__ import annotations

import argparse

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import author, reason, table_name
from pipeline.json_values import parts
from pipeline.runs.comparing.verify_rows import Found
from pipeline.runs.context import Unwatched
from pipeline.runs.recovering.adopt import HandOver, adopt, adopt_tables, compare_tables, foresee
from pipeline.runs.reports import TableDifference
from resources.holders import holder


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Without a reason it tells what it would do, and writes nothing."""
    why, who = reason(arguments), author(arguments)
    source = context.one_source(arguments.source).name
    if arguments.tables:
        return _tables(arguments, context, source, who, why)

    with context.adapters() as adapters:
        work = adapters.workplace(source, Unwatched())
        if why:
            with work.ledger.lock(source, holder("adopt"), None) as lease:
                done = adopt(work, lease, author=who, reason=why)
        else:
            done = foresee(work)
    context.say(*_lines(source, done, recorded=f"{who}: {why}" if why else None))
    told = {
        **parts(done, "disagreement, moves, moved_to"),
        "read_again": dict(done.rereads),
        "changelogs": {f: parts(one, "removed, added, lost") for f, one in done.restated},
    }
    return Outcome(exits.DONE, {"source": source, "done": bool(why), **told})


def _tables(
    arguments: argparse.Namespace, context: CommandContext, source: str, who: str, why: str
) -> Outcome:
    """All of them, or none; 4 where one differs or cannot be compared."""
    tables = [table_name(text) for text in arguments.tables]
    with context.work_on(source) as (_, work):
        if why:
            with work.ledger.lock(source, holder("adopt"), None) as lease:
                done = adopt_tables(work, lease, tables, author=who, reason=why)
        else:
            done = compare_tables(work, tables)
    taken = bool(why) and done.equal
    told = {str(table): _told(comparison) for table, comparison in sorted(done.found.items())}
    for table, (_, line) in told.items():
        context.say(f"{source}: {table}: {line}")
    if taken:
        context.say(f"  recorded ({who}: {why}); next: `lockstep run --source {source}`")
    elif done.equal:
        context.say("  with --reason they are taken over")
    else:
        context.say(
            "  none is taken over; `lockstep reload TABLE --reason …` rewrites a mirror from the "
            "source"
        )
    code = exits.DONE if done.equal else exits.DIFFERENCES
    found = {table: {"equal": equal, "told": line} for table, (equal, line) in told.items()}
    return Outcome(code, {"source": source, "done": taken, "tables": found})


def _told(comparison: Found) -> tuple[bool, str]:
    if not isinstance(comparison, TableDifference):
        return False, f"{comparison.reason}; {comparison.hint}"
    if comparison.equal:
        return True, f"{comparison.source_rows} rows, equal to MySQL at {comparison.at or '?'}"
    return False, (
        f"{comparison.only_in_source} rows only in MySQL, "
        f"{comparison.only_in_lake} only in the lake, "
        f"{comparison.different} different: {', '.join(comparison.examples)}"
    )


def _lines(source: str, done: HandOver, recorded: str | None) -> list[str]:
    told = [f"{source}: {done.disagreement or 'the ledger and the lake agree'}"]
    will = "it" if recorded else "with --reason it"
    if done.moves:
        told.append(
            f"  {will} moves the folder {source} of the lake to _before, with everything in it and "
            "all versions of its mirrors; the next run is a first run"
        )
    for table, why in done.rereads:
        told.append(f"  the next run reads {table} from the source: {why}")
    if done.rereads:
        told.append(
            "  versions of these tables that are gone from the lake, or belong to another history, "
            f"can no longer be read (`lockstep versions --list --source {source}` lists the places)"
        )
    for folder, one in done.restated:
        told.append(
            f"  {folder}: {one.removed} files that this ledger does not have are no longer listed, "
            f"{one.added} are listed again, {len(one.lost)} are lost"
        )
    if not recorded and done.disagreement and not done.moves:
        told.append(
            "  with --reason, changelogs list only what this ledger acknowledged, and the log is "
            "read from where the ledger ends"
        )
    told += [f"  now at {folder}" for folder in done.moved_to]
    if recorded:
        told.append(f"  recorded ({recorded}); the folder {source} belongs to this ledger")
        told.append(f"  next: `lockstep run --source {source}`")
    return told
