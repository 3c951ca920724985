"""The spool, on disk and in memory: one contract."""

from __future__ import annotations

import gc
import hashlib
import re
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstep.pipeline.model.batch import WaitingFile
from lockstep.pipeline.ports.segments import EventFile
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.values.errors import ConfigurationError, LakeUnavailable, SegmentsLost
from lockstep.resources.lake.changelog.spool import FileSpool
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
) -> WaitingFile:
    file = spool.create_prepared_file(source, batch, number)
    file.write(content)
    return spool.seal(file)


# -- the contract --------------------------------------------------------------------


def test_a_scratch_file_is_read_anywhere_while_it_grows(spool: FileSpool | MemorySpool) -> None:
    """Also what was written last; a later write goes to the end."""
    file = spool.create_scratch_file()
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
    file, at = disk.spool.create_prepared_file("shop", 1, 1), 0
    for size in pieces:
        file.write(content[at : at + size])
        at += size
        begin = int(at * read)
        assert file.read(begin, at - begin) == content[begin:at]
    made = disk.spool.seal(file)
    stored = (disk.prepared / made.path).read_bytes()
    assert (made.size, made.sha256) == (at, hashlib.sha256(stored).hexdigest())
    assert disk.spool.open("shop", made).read(0, at) == content


def test_bytes_that_are_not_there(spool: FileSpool | MemorySpool) -> None:
    """A place outside the file is refused before any memory is taken for it."""
    scratch = spool.create_scratch_file()
    scratch.write(b"abc")
    files: list[EventFile] = [scratch, spool.open("shop", sealed(spool, b"abc"))]
    for file in files:
        for at, count in ((0, 4), (3, 1), (2, 2), (-1, 1), (0, -1), (0, 2**62)):
            with pytest.raises(SegmentsLost):
                pytest.fail(f"{count} bytes at {at}: {file.read(at, count)!r}")
        file.close()


def test_a_sealed_file_is_opened_by_later_runs(spool: FileSpool | MemorySpool) -> None:
    """Its name carries batch and number, its size is its content's, also if it is empty: a prepared
    transaction whose rows were all rolled back to a savepoint has such a one."""
    for number, content in ((12, b"row events"), (13, b"")):
        made = sealed(spool, content, number=number)
        name = rf"batch-000000000007-([0-9a-f]{{8}}-)?{number:05}\.events"
        assert re.fullmatch(name, made.path)
        assert made.size == len(content)
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
    spool.create_prepared_file("shop", 7, 2).write(b"a capture that died here")
    assert spool.delete_batch("shop", 7) >= 1
    assert spool.delete_batch("shop", 7) == 0
    assert spool.delete_batch("nobody", 7) == 0
    for source, file in kept:
        spool.open(source, file).close()
    with pytest.raises(SegmentsLost):
        spool.open("shop", gone)


def test_remove_takes_one_file(spool: FileSpool | MemorySpool) -> None:
    """Removing it again changes nothing."""
    first, second = sealed(spool), sealed(spool, number=2)
    for _ in range(2):
        spool.delete_file("shop", first)
    spool.delete_file("nobody", first)
    with pytest.raises(SegmentsLost):
        spool.open("shop", first)
    spool.open("shop", second).close()


# -- the disk ------------------------------------------------------------------------


def test_a_scratch_file_has_no_name(disk: Place) -> None:
    """So a killed process leaves nothing; the folder is this account's alone."""
    file = disk.spool.create_scratch_file()
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
    files = [disk.spool.create_scratch_file(), disk.spool.open("shop", sealed(disk.spool))]
    assert _descriptors() == before + 2
    del files
    assert _descriptors() == before


def test_a_closed_file_reads_no_other(disk: Place) -> None:
    """Its descriptor's number may be another file's by now."""
    file = disk.spool.create_scratch_file()
    file.write(b"abc")
    file.close()
    other = disk.spool.create_scratch_file()
    other.write(b"xyz")
    with pytest.raises(LakeUnavailable):
        file.read(0, 3)
    other.close()


def test_a_changed_byte_is_noticed(disk: Place) -> None:
    """Same size, other content."""
    made = sealed(disk.spool)
    path = disk.prepared / made.path
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SegmentsLost) as lost:
        disk.spool.open("shop", made)
    assert str(path) in lost.value.message


# -- encryption ------------------------------------------------------------------------


def _pieces(stored: bytes) -> list[bytes]:
    """The pieces of a file, each with its length before and its tag behind it."""
    found = []
    while stored:
        end = 4 + int.from_bytes(stored[:4], "little") + 16
        found.append(stored[:end])
        stored = stored[end:]
    return found


def _written(disk: Place, number: int = 1) -> tuple[WaitingFile, Path, list[bytes]]:
    """A file of two pieces and the empty one that ends it."""
    file = disk.spool.create_prepared_file("shop", 7, number)
    file.write(b"first")
    file.read(0, 5)
    file.write(b"other")
    made = disk.spool.seal(file)
    path = disk.prepared / made.path
    return made, path, _pieces(path.read_bytes())


def test_nothing_of_what_is_written_is_readable_on_the_disk(disk: Place) -> None:
    """Neither in a file that is sealed nor in a scratch file; each file has its own key."""
    secret = b"a customer's name" * 100_000
    made, other = sealed(disk.spool, secret), sealed(disk.spool, secret, number=2)
    scratch = disk.spool.create_scratch_file()
    scratch.write(secret)
    descriptors = [Path(f"/proc/self/fd/{one}") for one in range(3, 200)]
    stored = [(disk.prepared / file.path).read_bytes() for file in (made, other)]
    stored += [one.read_bytes() for one in descriptors if "deleted" in _target(one)]
    assert len(stored) >= 3 and not any(b"customer" in content for content in stored)
    assert made.key != other.key and stored[0] != stored[1]
    assert repr(made.key) not in repr(made)


def _target(descriptor: Path) -> str:
    return str(descriptor.readlink()) if descriptor.is_symlink() else ""


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(lambda pieces: pieces[:-1], id="its end is missing"),
        pytest.param(lambda pieces: [], id="all is missing"),
        pytest.param(lambda pieces: [*pieces[:-1], pieces[-1][:-1]], id="it is cut off"),
        pytest.param(lambda pieces: [b"\xff" * 4, *pieces], id="a length is no length"),
        pytest.param(lambda pieces: pieces[:1] + pieces[2:], id="a piece is missing"),
        pytest.param(lambda pieces: [pieces[1], pieces[0], pieces[2]], id="pieces are exchanged"),
        pytest.param(lambda pieces: [*pieces, pieces[2]], id="something follows its end"),
    ],
)
def test_pieces_prove_their_place(
    disk: Place, forged: Callable[[list[bytes]], list[bytes]]
) -> None:
    """Somebody who can write the file, and the checksum that the ledger has of it, can neither
    leave out nor exchange anything."""
    made, path, pieces = _written(disk)
    path.write_bytes(b"".join(forged(pieces)))
    told = replace(made, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(SegmentsLost):
        disk.spool.open("shop", told).read(0, 10)


def test_a_file_proves_its_name_and_its_key(disk: Place) -> None:
    made, path, _ = _written(disk)
    renamed = path.with_name("batch-000000000007-00002.events")
    renamed.write_bytes(path.read_bytes())
    for other in (replace(made, path=renamed.name), replace(made, key=bytes(32))):
        with pytest.raises(SegmentsLost, match="is not what was written"):
            disk.spool.open("shop", other)


def test_a_key_that_is_kept_is_wrapped(disk: Place) -> None:
    """Only the privacy key unwraps it; files from before there was one are read as before."""
    bare, key = sealed(disk.spool), PrivacyKey(b"a key that nobody guesses")
    spool = disk.spool.with_privacy_key(key)
    kept = sealed(spool, number=2)
    assert (len(bare.key), len(kept.key)) == (32, 40)
    for file in (bare, kept):
        with closing(spool.open("shop", file)) as opened:
            assert opened.read(0, 10) == b"row events"
    for other in (None, PrivacyKey(b"another key that nobody guesses")):
        with pytest.raises(ConfigurationError):
            disk.spool.with_privacy_key(other).open("shop", kept)


@pytest.mark.parametrize("size", [1, 2_000_000])
def test_a_full_disk_is_the_lake_unavailable(disk: Place, size: int) -> None:
    """Noticed at the latest when the file is sealed."""
    disk.prepared.mkdir(parents=True)
    name = f"batch-000000000007-{disk.spool._random_digits}-00001.events"
    (disk.prepared / name).symlink_to("/dev/full")
    with pytest.raises(LakeUnavailable, match="has no space left"):
        sealed(disk.spool, b"x" * size)


def test_folders_that_cannot_be_made(disk: Place) -> None:
    """The operating system's error travels as the cause."""
    for folder in (disk.prepared, disk.scratch):
        folder.parent.mkdir(parents=True)
        folder.write_text("a file where a folder should be")
    with pytest.raises(LakeUnavailable) as caught:
        disk.spool.create_scratch_file()
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(LakeUnavailable):
        disk.spool.create_prepared_file("shop", 7, 1)
