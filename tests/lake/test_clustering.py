"""Liquid clustering of mirrors, from the first write on: what of a mirror's life keeps it, ends it
and brings it back, and who reads such a table."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.mirror.clustering import clustering_columns, unclusterable_names
from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY
from lockstep.pipeline.mirror.strategy import NO_FEW_ROWS
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    Fill,
    MirrorStep,
    MirrorWrite,
    RenameColumn,
    Replace,
    SetProperties,
)
from lockstep.pipeline.upkeep.decide import FileTotal, StepKind, UpkeepStep
from lockstep.pipeline.values.policies import Readers
from lockstep.resources.lake.delta.clustering import clustering_of
from lockstep.resources.lake.delta.delta_log import commits_newest_first
from lockstep.resources.lake.mirror.upkeep import SparkUpkeep
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import Lake, disk_lake
from tests.lake.duck import duck
from tests.lake.made import Row, a_target, a_write, content, own_part

MIRROR = "shop/shop/people"
PEOPLE = pa.schema([("id", pa.int64()), ("country", pa.string()), ("k", pa.int32())])
ROWS: list[Row] = [{"id": n, "country": "de" if n % 2 else "fr", "k": n} for n in range(4)]


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.soak)])
def disk(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Lake:
    """Written in memory, or by queries as for many rows."""
    if request.param:
        return disk_lake(tmp_path, spark)
    return disk_lake(tmp_path, spark, NO_FEW_ROWS, in_memory=False)


def clustered(lake: Lake) -> tuple[str, ...] | None:
    assert lake.folder is not None
    path = lake.folder / MIRROR
    return clustering_of(path, DeltaTable(path))


def a_replacement(lake: Lake, number: int, schema: pa.Schema, rows: Sequence[Row]) -> MirrorWrite:
    file = lake.mirrors.stage("read", pa.Table.from_pylist(list(rows), schema=schema))
    part = own_part((file,), schema)
    columns = tuple(
        replace(one, source=name) for one, name in zip(part.columns, schema.names, strict=True)
    )
    target = a_target(number, schema, cluster_by=("country",))
    return Replace(target, ("id",), (replace(part, columns=columns),))


def test_a_mirror_stays_clustered_through_its_life(disk: Lake) -> None:
    """By the columns of the newest write that could name them all; a column that goes takes itself
    out, and one that is called otherwise stays in."""
    mirrors, number = disk.mirrors, 0

    def write(rows: Sequence[Row], cluster: tuple[str, ...], schema: pa.Schema) -> None:
        nonlocal number
        number += 1
        mode = "append" if number == 1 else "merge"
        mirrors.write(a_write(mirrors, number, mode, rows, schema=schema, cluster_by=cluster))

    def evolve(*steps: MirrorStep) -> None:
        nonlocal number
        number += 1
        after = mirrors.version(MIRROR)
        assert after is not None
        mirrors.evolve(
            MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=number, after_version=after
        )

    write(ROWS, ("Country",), PEOPLE)
    assert clustered(disk) == ("country",)
    commits = mirrors.version(MIRROR)
    write([ROWS[0]], ("country",), PEOPLE)
    assert mirrors.version(MIRROR) == (commits or 0) + 1
    write([ROWS[1]], ("k", "id"), PEOPLE)
    assert clustered(disk) == ("k", "id")
    evolve(SetProperties((MAPPING_PROPERTY,)), RenameColumn("k", "v"))
    assert clustered(disk) == ("v", "id")
    renamed = pa.schema([PEOPLE.field(0), PEOPLE.field(1), ("v", pa.int32())])
    write([], ("k", "id"), renamed)
    assert clustered(disk) == ("v", "id")
    evolve(DropColumns(("v",)))
    assert clustered(disk) == ("id",)
    evolve(AddColumns(pa.schema([("n", pa.int16())])))
    assert clustered(disk) == ("id",)
    evolve(Fill((("n", pa.scalar(1, pa.int16())),)))
    assert clustered(disk) == ()
    less = pa.schema([("id", pa.int64()), ("country", pa.string()), ("n", pa.int16())])
    number += 1
    rows = [{"id": 7, "country": "it", "n": 3}]
    mirrors.write(a_replacement(disk, number, less, rows))
    assert clustered(disk) == ("country",)
    version = mirrors.version(MIRROR)
    assert version is not None
    number += 1
    mirrors.write(a_replacement(disk, number, less.remove(1), [{"id": 8, "n": 3}]))
    assert clustered(disk) == ()
    mirrors.restore(MIRROR, version, "back")
    assert clustered(disk) == ("country",)
    assert content(mirrors, MIRROR, less, version) == rows
    write([], (), less)
    assert clustered(disk) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("delta.dataSkippingNumIndexedCols", "1"), ("delta.dataSkippingStatsColumns", "id")],
)
def test_a_mirror_that_has_no_statistics_of_its_columns(disk: Lake, name: str, value: str) -> None:
    """Somebody set a property: writes go on, and it is clustered by other columns, or not."""
    mirrors = disk.mirrors
    mirrors.write(a_write(mirrors, 1, "append", ROWS, schema=PEOPLE, cluster_by=("country",)))
    _set_property(disk, name, value)
    mirrors.write(a_write(mirrors, 2, "merge", ROWS[:1], schema=PEOPLE, cluster_by=("k",)))
    assert clustered(disk) == ("country",)
    mirrors.write(a_replacement(disk, 3, PEOPLE, ROWS))
    mirrors.write(a_write(mirrors, 4, "merge", ROWS[:1], schema=PEOPLE, cluster_by=("id",)))
    assert clustered(disk) == ("id",)
    version = mirrors.version(MIRROR)
    assert version is not None
    assert content(mirrors, MIRROR, PEOPLE, version) == ROWS


def _set_property(lake: Lake, name: str, value: str) -> None:
    """As another program does: no session of ours commits an ALTER of somebody else."""
    assert lake.folder is not None
    path = lake.folder / MIRROR
    log = path / "_delta_log"
    lines = [line for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()]
    metadata = [action["metaData"] for action in map(json.loads, lines) if "metaData" in action][-1]
    metadata["configuration"][name] = value
    moment = time.time_ns() // 1_000_000
    done = {"inCommitTimestamp": moment, "timestamp": moment, "operation": "SET TBLPROPERTIES"}
    actions = [{"commitInfo": {**done, "operationParameters": {}}}, {"metaData": metadata}]
    file = log / f"{DeltaTable(path).version() + 1:020d}.json"
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize(
    "readers", [Readers.ANY, pytest.param(Readers.SPARK, marks=pytest.mark.soak)]
)
def test_who_reads_a_clustered_mirror(
    tmp_path: Path, spark: SparkProcess, readers: Readers
) -> None:
    """Whoever reads the mirror without it: clustering asks something of writers alone. Upkeep
    clusters its files, and they stay clustered."""
    lake = disk_lake(tmp_path, spark)
    assert lake.folder is not None
    path = lake.folder / MIRROR
    schema = PEOPLE.remove(2)
    rows = [{"id": row["id"], "country": row["country"]} for row in ROWS[:2]]
    for number, row in enumerate(rows, start=1):
        write = a_write(
            lake.mirrors,
            number,
            "append",
            [row],
            schema=schema,
            readers=readers,
            cluster_by=("country",),
        )
        lake.mirrors.write(write)
    upkeep = SparkUpkeep(lake.folder, spark=spark, keep=timedelta(days=7))
    above = lake.mirrors.version(MIRROR)
    assert above is not None
    step = UpkeepStep(StepKind.COMPACT, FileTotal(2, 2000), "small files", 1 << 20)
    assert upkeep.carry_out(MIRROR, step, "kept", above) == above + 1
    newest = next(iter(commits_newest_first(path)))
    assert newest.operation == "OPTIMIZE" and len(newest.adds) == 1
    assert clustered(lake) == ("country",)
    assert content(lake.mirrors, MIRROR, schema, above + 1) == rows
    assert sorted(polars.read_delta(path).to_dicts(), key=lambda row: row["id"]) == rows
    shown = duck(tmp_path / "extensions").execute(f"from delta_scan('{path}') order by id")
    assert shown.fetchall() == [tuple(row.values()) for row in rows]
    assert DeltaTable(path).protocol().min_reader_version == (1 if readers is Readers.ANY else 3)


def test_what_a_mirror_cannot_be_clustered_by() -> None:
    """Each by its name, and then the mirror stays as it is."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            *((name, kind) for name, kind in [("b", pa.bool_()), ("x", pa.binary())]),
            ("v", pa.list_(pa.float32())),
            *((f"c{number}", pa.date32()) for number in range(40)),
        ]
    )
    asked = ("id", "gone", "b", "x", "v", "c27", "c28")
    assert [name for name, _ in unclusterable_names(asked, schema)] == [
        "gone",
        "b",
        "x",
        "v",
        "c28",
    ]
    assert clustering_columns(asked, schema) is None
    assert clustering_columns(("C27", "ID"), schema) == ("c27", "id")
    assert clustering_columns((), schema) == ()
