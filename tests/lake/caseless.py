"""A folder on a file system that ignores the case of names."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def caseless_folder(parent: Path, size: int) -> Iterator[Path]:
    """A folder in which `A` and `a` are one file, and which has hard links, as a lake needs them:
    NTFS, in a file of so many bytes."""
    if shutil.which("lowntfs-3g") is None or not Path("/dev/fuse").exists():
        pytest.skip("lowntfs-3g and FUSE make the only file system here that ignores case")
    image, folder = parent / "image", parent / "mounted"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
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
