"""What is computed from a version set is what MySQL had then."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest

import lockstep
from demo import shop
from demo.revenue import revenue, revenue_asset
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

TOTAL = "select sum(quantity * price) from shop.order_lines join shop.orders on id = order_id"


def test_the_demos_revenue_never_sees_half_a_transaction(
    mysql: MySqlStand, tmp_path: Path, warm: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While people shop, each version set has an order for each line; behind them, its sum is
    MySQL's, and the asset says which set that was of."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    start = head(mysql)
    mysql.execute("drop database if exists shop")
    with mysql.connect() as connection:
        shop.create(connection)
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=["shop.*"], start=start, warm=warm
    )
    config = project.folder / "lockstep.toml"
    sums = []
    with shop.Traffic(lambda: mysql.connect("shop"), 3, 1, pause=0.005):
        for _ in range(2):
            project.run("run")
            sums.append(sum(revenue(lockstep.read_at("shop", config=config)).values()))
    project.run("run")
    (total,) = mysql.rows(TOTAL)[0]
    made = dg.materialize([revenue_asset(config)])
    (event,) = made.get_asset_materialization_events()
    told = event.step_materialization_data.materialization.metadata
    assert sum(revenue(lockstep.read_at("shop", config=config)).values()) == total
    assert told["revenue"].value == float(Decimal(total))
    assert len({*sums, total}) == 3
    mysql.execute("drop database shop")
