"""`lockstep run`: the job that a schedule runs, executed here."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.desk import Desk, Outcome
from lockstep.grammar import place_argument

if TYPE_CHECKING:
    from assets.sessions import RunRecord


def perform(arguments: argparse.Namespace, desk: Desk) -> Outcome:
    """One bounded run of a source, or of each in turn; a failed one stops no other."""
    from resources.site import Site

    sources = desk.sources(arguments.source)
    until = place_argument(arguments.until, "--until") if arguments.until else None
    with Site(desk.settings, on_warning=desk.note) as site:
        for source in sources:
            site.server(source.name)  # a missing secret is told before anything is made
        site.warm()  # the ledger opens while Dagster is imported
        from assets.execute import execute
        from assets.home import dagster_home, open_instance
        from lockstep.progress import LiveProgress

        home = dagster_home(desk.settings.state_folder)
        payload: dict[str, Any] = {}
        codes = []
        with open_instance(home) as instance:
            for source in sources:
                with LiveProgress(desk.console, source.name) as progress:
                    record = execute(
                        desk.settings,
                        source.name,
                        site=site,
                        instance=instance,
                        watcher=progress,
                        until=until,
                    )
                code, told = _told(record, desk)
                codes.append(code)
                payload[source.name] = {**told, "exit_code": code}
    return Outcome(exits.most_serious(codes), {"sources": payload})


def _told(record: RunRecord, desk: Desk) -> tuple[int, dict[str, Any]]:
    """What a record means: exit code and JSON; people are told here too."""
    from lockstep import report

    told = report.run_json(record, str(desk.settings.lake_path()))
    if record.error is not None:
        desk.note(f"{record.source}: {record.error.message}\nhint: {record.error.hint}")
        told["error"] = report.error_json(record.error)
        return record.error.recovery.exit_code, told
    if record.defect is not None:
        raise record.defect.with_traceback(record.defect.__traceback__)
    report.show_run(desk, record)
    aside = record.acknowledged is not None and record.acknowledged.set_aside
    return (exits.SET_ASIDE if aside else exits.DONE), told
