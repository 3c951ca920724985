"""The outside of the product, as those tests see it that judge from there: what commands carry out.

Belongs here: one name for each, whatever module has it. A function that takes or gives something
else from now on is adapted here, and the tests stay as they are. Does not: a source to do it with
(`tests.positions.follower`), whole commands (`tests.e2e.project`).
"""

from __future__ import annotations

from pipeline.recovery.decide import Case as Case
from pipeline.runs.acknowledge import acknowledge as acknowledge
from pipeline.runs.agreement.changelog_files import correct_changelogs as correct_changelogs
from pipeline.runs.agreement.claim import disagreement as disagreement
from pipeline.runs.agreement.lake_logs import changed_mirrors as changed_mirrors
from pipeline.runs.agreement.lake_logs import foreign_mirrors as foreign_mirrors
from pipeline.runs.agreement.lake_logs import moved_changelogs as moved_changelogs
from pipeline.runs.capture import capture as capture
from pipeline.runs.comparing.verify_outcome import orders_to_read as orders_to_read
from pipeline.runs.comparing.verify_outcome import repair as repair
from pipeline.runs.comparing.verify_rows import verify as verify
from pipeline.runs.comparing.verify_sample import verify_sample as verify_sample
from pipeline.runs.context import StepProgress as StepProgress
from pipeline.runs.context import Unwatched as Unwatched
from pipeline.runs.context import Workplace as Workplace
from pipeline.runs.inspecting.plan import make_plan as make_plan
from pipeline.runs.inspecting.table_commands import OrderRequest as OrderRequest
from pipeline.runs.inspecting.table_commands import give_order as give_order
from pipeline.runs.inspecting.table_commands import give_reload as give_reload
from pipeline.runs.inspecting.table_commands import plan_reload as plan_reload
from pipeline.runs.merge import merge as merge
from pipeline.runs.publish import publish as publish
from pipeline.runs.recovering.recover import KIND as KIND
from pipeline.runs.recovering.recover import RecoveryOutcome as RecoveryOutcome
from pipeline.runs.recovering.recover import plan_recovery as plan_recovery
from pipeline.runs.recovering.recover import recover as recover
from pipeline.runs.replaying.replay import ReplayReport as ReplayReport
from pipeline.runs.replaying.replay import replay as replay
from pipeline.runs.reports import VerifyReport as VerifyReport
from pipeline.runs.upkeeping.changes import delete_changes as delete_changes
from pipeline.runs.upkeeping.changes import plan_changes as plan_changes
from pipeline.supply.plan import FromChangelog, RowsRead
from pipeline.table import TableName


def coming_back(work: Workplace) -> tuple[list[TableName], dict[TableName, str]]:
    """The stopped tables that the next run makes from their changelogs, and those that it reads
    from the source, with the reason."""
    plans = make_plan(work).tables
    return list(plans.supplied(FromChangelog)), dict(plans.supplied(RowsRead))
