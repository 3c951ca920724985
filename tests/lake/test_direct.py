"""Few rows, committed without a query: what is in such a mirror, and what is left to Spark."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

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
from resources.lake.scan import needs_spark
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
    for version, (log, commit) in enumerate(zip(logs, commits, strict=True)):
        told = json.loads(log.with_suffix(".crc").read_text())
        assert told["numFiles"] == len(DeltaTable(folder / MIRROR, version=version).file_uris())
        assert told["txnId"] == commit["commitInfo"]["txnId"]


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
    memory is. Its log lists the files that delta-rs finds there."""
    chance = Random(2)
    memory = memory_lake().mirrors
    ways = [disk_lake(tmp_path, spark, few).mirrors for few in (FEW, NOTHING)]
    number = 0
    for schema, steps in zip(SCHEMAS, STEPS, strict=True):
        for way, mode in enumerate(("append", "merge", "merge")):
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
            for mirrors in (memory, ways[way % 2]):
                mirrors.write(a_write(mirrors, number, mode, unique, schema=schema))
            assert _content(ways[0], schema) == _content(memory, schema)
        number += 1
        for mirrors in (memory, ways[0]):
            after = mirrors.version(MIRROR)
            assert after is not None
            mirrors.evolve(MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=number, after=after)
    path, newest = tmp_path / "lake" / MIRROR, ways[0].version(MIRROR)
    assert newest is not None
    table = DeltaTable(path)
    marked = set()
    for version in range(newest + 1):
        table.load_as_version(version)
        listed = files_listed(path, version)
        assert listed is not None
        by_delta_rs = pa.table(table.get_add_actions()).column("path").to_pylist()
        assert sorted(one["path"] for one in listed) == sorted(by_delta_rs)
        marked |= {needs_spark(path, table) for one in listed if "deletionVector" in one}
    assert marked == {False, True}, "rows marked, before and behind a wider column"


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
        mirrors.write(a_write(mirrors, 3, "append", [{"id": 100, "name": "c"}]))
    assert _content(mirrors, PEOPLE) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
