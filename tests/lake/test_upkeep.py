"""Files of a mirror, told without Spark and made fewer by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.changes.strategy import NOTHING
from pipeline.errors import CommitConflict
from pipeline.foreign_commits import foreign
from pipeline.lake_commit import stamp
from pipeline.upkeep.decide import StepKind, decide
from pipeline.upkeep.facts import UpkeepPolicy
from resources.lake.session import SparkProcess
from resources.lake.upkeep import SparkUpkeep
from tests.fix_objects import ObjectStore
from tests.lake.conftest import lake_at
from tests.lake.made import a_write

MIRROR = "shop/shop/people"
SAID = stamp({"kind": "upkeep", "shows": 1})


def test_deleted_rows_go_from_the_files(
    object_store: ObjectStore, tmp_path: Path, spark: SparkProcess
) -> None:
    """In an object store, where Spark's queries marked them; what upkeep deletes on disk is in
    `tests/e2e/test_upkeep.py`. They are counted without Spark; the commit that frees the files of
    them changes no row, says what it was told to, and is made behind the version it was planned on
    or not at all."""
    place = object_store.prefix()
    lake = lake_at(place, tmp_path / "staging", spark, NOTHING, in_memory=False)
    mirrors, before = lake.mirrors, lake.before
    rows = [{"id": number, "name": "x"} for number in range(100)]
    before.write(a_write(before, 1, "append", rows))
    gone = [{"_change_type": "delete", **row} for row in rows[:30]]
    mirrors.write(a_write(mirrors, 2, "merge", gone))
    upkeep = SparkUpkeep(place, spark=spark, keep=timedelta(days=30))
    found = upkeep.files(MIRROR, datetime.now(UTC))
    assert (found.rows, found.deleted) == (100, 30)
    (step,) = decide(found, UpkeepPolicy()).steps
    assert step.kind is StepKind.PURGE
    with pytest.raises(CommitConflict):
        upkeep.carry_out(MIRROR, step, SAID, 0)
    assert upkeep.carry_out(MIRROR, step, SAID, 1) == 2
    assert upkeep.carry_out(MIRROR, step, SAID, 2) is None
    (commit,) = mirrors.look(MIRROR, 1).commits
    assert (commit.repeats, foreign(commit), commit.user_metadata) == (1, None, SAID)
    found = upkeep.files(MIRROR, datetime.now(UTC))
    assert (found.rows, found.deleted, found.unneeded.files) == (70, 0, 0)
    left = [row for batch in mirrors.rows(MIRROR, ["id"], 2) for row in batch["id"].to_pylist()]
    assert sorted(left) == list(range(30, 100))
    assert SparkUpkeep(place, spark=spark, keep=timedelta(0)).vacuum(MIRROR).files > 0
    left = [row for batch in mirrors.rows(MIRROR, ["id"], 2) for row in batch["id"].to_pylist()]
    assert sorted(left) == list(range(30, 100))
