"""The spool, on disk and in memory: one contract."""

from __future__ import annotations

import gc
import hashlib
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import LakeUnavailable, SegmentsLost
from pipeline.ports.spool import EventFile
from pipeline.segment import SegmentFile
from resources.lake.spool import FileSpool
from tests.fix_objects import ObjectStore
from tests.twins.spool import MemorySpool


@dataclass(frozen=True, slots=True)
class Place:
    """A spool on disk, and its folders."""

    spool: FileSpool
    prepared: Path
    scratch: Path


@pytest.fixture
def disk(tmp_path: Path) -> Place:
    lake, scratch = tmp_path / "lake", tmp_path / "state" / "scratch"
    return Place(FileSpool(lake, scratch), lake / "shop" / "_prepared", scratch)


@pytest.fixture(params=["memory", "disk", "objects"])
def spool(request: pytest.FixtureRequest, disk: Place, tmp_path: Path) -> FileSpool | MemorySpool:
    if request.param == "objects":
        store: ObjectStore = request.getfixturevalue("object_store")
        return FileSpool(store.prefix(), tmp_path / "scratch")
    return MemorySpool() if request.param == "memory" else disk.spool


def sealed(
    spool: FileSpool | MemorySpool,
    content: bytes = b"row events",
    *,
    source: str = "shop",
    batch: int = 7,
    number: int = 1,
) -> SegmentFile:
    file = spool.prepared(source, batch, number)
    file.write(content)
    return spool.seal(file)


# -- the contract --------------------------------------------------------------------


def test_a_scratch_file_is_read_anywhere_while_it_grows(spool: FileSpool | MemorySpool) -> None:
    """Also what was written last; a later write goes to the end."""
    file = spool.scratch()
    file.write(b"abc")
    assert file.read(1, 2) == b"bc"
    file.write(memoryview(b"defg"))
    file.write(memoryview(b""))
    assert file.read(2, 3) == b"cde"
    assert (file.read(0, 0), file.read(7, 0), file.read(0, 7)) == (b"", b"", b"abcdefg")
    file.close()
    file.close()


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(st.integers(0, 3).flatmap(lambda n: st.integers(0, 900_000 * n)), max_size=6),
    read=st.floats(0, 1),
)
def test_pieces_of_any_size_are_one_content(disk: Place, pieces: list[int], read: float) -> None:
    """Whatever of them was collected before it went to the disk."""
    content = np.random.default_rng(1).bytes(sum(pieces))
    file, at = disk.spool.prepared("shop", 1, 1), 0
    for size in pieces:
        file.write(content[at : at + size])
        at += size
        begin = int(at * read)
        assert file.read(begin, at - begin) == content[begin:at]
    made = disk.spool.seal(file)
    assert (made.size, made.sha256) == (at, hashlib.sha256(content).hexdigest())
    assert disk.spool.open("shop", made).read(0, at) == content


def test_bytes_that_are_not_there(spool: FileSpool | MemorySpool) -> None:
    """A place outside the file is refused before any memory is taken for it."""
    scratch = spool.scratch()
    scratch.write(b"abc")
    files: list[EventFile] = [scratch, spool.open("shop", sealed(spool, b"abc"))]
    for file in files:
        for at, count in ((0, 4), (3, 1), (2, 2), (-1, 1), (0, -1), (0, 2**62)):
            with pytest.raises(SegmentsLost):
                pytest.fail(f"{count} bytes at {at}: {file.read(at, count)!r}")
        file.close()


def test_a_sealed_file_is_opened_by_later_runs(spool: FileSpool | MemorySpool) -> None:
    """Its name carries batch and number; size and SHA-256 are its content's, also if it is empty:
    a prepared transaction whose rows were all rolled back to a savepoint has such a one."""
    for number, content in ((12, b"row events"), (13, b"")):
        made = sealed(spool, content, number=number)
        name, digest = f"batch-000000000007-{number:05}.events", hashlib.sha256(content).hexdigest()
        assert made == SegmentFile(name, 0, len(content), digest)
        for _ in range(2):
            file = spool.open("shop", made)
            assert file.read(0, len(content)) == content
            file.close()


def test_a_file_that_is_not_what_was_sealed(spool: FileSpool | MemorySpool) -> None:
    """Missing, of another size or of another content."""
    made = sealed(spool)
    others: dict[str, dict[str, Any]] = {
        "is missing": {"path": "batch-000000000007-00002.events"},
        "has 10 bytes instead of 9": {"size": 9},
        "another checksum": {"sha256": "0" * 64},
    }
    for words, other in others.items():
        with pytest.raises(SegmentsLost, match=words):
            spool.open("shop", replace(made, **other))
    with pytest.raises(SegmentsLost, match="is missing"):
        spool.open("crm", made)


def test_discard_takes_one_batch_of_one_source(spool: FileSpool | MemorySpool) -> None:
    """Sealed or not, where that is in the lake already; other batches, other sources and batch 70
    beside batch 7 stay."""
    kept = [("shop", sealed(spool, batch=8)), ("shop", sealed(spool, batch=70))]
    kept.append(("crm", sealed(spool, source="crm")))
    gone = sealed(spool)
    spool.prepared("shop", 7, 2).write(b"a capture that died here")
    assert spool.discard("shop", 7) >= 1
    assert spool.discard("shop", 7) == 0
    assert spool.discard("nobody", 7) == 0
    for source, file in kept:
        spool.open(source, file).close()
    with pytest.raises(SegmentsLost):
        spool.open("shop", gone)


def test_remove_takes_one_file(spool: FileSpool | MemorySpool) -> None:
    """Removing it again changes nothing."""
    first, second = sealed(spool), sealed(spool, number=2)
    for _ in range(2):
        spool.remove("shop", first)
    spool.remove("nobody", first)
    with pytest.raises(SegmentsLost):
        spool.open("shop", first)
    spool.open("shop", second).close()


def test_a_scratch_file_is_not_sealed(spool: FileSpool | MemorySpool) -> None:
    """It has no name a later run could find."""
    with pytest.raises(ValueError, match="prepared"):
        spool.seal(spool.scratch())


# -- the disk ------------------------------------------------------------------------


def test_a_scratch_file_has_no_name(disk: Place) -> None:
    """So a killed process leaves nothing; the folder is this account's alone."""
    file = disk.spool.scratch()
    file.write(b"x" * 2_000_000)
    assert list(disk.scratch.iterdir()) == []
    assert stat.S_IMODE(disk.scratch.stat().st_mode) == 0o700
    file.close()


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_descriptors_go_with_their_files(disk: Place) -> None:
    """A capture that failed closes none of them."""
    gc.collect()
    before = _descriptors()
    files = [disk.spool.scratch(), disk.spool.open("shop", sealed(disk.spool))]
    assert _descriptors() == before + 2
    del files
    assert _descriptors() == before


def test_a_closed_file_reads_no_other(disk: Place) -> None:
    """Its descriptor's number may be another file's by now."""
    file = disk.spool.scratch()
    file.write(b"abc")
    file.close()
    other = disk.spool.scratch()
    other.write(b"xyz")
    with pytest.raises(LakeUnavailable):
        file.read(0, 3)
    other.close()


def test_a_changed_byte_is_noticed(disk: Place) -> None:
    """Same size, other content."""
    made = sealed(disk.spool)
    path = disk.prepared / made.path
    path.write_bytes(b"Row events")
    with pytest.raises(SegmentsLost) as lost:
        disk.spool.open("shop", made)
    assert str(path) in lost.value.message


@pytest.mark.parametrize("size", [1, 2_000_000])
def test_a_full_disk_is_the_lake_unavailable(disk: Place, size: int) -> None:
    """Noticed at the latest when the file is sealed."""
    disk.prepared.mkdir(parents=True)
    (disk.prepared / "batch-000000000007-00001.events").symlink_to("/dev/full")
    with pytest.raises(LakeUnavailable, match="has no space left"):
        sealed(disk.spool, b"x" * size)


def test_folders_that_cannot_be_made(disk: Place) -> None:
    """The operating system's error travels as the cause."""
    for folder in (disk.prepared, disk.scratch):
        folder.parent.mkdir(parents=True)
        folder.write_text("a file where a folder should be")
    with pytest.raises(LakeUnavailable) as caught:
        disk.spool.scratch()
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(LakeUnavailable):
        disk.spool.prepared("shop", 7, 1)
