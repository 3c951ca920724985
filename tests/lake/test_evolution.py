"""Mirrors whose columns change: one contract for memory and disk, then what Delta shows."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY, NTZ_PROPERTY, WIDENING_PROPERTY
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    ColumnOrigin,
    DropColumns,
    Fill,
    MirrorStep,
    RenameColumn,
    Rewrite,
    SetProperties,
    WidenColumn,
)
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.errors import ForeignCommit
from lockstep.pipeline.values.policies import LakePolicies, Readers
from lockstep.pipeline.values.stamps import STAMPS
from lockstep.resources.lake.spark.session import SparkProcess
from tests.changes.following import MIRROR as FOLLOWED
from tests.changes.following import Follower, kept_columns
from tests.changes.server import Server
from tests.lake.conftest import ALIKE, Lake, disk_lake
from tests.lake.made import a_write, content

MIRROR = "shop/shop/people"
APP = f"app/{MIRROR}"
BEFORE = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("b", pa.string()), ("c", pa.date32())])
ROWS: list[dict[str, Any]] = [
    {"id": 1, "a": 10, "b": "x", "c": date(2020, 1, 1)},
    {"id": 2, "a": None, "b": "y", "c": None},
]
ADDED = pa.schema(
    [("d", pa.string()), ("e", pa.decimal128(20, 0)), ("f", pa.timestamp("us")), ("g", pa.bool_())]
)
STEPS: tuple[MirrorStep, ...] = (
    SetProperties((MAPPING_PROPERTY, WIDENING_PROPERTY, NTZ_PROPERTY)),
    DropColumns(("b",)),
    RenameColumn("a", "_lockstep_0"),
    RenameColumn("c", "a"),
    RenameColumn("_lockstep_0", "c"),
    WidenColumn("c", pa.int64()),
    AddColumns(ADDED),
    Fill(
        (
            ("d", pa.scalar("it's ä`\\\n")),
            ("e", pa.scalar(Decimal(2**64 - 1), pa.decimal128(20, 0))),
            ("f", pa.scalar(datetime(1582, 10, 10, 1, 2, 3, 456789), pa.timestamp("us"))),
            ("g", pa.scalar(True)),
        )
    ),
)
FILLED: dict[str, Any] = {
    "d": "it's ä`\\\n",
    "e": Decimal(2**64 - 1),
    "f": datetime(1582, 10, 10, 1, 2, 3, 456789),
    "g": True,
}
AFTER = pa.schema([("id", pa.int64()), ("a", pa.date32()), ("c", pa.int64()), *ADDED])
SHOWN = [
    {"id": 1, "a": date(2020, 1, 1), "c": 10, **FILLED},
    {"id": 2, "a": None, "c": None, **FILLED},
]


class Cut(Exception):
    """The process ended here."""


class Ends(SetProperties):
    """A step at which the process ends, before it is carried out."""

    def __str__(self) -> str:
        raise Cut


def begun(mirrors: Mirrors) -> int:
    """A mirror with two rows; its version."""
    return mirrors.write(a_write(mirrors, 1, "append", ROWS, schema=BEFORE)).delta_version


def test_steps_are_carried_out_once_however_often_they_are_cut_off(lake: Lake) -> None:
    """A try ends before each step; later ones find what is done, and each is one commit. Others
    under the same transaction are foreign: a policy that changed in between does not mix two
    plans. The same ones under another are made: DROP g, ADD g twice, for what the columns look
    like proves nothing."""
    after = begun(lake.mirrors)
    for at in range(len(STEPS)):
        steps = (*STEPS[:at], Ends(()), *STEPS[at + 1 :])
        with pytest.raises(Cut):
            lake.mirrors.evolve(MIRROR, steps, app_id=APP, txn_version=2, after_version=after)
        assert lake.mirrors.version(MIRROR) == after + at
    commits = [
        lake.mirrors.evolve(MIRROR, STEPS, app_id=APP, txn_version=2, after_version=after)
        for _ in range(2)
    ]
    numbers = [commit.delta_version for commit in commits[0]]
    version = lake.mirrors.version(MIRROR)
    assert version is not None
    assert commits[0] == commits[1]
    assert numbers == list(range(after + 1, after + 1 + len(STEPS)))
    assert version == numbers[-1]
    assert lake.mirrors.schema(MIRROR, after) == BEFORE
    assert {*lake.mirrors.schema(MIRROR, version)} == {*AFTER}
    assert content(lake.mirrors, MIRROR, AFTER, version) == SHOWN
    others = (STEPS[0], DropColumns(("c",)), *STEPS[2:])
    with pytest.raises(ForeignCommit):
        lake.mirrors.evolve(MIRROR, others, app_id=APP, txn_version=2, after_version=after)
    again = (DropColumns(("g",)), AddColumns(pa.schema([AFTER.field("g")])))
    for number in (3, 4):
        lake.mirrors.evolve(MIRROR, again, app_id=APP, txn_version=number, after_version=version)
        assert lake.mirrors.version(MIRROR) == version + len(again) * (number - 2)


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_a_rewrite_is_one_commit(written_lake: Lake) -> None:
    """Columns go, come, swap names and change their types all at once; once. So are values that a
    column is filled with."""
    lake = written_lake
    after = begun(lake.before)
    schema = pa.schema([("id", pa.decimal128(19, 0)), ("c", pa.int32()), ("a", pa.timestamp("us"))])
    columns = (
        ColumnOrigin("id", pa.int64()),
        ColumnOrigin("a", pa.int32()),
        ColumnOrigin(value=pa.scalar(datetime(2020, 1, 1), pa.timestamp("us"))),
    )
    filled = (SetProperties((NTZ_PROPERTY,)), *STEPS[-2:])
    for _ in range(2):
        *_, commit = lake.mirrors.evolve(
            MIRROR, filled, app_id=APP, txn_version=2, after_version=after
        )
        assert commit.delta_version == lake.mirrors.version(MIRROR) == after + 3
    shown = [{**row, **FILLED} for row in ROWS]
    wider = pa.schema([*BEFORE, *ADDED])
    assert content(lake.mirrors, MIRROR, wider, commit.delta_version) == shown
    for _ in range(2):
        steps = (Rewrite(schema, columns),)
        (commit,) = lake.mirrors.evolve(
            MIRROR, steps, app_id=APP, txn_version=3, after_version=after + 3
        )
        assert commit.delta_version == lake.mirrors.version(MIRROR) == after + 4
    moment = datetime(2020, 1, 1)
    assert content(lake.mirrors, MIRROR, schema, commit.delta_version) == [
        {"id": Decimal(1), "c": 10, "a": moment},
        {"id": Decimal(2), "c": None, "a": moment},
    ]


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_a_mirror_on_disk_follows(tmp_path: Path, spark: SparkProcess, seed: int) -> None:
    """Random columns and rows, read back in full with their stamps, from files that are clustered
    as long as the columns are there; merged by Spark's queries with the soak, beside
    `test_both_ways_in_turn_are_one`."""
    disk = disk_lake(tmp_path, spark, in_memory=seed == 1)
    chance = Random(seed)
    server = Server(chance)
    readers = Readers.ANY if seed % 2 else Readers.SPARK
    stamps = (*STAMPS.names,)
    policies = LakePolicies(readers=readers, stamps=stamps, cluster_by=("id", "a"))
    follower = Follower(disk.mirrors, policies, buckets=seed + 1)
    for size in (6, 20):
        for _ in range(size):
            server.step()
        line, _ = follower.run(server)
        assert follower.rows(line) == server.shown(kept_columns(line), stamps)
    if readers == Readers.ANY:
        plain = DeltaTable(tmp_path / "lake" / FOLLOWED).to_pyarrow_table(columns=line.schema.names)
        assert plain.sort_by("id").to_pylist() == follower.rows(line)
