"""Changes folded in buckets of keys are what they are folded at once."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.coalescing import coalesced
from lockstep.pipeline.mirror.fold import Fold
from lockstep.pipeline.mirror.mapping import folded
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, StagedFiles
from lockstep.pipeline.run.write.staged_fold import TOO_MANY_IMAGES
from lockstep.pipeline.values.errors import LakeUnavailable, TableError
from tests.changes.folding_made import staged_images
from tests.changes.partial_images import PART, SCHEMA, Workload, images_table
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors
from tests.twins.spool import MemoryEventFile, MemorySpool

OLD = StagedFiles((), (*PART.columns[:3], ColumnOrigin()))
"""Images that do not know the last column."""
NEW = StagedFiles((), tuple(ColumnOrigin(field.name, field.type) for field in SCHEMA))
MARKS = ("_committed_at",)


def whole_images(random: Random, count: int) -> pa.Table:
    workload = Workload(random)
    workload.fill(3)
    for _ in range(count):
        workload.change()
    names = frozenset(SCHEMA.names)
    images = images_table([(kind, row, names) for kind, row, _ in workload.images])
    moments = [datetime(2026, 1, 1, tzinfo=UTC)] * len(images)
    column = pa.array(moments, pa.timestamp("us", tz="UTC"))
    return images.append_column("_committed_at", column)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


@given(
    first=st.sampled_from([OLD, NEW]),  # a column came, or one structure
    numbered=st.booleans(),
    random=st.randoms(use_true_random=False),
    count=st.integers(0, 40),
    cut=st.integers(0, 80),
    buckets=st.integers(2, 5),
)
def test_buckets_make_no_difference(
    first: StagedFiles, numbered: bool, random: Random, count: int, cut: int, buckets: int
) -> None:
    """Marks, numbers, kept columns and bounds included; a key is in one file."""
    images = whole_images(random, count)
    if not len(images):
        return
    halves = [images.slice(0, cut), images.slice(cut)]
    parts = [part for part, half in zip((first, NEW), halves, strict=True) if len(half)]
    pieces = [[half.slice(0, 4), half.slice(4)] for half in halves if len(half)]
    pieces = [[piece for piece in some if len(piece)] for some in pieces]
    fold = Fold(SCHEMA, ("id",), tuple(parts), MARKS, numbered)
    found = []
    for number in (1, buckets):
        lake = MemoryLake()
        with staged_images(MemoryMirrors(lake), fold, pieces, number) as staged:
            tables = [lake.files[path] for path in staged.changes.files]
        assert not lake.files
        rows = in_order([row for table in tables for row in table.to_pylist()])
        found.append((rows, staged.bounds, staged.changes.kept_columns))
    assert found[0] == found[1]
    assert len({row["id"] for row in found[0][0]}) == len(found[0][0])
    assert ("_sequence" in found[0][0][0]) == numbered


def test_what_changes_a_row_that_was_gone_is_told_by_its_key_or_begins_one() -> None:
    """As a log that is read twice has it, which is why there are two folds: of images that have
    every column, and of those that leave some out."""
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64())])
    told = tuple(ColumnOrigin(field.name, field.type) for field in schema)
    first = pa.table(
        {
            "_change_type": ["insert", "delete"],
            "_sequence": pa.array([1, 2]),
            "_derived": pa.array([False, False]),
            "id": pa.array([7, 7]),
            "a": pa.array([70, 70]),
        }
    )
    second = pa.table(
        {
            "_change_type": ["update_preimage", "update_postimage"],
            "_sequence": pa.array([3, 4]),
            "_derived": pa.array([False, False]),
            "id": pa.array([7, 7]),
        }
    )
    without = (told[0], ColumnOrigin())
    by_key = folded([(first, told), (second, without)], schema, ["id"])
    parts = [(first, StagedFiles((), told)), (second, StagedFiles((), without))]
    followed, lacking = coalesced(parts, schema, ["id"])
    assert by_key.column("a").to_pylist() == [70]
    assert (followed.column("a").to_pylist(), lacking) == ([None], ())


def test_rows_that_belong_together_may_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial images of one key cannot be folded apart; nothing is staged."""
    monkeypatch.setattr("lockstep.pipeline.run.write.staged_fold.MOST_IMAGES", 3)
    names = frozenset(SCHEMA.names)
    row = {"id": 1, "a": 1, "text": "x", "c": 1}
    images = images_table([("update_preimage", row, names), ("update_postimage", row, names)] * 2)
    lake = MemoryLake()
    with (
        pytest.raises(TableError) as refused,
        staged_images(MemoryMirrors(lake), Fold(SCHEMA, ("id",), (PART,)), [[images]], 2),
    ):
        pass
    assert refused.value.reason == TOO_MANY_IMAGES
    assert not lake.files


class FullFile(MemoryEventFile):
    def write(self, data: bytes | memoryview) -> None:
        raise LakeUnavailable("The lake's storage is full.", hint="free some space")


class FullSpool(MemorySpool):
    def create_scratch_file(self) -> MemoryEventFile:
        self.made.append(FullFile())
        return self.made[-1]


def test_a_full_disk_leaves_nothing() -> None:
    """The scratch file is let go, and a later try begins anew."""
    lake, spool = MemoryLake(), FullSpool()
    images = whole_images(Random(1), 20)
    fold = Fold(SCHEMA, ("id",), (NEW,), MARKS)
    with (
        pytest.raises(LakeUnavailable),
        staged_images(MemoryMirrors(lake), fold, [[images]], 3, spool),
    ):
        pass
    assert [file.closed for file in spool.made] == [True]
    assert not lake.files
