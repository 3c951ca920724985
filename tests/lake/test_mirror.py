"""Mirrors: one contract for memory and disk, then what only Delta can show."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import NoneType

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.ports.mirror_writes import Append, FoldedChanges, Merge, staged_paths
from lockstep.pipeline.ports.mirrors import MirrorCommit
from lockstep.pipeline.values.errors import (
    ForeignCommit,
    LakeUnavailable,
    MirrorRefused,
    TableError,
)
from lockstep.pipeline.values.retention import DEFAULT_KEEP, Retention
from tests.lake.conftest import ALIKE, Lake
from tests.lake.made import (
    PEOPLE,
    a_target,
    a_write,
    changes,
    content,
    delete,
    own_part,
    update,
)

MIRROR = "shop/shop/people"


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_segments_are_appended_as_they_are(written_lake: Lake) -> None:
    """The first write creates the table in the same commit; only the table's columns of a segment
    become columns of the mirror."""
    lake = written_lake
    folder = "shop/_changes/shop/t=C3=A4ble"
    rows = changes(PEOPLE, [{"id": 1, "name": "a"}, {"id": 2, "name": None}])
    writer = lake.segments.open(folder, batch=1, schema_version=1, schema=rows.schema)
    writer.write(rows)
    files = tuple(lake.mirrors.path(f"{folder}/{file.path}") for file in writer.close())
    done = lake.mirrors.write(Append(a_target(1), (own_part(files, PEOPLE),)))
    assert done == MirrorCommit(0, f"write 1 of {MIRROR}")
    assert content(lake.mirrors, MIRROR, PEOPLE, 0) == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": None},
    ]


@pytest.mark.parametrize("written_lake", ALIKE, indirect=True)
def test_merge_into_no_table_keeps_the_upserts(written_lake: Lake) -> None:
    """A table whose first batch already has updates and deletes."""
    lake = written_lake
    first = [update(id=1, name="a"), delete(id=2, name="b")]
    lake.mirrors.write(a_write(lake.mirrors, 1, "merge", first))
    assert content(lake.mirrors, MIRROR, PEOPLE, 0) == [{"id": 1, "name": "a"}]


def test_a_repeated_write_is_not_applied_again(lake: Lake) -> None:
    """Append and merge alike answer with the commit that recorded them."""
    append = a_write(lake.mirrors, 1, "append", [{"id": 1, "name": "a"}])
    merge = a_write(lake.mirrors, 2, "merge", [{"id": 2, "name": "b"}])
    commits = [lake.mirrors.write(write) for write in (append, merge, append, merge)]
    assert [commit.delta_version for commit in commits] == [0, 1, 0, 1]
    assert lake.mirrors.version(MIRROR) == 1
    app_id = append.target.app_id
    assert lake.mirrors.find_commit(MIRROR, app_id, 2) == commits[1]
    assert lake.mirrors.find_commit(MIRROR, app_id, 3) is None


def test_a_higher_transaction_without_ours_is_foreign(lake: Lake) -> None:
    """Delta would skip the write without a word."""
    lake.mirrors.write(a_write(lake.mirrors, 5, "append", [{"id": 1, "name": "a"}]))
    with pytest.raises(ForeignCommit):
        lake.mirrors.write(a_write(lake.mirrors, 4, "append", [{"id": 2, "name": "b"}]))


def test_the_same_transaction_with_another_description_is_foreign(lake: Lake) -> None:
    """A number that was used for something else never passes for done."""
    lake.mirrors.write(a_write(lake.mirrors, 1, "append", [{"id": 1}], user_metadata="one"))
    with pytest.raises(ForeignCommit):
        lake.mirrors.write(a_write(lake.mirrors, 1, "append", [{"id": 2}], user_metadata="two"))


def test_staged_files_can_be_removed_twice(lake: Lake) -> None:
    """A step that repeats finds nothing to do."""
    path = lake.mirrors.stage("x", pa.table({"a": [1]}))
    lake.mirrors.unstage(path)
    lake.mirrors.unstage(path)


def test_a_mirror_has_the_promised_properties(disk: Lake, folder: Path) -> None:
    """Deletion vectors, in-commit timestamps, files of thirty days and a log of twice that; all
    nullable."""
    disk.mirrors.write(a_write(disk.mirrors, 1, "append", [{"id": 1}]))
    table = DeltaTable(folder / MIRROR)
    assert table.metadata().configuration == {
        "delta.enableDeletionVectors": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.deletedFileRetentionDuration": "interval 30 days",
        "delta.logRetentionDuration": "interval 60 days",
    }
    assert [field.nullable for field in table.schema().fields] == [True, True]
    assert disk.mirrors.retention(MIRROR) == Retention.for_keep(DEFAULT_KEEP)
    (folder / MIRROR / "_delta_log" / f"{0:020d}.crc").unlink()
    assert disk.mirrors.retention(MIRROR) == Retention.for_keep(DEFAULT_KEEP)
    assert disk.mirrors.retention("shop/shop/none") is None


def test_four_tables_at_once_keep_to_themselves(disk: Lake, folder: Path) -> None:
    """One fails on purpose; the others carry exactly their own transaction and words."""
    names = [f"shop/shop/t{number}" for number in range(4)]
    for name in names:
        disk.mirrors.write(
            a_write(disk.mirrors, 1, "append", [{"id": 1, "name": "a"}], mirror=name)
        )
    change = [update(id=1, name="b"), {"id": 2, "name": "c"}]
    writes = [a_write(disk.mirrors, 2, "merge", change, mirror=name) for name in names]
    gone = FoldedChanges(("/nowhere/gone.parquet",))
    writes[2] = Merge(writes[2].target, ("id",), gone)
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(disk.mirrors.write, write) for write in writes]
        failed = [future.exception() for future in running]
    assert [type(error) for error in failed] == [NoneType, NoneType, MirrorRefused, NoneType]
    for name, write in zip(names, writes, strict=True):
        history = DeltaTable(folder / name).history()
        mine = [f"write 1 of {name}", f"write 2 of {name}"]
        assert [commit["userMetadata"] for commit in reversed(history)] == (
            mine if name != names[2] else mine[:1]
        )
        assert DeltaTable(folder / name).transaction_version(write.target.app_id) == len(history)


def test_a_write_works_after_one_that_failed(disk: Lake) -> None:
    """No configuration of the failed one is left behind."""
    good = a_write(disk.mirrors, 1, "append", [{"id": 1, "name": "a"}])
    with pytest.raises(LakeUnavailable):
        disk.mirrors.write(Append(a_target(7), (own_part(("/nowhere/gone.parquet",), PEOPLE),)))
    assert disk.mirrors.write(good) == MirrorCommit(0, good.target.user_metadata)


def test_columns_that_the_mirror_lacks_quarantine_the_table(disk: Lake) -> None:
    """Append and merge alike; nothing is committed."""
    disk.mirrors.write(a_write(disk.mirrors, 1, "append", [{"id": 1, "name": "a"}]))
    wider = pa.schema([*PEOPLE, ("more", pa.string())])
    other = pa.schema([("id", pa.int64()), ("name", pa.int64())])
    for number, mode in ((2, "append"), (3, "merge")):
        for schema in (wider, other):
            with pytest.raises(TableError):
                disk.mirrors.write(a_write(disk.mirrors, number, mode, [{"id": 2}], schema=schema))
    assert disk.mirrors.version(MIRROR) == 0


def test_no_stack_trace_reaches_a_person(disk: Lake) -> None:
    """An error's words are one line, and it says what to do."""
    write = a_write(disk.mirrors, 1, "append", [{"id": 1}])
    Path(staged_paths(write)[0]).write_bytes(b"PAR1 this is no Parquet file PAR1")
    with pytest.raises(MirrorRefused) as caught:
        disk.mirrors.write(write)
    assert "\n" not in caught.value.reason
    assert caught.value.hint
