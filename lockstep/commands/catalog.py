"""`lockstep catalog`: what of the lake is registered, what differs, and putting it right."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from pipeline.errors import ConfigurationError
from pipeline.json_values import to_json
from pipeline.runs.registering.register import CatalogReport, Deed, differences, register
from resources.holders import holder

_WOULD: Final = {
    Deed.REGISTERED: "not registered",
    Deed.CHANGED: "not as it should be",
    Deed.RENAMED: "registered under another name",
    Deed.DROPPED: "still registered, and the table is gone",
}


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """0 when every entry is as it should be at the end."""
    payload: dict[str, Any] = {}
    codes = []
    with context.adapters() as adapters:
        registry = adapters.registry()
        if registry is None:
            raise ConfigurationError(
                "Mirrors are not registered in a catalog: lockstep.toml has no [catalog].",
                hint="write one, as docs/deploy.md#mirrors-in-a-catalog says",
            )
        for source in context.sources(arguments.source):
            with context.watch(source.name) as progress:
                work = adapters.workplace(source.name, progress)
                if arguments.yes:
                    with work.ledger.lock(source.name, holder("catalog"), None) as lease:
                        report = register(work, lease, registry, every=True)
                else:
                    report = differences(work, registry)
            for line in report_lines(report, carried_out=arguments.yes):
                context.say(f"{source.name}: {line}")
            codes.append(exit_code(report, carried_out=arguments.yes))
            payload[source.name] = {**to_json(report), "exit_code": codes[-1]}
    told = {"changed": bool(arguments.yes), "sources": payload}
    return Outcome(exits.most_serious(codes), told)


def report_lines(report: CatalogReport, *, carried_out: bool) -> Iterator[str]:
    """What was done or would be, what was left and why, then how many are right."""
    for one in report.done:
        told = one.deed.value if carried_out else _WOULD[one.deed]
        yield f"{one.table} as {one.name}: {told}"
    for left in report.left:
        yield f"{left.table} as {left.name}: left out: {left.reason}"
        yield f"  hint: {left.hint}"
    if report.trouble is not None:
        yield f"{report.trouble.message}"
        yield f"  hint: {report.trouble.hint}"
        return
    right = "1 entry is as it" if report.fine == 1 else f"{report.fine:,} entries are as they"
    yield f"{report.catalog}: {right} should be"
    if report.done and not carried_out:
        yield "nothing was changed; `lockstep catalog --yes` puts it right"


def exit_code(report: CatalogReport, *, carried_out: bool) -> int:
    """Differences where something is not as it should be when the command ends."""
    if report.trouble is not None:
        return report.trouble.recovery.exit_code
    differs = bool(report.left or (report.done and not carried_out))
    return exits.DIFFERENCES if differs else exits.DONE
