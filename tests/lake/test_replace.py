"""Mirrors that are replaced in one commit: a snapshot, and the changes behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.layout import DELETED_AT, keep_flag_names
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    FoldedChanges,
    Merge,
    MirrorRows,
    MirrorTarget,
    MirrorWrite,
    Replace,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.policies import Deletes, LakePolicies, Truncates
from lockstep.pipeline.values.stamps import Stamp
from tests.lake.conftest import ALIKE, Lake
from tests.lake.made import (
    PEOPLE,
    a_fold,
    a_target,
    a_write,
    changes,
    content,
    delete,
    folded_changes,
    own_part,
)

MIRROR = "shop/shop/people"
OWN = tuple(ColumnOrigin(field.name, field.type) for field in PEOPLE)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NIGHT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def lake(written_lake: Lake) -> Lake:
    """Each way to write proves the same contract."""
    return written_lake


def images(*kinds_and_rows: tuple[str, int, str | None], at: datetime | None = None) -> pa.Table:
    """Row images in this order."""
    return changes(
        PEOPLE,
        [
            {"_change_type": kind, "id": number, "name": name, "_committed_at": at}
            for kind, number, name in kinds_and_rows
        ],
    )


def a_replacement(
    mirrors: Mirrors,
    number: int,
    snapshot: Sequence[dict[str, Any]] | None,
    behind: pa.Table | None = None,
    *,
    schema: pa.Schema = PEOPLE,
    deletes: Deletes = Deletes.REMOVE,
    moment: datetime | None = None,
) -> Replace:
    parts: tuple[StagedFiles, ...] = ()
    if snapshot is not None:
        table = pa.Table.from_pylist(list(snapshot), schema=schema)
        own = tuple(ColumnOrigin(field.name, field.type) for field in schema)
        parts = (StagedFiles((mirrors.stage("snapshot", table),), own),)
    target, changes = a_target(number, schema, deletes=deletes), FoldedChanges()
    if behind is not None:
        changes = folded_changes(mirrors, target, [(behind, own_part((), schema))])
    emptied = None if moment is None else Stamp(0, moment)
    return Replace(target, ("id",), parts, changes, emptied)


def test_each_snapshot_with_the_changes_on_top_is_the_mirror(lake: Lake) -> None:
    """One mirror, replaced again and again, each time by one commit that is made once and leaves
    nothing of before: CREATE TABLE, which has columns and no row; a snapshot, over whose rows
    changes win; what came behind a TRUNCATE, then nothing; other columns, also a DATETIME, which
    an older mirror must be made ready for, and behind which the next merge goes on."""
    mirrors, before = lake.mirrors, lake.before
    before.write(a_replacement(before, 1, None))
    assert (mirrors.schema(MIRROR, 0), content(mirrors, MIRROR, PEOPLE, 0)) == (PEOPLE, [])
    before.write(a_write(before, 2, "append", [{"id": one, "name": "old"} for one in (1, 2)]))
    read = [{"id": number, "name": "read"} for number in (2, 4, 5, 6)]
    behind = images(
        ("insert", 4, "seen twice"),
        ("update_preimage", 5, "read"),
        ("update_postimage", 7, "moved"),
        ("delete", 6, "read"),
        ("delete", 9, "never there"),
        ("truncate", 0, None),
    )
    write = a_replacement(mirrors, 3, read, behind)
    commits = [mirrors.write(write) for _ in range(2)]
    assert commits[0] == commits[1] == mirrors.find_commit(MIRROR, write.target.app_id, 3)
    assert mirrors.version(MIRROR) == commits[0].delta_version == 2
    assert content(mirrors, MIRROR, PEOPLE, 2) == [
        {"id": 2, "name": "read"},
        {"id": 4, "name": "seen twice"},
        {"id": 7, "name": "moved"},
    ]
    before.write(a_replacement(before, 4, None, images(("insert", 1, "new"))))
    assert content(mirrors, MIRROR, PEOPLE, 3) == [{"id": 1, "name": "new"}]
    mirrors.write(a_replacement(mirrors, 5, None))
    assert content(mirrors, MIRROR, PEOPLE, 4) == []
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us"))])
    rows = [{"id": "x", "at": datetime(2020, 1, 1)}]
    done = mirrors.write(a_replacement(mirrors, 6, rows, schema=schema))
    assert content(mirrors, MIRROR, schema, done.delta_version) == rows
    more = a_write(before, 7, "merge", [delete(id="x"), {"id": "y"}], schema=schema)
    done = before.write(more)
    assert content(mirrors, MIRROR, schema, done.delta_version) == [{"id": "y", "at": None}]


def test_files_of_another_structure_are_mapped(lake: Lake) -> None:
    """Renamed, cast, filled and unknown columns, in a snapshot and behind it."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("more", pa.decimal128(5, 0))])
    own = (
        ColumnOrigin("key", pa.int32()),
        ColumnOrigin(value=pa.scalar("it's")),
        ColumnOrigin("flag", pa.bool_()),
    )
    table = pa.table({"key": pa.array([1, 2], pa.int32()), "flag": pa.array([True, None])})
    behind = images(("insert", 3, "c"))
    later = (*OWN, ColumnOrigin())
    target = a_target(1, schema)
    changes = folded_changes(lake.mirrors, target, [(behind, StagedFiles((), later))])
    read = (StagedFiles((lake.mirrors.stage("read", table),), own),)
    lake.mirrors.write(Replace(target, ("id",), read, changes))
    assert content(lake.mirrors, MIRROR, schema, 0) == [
        {"id": 1, "name": "it's", "more": 1},
        {"id": 2, "name": "it's", "more": None},
        {"id": 3, "name": "c", "more": None},
    ]


SOFT = pa.schema([*PEOPLE, DELETED_AT])


def test_rows_of_another_mirror_at_a_version(lake: Lake) -> None:
    """Without those that are marked as deleted there, in the columns of this one, with the changes
    on top; what the other mirror came to meanwhile does not matter. Of changes that delete, those
    without a moment leave no row, also where the others are marked."""
    other, before = "shop/shop/former", lake.before
    rows = [{"id": number, "name": f"n{number}"} for number in range(1, 6)]
    before.write(a_write(before, 1, "append", rows, mirror=other, deletes=Deletes.SOFT))
    gone = [delete(id=1, name="n1", _committed_at=NOON)]
    marked = pa.schema([*PEOPLE, pa.field("_committed_at", pa.timestamp("us", "UTC"))])
    before.write(_marking(lake, other, gone, marked))
    later = [{"id": 9, "name": "later"}]
    before.write(a_write(before, 3, "append", later, mirror=other, deletes=Deletes.SOFT))
    columns = (*OWN, ColumnOrigin(value=pa.scalar(7)))
    schema = pa.schema([*PEOPLE, ("n", pa.int32())])
    target = a_target(1, schema, deletes=Deletes.SOFT)
    told = changes(
        schema,
        [
            delete(id=2, name="n2", n=7, _committed_at=None),
            delete(id=3, name="n3", n=7, _committed_at=NIGHT),
            {"id": 6, "name": "new", "n": 8, "_committed_at": NIGHT},
        ],
    )
    folded = folded_changes(lake.mirrors, target, [(told, own_part((), schema))])
    snapshot = (MirrorRows(lake.mirrors.path(other), 1, columns),)
    done = lake.mirrors.write(Replace(target, ("id",), snapshot, folded))
    shown = pa.schema([*schema, DELETED_AT])
    assert [
        (row["id"], row["n"], row[DELETED_AT.name] is None)
        for row in content(lake.mirrors, MIRROR, shown, done.delta_version)
    ] == [(3, 7, False), (4, 7, True), (5, 7, True), (6, 8, True)]
    copies = (MirrorRows(lake.mirrors.path(other), 1, OWN),)
    target = a_target(1, mirror="shop/shop/keyless")
    done = lake.mirrors.write(CountedReplace(target, (), copies))
    found = content(lake.mirrors, "shop/shop/keyless", PEOPLE, done.delta_version)
    assert [row["id"] for row in found] == [2, 3, 4, 5]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_an_earlier_version_of_the_same_mirror(lake: Lake) -> None:
    """Its rows with the changes since, whatever the versions after it show; also other columns,
    and without a key."""
    before = lake.before
    rows = [{"id": number, "name": f"n{number}"} for number in range(1, 5)]
    before.write(a_write(before, 1, "append", rows))
    wrong = [{"id": number, "name": "wrong"} for number in range(2, 9)]
    before.write(a_replacement(before, 2, wrong))
    schema = pa.schema([*PEOPLE, ("n", pa.int32())])
    target = a_target(3, schema)
    told = changes(schema, [delete(id=2, name="n2", n=7), {"id": 6, "name": "new", "n": 8}])
    folded = folded_changes(lake.mirrors, target, [(told, own_part((), schema))])
    columns = (*OWN, ColumnOrigin(value=pa.scalar(7)))
    snapshot = (MirrorRows(lake.mirrors.path(MIRROR), 0, columns),)
    write = Replace(target, ("id",), snapshot, folded)
    commits = [lake.mirrors.write(write) for _ in range(2)]
    assert commits[0] == commits[1]
    found = content(lake.mirrors, MIRROR, schema, commits[0].delta_version)
    assert [tuple(row.values()) for row in found] == [
        (1, "n1", 7),
        (3, "n3", 7),
        (4, "n4", 7),
        (6, "new", 8),
    ]
    keyless = "shop/shop/keyless"
    before.write(a_write(before, 1, "append", rows[:2] + rows[:1], mirror=keyless))
    before.write(a_write(before, 2, "append", wrong, mirror=keyless))
    copies = (MirrorRows(lake.mirrors.path(keyless), 0, OWN),)
    done = lake.mirrors.write(CountedReplace(a_target(3, mirror=keyless), (), copies))
    found = content(lake.mirrors, keyless, PEOPLE, done.delta_version)
    assert [row["id"] for row in found] == [1, 1, 2]


def _marking(lake: Lake, mirror: str, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> Merge:
    """The second transaction of a mirror, whose deletes have their moments."""
    full = pa.schema([("_change_type", pa.string()), *schema])
    file = lake.before.stage("marked", pa.Table.from_pylist(list(rows), schema=full))
    target = a_target(2, PEOPLE, mirror, deletes=Deletes.SOFT)
    return Merge(target, ("id",), FoldedChanges((file,)))


def test_deleted_rows_stay_with_their_moment(lake: Lake) -> None:
    """In a merge and in a fold alike, also of a row that came and went in one run; a later
    insert clears it."""
    mirrors, before = lake.mirrors, lake.before
    rows = [{"id": number, "name": "old"} for number in (1, 2, 3)]
    before.write(a_write(before, 1, "append", rows, deletes=Deletes.SOFT))
    staged = pa.table(
        {
            "_change_type": ["delete", "update_postimage"],
            "_committed_at": pa.array([NOON, NIGHT], DELETED_AT.type),
            "id": [1, 2],
            "name": ["last", "b"],
        }
    )
    folded = FoldedChanges((before.stage("soft", staged),))
    before.write(Merge(a_target(2, deletes=Deletes.SOFT), ("id",), folded))
    assert content(mirrors, MIRROR, SOFT, 1) == [
        {"id": 1, "name": "last", "_deleted_at": NOON},
        {"id": 2, "name": "b", "_deleted_at": None},
        {"id": 3, "name": "old", "_deleted_at": None},
    ]
    behind = images(
        ("insert", 1, "again"),
        ("insert", 4, "d"),
        ("delete", 4, "d"),
        ("delete", 3, "its last"),
        at=NIGHT,
    )
    part = own_part((), PEOPLE)
    target = a_target(3, deletes=Deletes.SOFT)
    mirrors.write(a_fold(mirrors, target, [(behind, part)]))
    assert content(mirrors, MIRROR, SOFT, 2) == [
        {"id": 1, "name": "again", "_deleted_at": None},
        {"id": 2, "name": "b", "_deleted_at": None},
        {"id": 3, "name": "its last", "_deleted_at": NIGHT},
        {"id": 4, "name": "d", "_deleted_at": NIGHT},
    ]
    emptied = a_replacement(
        mirrors, 4, None, images(("insert", 2, "new")), deletes=Deletes.SOFT, moment=NOON
    )
    mirrors.write(emptied)
    assert content(mirrors, MIRROR, SOFT, 3) == [
        {"id": 1, "name": "again", "_deleted_at": NOON},
        {"id": 2, "name": "new", "_deleted_at": None},
        {"id": 3, "name": "its last", "_deleted_at": NIGHT},
        {"id": 4, "name": "d", "_deleted_at": NIGHT},
    ]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_rows_that_went_have_their_own_moments(lake: Lake) -> None:
    """In a first write, and in one over a mirror's rows: what is known of them is what they were
    last, and a value that nobody knows is the mirror's. What came since wins."""

    def gone(*rows: tuple[int, str | None, bool]) -> FoldedChanges:
        keep = keep_flag_names(PEOPLE.names)["name"]
        ids, names, keeps = zip(*rows, strict=True)
        staged = {
            "_change_type": ["delete"] * len(rows),
            "_committed_at": pa.array([NIGHT] * len(rows), DELETED_AT.type),
            "id": pa.array(ids, PEOPLE.field("id").type),
            "name": pa.array(names, pa.string()),
            keep: list(keeps),
        }
        return FoldedChanges(
            (lake.mirrors.stage("gone", pa.table(staged)),), kept_columns=("name",)
        )

    def emptied(number: int, changes: pa.Table, left: FoldedChanges) -> Replace:
        write = a_replacement(
            lake.mirrors, number, None, changes, deletes=Deletes.SOFT, moment=NOON
        )
        return replace(write, deleted_rows=left)

    first = emptied(
        1,
        images(("insert", 1, "a"), ("insert", 2, "b"), ("insert", 3, "c")),
        gone((2, "never", False), (4, "came and went", False)),
    )
    lake.mirrors.write(first)
    assert content(lake.mirrors, MIRROR, SOFT, 0) == [
        {"id": 1, "name": "a", "_deleted_at": None},
        {"id": 2, "name": "b", "_deleted_at": None},
        {"id": 3, "name": "c", "_deleted_at": None},
        {"id": 4, "name": "came and went", "_deleted_at": NIGHT},
    ]
    left = gone((1, "its last", False), (2, "its last", False), (3, None, True), (5, None, True))
    lake.mirrors.write(emptied(2, images(("insert", 2, "again")), left))
    assert content(lake.mirrors, MIRROR, SOFT, 1) == [
        {"id": 1, "name": "its last", "_deleted_at": NIGHT},
        {"id": 2, "name": "again", "_deleted_at": None},
        {"id": 3, "name": "c", "_deleted_at": NIGHT},
        {"id": 4, "name": "came and went", "_deleted_at": NIGHT},
        {"id": 5, "name": None, "_deleted_at": NIGHT},
    ]
    lake.mirrors.write(emptied(3, images(("insert", 6, "new")), FoldedChanges()))
    assert [row["_deleted_at"] for row in content(lake.mirrors, MIRROR, SOFT, 2)] == [
        *(NIGHT, NOON, NIGHT, NIGHT, NIGHT),
        None,
    ]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_deletes_are_ignored(lake: Lake) -> None:
    """A deleted row stays as it was last, in a merge and when a table is emptied or read again;
    one whose key moved does not, whatever its old key was before. With `truncates = "ignore"`
    alone, a row stays unless the log deletes it."""
    mirrors, before = lake.mirrors, lake.before
    rows = [{"id": number, "name": "old"} for number in range(1, 6)]
    before.write(a_write(before, 1, "append", rows, deletes=Deletes.IGNORE))
    came = images(
        ("delete", 1, "its last"),
        ("insert", 6, "came"),
        ("delete", 6, "went"),
        ("update_preimage", 2, "old"),
        ("update_postimage", 7, "moved"),
        ("delete", 3, "old"),
        ("insert", 3, "again"),
    )
    target = a_target(2, deletes=Deletes.IGNORE)
    mirrors.write(a_fold(mirrors, target, [(came, own_part((), PEOPLE))]))
    left = {1: "its last", 3: "again", 4: "old", 5: "old", 6: "went", 7: "moved"}
    assert {row["id"]: row["name"] for row in content(mirrors, MIRROR, PEOPLE, 1)} == left
    behind = images(
        ("insert", 8, "new"),
        ("delete", 4, "its last"),
        ("update_preimage", 5, "old"),
        ("update_postimage", 9, "moved"),
    )
    read = [{"id": 3, "name": "read"}, {"id": 4, "name": "read"}]
    mirrors.write(a_replacement(mirrors, 3, read, behind, deletes=Deletes.IGNORE))
    left = {1: "its last", 3: "read", 4: "its last", 6: "went", 7: "moved", 8: "new", 9: "moved"}
    assert {row["id"]: row["name"] for row in content(mirrors, MIRROR, PEOPLE, 2)} == left
    again = images(("delete", 1, "its last"), ("insert", 8, "newer"))
    write = a_replacement(mirrors, 4, None, again)
    target = replace(write.target, policies=LakePolicies(truncates=Truncates.IGNORE))
    mirrors.write(replace(write, target=target))
    left = {**left, 8: "newer"}
    del left[1]
    assert {row["id"]: row["name"] for row in content(mirrors, MIRROR, PEOPLE, 3)} == left


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_a_mirror_made_by_a_merge_marks_its_deleted_rows(lake: Lake) -> None:
    """The first write of a table already deletes."""
    behind = images(("insert", 1, "a"), ("insert", 2, "b"), ("delete", 1, "a"), at=NOON)
    target = a_target(1, deletes=Deletes.SOFT)
    lake.mirrors.write(a_fold(lake.mirrors, target, [(behind, own_part((), PEOPLE))]))
    assert content(lake.mirrors, MIRROR, SOFT, 0) == [
        {"id": 1, "name": "a", "_deleted_at": NOON},
        {"id": 2, "name": "b", "_deleted_at": None},
    ]


@pytest.mark.parametrize(
    ("written_lake", "kind"),
    [
        *(
            (lake, kind)
            for lake in ("memory", "disk")
            for kind in (Append, CountedMerge, CountedReplace)
        ),
        ("queries", CountedMerge),
        pytest.param("queries", Append, marks=pytest.mark.soak),
        pytest.param("queries", CountedReplace, marks=pytest.mark.soak),
        pytest.param("connect", CountedMerge, marks=pytest.mark.soak),
    ],
    indirect=["written_lake"],
)
def test_only_images_above_a_number_count(
    lake: Lake, kind: Callable[[MirrorTarget, tuple[StagedFiles, ...]], MirrorWrite]
) -> None:
    """What came before a TRUNCATE, in the same files."""
    table = images(("insert", 1, "before"), ("insert", 2, "before"), ("insert", 3, "after"))
    part = own_part((lake.mirrors.stage("behind", table),), PEOPLE, above=2)
    lake.mirrors.write(kind(a_target(1), (part,)))
    assert content(lake.mirrors, MIRROR, PEOPLE, 0) == [{"id": 3, "name": "after"}]
