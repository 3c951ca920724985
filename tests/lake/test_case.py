"""Whether the lake's file system tells names apart that differ in case only: asked of real ones."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.resources.lake.store.storage import ignores_case


@pytest.fixture
def caseless(tmp_path: Path) -> Iterator[Path]:
    """A folder in which `A` and `a` are one file, and which has hard links, as a lake needs them:
    NTFS, in a file of the test's own."""
    if shutil.which("lowntfs-3g") is None or not Path("/dev/fuse").exists():
        pytest.skip("lowntfs-3g and FUSE make the only file system here that ignores case")
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkntfs", "-F", "-Q", "-q", image], check=True, capture_output=True)
    mount = subprocess.run(
        ["lowntfs-3g", "-o", "ignore_case", image, folder], check=False, capture_output=True
    )
    if mount.returncode != 0:
        pytest.skip(f"this account mounts nothing: {mount.stderr.decode()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_file_system_is_asked_and_nothing_stays_there(tmp_path: Path, caseless: Path) -> None:
    """Also before the lake's folder is made."""
    answers = {folder: ignores_case(folder) for folder in (caseless, caseless / "lake" / "shop")}
    assert answers == {caseless: True, caseless / "lake" / "shop": True}
    assert not ignores_case(tmp_path / "lake")
    assert [path.name for path in caseless.iterdir()] == []
    assert {path.name for path in tmp_path.iterdir()} == {"image", "mounted"}
