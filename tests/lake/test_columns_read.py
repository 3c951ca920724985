"""Columns that are read from the source by key and filled in the commit that merges changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    ColumnOrigin,
    FoldedChanges,
    Merge,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.policies import Deletes
from tests.lake.conftest import ALIKE, Lake
from tests.lake.made import a_fold, a_target, a_write, changes, content
from tests.lake.test_replace import NOON

MIRROR = "shop/shop/people"
OLD = pa.schema([("id", pa.int64()), ("name", pa.string())])
NEW = pa.schema([*OLD, ("g", pa.string())])
BEFORE = (
    *(ColumnOrigin(f.name, f.type) for f in OLD),
    ColumnOrigin(value=pa.scalar(None, pa.string())),
)
BEHIND = tuple(ColumnOrigin(field.name, field.type) for field in NEW)
READ = (BEHIND[0], ColumnOrigin(), BEHIND[2])
LOW = 6

IMAGES = (
    ("update_preimage", 2, "old", None),
    ("update_postimage", 2, "before", None),
    ("insert", 4, "before", None),
    ("insert", 5, "before", None),
    ("update_preimage", 5, "before", "5 then"),
    ("update_postimage", 5, "between", "5 then"),
    ("update_preimage", 6, "old", "6 then"),
    ("update_postimage", 6, "behind", "6 later"),
    ("insert", 8, "behind", "8 later"),
    ("delete", 7, "old", "7 then"),
    ("update_preimage", 9, "old", "9 then"),
    ("update_postimage", 10, "moved", "9 then"),
)
"""Numbered from 1: four before the column came, six up to the reading's place."""

SNAPSHOT = {1: "1 read", 2: "2 read", 4: "4 read", 5: "5 read", 6: "6 read", 10: "10 read"} | {
    99: "not in the lake"
}


@pytest.fixture
def lake(written_lake: Lake) -> Lake:
    """Each way to write proves the same contract."""
    return written_lake


def images(kinds: Sequence[tuple[str, int, str, str | None]], first: int, new: bool) -> pa.Table:
    rows = [
        {"_change_type": kind, "id": number, "name": name, "_committed_at": NOON, "g": g}
        for kind, number, name, g in kinds
    ]
    return changes(NEW if new else OLD, rows, first=first)


def a_completion(
    mirrors: Mirrors, number: int, *, some: bool = True, deletes: Deletes = Deletes.REMOVE
) -> Merge:
    """Changes of before and behind the statement, and a reading at `LOW`."""
    tables = [(images(IMAGES[:4], 1, new=False), BEFORE), (images(IMAGES[4:], 5, new=True), BEHIND)]
    read = pa.table({"id": list(SNAPSHOT), "g": list(SNAPSHOT.values())})
    part = StagedFiles((mirrors.stage("read", read),), READ, LOW)
    target = a_target(number, NEW, deletes=deletes)
    if not some:
        return Merge(target, ("id",), FoldedChanges(), completion=part)
    parts = [(table, StagedFiles((), columns)) for table, columns in tables]
    return a_fold(mirrors, target, parts, completion=part)


def begun(mirrors: Mirrors, **more: Any) -> int:
    """A mirror of before, which then gets the column, NULL."""
    rows = [{"id": number, "name": "old"} for number in (1, 2, 3, 6, 7, 9)]
    made = a_write(mirrors, 1, "append", rows, schema=OLD, **more)
    commit = mirrors.write(made)
    step = AddColumns(pa.schema([NEW.field("g")]))
    done = mirrors.evolve(
        MIRROR, [step], app_id=made.target.app_id, txn_version=2, after_version=commit.delta_version
    )
    return done[-1].delta_version


def test_what_no_image_behind_it_knows_is_read(lake: Lake) -> None:
    """One commit, made once. A row that changed behind the reading's place is what the log
    says; one that the source has not keeps NULL; what the lake has not does not come."""
    version = begun(lake.before)
    write = a_completion(lake.mirrors, 2)
    commits = [lake.mirrors.write(write) for _ in range(2)]
    assert commits[0] == commits[1]
    assert lake.mirrors.version(MIRROR) == commits[0].delta_version == version + 1
    assert content(lake.mirrors, MIRROR, NEW, commits[0].delta_version) == [
        {"id": 1, "name": "old", "g": "1 read"},
        {"id": 2, "name": "before", "g": "2 read"},
        {"id": 3, "name": "old", "g": None},
        {"id": 4, "name": "before", "g": "4 read"},
        {"id": 5, "name": "between", "g": "5 read"},
        {"id": 6, "name": "behind", "g": "6 later"},
        {"id": 8, "name": "behind", "g": "8 later"},
        {"id": 10, "name": "moved", "g": "9 then"},
    ]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_without_a_change_only_the_column_is_filled(lake: Lake) -> None:
    """Every other column stays as it is."""
    begun(lake.before)
    commit = lake.mirrors.write(a_completion(lake.mirrors, 2, some=False))
    assert content(lake.mirrors, MIRROR, NEW, commit.delta_version) == [
        {"id": number, "name": "old", "g": SNAPSHOT.get(number)} for number in (1, 2, 3, 6, 7, 9)
    ]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_rows_marked_deleted_have_what_their_last_image_knew(lake: Lake) -> None:
    """They are not at the source any more."""
    begun(lake.before, deletes=Deletes.SOFT)
    commit = lake.mirrors.write(a_completion(lake.mirrors, 2, deletes=Deletes.SOFT))
    shown = pa.schema([*NEW, DELETED_AT])
    found = content(lake.mirrors, MIRROR, shown, commit.delta_version)
    marked = {row["id"]: row["g"] for row in found if row["_deleted_at"] is not None}
    assert marked == {7: "7 then", 9: "9 then"}
    assert {row["id"]: row["g"] for row in found if row["id"] in (1, 2, 3)} == {
        1: "1 read",
        2: "2 read",
        3: None,
    }
