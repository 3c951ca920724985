"""What each way to write a mirror makes of it: copies are counted where there is no key, images may
leave columns out, columns are filled by what the source has, or are not quite the mirror's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.coalescing import LOST_ROW_REASON
from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    FoldedChanges,
    Merge,
    Replace,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.policies import Deletes
from lockstep.pipeline.values.stamps import Stamp
from tests.changes.partial_images import NAMES, PART, SCHEMA, Row, Workload, images_table
from tests.lake.conftest import ALIKE, Lake
from tests.lake.made import (
    PEOPLE,
    a_fold,
    a_target,
    a_write,
    changes,
    content,
    folded_changes,
    own_part,
    update,
)

MIRROR = "shop/shop/people"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COUNTED = pa.schema([("n", pa.int32()), ("_change_type", pa.string()), ("x", pa.float64())])
VALUES = [(n, text, x) for n in (None, 1) for text in (None, "a") for x in (None, 0.0, -0.0, 1.5)]


@pytest.fixture
def lake(written_lake: Lake) -> Lake:
    """Each way to write proves the same contract."""
    return written_lake


def images(*given: tuple[str, tuple[Any, ...]]) -> pa.Table:
    rows = [
        {"_change_type": kind, "n": n, "__change_type": text, "x": x}
        for kind, (n, text, x) in given
    ]
    spelled = pa.schema([("n", pa.int32()), ("__change_type", pa.string()), ("x", pa.float64())])
    return changes(spelled, rows)


def a_count(
    mirrors: Mirrors, number: int, table: pa.Table, *, turned: bool = False
) -> CountedMerge:
    schema = pa.schema([*reversed(COUNTED)]) if turned else COUNTED
    part = own_part((mirrors.stage("images", table),), schema)
    return CountedMerge(a_target(number, schema), (part,))


def counted(mirrors: Mirrors) -> Counter[str]:
    """How often each row is there, told apart bit for bit."""
    version = mirrors.version(MIRROR)
    assert version is not None
    batches = mirrors.rows(MIRROR, COUNTED.names, version)
    rows = pa.Table.from_batches(batches, schema=COUNTED).to_pylist()
    return Counter(repr(tuple(row.values())) for row in rows)


def test_copies_are_counted(lake: Lake) -> None:
    """Random inserts, updates and deletes with NULLs and both zeros, then more of them whose
    columns are in another order, and deletes of rows that nobody read: a start in the middle of a
    table's life sees such. A repeated write changes nothing."""
    chance = Random(0)
    there: list[tuple[Any, ...]] = []
    for number in (1, 2):
        found: list[tuple[str, tuple[Any, ...]]] = []
        for _ in range(90):
            if there and chance.random() < 0.3:
                found.append(("delete", there.pop(chance.randrange(len(there)))))
            elif there and chance.random() < 0.3:
                found.append(("update_preimage", there.pop(chance.randrange(len(there)))))
                there.append(chance.choice(VALUES))
                found.append(("update_postimage", there[-1]))
            else:
                there.append(chance.choice(VALUES))
                found.append(("insert", there[-1]))
        if number == 2:
            gone = there.pop()
            copies = there.count(gone)
            there = [one for one in there if repr(one) != repr(gone)]
            found += [("delete", gone)] * (copies + 3) + [("delete", (2, "b", 0.0))]
        mirrors = lake.before if number == 1 else lake.mirrors
        write = a_count(mirrors, number, images(*found), turned=number == 2)
        commits = [mirrors.write(write) for _ in range(2)]
        assert commits[0] == commits[1]
        assert counted(lake.mirrors) == Counter(map(repr, there))


def test_an_exact_snapshot_is_counted_on(lake: Lake) -> None:
    """A replacement: the rows that were read, and what comes and goes behind."""
    rows = [(1, "a", 0.0), (1, "a", 0.0), (1, "a", -0.0), (None, None, None)]
    table = pa.Table.from_pylist(
        [dict(zip(COUNTED.names, row, strict=True)) for row in rows], schema=COUNTED
    )
    own = tuple(ColumnOrigin(field.name, field.type) for field in COUNTED)
    behind = images(("delete", rows[0]), ("delete", rows[3]), ("insert", rows[2]))
    read = (StagedFiles((lake.mirrors.stage("read", table),), own),)
    lake.mirrors.write(
        CountedReplace(a_target(1, COUNTED), a_count(lake.mirrors, 1, behind).parts, read)
    )
    assert counted(lake.mirrors) == Counter(map(repr, [rows[0], rows[2], rows[2]]))


# -- changes whose images leave columns out ----------------------------------------------


OWN = tuple(ColumnOrigin(field.name, field.type) for field in SCHEMA)


def snapshot(mirrors: Mirrors, rows: list[Row]) -> tuple[StagedFiles, ...]:
    return (StagedFiles((mirrors.stage("read", pa.Table.from_pylist(rows, SCHEMA)),), OWN),)


def begin(lake: Lake, rows: list[Row]) -> None:
    lake.before.write(Replace(a_target(1, SCHEMA), ("id",), snapshot(lake.before, rows)))


def a_merge(lake: Lake, number: int, *images: tuple[pa.Table, StagedFiles]) -> Merge:
    return a_fold(lake.mirrors, a_target(number, SCHEMA), images)


def shown(lake: Lake) -> list[Row]:
    version = lake.mirrors.version(MIRROR)
    assert version is not None
    return [dict(row) for row in content(lake.mirrors, MIRROR, SCHEMA, version)]


def in_order(workload: Workload) -> list[Row]:
    return sorted(workload.rows.values(), key=lambda row: int(row["id"]))


def of_columns(*names: str) -> frozenset[str]:
    return frozenset(names)


def an_update(old: int, new: int, **changed: int) -> pa.Table:
    """One row's, logged with its key and what changed."""
    nothing = dict.fromkeys(NAMES)
    return images_table(
        [
            ("update_preimage", {**nothing, "id": old}, of_columns("id")),
            ("update_postimage", {**nothing, "id": new, **changed}, of_columns("id", *changed)),
        ]
    )


def test_many_of_each_row_are_merged(lake: Lake) -> None:
    """With changes of keys. A change of a row that is not there is refused before: no NULL is made
    up, and nothing is committed."""
    workload = Workload(Random(7))
    begin(lake, workload.fill(8))
    before = shown(lake)
    with pytest.raises(TableError) as refused:
        lake.mirrors.write(a_merge(lake, 2, (an_update(1000, 1000, a=5), PART)))
    assert refused.value.reason == LOST_ROW_REASON
    assert shown(lake) == before
    for _ in range(50):
        workload.change()
    lake.mirrors.write(a_merge(lake, 2, (workload.table(), PART)))
    assert shown(lake) == in_order(workload)


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_a_snapshot_is_looked_into(lake: Lake) -> None:
    """Changes on top of rows that were read from the source."""
    workload = Workload(Random(8))
    rows = workload.fill(8)
    begin(lake, [{**row, "c": -1} for row in rows])
    for _ in range(20):
        workload.change()
    target = a_target(2, SCHEMA)
    changes = folded_changes(lake.mirrors, target, [(workload.table(), PART)])
    lake.mirrors.write(Replace(target, ("id",), snapshot(lake.mirrors, rows), changes))
    assert shown(lake) == in_order(workload)


# -- columns that are read from the source by key, and filled by the commit that merges changes


OLD = pa.schema([("id", pa.int64()), ("name", pa.string())])
NEW = pa.schema([*OLD, ("g", pa.string())])
BEFORE = (
    *(ColumnOrigin(f.name, f.type) for f in OLD),
    ColumnOrigin(value=pa.scalar(None, pa.string())),
)
BEHIND = tuple(ColumnOrigin(field.name, field.type) for field in NEW)
READ = (BEHIND[0], ColumnOrigin(), BEHIND[2])
READ_UP_TO = 6

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


def read_images(
    kinds: Sequence[tuple[str, int, str, str | None]], first: int, new: bool
) -> pa.Table:
    rows = [
        {"_change_type": kind, "id": number, "name": name, "_committed_at": NOON, "g": g}
        for kind, number, name, g in kinds
    ]
    return changes(NEW if new else OLD, rows, first=first)


def a_completion(
    mirrors: Mirrors, number: int, *, some: bool = True, deletes: Deletes = Deletes.REMOVE
) -> Merge:
    """Changes of before and behind the statement, and a reading at `READ_UP_TO`."""
    tables = [
        (read_images(IMAGES[:4], 1, new=False), BEFORE),
        (read_images(IMAGES[4:], 5, new=True), BEHIND),
    ]
    read = pa.table({"id": list(SNAPSHOT), "g": list(SNAPSHOT.values())})
    part = StagedFiles((mirrors.stage("read", read),), READ, READ_UP_TO)
    target = a_target(number, NEW, deletes=deletes)
    if not some:
        return Merge(target, ("id",), FoldedChanges(), completion=part)
    parts = [(table, StagedFiles((), columns)) for table, columns in tables]
    return a_fold(mirrors, target, parts, completion=part)


def with_column(mirrors: Mirrors, **more: Any) -> int:
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
    version = with_column(lake.before)
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
    with_column(lake.before)
    commit = lake.mirrors.write(a_completion(lake.mirrors, 2, some=False))
    assert content(lake.mirrors, MIRROR, NEW, commit.delta_version) == [
        {"id": number, "name": "old", "g": SNAPSHOT.get(number)} for number in (1, 2, 3, 6, 7, 9)
    ]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_rows_marked_deleted_have_what_their_last_image_knew(lake: Lake) -> None:
    """They are not at the source any more."""
    with_column(lake.before, deletes=Deletes.SOFT)
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


# -- columns that are not quite the mirror's ---------------------------------------------


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_rows_that_are_gone_keep_what_the_new_columns_hold(lake: Lake) -> None:
    """`deletes = "soft"`, and a replacement under other types: a value that only the source
    could convert is NULL; with another key nobody can tell which rows are gone."""
    wide = pa.schema([("id", pa.int32()), ("name", pa.string()), ("n", pa.int32())])
    rows = [{"id": number, "name": "old", "n": number} for number in (1, 2)]
    lake.before.write(a_write(lake.before, 1, "append", rows, schema=wide))
    other = pa.schema([("id", pa.int64()), ("name", pa.date32()), ("n", pa.int64())])
    for number, key in ((2, ("id",)), (3, ("name",))):
        schema = other if number == 2 else pa.schema([("name", pa.string())])
        read = [{"id": 2, "name": date(2026, 1, 1), "n": 9}] if number == 2 else [{"name": "x"}]
        own = tuple(ColumnOrigin(field.name, field.type) for field in schema)
        staged = lake.mirrors.stage("read", pa.Table.from_pylist(read, schema=schema))
        target = a_target(number, schema, deletes=Deletes.SOFT)
        lake.mirrors.write(
            Replace(target, key, (StagedFiles((staged,), own),), emptied_by=Stamp(0, NOON))
        )
    shown = content(lake.mirrors, MIRROR, pa.schema([*other, DELETED_AT]), 1)
    assert shown == [
        {"id": 1, "name": None, "n": 1, "_deleted_at": NOON},
        {"id": 2, "name": date(2026, 1, 1), "n": 9, "_deleted_at": None},
    ]
    last = pa.schema([("name", pa.string()), DELETED_AT])
    assert content(lake.mirrors, MIRROR, last, 2) == [{"name": "x", "_deleted_at": None}]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_a_column_that_no_image_knows_stays(lake: Lake) -> None:
    """Dropped at the source and kept: a row that was there has its value, a new one NULL."""
    rows = [{"id": number, "name": f"old {number}"} for number in (1, 2)]
    lake.before.write(a_write(lake.before, 1, "append", rows))
    left = pa.schema([PEOPLE.field("id")])
    before = {"_change_type": "update_preimage", "id": 1}
    images = changes(left, [before, update(id=1), {"id": 3}])
    part = StagedFiles((), (ColumnOrigin("id", pa.int64()), ColumnOrigin()))
    lake.mirrors.write(a_fold(lake.mirrors, a_target(2), [(images, part)]))
    assert content(lake.mirrors, MIRROR, PEOPLE, 1) == [*rows, {"id": 3, "name": None}]
