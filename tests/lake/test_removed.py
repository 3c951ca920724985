"""Mirrors that are removed: gone as a whole, and begun again in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.pipeline.ports.held import no_check
from lockstep.pipeline.values.errors import LakeUnavailable, LeaseLost
from lockstep.resources.lake.delta.delta_log import commit_file
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import files_below, remove_table
from tests.fix_objects import ObjectStore
from tests.lake.conftest import Lake
from tests.lake.made import PEOPLE, a_write, content

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
