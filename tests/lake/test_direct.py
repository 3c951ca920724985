"""Few rows, committed without a query: what is in such a mirror, and what is left to Spark."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.mirror.evolution import NTZ_PROPERTY
from lockstep.pipeline.mirror.strategy import FEW, Size
from lockstep.pipeline.ports.mirror_writes import AddColumns, MirrorWrite, Replace, SetProperties
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.errors import MirrorRefused
from lockstep.resources.lake.delta.checksums import add_actions_at
from lockstep.resources.lake.delta.delta_log import actions, commit_file
from lockstep.resources.lake.delta.pin import head_of
from lockstep.resources.lake.delta.versions import needs_spark
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.spark.spark import session_settings
from tests.lake.both_ways import BothWays
from tests.lake.conftest import Lake, disk_lake, lake_at
from tests.lake.made import PEOPLE, a_target, a_write, content, delete, own_part, update

MIRROR = "shop/shop/people"


def _replaced(mirrors: Mirrors, number: int, rows: list[dict[str, Any]]) -> MirrorWrite:
    staged = mirrors.stage("snapshot", pa.Table.from_pylist(rows, schema=PEOPLE))
    return Replace(a_target(number), ("id",), (own_part((staged,), PEOPLE),))


def test_rows_that_are_large_once_unpacked_are_left_to_spark(
    disk: Lake, tmp_path: Path, spark: SparkProcess
) -> None:
    """Their files may be a thousandth as large: this process would have all of them in memory. Not
    those of the mirror for an append, which does not read them."""
    rows = [{"id": number, "name": f"{number}" + "x" * (8 << 20)} for number in range(12)]
    written = tmp_path / "packed.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=PEOPLE), written, compression="zstd")
    assert written.stat().st_size < 1 << 20
    write = Replace(a_target(1), ("id",), (own_part((str(written),), PEOPLE),))
    assert disk.mirrors.write(write).scale_reason == "Spark is set for few rows"
    # Spark packed the mirror's file to more than what counts as few by default.
    mirrors = disk_lake(tmp_path, spark, Size(FEW.rows, 64 << 20)).mirrors
    appended = a_write(mirrors, 2, "append", [{"id": 98, "name": "small"}])
    merged = a_write(mirrors, 3, "merge", [{"id": 99, "name": "small"}])
    assert [mirrors.write(one).scale_reason for one in (appended, merged)] == [
        "the rows are few, so they were put together in memory",
        "Spark is set for few rows",
    ]
    names = {row["id"]: row["name"] for row in content(disk.mirrors, MIRROR, PEOPLE, 2)}
    assert names == {**{row["id"]: row["name"] for row in rows}, 98: "small", 99: "small"}


def test_the_size_of_rows_is_looked_at_before_there_are_a_hundred(
    disk: Lake, spark: SparkProcess
) -> None:
    """A hundred rows of 8 MB are larger than a small heap."""
    hadoop = spark.session().sparkContext._jsc.sc().hadoopConfiguration()
    hadoop.setInt("parquet.block.size", 1 << 20)
    try:
        rows = [{"id": number, "name": os.urandom(100_000).hex()} for number in range(90)]
        disk.mirrors.write(_replaced(disk.mirrors, 1, rows))
    finally:
        hadoop.unset("parquet.block.size")
    files = map(pq.ParquetFile, DeltaTable(f"{disk.folder}/{MIRROR}").file_uris())
    assert sum(file.num_row_groups for file in files) > 3


def test_no_query_is_made(disk: Lake, folder: Path, spark: SparkProcess) -> None:
    """Not to make a mirror, nor to append, to merge, to replace and to set properties. Each commit
    is one of Delta's: in its order, with its moment, its transaction and its checksum."""
    mirrors = disk.mirrors
    queries = spark.session().sparkContext.statusTracker().getJobIdsForGroup
    name = pa.field("called", pa.string())
    other = pa.schema([PEOPLE.field("id"), name])
    writes = (
        a_write(mirrors, 1, "append", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]),
        a_write(mirrors, 2, "append", [{"id": 3, "name": None}]),
        a_write(mirrors, 3, "merge", [update(id=1, name="new"), delete(id=2), {"id": 4}]),
        _replaced(mirrors, 4, [{"id": 9, "name": "z"}]),
        _replaced(mirrors, 5, []),
        a_write(mirrors, 6, "merge", [{"id": 5, "name": "e"}]),
    )
    asked = []
    for write in writes:
        before = set(queries())
        mirrors.write(write)
        asked.append(len({*queries()} - before))
    before = set(queries())
    steps = (AddColumns(pa.schema([name])), SetProperties((NTZ_PROPERTY,)))
    mirrors.evolve(MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=7, after_version=5)
    mirrors.write(Replace(a_target(8, other), ("id",), (own_part((), other),)))
    assert {*queries()} == before
    assert asked == [0, 0, 0, 0, 0, 0]
    assert content(mirrors, MIRROR, PEOPLE, 2) == [
        {"id": 1, "name": "new"},
        {"id": 3, "name": None},
        {"id": 4, "name": None},
    ]
    assert content(mirrors, MIRROR, PEOPLE, 4) == []
    assert content(mirrors, MIRROR, PEOPLE, 5) == [{"id": 5, "name": "e"}]
    assert content(mirrors, MIRROR, pa.schema([*PEOPLE, name]), 7) == [
        {"id": 5, "name": "e", "called": None}
    ]
    logs = [commit_file(folder / MIRROR, number) for number in range(9)]
    commits = [dict(actions(log.read_text())) for log in logs]
    recorded = [one["txn"]["version"] for one in commits if "txn" in one]
    assert recorded == [1, 2, 3, 4, 5, 6, 8]
    moments = [one["commitInfo"]["inCommitTimestamp"] for one in commits]
    assert moments == sorted(set(moments))
    for version, (log, commit) in enumerate(zip(logs, commits, strict=True)):
        told = json.loads(log.with_suffix(".crc").read_text())
        assert told["numFiles"] == len(DeltaTable(folder / MIRROR, version=version).file_uris())
        assert told["txnId"] == commit["commitInfo"]["txnId"]


def test_both_ways_in_turn_are_one(
    both_ways: BothWays, tmp_path: Path, spark: SparkProcess
) -> None:
    """A mirror that Spark's queries and commits without one write in turn, over columns that come,
    go, are renamed and widened, and rows that were marked in a deletion vector, is what the one in
    memory is. Its log lists the files that delta-rs finds there."""
    mirrors = lake_at(both_ways.lake, tmp_path, spark).mirrors
    newest = mirrors.version(MIRROR)
    assert newest == max(both_ways.shown)
    for version, (schema, rows) in both_ways.shown.items():
        assert content(mirrors, MIRROR, schema, version) == rows
    table = DeltaTable(both_ways.path)
    marked = set()
    for version in range(newest + 1):
        table.load_as_version(version)
        listed = add_actions_at(both_ways.path, version)
        assert listed is not None
        by_delta_rs = pa.table(table.get_add_actions()).column("path").to_pylist()
        assert sorted(one["path"] for one in listed) == sorted(by_delta_rs)
        marked |= {needs_spark(both_ways.path, table) for one in listed if "deletionVector" in one}
    assert marked == {False, True}, "rows marked, before and behind a wider column"


def test_rules_about_rows_are_left_to_spark(disk: Lake, folder: Path, spark: SparkProcess) -> None:
    """Somebody gave the mirror a constraint: what breaks it is refused."""
    mirrors = disk.mirrors
    mirrors.write(a_write(mirrors, 1, "append", [{"id": 1, "name": "a"}]))
    session, path = spark.session(), folder / MIRROR
    with session_settings(session, head_of(path).pin_settings()):
        session.sql(f"alter table delta.`{path}` add constraint small check (id < 100)")
    with pytest.raises(MirrorRefused):
        mirrors.write(a_write(mirrors, 2, "append", [{"id": 100, "name": "c"}]))
    assert mirrors.version(MIRROR) == 1


# -- Delta's checksum files: Spark believes those of its commits, and no others get that far


OLD_ROWS = [{"id": number, "name": "old"} for number in (1, 2, 3)]


def test_a_log_that_was_cut_is_read_itself(tmp_path: Path, spark: SparkProcess) -> None:
    """Version 1 of another history left its checksum file, which lists other files."""
    mirrors = disk_lake(tmp_path, spark).mirrors
    mirrors.write(a_write(mirrors, 1, "append", OLD_ROWS, mirror="a"))
    shutil.copytree(tmp_path / "lake" / "a", tmp_path / "lake" / "b")
    mirrors.write(a_write(mirrors, 2, "merge", [update(id=1, name="a")], mirror="a"))
    mirrors.write(a_write(mirrors, 3, "merge", [delete(id=2)], mirror="b"))
    mine, other = (tmp_path / "lake" / name / "_delta_log" / f"{1:020}.crc" for name in "ba")
    assert mine.read_bytes() != other.read_bytes()
    shutil.copy(other, mine)
    cut = shutil.copytree(tmp_path / "lake" / "b", tmp_path / "lake" / "c")
    assert head_of(cut).version == 1
    assert not (cut / "_delta_log" / mine.name).exists()
    mirrors.write(a_write(mirrors, 4, "merge", [update(id=3, name="c")], mirror="c"))
    assert content(mirrors, "c", PEOPLE, 2) == [
        {"id": 1, "name": "old"},
        {"id": 3, "name": "c"},
    ]


def test_a_damaged_one_is_removed(tmp_path: Path, spark: SparkProcess) -> None:
    """Whatever the damage; the next commit does without it."""
    mirrors = disk_lake(tmp_path, spark).mirrors
    mirrors.write(a_write(mirrors, 1, "append", OLD_ROWS, mirror="a"))
    checksum = tmp_path / "lake" / "a" / "_delta_log" / f"{0:020}.crc"
    assert checksum.exists()
    head_of(tmp_path / "lake" / "a")
    assert checksum.exists()
    for damage in (b"", b"{}", b"[]", b"\xff", b'{"txnId": 7}'):
        checksum.write_bytes(damage)
        head_of(tmp_path / "lake" / "a")
        assert not checksum.exists(), damage
    checksum.write_bytes(b"{}")
    mirrors.write(a_write(mirrors, 2, "merge", [delete(id=1)], mirror="a"))
    assert not checksum.exists()
    assert content(mirrors, "a", PEOPLE, 1) == OLD_ROWS[1:]
