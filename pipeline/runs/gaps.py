"""Which tables a gap may have touched.

In what nobody reads there may be rows of any table: of those that the lake has, of those
that the history of structures knows, and of tables whose first rows lie there, which the
server alone can name.
"""

from __future__ import annotations

from pipeline.decisions import Continuity
from pipeline.runs.context import Workplace
from pipeline.start.question import Refusal, Start
from pipeline.table_state import TableCondition


def tables_touched(work: Workplace, decision: Start | Refusal) -> tuple[str, ...]:
    """Captured tables that the decision's gap may have touched, sorted; none without a gap,
    the patterns where there is no such table."""
    if isinstance(decision, Refusal) or decision.continuity is not Continuity.GAP:
        return ()
    source, patterns = work.source.name, work.source.patterns
    tables = {*work.server.engines()}
    tables |= {schema.table for schema in work.ledger.schemas_at(source)}
    tables |= {
        table
        for table, state in work.ledger.table_states(source).items()
        if state.condition is not TableCondition.DROPPED
    }
    return (
        tuple(sorted(str(table) for table in tables if patterns.matches(table))) or patterns.include
    )
