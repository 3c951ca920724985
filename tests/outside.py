"""The outside of the product, as those tests see it that judge from there: what commands carry out.

Belongs here: one name for each, whatever module has it. A function that takes or gives something
else from now on is adapted here, and the tests stay as they are. Does not: a source to do it with
(`tests.positions.follower`), whole commands (`tests.e2e.project`).
"""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.recovery import RecoveryCase as RecoveryCase
from lockstep.pipeline.run.acknowledge import acknowledge as acknowledge
from lockstep.pipeline.run.agreement import lake_logs
from lockstep.pipeline.run.agreement.changelog_files import correct_changelogs as correct_changelogs
from lockstep.pipeline.run.agreement.claim import claim_error as claim_error
from lockstep.pipeline.run.agreement.lake_logs import foreign_mirrors as foreign_mirrors
from lockstep.pipeline.run.capture import capture as capture
from lockstep.pipeline.run.context import RunPorts as RunPorts
from lockstep.pipeline.run.merge import merge as merge
from lockstep.pipeline.run.orders import OrderRequest as OrderRequest
from lockstep.pipeline.run.orders import give_order as give_order
from lockstep.pipeline.run.orders import give_reload as give_reload
from lockstep.pipeline.run.orders import plan_reload as plan_reload
from lockstep.pipeline.run.orders import plan_repairs as plan_repairs
from lockstep.pipeline.run.progress import SilentProgress as SilentProgress
from lockstep.pipeline.run.progress import StepProgress as StepProgress
from lockstep.pipeline.run.proof.verify_rows import verify as verify
from lockstep.pipeline.run.proof.verify_sample import verify_sample as verify_sample
from lockstep.pipeline.run.publish import publish as publish
from lockstep.pipeline.run.recovery.recover import RECOVERY_KIND as RECOVERY_KIND
from lockstep.pipeline.run.recovery.recover import RecoveryOutcome as RecoveryOutcome
from lockstep.pipeline.run.recovery.recover import RunToUndo as RunToUndo
from lockstep.pipeline.run.recovery.recover import declare_undone as declare_undone
from lockstep.pipeline.run.recovery.recover import plan_recovery as plan_recovery
from lockstep.pipeline.run.recovery.recover import recover as recover
from lockstep.pipeline.run.recovery.recover import run_to_undo as run_to_undo
from lockstep.pipeline.run.replay.replay import ReplayReport as ReplayReport
from lockstep.pipeline.run.replay.replay import replay as replay
from lockstep.pipeline.run.reports import VerifyReport as VerifyReport
from lockstep.pipeline.run.status.plan import make_plan as make_plan
from lockstep.pipeline.run.upkeep import delete_changes as delete_changes
from lockstep.pipeline.run.upkeep import plan_changes as plan_changes
from lockstep.pipeline.run.write.origin import (
    earliest_readable_version as earliest_readable_version,
)
from lockstep.pipeline.run.write.origin import newest_readable_version as newest_readable_version
from lockstep.pipeline.supply import FromChangelog, RowsFromServer
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.table import TableName


def coming_back(ports: RunPorts) -> tuple[list[TableName], dict[TableName, str]]:
    """The stopped tables that the next run makes from their changelogs, and those that it reads
    from the source, with the reason."""
    plans = make_plan(ports).table_plans
    return list(plans.tables_supplied(FromChangelog)), dict(plans.tables_supplied(RowsFromServer))


def tables_to_quarantine(ports: RunPorts) -> list[StoppedTable]:
    """The tables that the next run stops because of what somebody else committed."""
    return lake_logs.tables_to_quarantine(ports, lake_logs.changed_changelogs(ports))


def changelogs_with_moved_rows(ports: RunPorts) -> list[StoppedTable]:
    """The changelogs whose rows somebody else moved to other files."""
    return lake_logs.changelogs_with_moved_rows(ports, lake_logs.changed_changelogs(ports))


def repair(ports: RunPorts, lease: Lease, report: VerifyReport) -> tuple[TableName, ...]:
    """The tables that differ, of which the next run reads all rows."""
    whole = replace(report, tables=tuple(replace(table, where=None) for table in report.tables))
    repairs = plan_repairs(ports, whole, "somebody")
    return tuple(give_reload(ports, lease, one).table for one in repairs)
