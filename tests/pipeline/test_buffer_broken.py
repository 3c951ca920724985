"""The buffer where what it stands on breaks: disks, processes, streams and callers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.binlog.stream.ring import Block
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.spill import SummarisingSpool
from lockstep.pipeline.values.errors import LakeUnavailable, SourceUnavailable
from lockstep.resources.lake.changelog.spool import FileSpool
from tests.pipeline.buffered import Out, a_buffer, feed, outs
from tests.pipeline.made import Log, gtid, query, received, xa, xa_prepare
from tests.twins.spool import MemoryEventFile, MemorySpool

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class _FullFile(MemoryEventFile):
    """Takes so many bytes and no more."""

    room: int = 0

    def write(self, data: bytes | memoryview) -> None:
        self.room -= memoryview(data).nbytes
        if self.room < 0:
            raise LakeUnavailable("the disk is full", hint="make room")
        MemoryEventFile.write(self, data)


@dataclass(slots=True)
class _FullSpool(MemorySpool):
    room: int = 0
    opened: list[_FullFile] = field(default_factory=list)

    def create_scratch_file(self) -> MemoryEventFile:
        self.opened.append(_FullFile(room=self.room))
        return self.opened[-1]


def _large(log: Log, number: int, *, end: bool = True) -> list[int]:
    """A transaction of some 15 KiB, where the ring has 4; its values."""
    log.add(EventType.GTID, gtid(number))
    log.add(EventType.QUERY, query("BEGIN"))
    for _ in range(5):
        log.write(*[number] * 600)
    if end:
        log.end()
    return [number] * 3000


@given(st.integers(0, 20_000))
def test_a_full_disk_lets_nothing_out_but_what_was_whole(room: int) -> None:
    """However much of a large transaction the scratch file took."""
    log = Log()
    log.transaction(1)
    values = _large(log, 2)
    log.transaction(3)
    out: list[Out] = []
    try:
        out.extend(feed(a_buffer(spool=_FullSpool(room=room)), [log.wire()]))
    except LakeUnavailable:
        assert [one.values for one in out] == [[1]]
    else:
        assert [one.values for one in out] == [[1], values, [3]]


def test_a_full_disk_at_a_prepare_ends_the_run() -> None:
    """What was prepared and is too large for the ring is not lost silently."""
    log = Log()
    log.transaction(1)
    log.add(EventType.GTID, gtid(2))
    log.add(EventType.QUERY, xa("START", b"a"))
    for _ in range(5):
        log.write(*[2] * 600)
    log.add(EventType.QUERY, xa("END", b"a"))
    log.add(EventType.XA_PREPARE, xa_prepare(b"a"))
    buffer = a_buffer(spool=_FullSpool(room=5000))
    found = feed(buffer, [log.wire()])
    assert next(found).values == [1]
    with pytest.raises(LakeUnavailable):
        next(found)
    assert buffer.prepared.seal(1, buffer.maps) == ()


_KILLED: Final = """
import sys, time
from pathlib import Path
from lockstep.resources.lake.changelog.spool import FileSpool
from tests.pipeline.buffered import a_buffer
from tests.pipeline.made import Log, received
from tests.pipeline.test_buffer_broken import _large
log, folder = Log(), Path(sys.argv[1])
_large(log, 1, end=False)
buffer = a_buffer(spool=FileSpool(folder / "lake", folder / "scratch"))
buffer.put(received(log.wire(end=False)))
assert buffer.get() is None
print(buffer._transactions._spill.block_count, flush=True)
time.sleep(600)
"""


def test_a_process_killed_within_a_large_transaction_leaves_no_file(tmp_path: Path) -> None:
    """Its scratch file has no name, neither before nor after."""
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            spilled = int(process.stdout.readline() or 0)
            during = [path for path in tmp_path.rglob("*") if path.is_file()]
        finally:
            process.kill()
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert spilled > 0
    assert (during, left) == ([], [])


def test_two_runs_at_once_have_a_file_each(tmp_path: Path) -> None:
    """Large transactions that come in side by side do not touch each other."""
    spool = FileSpool(tmp_path / "lake", tmp_path / "scratch")
    buffers: list[TransactionBuffer] = [a_buffer(spool=spool) for _ in range(2)]
    logs, expected = [Log(), Log()], []
    for number, log in enumerate(logs, start=1):
        expected.append([_large(log, number)])
    wires = [log.wire() for log in logs]
    found: list[list[list[int]]] = [[], []]
    for at in range(0, len(wires[0]), 700):
        for buffer, wire, out in zip(buffers, wires, found, strict=True):
            out += [one.values for one in feed(buffer, [wire[at : at + 700]])]
    assert found == expected


@pytest.mark.parametrize(
    "sizes",
    [
        {"ring_bytes": 1000},
        {"ring_bytes": 0},
        {"ring_bytes": -1024},
        {"events": 0},
        {"transactions": 1},
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes: dict[str, int]) -> None:
    """Places in the ring are masked, and one transaction is always open."""
    with pytest.raises(ValueError, match=r"power of two|no room"):
        a_buffer(**sizes)


def test_groups_and_acknowledgements_take_turns() -> None:
    """A second group would be written over the first one's room."""
    log = Log()
    log.transaction(1)
    log.transaction(2)
    buffer = a_buffer()
    with pytest.raises(RuntimeError, match="no group is out"):
        buffer.ack()
    buffer.put(received(log.wire()))
    run = buffer.get()
    assert run is not None
    with pytest.raises(RuntimeError, match="ack it first"):
        buffer.get()
    assert [out.values for out in outs(run)] == [[1], [2]]
    buffer.ack()
    with pytest.raises(RuntimeError, match="no group is out"):
        buffer.ack()


def test_a_peer_that_says_too_much_is_quoted_in_part() -> None:
    """A server's error has 512 bytes at the most; what lies may be an event of megabytes."""
    said = b"\xff" + (1053).to_bytes(2, "little") + b"#08S01" + b"x" * 100_000
    data = len(said).to_bytes(3, "little") + b"\x01" + said
    with pytest.raises(SourceUnavailable) as ended:
        list(feed(a_buffer(), [data]))
    assert ended.value.message.count("x") == 512


def test_a_spool_that_keeps_no_rows_summarises_them() -> None:
    """What is seen of a large transaction's rows comes out with it, and nothing of one that is
    rolled back."""
    log = Log()
    _large(log, 1, end=False)
    log.end("ROLLBACK")
    values = _large(log, 2)
    out: list[int] = []

    def seen(block: Block) -> list[int]:
        events = [block.data[at : at + size].tobytes() for at, size, *_ in block.events.tolist()]
        return Out("", 0, (), tuple(events)).values

    buffer = a_buffer(spool=SummarisingSpool(MemorySpool(), seen, out.extend))
    in_ring = [value for one in feed(buffer, [log.wire()]) for value in one.values]
    assert (out + in_ring) == values
