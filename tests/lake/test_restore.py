"""An earlier version of a mirror, shown once more."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.values.errors import TableError
from lockstep.resources.lake.delta.delta_log import actions, commit_file
from lockstep.resources.lake.delta.pin import head_of
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.both_ways import BEHIND, MARKED, MIRROR, WIDER, BothWays
from tests.lake.conftest import disk_lake
from tests.lake.made import a_write, content


def test_versions_are_shown_once_more(
    both_ways: BothWays, tmp_path: Path, spark: SparkProcess
) -> None:
    """It is set back to rows that are marked as deleted, and then to columns that were renamed and
    widened; then it is written to. The files that come and go are those that the two versions do
    not share. Nothing is committed where a file is gone."""
    ours, mirror = disk_lake(tmp_path, spark).mirrors, tmp_path / "lake" / MIRROR
    both_ways.copied(mirror)
    first = head_of(mirror).version + 1
    for number, version in enumerate((MARKED, WIDER), start=first):
        assert ours.restore(MIRROR, version, "said") == number
        schema, rows = both_ways.shown[version]
        assert content(ours, MIRROR, schema, number) == rows
        there, then = (_files(mirror, at) for at in (number - 1, version))
        text = commit_file(mirror, number).read_text()
        for kind, files in (("add", then - there), ("remove", there - then)):
            assert {file["path"] for _, file in actions(text, kind)} == files
        assert _files(mirror, number) == then
    new = {"id": 99, "n": 1, "called": "c", "m": None}
    ours.write(a_write(ours, 99, "merge", [new], schema=BEHIND))
    newest = first + 2
    assert content(ours, MIRROR, BEHIND, newest) == [*both_ways.shown[WIDER][1], new]
    for file in _files(mirror, first) - _files(mirror, newest):
        (mirror / file).unlink()
    with pytest.raises(TableError):
        ours.restore(MIRROR, first, "said")
    assert ours.version(MIRROR) == newest


def _files(table: Path, version: int) -> set[str]:
    return {*pa.table(DeltaTable(table, version=version).get_add_actions())["path"].to_pylist()}
