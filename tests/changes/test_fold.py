"""Changes folded in buckets of keys are what they are folded at once; equal keys have equal
numbers, and rows that moved are followed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.coalescing import coalesced
from lockstep.pipeline.mirror.fold import Fold, KeyChains, key_hashes
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


KINDS = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.decimal128(20, 0): st.integers(-(2**64), 2**64).map(Decimal),
    pa.bool_(): st.booleans(),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1.5]),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=40),
    pa.date32(): st.dates(date(1000, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime(1000, 1, 1)),
}


@st.composite
def keys(draw: Any) -> pa.Table:
    """Some values come more than once, among them NULL."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    values = [draw(st.lists(KINDS[kind], min_size=1, max_size=4)) for kind in kinds]
    count = draw(st.integers(0, 20))
    columns = [
        pa.array(
            draw(st.lists(st.sampled_from([None, *some]), min_size=count, max_size=count)), kind
        )
        for some, kind in zip(values, kinds, strict=True)
    ]
    return pa.table(columns, names=[str(at) for at in range(len(kinds))])


@given(keys(), st.integers(0, 20))
def test_a_key_s_number_is_the_same_wherever_it_stands(table: pa.Table, cut: int) -> None:
    """In any piece; keys that differ have numbers that differ, as a rule. 0.0 is -0.0."""
    whole = key_hashes(table)
    pieces = [key_hashes(table.slice(0, cut)), key_hashes(table.slice(cut))]
    assert np.array_equal(whole, np.concatenate(pieces))
    rows = [tuple(row.values()) for row in table.to_pylist()]
    told = dict(zip(rows, whole, strict=True))
    assert all(told[row] == number for row, number in zip(rows, whole, strict=True))


def test_numbers_spread() -> None:
    """Neighbours, and texts that begin alike, go to different buckets."""
    for table in (
        pa.table({"id": pa.array(range(10_000), pa.int64())}),
        pa.table({"id": [f"customer-{number:08}" for number in range(10_000)]}),
    ):
        numbers = key_hashes(table)
        assert len(set(numbers)) == 10_000
        counts = np.bincount((numbers % np.uint64(16)).astype(np.int64), minlength=16)
        assert counts.min() > 500


def test_long_texts_are_hashed_in_windows() -> None:
    """The number does not depend on what stands beside."""
    texts = ["x" * size for size in (0, 1, 700_000, 700_001, 2_000_000, 1)]
    together = key_hashes(pa.table({"id": texts}))
    alone = [key_hashes(pa.table({"id": [text]}))[0] for text in texts]
    assert list(together) == alone
    assert len(set(alone)) == 5


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.integers(0, 24),
    st.randoms(use_true_random=False),
)
def test_keys_of_one_chain_have_one_root(
    moves: list[tuple[int, int]], cut: int, random: Any
) -> None:
    """Whatever the pieces in which the images come; keys that no row moved between have their
    own."""
    images = [
        {"_change_type": kind, "_sequence": 2 * at + half, "id": keys[half]}
        for at, keys in enumerate(moves)
        for half, kind in enumerate(("update_preimage", "update_postimage"))
    ]
    random.shuffle(images)
    schema = pa.schema(
        [("_change_type", pa.string()), ("_sequence", pa.int64()), ("id", pa.int64())]
    )
    chains = KeyChains()
    for piece in (images[:cut], images[cut:]):
        table = pa.Table.from_pylist(piece, schema)
        chains.add(table, key_hashes(table.select(["id"])))
    roots = list(chains.roots(key_hashes(pa.table({"id": pa.array(range(10), pa.int64())}))))
    groups = {key: {key} for key in range(10)}
    for one, other in moves:
        both = groups[one] | groups[other]
        groups.update(dict.fromkeys(both, both))
    expected = [[other in groups[key] for other in range(10)] for key in range(10)]
    assert [[root == other for other in roots] for root in roots] == expected
