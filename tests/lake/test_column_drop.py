"""Columns dropped: by a commit of ours where nothing can depend on them, else by Delta."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.changes.evolution import MAPPING, WIDENING
from pipeline.ports.mirror_writes import DropColumns, RenameColumn, SetProperties, WidenColumn
from resources.lake.altering import carry_out
from resources.lake.delta_log import actions, commit_file
from resources.lake.direct import drop_columns
from resources.lake.pin import head_of
from resources.lake.session import SparkProcess
from resources.lake.sessions import stamped
from tests.lake.conftest import Lake
from tests.lake.made import a_write, content

MIRROR = "shop/shop/people"
SCHEMA = pa.schema(
    [("id", pa.int64()), ("n", pa.int32()), ("s", pa.string()), ("Ünïcode`", pa.bool_())]
)
ROW = {"id": 1, "n": 2, "s": "x", "Ünïcode`": True}
STEPS = (
    SetProperties((MAPPING, WIDENING)),
    RenameColumn("s", "t"),
    WidenColumn("n", pa.int64()),
)
VERSION = len(STEPS)
DROPPED = ("Ünïcode`", "t")
LEFT = pa.schema([("id", pa.int64()), ("n", pa.int64())])
Actions = dict[str, Any]
"""Those of a commit, by their kind."""


@pytest.fixture
def mirror(disk: Lake, folder: Path) -> Path:
    """One whose columns were renamed and widened."""
    disk.mirrors.write(a_write(disk.mirrors, 1, "append", [ROW], schema=SCHEMA))
    disk.mirrors.evolve(MIRROR, STEPS, app_id="app", txn_version=2, after=0)
    return folder / MIRROR


def test_no_query_is_made(disk: Lake, mirror: Path, spark: SparkProcess) -> None:
    """The columns that stay are what they were, in files and names; the next write fits."""
    jobs = spark.session().sparkContext.statusTracker().getJobIdsForGroup
    before = {*jobs()}
    step = DropColumns(DROPPED)
    [made] = disk.mirrors.evolve(MIRROR, (step,), app_id="app", txn_version=3, after=VERSION)
    assert {*jobs()} == before
    assert made.delta_version == VERSION + 1
    fields = _fields(mirror, VERSION)
    assert _fields(mirror, VERSION + 1) == [one for one in fields if one["name"] not in DROPPED]
    assert content(disk.mirrors, MIRROR, LEFT, VERSION + 1) == [{"id": 1, "n": 2}]
    more = {"id": 2, "n": 3}
    disk.mirrors.write(a_write(disk.mirrors, 4, "merge", [more], schema=LEFT))
    assert content(disk.mirrors, MIRROR, LEFT, VERSION + 2) == [{"id": 1, "n": 2}, more]


def test_it_is_what_delta_commits(mirror: Path, spark: SparkProcess, tmp_path: Path) -> None:
    """The same table, by a commit of the same name."""
    said = []
    for java in (True, False):
        table = tmp_path / f"java {java}"
        shutil.copytree(mirror, table)
        _drop(spark, table, java=java)
        told = _actions(table, VERSION + 1)
        info = told["commitInfo"]
        told["commitInfo"] = {
            name: info[name] for name in ("operation", "operationParameters", "userMetadata")
        }
        said.append(told)
    assert said[0] == said[1]
    assert said[0]["metaData"] != _actions(mirror, VERSION)["metaData"]


def test_where_more_depends_on_a_column_delta_drops_it(mirror: Path, spark: SparkProcess) -> None:
    """And names it no more among the columns that have statistics."""
    told, names = _actions(mirror, VERSION)["metaData"], "delta.dataSkippingStatsColumns"
    told["configuration"][names] = "n,t"
    _append(mirror, {"metaData": told})
    _drop(spark, mirror, java=True)
    assert _actions(mirror, VERSION + 2)["metaData"]["configuration"][names] == "n"
    assert [field["name"] for field in _fields(mirror, VERSION + 2)] == LEFT.names


def _drop(spark: SparkProcess, table: Path, *, java: bool) -> None:
    carry_out(
        spark.session(),
        table,
        DropColumns(DROPPED),
        "said",
        head_of(table),
        app_id="app",
        txn_version=3,
        few=True,
        java=java,
    )


def _statistics_of_it(told: Actions) -> None:
    told["metaData"]["configuration"]["delta.dataSkippingStatsColumns"] = "t"


def _no_mapping(told: Actions) -> None:
    del told["metaData"]["configuration"]["delta.columnMapping.mode"]


def _computed_from_it(told: Actions) -> None:
    schema = json.loads(told["metaData"]["schemaString"])
    schema["fields"][1]["metadata"]["delta.generationExpression"] = "length(t)"
    told["metaData"]["schemaString"] = json.dumps(schema)


def _partitions(told: Actions) -> None:
    told["metaData"]["partitionColumns"] = ["n"]


def _rules(told: Actions) -> None:
    told["protocol"]["writerFeatures"].append("checkConstraints")


def _clustering(told: Actions) -> None:
    told["protocol"]["writerFeatures"].append("clustering")


def _nothing(told: Actions) -> None:
    """The mirror as it is."""


BESIDE = (
    _statistics_of_it,
    _no_mapping,
    _computed_from_it,
    _partitions,
    _rules,
    _clustering,
)
"""What else a table may have that depends on a column, or makes it impossible to drop one."""
NOT_TO_DROP = (("id", "n", *DROPPED), ("T",), ("t", "not there"))
"""All that there is, and what is not there as it is spelled."""


def test_all_else_is_left_to_delta(mirror: Path, spark: SparkProcess, tmp_path: Path) -> None:
    """Nothing is committed, but of the table as it was."""
    plain = {**_actions(mirror, 0), **_actions(mirror, 1), **_actions(mirror, VERSION)}
    cases: list[tuple[tuple[str, ...], Callable[[Actions], None]]]
    cases = [(DROPPED, change) for change in BESIDE]
    cases += [(names, _nothing) for names in NOT_TO_DROP]
    cases += [(DROPPED, _nothing)]
    for number, (names, change) in enumerate(cases):
        table = tmp_path / str(number)
        shutil.copytree(mirror, table)
        told = copy.deepcopy({name: plain[name] for name in ("protocol", "metaData")})
        change(told)
        _append(table, told)
        session = spark.session()
        with stamped(session, head_of(table).pin()):
            done = drop_columns(session, table, names)
        assert done == ((names, change) == (DROPPED, _nothing)), (names, change)
        assert head_of(table).version == VERSION + 1 + done


def _append(table: Path, told: Actions) -> None:
    """One more version, by somebody who knows how."""
    moment = _actions(table, VERSION)["commitInfo"]["inCommitTimestamp"] + 1
    told = {"commitInfo": {"operation": "MANUAL", "inCommitTimestamp": moment}, **told}
    lines = [json.dumps({name: action}) for name, action in told.items()]
    Path(str(commit_file(table, VERSION + 1))).write_text("\n".join(lines))


def _fields(table: Path, version: int) -> list[dict[str, Any]]:
    schema = json.loads(_actions(table, version)["metaData"]["schemaString"])
    fields: list[dict[str, Any]] = schema["fields"]
    return fields


def _actions(table: Path, version: int) -> Actions:
    return dict(actions(commit_file(table, version).read_text()))
