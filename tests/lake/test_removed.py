"""Mirrors that are removed: gone as a whole, and begun again in their place. And mirrors whose log
is cut: nothing is left of earlier versions, and nothing is gone that anybody can still commit."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lockstep.pipeline.mirror.strategy import NO_FEW_ROWS
from lockstep.pipeline.model.foreign_commits import judge_foreign
from lockstep.pipeline.model.lake_commit import metadata_text
from lockstep.pipeline.ports.lease_check import no_check
from lockstep.pipeline.ports.mirror_writes import Replace
from lockstep.pipeline.values.errors import CommitConflict, LakeUnavailable, LeaseLost
from lockstep.resources.lake.delta.delta_log import commit_file
from lockstep.resources.lake.delta.pin import Head
from lockstep.resources.lake.mirror import deletion
from lockstep.resources.lake.spark.session import SparkProcess
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import (
    delta_table,
    files_below,
    make_durable_folder,
    remove_table,
)
from tests.fix_objects import ObjectStore
from tests.lake.conftest import Lake, lake_at
from tests.lake.made import PEOPLE, a_target, a_write, content, folded, own_part
from tests.lake.test_log_store import LateWriter

MIRROR = "shop/shop/people"


def test_a_mirror_is_removed_and_begins_anew(lake: Lake) -> None:
    """Its first version is 0 again, of other rows, in the same process too."""
    rows = [{"id": 1, "name": "one"}]
    lake.mirrors.write(a_write(lake.mirrors, 1, "append", rows))
    lake.mirrors.write(a_write(lake.mirrors, 2, "merge", [{"id": 2, "name": "two"}]))
    lake.mirrors.remove(MIRROR)
    assert lake.mirrors.version(MIRROR) is None
    lake.mirrors.remove(MIRROR)
    rows = [{"id": 3, "name": "three"}]
    made = lake.mirrors.write(a_write(lake.mirrors, 3, "append", rows, app_id="another"))
    assert made.delta_version == 0
    rows = [{"id": 4, "name": "four"}]
    made = lake.mirrors.write(a_write(lake.mirrors, 4, "merge", rows, app_id="another"))
    assert content(lake.mirrors, MIRROR, PEOPLE, made.delta_version) == [
        {"id": 3, "name": "three"},
        {"id": 4, "name": "four"},
    ]
    if lake.folder is not None:
        assert [path.name for path in (lake.folder / "shop").iterdir()] == ["shop"]


def made(folder: LakePath, name: str = "part") -> LakePath:
    """What a table's folder has in it: a commit, and the file of that name which it adds."""
    if isinstance(folder, Path):
        (folder / "_delta_log").mkdir(parents=True)
        (folder / "deletion vectors").mkdir()
    commit_file(folder, 0).write_bytes(name.encode())
    (folder / f"{name}.parquet").write_bytes(b"rows")
    return folder


def test_what_was_cut_off_goes_with_the_next(tmp_path: Path) -> None:
    """A log that is on its way out is nobody's any more; its files go whenever."""
    folder = tmp_path / "people"
    made(folder)
    (folder / "_delta_log").rename(folder / "_delta_log.removed")
    remove_table(folder, no_check)
    remove_table(folder, no_check)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_was_made_after_a_killed_removal_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "people"
    made(folder, "before")
    (folder / "_delta_log").rename(folder / "_delta_log.removed")
    (folder / "deletion vectors").rmdir()
    remove_table(made(folder, "after"), no_check)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["disk", "objects"])
def test_a_table_that_was_made_meanwhile_stays(
    place: str, tmp_path: Path, object_store: ObjectStore
) -> None:
    """Whoever wakes up late removes what was there before, which is gone."""
    lake: LakePath = tmp_path if place == "disk" else object_store.prefix()
    folder = made(lake / "people", "before")

    def meanwhile() -> None:
        remove_table(folder, no_check)
        made(folder, "after")

    remove_table(folder, meanwhile)
    assert commit_file(folder, 0).read_bytes() == b"after"
    assert files_below(folder).keys() == {"after.parquet"}


def test_whoever_lost_the_source_removes_nothing(lake: Lake) -> None:
    lake.mirrors.write(a_write(lake.mirrors, 1, "append", [{"id": 1, "name": "one"}]))

    def lost() -> None:
        raise LeaseLost("Another run took over.", hint="let it finish")

    with pytest.raises(LeaseLost):
        lake.mirrors.remove(MIRROR, lost)
    assert lake.mirrors.version(MIRROR) == 0


def test_a_storage_that_refuses_is_named(disk: Lake, folder: Path) -> None:
    """Nothing of the mirror is gone then."""
    made(folder / MIRROR)
    (folder / MIRROR / "_delta_log.removed").write_text("in the way")
    with pytest.raises(LakeUnavailable):
        disk.mirrors.remove(MIRROR)
    assert (folder / MIRROR / "_delta_log").is_dir()


# -- a log that is cut -------------------------------------------------------------------------


WORD = b"canary"
ROWS = [{"id": number, "name": f"canary {number}"} for number in range(30)]
BARE = [{**row, "name": "x"} for row in ROWS[12:]]
CUT = [{"id": 1, "name": "y"}, *BARE[3:]]


def read_again(lake: Lake, number: int) -> int:
    """Write a mirror that shows the word, and then one that does not; its version, some of whose
    rows are marked as deleted."""
    mirrors, before = lake.mirrors, lake.before
    before.write(a_write(before, 1, "append", ROWS[:20]))
    for later in range(2, number):
        before.write(a_write(before, later, "append", [ROWS[18 + later]]))
    gone = [{"_change_type": "delete", **row} for row in ROWS[:3]]
    mirrors.write(a_write(mirrors, number, "merge", gone))
    staged = mirrors.stage("read again", folded(PEOPLE, BARE))
    parts = (own_part((staged,), PEOPLE),)
    before.write(Replace(a_target(number + 1), ("id",), parts, drops_earlier_rows=True))
    gone = [{"_change_type": "delete", **row} for row in BARE[:3]]
    return mirrors.write(a_write(mirrors, number + 2, "merge", gone)).delta_version


def files(lake: LakePath) -> dict[str, bytes]:
    """All that is below the mirror's folder."""
    place = lake / MIRROR
    if isinstance(place, Path):
        there = [path for path in place.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in there}
    return {str(path): path.read_bytes() for path in place.rglob()}


def require_cut(lake: Lake, place: LakePath) -> int:
    """Deletion vectors, checkpoints, checksum files and Delta's own record of changes among it, no
    file has what the mirror showed once its log is cut, twice; rows that are written after it are
    read as before. Soft deletes of before go with the write that forgets them. The version, which
    shows `CUT`."""
    mirrors = lake.mirrors
    version = read_again(lake, 12)
    changes = place / MIRROR / "_change_data"
    make_durable_folder(changes)
    (changes / "cdc-0.parquet").write_bytes(WORD)
    there = files(place)
    assert sum(WORD in content for content in there.values()) > 10

    def lost() -> None:
        raise LeaseLost("another run has it", hint="")

    with pytest.raises(LeaseLost):
        mirrors.delete_history(MIRROR, version, "{}", lambda _: None, lost)
    with pytest.raises(CommitConflict):
        mirrors.delete_history(MIRROR, version - 1, "{}", lambda _: None)
    assert files(place) == there, "who lost the source, or planned on another version, cuts nothing"
    said = metadata_text({"kind": "upkeep", "shows": version})
    for _ in range(2):
        noted: list[int] = []
        mirrors.delete_history(MIRROR, version, said, noted.append)
        (commit,) = mirrors.log_since(MIRROR, version).commits
        version += 1
        assert (noted, commit.copied_version, judge_foreign(commit)) == (
            [version],
            version - 1,
            None,
        )
        said = metadata_text({"kind": "upkeep", "shows": version})
    assert [name for name, there in files(place).items() if WORD in there] == []
    assert mirrors.reason_unreadable(MIRROR, version - 1) is not None
    assert (
        mirrors.reason_unreadable(MIRROR, version),
        mirrors.log_since(MIRROR, version).commits,
    ) == (None, ())
    assert content(mirrors, MIRROR, PEOPLE, version) == BARE[3:]
    again = mirrors.write(a_write(mirrors, 15, "merge", [CUT[0]])).delta_version
    assert content(mirrors, MIRROR, PEOPLE, again) == CUT
    return again


@pytest.mark.soak
def test_rows_put_together_in_memory_in_an_object_store(
    tmp_path: Path, spark: SparkProcess, object_store: ObjectStore
) -> None:
    place = object_store.prefix()
    require_cut(lake_at(place, tmp_path / "staging", spark, NO_FEW_ROWS), place)


def test_a_log_is_cut_and_what_can_be_committed_stays(tmp_path: Path, spark: SparkProcess) -> None:
    """What was planned before the log was cut makes no commit, be it of rows or of a version of
    before; what is written meanwhile stays, whether it is committed already or not."""
    place = tmp_path / "lake"
    lake = lake_at(place, tmp_path / "staging", spark, NO_FEW_ROWS, in_memory=False)
    mirrors, before = lake.mirrors, lake.before
    version = require_cut(lake, place)
    late = place / MIRROR / "part-late.parquet"

    def meanwhile(cut_at: int) -> None:
        late.write_bytes(b"of a write that is planned on it")
        before.write(a_write(before, 16, "append", [{"id": 40, "name": "y"}]))
        gone = [{"_change_type": "delete", **BARE[3]}]
        assert mirrors.write(a_write(mirrors, 17, "merge", gone)).delta_version == cut_at + 2

    late_writer = LateWriter(
        place, spark, lambda: mirrors.delete_history(MIRROR, version, "{}", meanwhile)
    )
    with pytest.raises(CommitConflict):
        late_writer.write(a_write(late_writer, 18, "append", [{"id": 50, "name": "z"}]))
    shown = [CUT[0], *CUT[2:], {"id": 40, "name": "y"}]
    newest = version + 3
    assert (late.exists(), content(mirrors, MIRROR, PEOPLE, newest)) == (True, shown)

    def again() -> None:
        mirrors.delete_history(MIRROR, newest, "{}", lambda _: None)

    with pytest.raises(CommitConflict):
        mirrors.restore(MIRROR, newest - 1, "planned on a version of before", again)
    assert (late.exists(), content(mirrors, MIRROR, PEOPLE, newest + 1)) == (False, shown)


def test_statistics_of_removed_files_go_too(disk: Lake, folder: Path, spark: SparkProcess) -> None:
    """Commits keep them, and so would the checkpoint with which the log begins; Spark and delta-rs
    read it without them."""
    mirrors = disk.mirrors
    mirrors.write(a_write(mirrors, 1, "append", ROWS[:20]))
    staged = mirrors.stage("read again", folded(PEOPLE, BARE))
    parts = (own_part((staged,), PEOPLE),)
    version = mirrors.write(Replace(a_target(2), ("id",), parts, drops_earlier_rows=True))
    mirrors.delete_history(MIRROR, version.delta_version, "{}", lambda _: None)
    (checkpoint,) = (folder / MIRROR / "_delta_log").glob("*.checkpoint.parquet")
    removed = [row for row in pq.read_table(checkpoint)["remove"].to_pylist() if row]
    assert removed
    assert [row["stats"] for row in removed if row["stats"]] == []
    assert content(mirrors, MIRROR, PEOPLE, version.delta_version + 1) == BARE
    frame = spark.session().read.format("delta").load(str(folder / MIRROR))
    assert frame.count() == len(BARE)
    delta_table(folder / MIRROR).vacuum(dry_run=True)


def test_a_table_that_was_made_meanwhile_keeps_its_log(
    tmp_path: Path, spark: SparkProcess, object_store: ObjectStore
) -> None:
    """An object store knows a log's files only by names that every table's log has."""
    mirrors = lake_at(object_store.prefix(), tmp_path / "staging", spark).mirrors
    for number in range(1, 5):
        version = mirrors.write(a_write(mirrors, number, "append", ROWS[:1])).delta_version
    calls = count()

    def meanwhile() -> None:
        if next(calls) == 1:  # the call before the log's earlier versions are deleted
            mirrors.remove(MIRROR)
            mirrors.write(a_write(mirrors, 1, "append", BARE, app_id="another"))

    with pytest.raises(CommitConflict):
        mirrors.delete_history(MIRROR, version, "{}", lambda _: None, meanwhile)
    assert content(mirrors, MIRROR, PEOPLE, 0) == BARE


@pytest.mark.parametrize("call", ["checkpoint", "deletion"])
def test_a_table_that_was_made_meanwhile_keeps_its_checkpoints(
    tmp_path: Path, spark: SparkProcess, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whether it was made before the checkpoint is written, which delta-rs does by the folder's
    name, or before the log is cut: its versions are read as before, and parts of its checkpoints
    stay."""
    mirrors = lake_at(tmp_path, tmp_path / "staging", spark).mirrors
    version = mirrors.write(a_write(mirrors, 1, "append", ROWS[:1])).delta_version
    part = tmp_path / MIRROR / "_delta_log" / "_sidecars" / "part.parquet"

    def meanwhile(cut_at: int) -> None:
        mirrors.remove(MIRROR)
        for number in range(1, cut_at + 3):
            mirrors.write(
                a_write(mirrors, number, "append", ROWS[number : number + 1], app_id="another")
            )
        part.parent.mkdir()
        part.touch()

    calls = count()

    def require_commit(path: LakePath, head: Head) -> bytes:
        commit = own(path, head)
        if call == "deletion" and next(calls) == 2:
            meanwhile(head.version)
        return commit

    own = deletion._require_commit
    monkeypatch.setattr(deletion, "_require_commit", require_commit)
    on_commit = meanwhile if call == "checkpoint" else lambda _: None
    with suppress(CommitConflict):
        mirrors.delete_history(MIRROR, version, "{}", on_commit)
    for number in range(version + 3):
        assert content(mirrors, MIRROR, PEOPLE, number) == ROWS[1 : number + 2]
    assert part.exists()
