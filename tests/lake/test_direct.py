"""Few rows, committed without a query: what is in such a mirror, and what is left to Spark."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.changes.evolution import LOCAL, MAPPING, WIDENING
from pipeline.changes.strategy import FEW, NOTHING
from pipeline.errors import MirrorRefused
from pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    Fill,
    MirrorStep,
    MirrorWrite,
    RenameColumn,
    Replace,
    SetProperties,
    WidenColumn,
)
from pipeline.ports.mirrors import Mirrors
from resources.lake.altering import stamped
from resources.lake.checksums import files_listed
from resources.lake.pin import head_of
from resources.lake.session import SparkProcess
from tests.lake.conftest import Lake, disk_lake, memory_lake
from tests.lake.made import PEOPLE, a_target, a_write, content, delete, own_part, update

MIRROR = "shop/shop/people"


def _replaced(mirrors: Mirrors, number: int, rows: list[dict[str, Any]]) -> MirrorWrite:
    staged = mirrors.stage("snapshot", pa.Table.from_pylist(rows, schema=PEOPLE))
    return Replace(a_target(number), ("id",), (own_part((staged,), PEOPLE),))


def test_no_query_is_made(disk: Lake, folder: Path, spark: SparkProcess) -> None:
    """Not to make a mirror, nor to append, to merge, to replace and to fill columns that came. Each
    commit is one of Delta's: in its order, with its moment, its transaction and its checksum."""
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
    steps = (AddColumns(pa.schema([name])), Fill((("called", pa.scalar("x")),)))
    mirrors.evolve(MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=7, after=5)
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
        {"id": 5, "name": "e", "called": "x"}
    ]
    logs = [folder / MIRROR / "_delta_log" / f"{number:020d}" for number in range(9)]
    commits = [_actions(log.with_suffix(".json")) for log in logs]
    recorded = [one["txn"]["version"] for one in commits if "txn" in one]
    assert recorded == [1, 2, 3, 4, 5, 6, 7, 8]
    moments = [one["commitInfo"]["inCommitTimestamp"] for one in commits]
    assert moments == sorted(set(moments))
    for log, commit in zip(logs, commits, strict=True):
        told = json.loads(log.with_suffix(".crc").read_text())
        assert told["txnId"] == commit["commitInfo"]["txnId"]


def test_files_are_listed_by_the_log(disk: Lake, folder: Path, spark: SparkProcess) -> None:
    """As Delta lists them, whether a checksum file tells them or commits do: some of each, behind
    rows that were marked as deleted, columns that came, and a version that was restored."""
    few, many = disk.mirrors, disk_lake(folder.parent, spark, NOTHING).mirrors
    rows = [{"id": number, "name": "a"} for number in range(9)]
    few.write(a_write(few, 1, "append", rows))
    many.write(a_write(many, 2, "merge", [update(id=3, name="b")]))
    many.write(a_write(many, 3, "merge", [update(id=4, name="c")]))
    steps = (AddColumns(pa.schema([_M])),)
    few.evolve(MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=4, after=2)
    wide = pa.schema([*PEOPLE, _M])
    few.write(a_write(few, 5, "append", [{"id": 9, "name": "d", "m": 1}], schema=wide))
    few.restore(MIRROR, 2, "as it was")
    few.write(a_write(few, 6, "append", [{"id": 9, "name": "e"}]))
    few.write(a_write(few, 7, "merge", [delete(id=9)]))
    for version in range(8):
        reader = spark.session().read.format("delta").option("versionAsOf", version)
        found = files_listed(folder / MIRROR, version)
        assert found is not None
        shown = [Path(file).name for file in reader.load(str(folder / MIRROR)).inputFiles()]
        assert sorted(one["path"] for one in found) == sorted(shown)


def _actions(commit: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in commit.read_text().splitlines():
        found |= json.loads(line)
    return found


_M = pa.field("m", pa.int16())
STEPS: tuple[tuple[MirrorStep, ...], ...] = (
    (
        SetProperties((LOCAL, MAPPING)),
        RenameColumn("name", "called"),
        DropColumns(("n",)),
        AddColumns(pa.schema([_M])),
    ),
    (SetProperties((WIDENING,)), WidenColumn("m", pa.int64())),
    (),
)
SCHEMAS = tuple(
    pa.schema([("id", pa.int64()), *columns])
    for columns in (
        (("n", pa.int32()), ("name", pa.string())),
        (("called", pa.string()), ("m", pa.int16())),
        (("called", pa.string()), ("m", pa.int64())),
    )
)


def test_both_ways_in_turn_are_one(tmp_path: Path, spark: SparkProcess) -> None:
    """A mirror that Spark's queries and commits without one write in turn, over columns that come,
    go, are renamed and widened, and rows that were marked in a deletion vector, is what the one in
    memory is."""
    chance = Random(2)
    memory = memory_lake().mirrors
    ways = [disk_lake(tmp_path, spark, few).mirrors for few in (NOTHING, FEW)]
    number = 0
    for schema, steps in zip(SCHEMAS, STEPS, strict=True):
        for mode in ("append", "merge", "merge"):
            number += 1
            ids = range(10 * number, 10 * number + 6)
            kinds = ["insert"] if mode == "append" else ["insert", "delete", "update_postimage"]
            rows = [
                {
                    "_change_type": chance.choice(kinds),
                    **{name: chance.choice([None, _VALUES[name]]) for name in schema.names},
                    "id": one if mode == "append" else chance.choice([one - 10, one - 20, one]),
                }
                for one in ids
            ]
            unique = list({row["id"]: row for row in rows}.values())
            for mirrors in (memory, ways[number % 2]):
                mirrors.write(a_write(mirrors, number, mode, unique, schema=schema))
        assert _content(ways[1], schema) == _content(memory, schema)
        number += 1
        for mirrors in (memory, ways[1]):
            after = mirrors.version(MIRROR)
            assert after is not None
            mirrors.evolve(MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=number, after=after)


_VALUES = {"id": 0, "n": -1, "name": "é", "called": "ü", "m": 77}


def _content(mirrors: Mirrors, schema: pa.Schema) -> list[Any]:
    version = mirrors.version(MIRROR)
    assert version is not None
    return list(content(mirrors, MIRROR, schema, version))


def test_rules_about_rows_are_left_to_spark(disk: Lake, folder: Path, spark: SparkProcess) -> None:
    """Somebody gave the mirror a constraint: what breaks it is refused, what does not is merged."""
    mirrors = disk.mirrors
    mirrors.write(a_write(mirrors, 1, "append", [{"id": 1, "name": "a"}]))
    session, path = spark.session(), folder / MIRROR
    with stamped(session, head_of(path).pin()):
        session.sql(f"alter table delta.`{path}` add constraint small check (id < 100)")
    mirrors.write(a_write(mirrors, 2, "merge", [{"id": 2, "name": "b"}]))
    with pytest.raises(MirrorRefused):
        mirrors.write(a_write(mirrors, 3, "merge", [{"id": 100, "name": "c"}]))
    assert _content(mirrors, PEOPLE) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_rows_marked_as_deleted_stay_so_where_few_are_left(
    tmp_path: Path, spark: SparkProcess
) -> None:
    """A mirror that was written as one of many, read by a query for few: delta-rs reads no widened
    columns."""
    many, few = (disk_lake(tmp_path, spark, size).mirrors for size in (NOTHING, FEW))
    narrow = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    wide = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    rows = [{"id": number, "n": number} for number in range(3)]
    many.write(a_write(many, 1, "append", rows, schema=narrow))
    steps = (SetProperties((WIDENING,)), WidenColumn("n", pa.int64()))
    many.evolve(MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=2, after=0)
    many.write(a_write(many, 3, "merge", [update(id=1, n=1 << 40)], schema=wide))
    assert _content(few, wide) == [rows[0], {"id": 1, "n": 1 << 40}, rows[2]]
