"""Bounded runs of sources, executed here by Dagster's job, and what their records tell a person.

Belongs here: what `lockstep run` shares with commands that begin runs. Does not: the job
(`assets`), which sources are meant (`lockstep.commands`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assets.sessions import RunRecord
    from pipeline.places import Place
    from pipeline.source_plan import PartOrder
    from resources.adapters import Adapters


def run_sources(
    sources: Sequence[str],
    adapters: Adapters,
    until: Place | None,
    context: CommandContext,
    part: PartOrder | None = None,
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Each in turn, by the same Dagster instance, ledger and JVM. `part`: rows that are read from
    the source again, of a table of the only one."""
    adapters.warm(sources)  # while Dagster is imported
    from assets.execute import execute
    from assets.home import dagster_home, open_instance

    outcomes = {}
    with open_instance(dagster_home(context.settings.state_folder)) as instance:
        for source in sources:
            with context.watch(source) as progress:
                record = execute(
                    context.settings,
                    source,
                    adapters=adapters,
                    instance=instance,
                    watcher=progress,
                    until=until,
                    part=part,
                )
            context.leave_if_asked()
            code, told = outcomes[source] = _told(record, context)
            reached = {name: told.get(name) for name in ("acknowledged", "transactions", "seconds")}
            context.log.tell("info", "run ended", source=source, exit_code=code, **reached)
    return outcomes


def _told(record: RunRecord, context: CommandContext) -> tuple[int, dict[str, Any]]:
    """What a record means: exit code and JSON; people are told here too."""
    from lockstep import catalog_report, report, verify_report

    told = {
        **report.run_json(record, str(context.settings.lake_path())),
        "catalog": catalog_report.catalog_json(record.registered),
    }
    if record.error is not None:
        if record.acknowledged is not None:
            report.show_run(context, record)
        code, refusal = report.refused(context, record.source, record.error)
        return code, {**told, **refusal}
    if record.defect is not None:
        raise record.defect.with_traceback(record.defect.__traceback__)
    report.show_run(context, record)
    if record.registered is not None:
        for line in catalog_report.catalog_lines(record.registered):
            context.say(line)
    done = record.acknowledged
    quarantined = exits.QUARANTINED if done is not None and done.quarantined else exits.DONE
    if done is None or done.sampled is None:
        return quarantined, told
    verify_report.show_sampled(context, record.source, done.sampled)
    compared = exits.DIFFERENCES if done.sampled.differs else exits.DONE
    told["compared"] = verify_report.verify_json(done.sampled)["tables"]
    return exits.most_serious([quarantined, compared]), told
