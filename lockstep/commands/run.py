"""`lockstep run`: the job that a schedule runs, executed here."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.desk import Desk, Outcome
from lockstep.grammar import place_argument
from pipeline.errors import LockstepError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assets.sessions import RunRecord
    from pipeline.places import Place
    from resources.site import Site


def perform(arguments: argparse.Namespace, desk: Desk) -> Outcome:
    """One bounded run of a source, or of each in turn; a failed one stops no other."""
    from lockstep import report
    from resources.site import Site

    sources = desk.sources(arguments.source)
    until = place_argument(arguments.until, "--until") if arguments.until else None
    outcomes: dict[str, tuple[int, dict[str, Any]]] = {}
    with Site(desk.settings, on_warning=desk.note) as site:
        for source in sources:  # a missing secret is told before anything is made
            try:
                site.server(source.name)
            except LockstepError as error:
                outcomes[source.name] = report.refused(desk, source.name, error)
        ready = [source.name for source in sources if source.name not in outcomes]
        if ready:
            outcomes |= run_sources(ready, site, until, desk)
    return Outcome(
        exits.most_serious(code for code, _ in outcomes.values()),
        {"sources": {name: {**told, "exit_code": code} for name, (code, told) in outcomes.items()}},
    )


def run_sources(
    sources: Sequence[str], site: Site, until: Place | None, desk: Desk
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Each in turn, by the same Dagster instance, ledger and JVM."""
    site.warm(sources)  # while Dagster is imported
    from assets.execute import execute
    from assets.home import dagster_home, open_instance
    from lockstep.progress import LiveProgress

    outcomes = {}
    with open_instance(dagster_home(desk.settings.state_folder)) as instance:
        for source in sources:
            with LiveProgress(desk.console, source) as progress:
                record = execute(
                    desk.settings,
                    source,
                    site=site,
                    instance=instance,
                    watcher=progress,
                    until=until,
                )
            desk.leave_if_asked()
            outcomes[source] = _told(record, desk)
    return outcomes


def _told(record: RunRecord, desk: Desk) -> tuple[int, dict[str, Any]]:
    """What a record means: exit code and JSON; people are told here too."""
    from lockstep import report, verify_report

    told = report.run_json(record, str(desk.settings.lake_path()))
    if record.error is not None:
        code, refusal = report.refused(desk, record.source, record.error)
        return code, {**told, **refusal}
    if record.defect is not None:
        raise record.defect.with_traceback(record.defect.__traceback__)
    report.show_run(desk, record)
    done = record.acknowledged
    aside = exits.SET_ASIDE if done is not None and done.set_aside else exits.DONE
    if done is None or done.sampled is None:
        return aside, told
    verify_report.show_sampled(desk, record.source, done.sampled)
    compared = exits.DIFFERENCES if done.sampled.differs else exits.DONE
    told["compared"] = verify_report.verify_json(done.sampled)["tables"]
    return exits.most_serious([aside, compared]), told
