"""`lockstep catalog`: show how the entries in a catalog differ from the lake, or
correct them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.run.catalog import CatalogReport, EntryChangeKind, differences, register
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.shown import pluralize
from lockstep.resources.holders import holder_name

_PLANNED_WORDS: Final = {
    EntryChangeKind.REGISTERED: "not registered",
    EntryChangeKind.CHANGED: "not as it should be",
    EntryChangeKind.RENAMED: "registered under another name",
    EntryChangeKind.DROPPED: "still registered, although the table is gone",
}


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Show the differences, or with `--yes` correct them. The exit code is 0 if every
    entry is right when the command ends."""
    answers: dict[str, tuple[int, dict[str, Any]]] = {}
    with context.adapters() as adapters:
        registry = adapters.registry()
        if registry is None:
            raise ConfigurationError(
                "Mirrors are not registered in a catalog: lockstep.toml has no [catalog].",
                hint="add a section [catalog], as docs/deploy.md#mirrors-in-a-catalog says",
            )
        for source in context.sources(arguments.source):
            with context.watch(source.name) as progress:
                ports = adapters.ports(source.name, progress)
                if arguments.yes:
                    with ports.ledger.lock(source.name, holder_name("catalog"), None) as lease:
                        report = register(ports, lease, registry, examine_all=True)
                else:
                    report = differences(ports, registry)
            for line in report_lines(report, is_carried_out=arguments.yes):
                context.say(f"{source.name}: {line}")
            code = exit_code(report, is_carried_out=arguments.yes)
            answers[source.name] = code, to_json(report)
    outcome = Outcome.of_sources(answers)
    return Outcome(outcome.code, {"changed": bool(arguments.yes), **outcome.payload})


def report_lines(report: CatalogReport, *, is_carried_out: bool) -> Iterator[str]:
    """Yield a line for each change, two lines for each entry that was left out, and a
    line with the number of entries that are right. `is_carried_out`: the changes were
    made, not only planned."""
    for change in report.changes:
        words = change.kind.value if is_carried_out else _PLANNED_WORDS[change.kind]
        yield f"{change.table} as {change.name}: {words}"
    for missing in report.missing_entries:
        yield f"{missing.table} as {missing.name}: left out: {missing.reason}"
        yield f"  hint: {missing.hint}"
    if report.trouble is not None:
        yield report.trouble.message
        yield f"  hint: {report.trouble.hint}"
        return
    entries = pluralize(report.correct_count, "entry is as it", "entries are as they")
    yield f"{report.catalog}: {entries} should be"
    if report.changes and not is_carried_out:
        yield "nothing was changed; `lockstep catalog --yes` corrects the entries"


def exit_code(report: CatalogReport, *, is_carried_out: bool) -> int:
    """Return the code of the error that ended the command early, or else the code for
    differences if an entry is still wrong."""
    if report.trouble is not None:
        return report.trouble.recovery.exit_code
    differs = bool(report.missing_entries or (report.changes and not is_carried_out))
    return exits.DIFFERENCES if differs else exits.DONE
