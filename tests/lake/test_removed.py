"""Mirrors that are removed: gone as a whole, and begun again in their place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import LakeUnavailable
from resources.lake.storage import remove_folder
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
    write = a_write(lake.mirrors, 3, "append", [{"id": 3, "name": "three"}])
    made = lake.mirrors.write(replace(write, app_id="another"))
    assert made.delta_version == 0
    merge = a_write(lake.mirrors, 4, "merge", [{"id": 4, "name": "four"}])
    made = lake.mirrors.write(replace(merge, app_id="another"))
    assert content(lake.mirrors, MIRROR, PEOPLE, made.delta_version) == [
        {"id": 3, "name": "three"},
        {"id": 4, "name": "four"},
    ]
    if lake.folder is not None:
        assert [path.name for path in (lake.folder / "shop").iterdir()] == ["shop"]


def test_what_was_cut_off_goes_with_the_next(tmp_path: Path) -> None:
    """Whatever is on its way out is nobody's any more."""
    leaving, folder = tmp_path / "leaving", tmp_path / "people"
    (leaving / "people" / "_delta_log").mkdir(parents=True)
    remove_folder(folder, leaving=leaving)
    assert not leaving.exists()
    (folder / "_delta_log").mkdir(parents=True)
    (leaving / "people").mkdir(parents=True)
    remove_folder(folder, leaving=leaving)
    assert list(tmp_path.iterdir()) == []


def test_a_storage_that_refuses_is_named(disk: Lake, folder: Path) -> None:
    """Nothing of the mirror is gone then."""
    (folder / MIRROR / "_delta_log").mkdir(parents=True)
    (folder / "shop" / "_removed").write_text("in the way")
    with pytest.raises(LakeUnavailable):
        disk.mirrors.remove(MIRROR)
    assert (folder / MIRROR / "_delta_log").is_dir()
