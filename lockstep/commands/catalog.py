"""`lockstep catalog`: what of the lake is registered, what differs, and putting it right."""

from __future__ import annotations

import argparse
from typing import Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.holder import holder


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """0 when every entry is as it should be at the end."""
    from lockstep.catalog_report import catalog_json, exit_code, report_lines
    from pipeline.errors import ConfigurationError
    from pipeline.runs.registering.register import differences, register
    from resources.adapters import Adapters

    payload: dict[str, Any] = {}
    codes = []
    with Adapters(context.settings, on_warning=context.note) as adapters:
        registry = adapters.registry()
        if registry is None:
            raise ConfigurationError(
                "Mirrors are not registered in a catalog: lockstep.toml has no [catalog].",
                hint="write one, as docs/catalogs.md says",
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
            payload[source.name] = {**(catalog_json(report) or {}), "exit_code": codes[-1]}
    told = {"changed": bool(arguments.yes), "sources": payload}
    return Outcome(exits.most_serious(codes), told)
