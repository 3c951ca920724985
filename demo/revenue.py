"""What somebody builds on the mirrors: the shop's revenue by day, of whole transactions.

An example of an asset behind Lockstep's. It is made anew when `acknowledged` has another version
set, and reads the tables at one: orders and their lines are of the same moment, however many runs
write meanwhile. Does not belong here: anything that Lockstep needs.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import dagster as dg

import lockstep
from assets.definitions import config_path, definitions_of
from assets.names import SourceNames
from lockstep.reading import VersionSet

ACKNOWLEDGED = SourceNames("shop").acknowledged


def revenue(tables: VersionSet) -> dict[date, Decimal]:
    """What was ordered each day. ValueError for a line whose order is not there: half a
    transaction."""
    orders = tables["shop.orders"].arrow()
    days = dict(zip(orders["id"].to_pylist(), orders["placed_at"].to_pylist(), strict=True))
    found: dict[date, Decimal] = {}
    for line in tables["shop.order_lines"].arrow().to_pylist():
        if line["order_id"] not in days:
            raise ValueError(f"order {line['order_id']} has a line, and is not there")
        day = days[line["order_id"]].date()
        found[day] = found.get(day, Decimal()) + line["quantity"] * line["price"]
    return dict(sorted(found.items()))


def revenue_asset(config: Path) -> dg.AssetsDefinition:
    """It fires when a run acknowledged something, not when it only merged it: the version set is
    `acknowledged`'s data version."""

    @dg.asset(
        deps=[ACKNOWLEDGED],
        group_name="downstream",
        automation_condition=dg.AutomationCondition.any_deps_match(
            dg.AutomationCondition.data_version_changed()
        ).allow(dg.AssetSelection.assets(ACKNOWLEDGED)),
        description="What was ordered each day, by orders and lines of one moment.",
    )
    def revenue_by_day() -> dg.MaterializeResult[None]:
        tables = lockstep.read_at("shop", config=config)
        found = revenue(tables)
        rows = "\n".join(f"| {day} | {money:,.2f} |" for day, money in found.items())
        return dg.MaterializeResult(
            metadata={
                "revenue": float(sum(found.values())),
                "by day": dg.MetadataValue.md(f"| day | revenue |\n|---|--:|\n{rows}"),
                "version set": str(tables.position),
            },
            data_version=dg.DataVersion(str(tables.batch)),
        )

    return revenue_by_day


def downstream(config: Path) -> dg.Definitions:
    """The asset with its sensor, switched on."""
    return dg.Definitions(
        assets=[revenue_asset(config)],
        sensors=[
            dg.AutomationConditionSensorDefinition(
                "revenue_sensor",
                target=dg.AssetSelection.groups("downstream"),
                default_status=dg.DefaultSensorStatus.RUNNING,
                minimum_interval_seconds=15,
            )
        ],
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What `demo/workspace.yaml` loads: Lockstep's location and the asset behind it."""
    config = config_path()
    own = dg.Definitions(executor=dg.in_process_executor)
    return dg.Definitions.merge(own, definitions_of(config), downstream(config))
