"""`lockstep plan`: what the next run would do; writes nothing."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import place_argument
from pipeline.errors import LockstepError

if TYPE_CHECKING:
    from pipeline.places import Place
    from resources.adapters import Adapters


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """The exit code is the one that a run would give; one source's trouble stops no other."""
    from resources.adapters import Adapters

    sources = context.sources(arguments.source)
    until = place_argument(arguments.until, "--until", "plan") if arguments.until else None
    payload: dict[str, Any] = {}
    codes = []
    with Adapters(context.settings, on_warning=context.note) as adapters:
        for source in sources:
            code, told = _plan(adapters, context, source.name, until)
            codes.append(code)
            payload[source.name] = {**told, "exit_code": code}
    return Outcome(exits.most_serious(codes), {"sources": payload})


def _plan(
    adapters: Adapters, context: CommandContext, source: str, until: Place | None
) -> tuple[int, dict[str, Any]]:
    from lockstep.plan_report import plan_json, show_plan
    from lockstep.report import refused
    from pipeline.runs.inspecting.plan import make_plan

    try:
        with context.watch(source) as progress:
            work = adapters.workplace(source, progress)
            work = replace(work, source=replace(work.source, until=until))
            plan = make_plan(work)
    except LockstepError as error:
        return refused(context, source, error)
    show_plan(context, source, plan)
    if plan.refusal is not None:
        return plan.refusal.recovery.exit_code, plan_json(plan)
    quarantined = plan.quarantined or (plan.reading is not None and plan.reading.quarantined)
    return (exits.QUARANTINED if quarantined else exits.DONE), plan_json(plan)
