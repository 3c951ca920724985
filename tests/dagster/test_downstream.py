"""An asset behind the mirrors is made anew of what was acknowledged, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from demo.revenue import downstream_definitions
from lockstep.assets.names import SourceNames
from tests.dagster.place import Stand, source_of
from tests.fix_mysql import MySqlStand

NAMES = SourceNames("shop")


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    with source_of(mysql, database, tmp_path, "create table a (id int primary key)") as made:
        yield made


def test_it_fires_for_a_version_set_and_not_for_a_merge(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """Not when rows are captured and merged, nor after a run that found nothing; its sensor is on
    from the start."""
    behind = downstream_definitions(stand.adapters.settings.path)
    (sensor,) = behind.sensors or ()
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    cursor = None

    def asked() -> int:
        nonlocal cursor
        defs = dg.Definitions.merge(stand.definitions(), behind)
        found = dg.evaluate_automation_conditions(
            defs,
            stand.instance,
            asset_selection=dg.AssetSelection.groups("downstream"),
            cursor=cursor,
        )
        cursor = found.cursor
        return found.total_requested

    assert asked() == 0
    mysql.execute("insert into a values (1)", database=database)
    stand.run()
    assert asked() == 1
    stand.run()
    assert asked() == 0, "nothing was acknowledged"
    mysql.execute("insert into a values (2)", database=database)
    assert stand.click((), NAMES.captured_key, NAMES.merged_key).success
    assert asked() == 0, "merged is not acknowledged"
    assert stand.click((), NAMES.acknowledged_key).success
    assert asked() == 1
