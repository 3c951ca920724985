"""How a table stands: what matters most is told, whatever else is known of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import Extent, TableCondition, TableState
from lockstep.pipeline.proof.proven import ComparisonRecord
from lockstep.pipeline.status.tables import TableHealth, table_standings
from lockstep.pipeline.upkeep.clearing import Tightening, UnclearedValues
from lockstep.pipeline.values.errors import Need, StoppedBy
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TablePatterns

NOW = datetime(2026, 11, 1, tzinfo=UTC)
TABLE = TableName("shop", "orders")
STATE = TableState(TABLE, TableCondition.FOLLOWING, 1, "m", "c", "a reason", "a hint", "a place")
STOPPED = replace(STATE, condition=TableCondition.STOPPED)
PROOF = ComparisonRecord(TABLE, True, NOW, 3, None, None)
EXTENT = Extent(TABLE, Coordinates.parse("binlog.000007:4"))
GAP = Gap(1, 1, NOW, "ann", "why", (str(TABLE),), "binlog.000007:4", "binlog.000009:4")
CLEAR = UnclearedValues(1, Tightening(TABLE, 3, ("note",)), NOW)

STATES = {
    TableHealth.STOPPED_BY_SYSTEM: replace(STOPPED, stopped_by=StoppedBy.SYSTEM),
    TableHealth.STOPPED_BY_PERSON: replace(STOPPED, stopped_by=StoppedBy.PERSON),
    TableHealth.STOPPED_BY_RUN: replace(STOPPED, stopped_by=StoppedBy.RUN),
    TableHealth.DROPPED: replace(STATE, condition=TableCondition.DROPPED),
    TableHealth.READING: replace(STATE, need=Need.ROWS),
    TableHealth.FOLLOWING: STATE,
}


@given(st.sampled_from(list(STATES)), *[st.booleans()] * 4)
def test_the_worst_is_told(
    health: TableHealth, differs: bool, gap: bool, part: bool, clear: bool
) -> None:
    """Of all that holds at once, the first in the order of `TableHealth`; it follows its source
    only where nothing does; and whatever is the matter has a cure."""
    found = table_standings(
        {TABLE: STATES[health]},
        TablePatterns(("*.*",)),
        extents=[EXTENT] if part else [],
        gaps=[GAP] if gap else [],
        proofs=[PROOF] if differs else [],
        uncleared_values=[CLEAR] if clear else [],
    )[TABLE]
    holds = {health}
    holds |= {TableHealth.DIFFERS} if differs else set()
    holds |= {TableHealth.GAP} if gap else set()
    holds |= {TableHealth.PARTIAL} if part else set()
    holds |= {TableHealth.IN_PLAINTEXT} if clear else set()
    assert found.health is min(holds, key=list(TableHealth).index)
    assert found.follows == (holds == {TableHealth.FOLLOWING}) == (not found.hint)


def test_of_a_table_that_is_left_out_nothing_is_wanted() -> None:
    """Whatever happened to it: a cure would be refused."""
    for state in STATES.values():
        found = table_standings(
            {TABLE: state}, TablePatterns(("*.*",), (str(TABLE),)), proofs=[PROOF]
        )
        assert (found[TABLE].health, found[TABLE].hint) == (TableHealth.LEFT_OUT, "")
        assert not found[TABLE].follows


def test_people_read_these_words() -> None:
    """On a table's page in Dagster; the list's digests begin with them."""
    assert [health.value for health in TableHealth] == [
        "left out",
        "stopped by Lockstep",
        "differs",
        "stopped by a person",
        "stopped by the last run",
        "dropped",
        "following, reading rows",
        "gap",
        "partial",
        "in plaintext",
        "unseen",
        "following",
    ]


@pytest.mark.parametrize(
    ("tightening", "sentence"),
    [
        (Tightening(TABLE, 3, ("a",)), "a is in plaintext"),
        (Tightening(TABLE, 3, ("a", "b")), "a, b are in plaintext"),
        (Tightening(TABLE, 3, is_rehashed=True), "hashes made with another key are"),
        (
            Tightening(TABLE, 3, ("a",), is_rehashed=True),
            "a in plaintext and hashes made with another key are",
        ),
    ],
)
def test_former_hashes_are_not_called_plaintext(tightening: Tightening, sentence: str) -> None:
    note = UnclearedValues(1, tightening, NOW)
    assert note.sentence == f"{sentence} in what was captured up to batch 3"
