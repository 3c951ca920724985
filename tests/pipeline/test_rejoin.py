"""How a table comes back: what it lacks, and how far the log reaches, decide together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from pipeline.errors import Remedy
from pipeline.position import Coordinates
from pipeline.runs.rejoin import (
    Besides,
    LogSpan,
    Rejoin,
    only_the_source,
    rejoin,
)
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableCondition, TableOrder, TableState

ORDERS = TableName("shop", "orders")
AT = Coordinates.parse("binlog.000001:40")
LOG = LogSpan(cast("Any", None), cast("Any", None), None, AT)
QUARANTINED = TableState(
    ORDERS, TableCondition.QUARANTINED, 1, "m", "c", "a reason", "a hint", "there", 1
)


def order(kind: OrderKind = OrderKind.RELEASE) -> TableOrder:
    return TableOrder(1, ORDERS, kind, "ada", "", datetime.now(UTC), None)


@pytest.mark.parametrize(
    ("remedy", "besides"),
    [
        (Remedy.CATCH_UP, Rejoin()),
        (Remedy.BACKFILL, Rejoin(Besides.BACKFILL, "a reason")),
        (
            Remedy.REWRITE_MIRROR,
            Rejoin(Besides.READ_AGAIN, "its mirror refused a write: a reason"),
        ),
    ],
)
@pytest.mark.parametrize("reach", [None, LOG])
def test_what_a_table_lacks_is_added_to_what_the_log_has(
    remedy: Remedy, besides: Rejoin, reach: LogSpan | None
) -> None:
    state = replace(QUARANTINED, remedy=remedy)
    assert only_the_source(order(), state, goes_on=True) is None
    assert rejoin(order(), state, reach, None) == replace(besides, span=reach)
    purged = Rejoin(Besides.READ_AGAIN, "it was purged")
    assert rejoin(order(), state, "it was purged", None) == purged


@pytest.mark.parametrize("remedy", [Remedy.RESNAPSHOT, Remedy.RELEASED_RESNAPSHOT])
def test_the_log_is_not_asked_for_what_only_the_source_has(remedy: Remedy) -> None:
    state = replace(QUARANTINED, remedy=remedy)
    assert only_the_source(order(), state, goes_on=True) == Rejoin(Besides.READ_AGAIN, "a reason")


@pytest.mark.parametrize(
    ("kind", "goes_on", "enough"),
    [
        (OrderKind.RELEASE, True, True),
        (OrderKind.RELEASE, False, False),
        (OrderKind.RELOAD, True, False),
    ],
)
def test_new_columns_are_enough_only_where_the_rest_goes_on(
    kind: OrderKind, goes_on: bool, enough: bool
) -> None:
    state = replace(QUARANTINED, remedy=Remedy.BACKFILL)
    found = only_the_source(order(kind), state, goes_on=goes_on)
    assert found == (None if enough else Rejoin(Besides.READ_AGAIN, "a reason"))


def test_a_lost_mirror_or_a_dropped_table_is_read_again() -> None:
    lost = replace(QUARANTINED, mirror_generation=2, mirror_version=None, remedy=Remedy.CATCH_UP)
    dropped = replace(QUARANTINED, condition=TableCondition.DROPPED, remedy=None)
    for state in (lost, dropped):
        assert only_the_source(order(), state, goes_on=True) == Rejoin(
            Besides.READ_AGAIN, "a reason"
        )


def test_a_reload_without_a_whole_changelog_says_whose_wish_it_was_and_why() -> None:
    state = replace(QUARANTINED, remedy=Remedy.CATCH_UP)
    found = rejoin(order(OrderKind.RELOAD), state, None, "it has a gap")
    assert found == Rejoin(Besides.READ_AGAIN, "ada has it reloaded, and it has a gap")


def test_a_mirror_that_begins_anew_is_read_again() -> None:
    state = replace(QUARANTINED, generation=2, mirror_version=None, remedy=Remedy.CATCH_UP)
    found = rejoin(order(), state, LOG, None)
    assert found == Rejoin(Besides.READ_AGAIN, "it gets a new mirror: a reason", LOG)
