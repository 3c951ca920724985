"""`lockstep status`: where each source stands and what is the matter, server or not."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from pipeline.errors import LockstepError
from pipeline.retries import a_tenth

if TYPE_CHECKING:
    from pipeline.runs.context import Workplace
    from pipeline.runs.registering.gather import CatalogStanding
    from resources.adapters import Adapters


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Exit code 0 if nothing waits for a person or a run. A MySQL that is down is a line, and the
    ledger is told all the same."""
    from lockstep.catalog_report import standing_json, standing_lines
    from lockstep.consumer_report import consumer_pairs, consumers_json
    from lockstep.report import lines
    from lockstep.status_json import status_json
    from lockstep.status_report import exit_code, status_lines
    from lockstep.table_report import inactive, inactive_json, inactive_lines
    from pipeline.preflight import pause_from_now
    from pipeline.runs.inspecting.status import stand
    from pipeline.standing.verdict import verdict
    from resources.adapters import Adapters

    payload: dict[str, Any] = {}
    codes = []
    with Adapters(context.settings, on_warning=context.note) as adapters:
        for source in context.sources(arguments.source):
            now, ledger = datetime.now(UTC), adapters.ledger()
            patterns = source.plan().patterns
            work = workplace_or_why(adapters, source.name)
            standing = stand(source.name, patterns, ledger, work, now)
            states, orders = ledger.table_states(source.name), ledger.open_orders(source.name)
            tables = inactive(states, orders)
            pause = pause_from_now(source.schedule)
            decisions = ledger.decisions(source.name)
            judged, code = verdict(standing, now, pause), exit_code(standing, now, pause)
            catalog = catalog_standing(adapters, source.name)
            consumers = consumers_json(adapters.consumers().consumers(source.name))
            payload[source.name] = {
                **status_json(standing, judged, now, decisions),
                "tables": inactive_json(tables),
                "consumers": consumers,
                "catalog": None if catalog is None else standing_json(catalog),
                "exit_code": code,
            }
            codes.append(code)
            for line in status_lines(standing, judged, now, decisions, inactive_lines(tables)):
                context.say(line)
            if catalog is not None:
                for line in standing_lines(catalog):
                    context.say(line)
            if consumers:
                context.say(lines(consumer_pairs(consumers)))
    return Outcome(exits.most_serious(codes), {"sources": payload})


def catalog_standing(adapters: Adapters, source: str) -> CatalogStanding | None:
    """What the ledger knows of entries; None where mirrors are not registered, or where [catalog]
    is wrong, which `lockstep check` tells of."""
    from pipeline.runs.registering.gather import stand

    try:
        registry = adapters.registry()
    except LockstepError:
        return None
    return None if registry is None else stand(adapters.ledger(), source, registry)


def workplace_or_why(adapters: Adapters, source: str) -> Workplace | LockstepError:
    """What the server is asked through, or why there is none; a missing secret is told, too. Who
    looks waits a tenth as long as a run does for a server's set to catch up with its log."""
    from pipeline.runs.context import Unwatched

    try:
        work = adapters.workplace(source, Unwatched())
    except LockstepError as error:
        return error
    return replace(work, pause=a_tenth)
