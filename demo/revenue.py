"""An example of an asset that is built from mirrors: the shop's revenue by day.

It is built again when the data version of the asset `acknowledged` changes. It reads all tables at
one place in the log, so that orders and their lines belong together, whatever runs write meanwhile.
Lockstep itself does not need it.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import dagster as dg

import lockstep
from lockstep.assets.definitions import config_path, definitions_of
from lockstep.assets.names import SourceNames
from lockstep.reading import VersionSet

ACKNOWLEDGED = SourceNames("shop").acknowledged_key


def revenue(tables: VersionSet) -> dict[date, Decimal]:
    """Return the value of the orders of each day. Raise ValueError for a line without its order:
    the tables would show half a transaction."""
    orders = tables["shop.orders"].arrow()
    placed_at = dict(zip(orders["id"].to_pylist(), orders["placed_at"].to_pylist(), strict=True))
    by_day: dict[date, Decimal] = {}
    for line in tables["shop.order_lines"].arrow().to_pylist():
        if line["order_id"] not in placed_at:
            raise ValueError(f"order {line['order_id']} has a line, and does not exist")
        day = placed_at[line["order_id"]].date()
        by_day[day] = by_day.get(day, Decimal()) + line["quantity"] * line["price"]
    return dict(sorted(by_day.items()))


def revenue_asset(config: Path) -> dg.AssetsDefinition:
    """Return the asset. It is built when a run has acknowledged something, not when a run has only
    merged it, because its trigger is the data version of `acknowledged`."""

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
        by_day = revenue(tables)
        rows = "\n".join(f"| {day} | {value:,.2f} |" for day, value in by_day.items())
        return dg.MaterializeResult(
            metadata={
                "revenue": float(sum(by_day.values())),
                "by day": dg.MetadataValue.md(f"| day | revenue |\n|---|--:|\n{rows}"),
                "version set": str(tables.position),
            },
            data_version=dg.DataVersion(str(tables.batch)),
        )

    return revenue_by_day


def downstream_definitions(config: Path) -> dg.Definitions:
    """Return the asset with its sensor, which runs by default."""
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
    """The code location of `demo/workspace.yaml`: Lockstep's definitions and the example asset."""
    config = config_path()
    executor = dg.Definitions(executor=dg.in_process_executor)
    return dg.Definitions.merge(executor, definitions_of(config), downstream_definitions(config))
