"""What was read along and what was read later are equal in tables of Delta too."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.lake.session import SparkProcess
from tests.fix_mysql import MySqlStand
from tests.lake.conftest import disk_lake
from tests.mysql.reading import server
from tests.schema.mixed_log import minimal_log
from tests.schema.reader import Reader
from tests.schema.two_readers import wrong


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 102))
def test_later_is_as_along(
    mysql: MySqlStand, seed: int, spark: SparkProcess, tmp_path: Path
) -> None:
    """24 statements of chance between rows, merged by Spark."""
    with minimal_log(mysql) as name:
        along, later = (
            Reader(server(mysql), [f"{name}_*.*"], disk=disk_lake(tmp_path / side, spark))
            for side in ("along", "later")
        )
        found = wrong(mysql, name, seed, along, later, statements=24, every=8)
        assert found == []
