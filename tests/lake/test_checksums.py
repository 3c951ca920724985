"""Delta's checksum files: Spark believes those of its commits, and no others get that far."""

from __future__ import annotations

import shutil
from pathlib import Path

from lockstep.resources.lake.delta.pin import head_of
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import disk_lake
from tests.lake.made import PEOPLE, a_write, content, delete, update

ROWS = [{"id": number, "name": "old"} for number in (1, 2, 3)]


def test_a_log_that_was_cut_is_read_itself(tmp_path: Path, spark: SparkProcess) -> None:
    """Version 1 of another history left its checksum file, which lists other files."""
    mirrors = disk_lake(tmp_path, spark).mirrors
    mirrors.write(a_write(mirrors, 1, "append", ROWS, mirror="a"))
    shutil.copytree(tmp_path / "lake" / "a", tmp_path / "lake" / "b")
    mirrors.write(a_write(mirrors, 2, "merge", [update(id=1, name="a")], mirror="a"))
    mirrors.write(a_write(mirrors, 3, "merge", [delete(id=2)], mirror="b"))
    mine, other = (tmp_path / "lake" / name / "_delta_log" / f"{1:020}.crc" for name in "ba")
    assert mine.read_bytes() != other.read_bytes()
    shutil.copy(other, mine)
    cut = shutil.copytree(tmp_path / "lake" / "b", tmp_path / "lake" / "c")
    assert head_of(cut).version == 1
    assert not (cut / "_delta_log" / mine.name).exists()
    mirrors.write(a_write(mirrors, 4, "merge", [update(id=3, name="c")], mirror="c"))
    assert content(mirrors, "c", PEOPLE, 2) == [
        {"id": 1, "name": "old"},
        {"id": 3, "name": "c"},
    ]


def test_a_damaged_one_is_removed(tmp_path: Path, spark: SparkProcess) -> None:
    """Whatever the damage; the next commit does without it."""
    mirrors = disk_lake(tmp_path, spark).mirrors
    mirrors.write(a_write(mirrors, 1, "append", ROWS, mirror="a"))
    checksum = tmp_path / "lake" / "a" / "_delta_log" / f"{0:020}.crc"
    assert checksum.exists()
    head_of(tmp_path / "lake" / "a")
    assert checksum.exists()
    for damage in (b"", b"{}", b"[]", b"\xff", b'{"txnId": 7}'):
        checksum.write_bytes(damage)
        head_of(tmp_path / "lake" / "a")
        assert not checksum.exists(), damage
    checksum.write_bytes(b"{}")
    mirrors.write(a_write(mirrors, 2, "merge", [delete(id=1)], mirror="a"))
    assert not checksum.exists()
    assert content(mirrors, "a", PEOPLE, 1) == ROWS[1:]
