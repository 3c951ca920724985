"""`lockstep plan`: what the next run would do; writes nothing."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.desk import Desk, Outcome
from lockstep.grammar import place_argument
from pipeline.errors import LockstepError

if TYPE_CHECKING:
    from pipeline.places import Place
    from resources.site import Site


def perform(arguments: argparse.Namespace, desk: Desk) -> Outcome:
    """The exit code is the one that a run would give; one source's trouble stops no other."""
    from resources.site import Site

    sources = desk.sources(arguments.source)
    until = place_argument(arguments.until, "--until", "plan") if arguments.until else None
    payload: dict[str, Any] = {}
    codes = []
    with Site(desk.settings, on_warning=desk.note) as site:
        for source in sources:
            code, told = _plan(site, desk, source.name, until)
            codes.append(code)
            payload[source.name] = {**told, "exit_code": code}
    return Outcome(exits.most_serious(codes), {"sources": payload})


def _plan(site: Site, desk: Desk, source: str, until: Place | None) -> tuple[int, dict[str, Any]]:
    from lockstep.plan_report import plan_json, show_plan
    from lockstep.progress import LiveProgress
    from lockstep.report import refused
    from pipeline.runs.inspecting.plan import make_plan

    try:
        with LiveProgress(desk.console, source) as progress:
            work = site.workplace(source, progress)
            work = replace(work, source=replace(work.source, until=until))
            plan = make_plan(work)
    except LockstepError as error:
        return refused(desk, source, error)
    show_plan(desk, source, plan)
    if plan.refusal is not None:
        return plan.refusal.recovery.exit_code, plan_json(plan)
    aside = plan.set_aside or (plan.reading is not None and plan.reading.set_aside)
    return (exits.SET_ASIDE if aside else exits.DONE), plan_json(plan)
