"""Which session of Spark a write gets: few rows are not worth compiling for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lockstep.pipeline.mirror.strategy import Size
from lockstep.resources.lake.delta.versions import files_size, table_size
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.spark.spark import (
    FEW_ROWS_SETTINGS,
    exclusive_session,
    session_settings,
)
from tests.lake.conftest import Lake, disk_lake
from tests.lake.made import a_write

_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


def test_sessions_are_used_again_each_for_its_size(spark: SparkProcess) -> None:
    """Two at a time are two; one that saw an error is not given again."""
    taken = partial(exclusive_session, spark)
    with taken() as many, taken(few_rows=True) as few, taken() as other:
        assert many is not other
        assert (
            few.conf.get(_BROADCAST) == FEW_ROWS_SETTINGS[_BROADCAST] != many.conf.get(_BROADCAST)
        )
    with taken(few_rows=True) as again:
        assert again is few
    with pytest.raises(ZeroDivisionError), taken(few_rows=True) as again:
        assert again is few
        raise ZeroDivisionError
    with taken(few_rows=True) as new:
        assert new is not few


def test_the_user_has_the_last_word(spark: SparkProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the [spark] table sets is not switched off for few rows."""
    monkeypatch.setattr(spark, "_user_settings", {_BROADCAST: "1"})
    idle = spark.idle_sessions(few_rows=True)
    idle.clear()
    with exclusive_session(spark, few_rows=True) as session:
        assert session.conf.get(_BROADCAST) == spark.session().conf.get(_BROADCAST)
    idle.clear()


def test_what_holds_for_a_commit_gives_way_again(spark: SparkProcess) -> None:
    """To what the user set; it ends where nobody had set it, also behind an error."""
    session, theirs, ours = spark.session(), "spark.lockstep.theirs", "spark.lockstep.ours"
    session.conf.set(theirs, "before")
    with pytest.raises(ZeroDivisionError), session_settings(session, {theirs: "now", ours: "now"}):
        assert {session.conf.get(key) for key in (theirs, ours)} == {"now"}
        raise ZeroDivisionError
    assert (session.conf.get(theirs), session.conf.get(ours, None)) == ("before", None)
    session.conf.unset(theirs)


def test_files_say_how_much_they_hold(disk: Lake, folder: Path, tmp_path: Path) -> None:
    """The mirror's own, all of them; and staged ones, unless one is damaged."""
    for number in (1, 2):
        rows = [{"id": 10 * number + one} for one in range(3)]
        disk.mirrors.write(a_write(disk.mirrors, number, "append", rows))
    mirror = folder / "shop/shop/people"
    size = sum(file.stat().st_size for file in mirror.glob("*.parquet"))
    assert table_size(DeltaTable(mirror)) == Size(6, size)
    two, broken = tmp_path / "two.parquet", tmp_path / "broken.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), two)
    broken.write_bytes(b"PAR1, and then nothing")
    assert files_size([two] * 2) == Size(4, 2 * two.stat().st_size)
    assert files_size([two, broken]) is None


def test_a_write_goes_by_both(
    disk: Lake, tmp_path: Path, spark: SparkProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows into a mirror of many are not few."""
    asked: list[bool] = []

    def told(
        spark: SparkProcess, *, few_rows: bool = False
    ) -> AbstractContextManager[SparkSession]:
        asked.append(few_rows)
        return exclusive_session(spark, few_rows=few_rows)

    monkeypatch.setattr("lockstep.resources.lake.mirror.mirror.exclusive_session", told)
    mirrors = disk_lake(tmp_path, spark, Size(3, 1 << 20)).mirrors
    mirrors.write(a_write(mirrors, 1, "append", [{"id": 1}, {"id": 2}]))
    mirrors.write(a_write(mirrors, 2, "append", [{"id": 3}]))
    mirrors.write(a_write(mirrors, 3, "append", [{"id": 4}]))
    assert asked == [True, True, False]
