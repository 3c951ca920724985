"""Only whole transactions leave the buffer, with the texts beside their rows, however their bytes
come in, compressed or not, and wherever what it stands on breaks: disks, processes, streams and
callers. (What every transaction becomes, in whatever order, is in `test_buffer_machine`.)"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES, Block
from lockstep.pipeline.binlog.stream.rules import TRANSITIONS, BufferAction, EventRole, Phase
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.loop import Limits
from lockstep.pipeline.binlog.transactions.spill import SummarisingSpool
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LakeUnavailable,
    LockstepError,
    PreparedElsewhere,
    SourceUnavailable,
    UnsupportedEvent,
)
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.lake.changelog.spool import FileSpool
from tests.pipeline.buffered import START, Out, a_buffer, cut, feed, outs, taken
from tests.pipeline.dialects_made import log_of
from tests.pipeline.made import (
    Log,
    format_description,
    gtid,
    mariadb_gtid,
    nested,
    nested_transaction,
    payload,
    query,
    received,
    rotate,
    rows,
    table_map,
    xa,
    xa_prepare,
)
from tests.twins.spool import MemoryEventFile, MemorySpool

ENDS = st.sampled_from(["xid", "COMMIT", "ROLLBACK"])
SHAPES = st.lists(st.tuples(st.integers(0, 3), ENDS), max_size=12)


def put_all(log: Log) -> list[Out]:
    return list(feed(a_buffer(), [log.wire()]))


@given(SHAPES, st.lists(st.integers(0, 4000), max_size=40))
def test_any_cutting_of_the_bytes_gives_the_same(
    shape: list[tuple[int, str]], places: list[int]
) -> None:
    """Whole or byte by byte: the same transactions, the same position, the same anchor."""
    log = Log()
    for number, (count, end) in enumerate(shape, start=1):
        log.transaction(number, end=end, rows=count)
    whole, pieces = a_buffer(), a_buffer()
    expected = list(feed(whole, [log.wire()]))
    found = list(feed(pieces, cut(log.wire(), places)))
    assert found == expected
    assert (pieces.at, pieces.anchor) == (whole.at, whole.anchor)


@pytest.mark.parametrize("text", ["UPDATE t SET a = 1", "INSERT INTO t VALUES (1)"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_statement_among_rows_is_kept(text: str, end: str) -> None:
    """A session that writes in statement format leaves rows out of the log; one that was rolled
    back changed a table without transactions."""
    log = Log()
    log.transaction(1)
    log.begin(2)
    log.say(text)
    log.say(end)
    found = [statement for one in put_all(log) for statement in one.statements]
    assert found == [text]


def ended(log: Log, number: int, word: str, gtrid: bytes) -> None:
    log.add(EventType.GTID, gtid(number))
    log.add(EventType.QUERY, xa(word, gtrid))


@pytest.mark.parametrize("again", [False, True])
def test_prepared_rows_wait_for_later_runs(again: bool) -> None:
    """What is open at the end is sealed; a later buffer, which never saw the table map, gives it
    out, and says how it is ended. If a session that wrote no log ended it meanwhile and the XID is
    prepared again, what an earlier batch recorded is ended too, without its rows."""
    spool = MemorySpool()
    first, second = Log(), Log()
    first.prepare(1, b"a", 10)
    if again:
        second.prepare(2, b"a", 20)
    ended(second, 3, "COMMIT", b"a")
    buffer = a_buffer(spool=spool, source="shop")
    assert [one.values for one in feed(buffer, [first.wire()])] == [[]]
    (kept,) = buffer.prepared.seal(5, buffer.maps)
    assert (kept.batch, kept.xid.gtrid) == (5, b"a")
    later = a_buffer(spool=spool, source="shop", prepared={kept.xid: kept})
    out = list(feed(later, [second.wire()]))
    assert [one.values for one in out] == ([[], [20]] if again else [[10]])
    assert out[-1].end == second.offset
    assert [(one.prepared, one.committed) for one in later.prepared.ended] == [(kept, not again)]
    assert later.prepared.seal(6, later.maps) == ()


def test_prepared_rows_beyond_the_memory_wait_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three transactions one fits into memory. A file is closed once its rows are used, or
    rolled back; what is open at the end is sealed from memory and file alike."""
    spool, log, second = MemorySpool(), Log(), Log()
    for number, gtrid in enumerate((b"a", b"b", b"c", b"d"), start=1):
        log.prepare(number, gtrid, number * 10)
    ended(log, 5, "COMMIT", b"b")
    ended(log, 6, "ROLLBACK", b"c")
    ended(second, 7, "COMMIT", b"a")
    ended(second, 8, "COMMIT", b"d")
    buffer = a_buffer(spool=spool, source="shop")
    monkeypatch.setattr("lockstep.pipeline.binlog.transactions.spill.MEMORY_BYTES", 60)
    assert [one.values for one in feed(buffer, [log.wire()])] == [[], [], [], [], [20], []]
    assert [file.closed for file in spool.made] == [True, True, False]
    prepared = {kept.xid: kept for kept in buffer.prepared.seal(5, buffer.maps)}
    assert [file.closed for file in spool.made] == [True, True, True]
    later = a_buffer(spool=spool, source="shop", prepared=prepared)
    assert [one.values for one in feed(later, [second.wire()])] == [[10], [40]]


def test_a_commit_of_what_nobody_prepared_stops() -> None:
    """Its rows lie before the source's start; a rollback of such a one changes nothing."""
    log = Log()
    ended(log, 1, "ROLLBACK", b"a")
    ended(log, 2, "COMMIT", b"a")
    with pytest.raises(PreparedElsewhere, match="X'61'"):
        put_all(log)


def test_events_of_several_packets_are_one() -> None:
    """An event of 16 MiB and more is split by the protocol, also where nothing is left over."""
    log = Log()
    log.begin()
    count = (0xFFFFFF * 2 - 1 - 19 - 12 - 4) // 5
    log.add(EventType.TABLE_MAP, table_map())
    body = rows() + bytes(5 * count)
    log.add(EventType.WRITE_ROWS, body)
    log.end()
    data = log.wire()
    for pieces in ([data], cut(data, range(0, len(data), 1 << 20))):
        (one,) = feed(a_buffer(ring_bytes=1 << 26), pieces)
        assert [event[HEADER.size :] == body for event in one.events] == [True]


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (Limits(transactions=2), 2),
        (Limits(log_bytes=1), 1),
        (Limits(end=Coordinates(START.file, 400)), 2),
        (Limits(), 5),
    ],
)
def test_limits_cut_between_transactions(limits: Limits, count: int) -> None:
    """Reading stops at the first end of a transaction at or beyond a limit."""
    log = Log()
    for number in range(1, 6):
        log.transaction(number)
    buffer = a_buffer(limits=limits)
    out = list(feed(buffer, [log.wire()]))
    assert len(out) == count
    assert buffer.has_stopped == (count < 5)
    assert buffer.at == Coordinates(START.file, out[-1].end)


def test_statements_map_tables_as_they_like() -> None:
    """Several tables first, one twice, one without rows; the end of a statement ends it all."""
    log = Log()
    log.begin()
    for number, name in ((1, "a"), (2, "b"), (3, "c"), (1, "a")):
        log.add(EventType.TABLE_MAP, table_map(number, name))
    log.add(EventType.WRITE_ROWS, rows(5, table_id=2, last=False))
    log.add(EventType.WRITE_ROWS, rows(6, table_id=1))
    log.end()
    (one,) = put_all(log)
    assert one.values == [5, 6]
    log.begin(2)
    log.add(EventType.WRITE_ROWS, rows(7, table_id=1))
    with pytest.raises(DamagedEvent, match="table map that its statement does not have"):
        put_all(log)


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("kind", list(EventRole))
def test_every_pair_is_ruled(phase: Phase, kind: EventRole) -> None:
    """Each phase meets each input: the table's answer, or a refusal that changes nothing."""
    log = Log()
    _lead_to(log, phase)
    before = len(log.packets)
    _add(log, kind)
    buffer = a_buffer()
    buffer.put(received(log.wire(end=False)[: _length(log, before)]))
    assert list(taken(buffer)) == []
    assert buffer.phase is phase
    buffer.put(received(log.wire(end=False)[_length(log, before) :]))
    action, following = TRANSITIONS.get((phase, kind), (BufferAction.REFUSE, phase))
    if action in _REFUSED:
        with pytest.raises(LockstepError):
            list(taken(buffer))
        assert buffer.phase is phase
        return
    if action is BufferAction.UNPACK:
        following = Phase.BETWEEN
    out = list(taken(buffer))
    assert buffer.phase is following
    buffer.end()
    out += taken(buffer)
    assert len(out) == (action in _EMITS)


_REFUSED = (BufferAction.REFUSE, BufferAction.EMIT_PREPARED, BufferAction.DROP_TO_MARK)
"""The last two because nothing was prepared and there is no savepoint."""

_EMITS = frozenset(
    {
        BufferAction.EMIT,
        BufferAction.EMIT_WITHOUT_ROWS,
        BufferAction.PREPARE,
        BufferAction.FORGET_PREPARED,
        BufferAction.UNPACK,
    }
)


def _length(log: Log, count: int) -> int:
    return sum(len(packet) + 5 for packet in log.packets[:count])


def _lead_to(log: Log, phase: Phase) -> None:
    if phase is Phase.BETWEEN:
        return
    log.add(EventType.GTID, gtid(1))
    if phase is Phase.OPEN:
        log.say("BEGIN")
    if phase in (Phase.XA_OPEN, Phase.XA_ENDED):
        log.add(EventType.QUERY, xa("START", b"x"))
    if phase is Phase.XA_ENDED:
        log.add(EventType.QUERY, xa("END", b"x"))


_QUERIES = {
    EventRole.BEGIN: "BEGIN",
    EventRole.COMMIT: "COMMIT",
    EventRole.ROLLBACK: "ROLLBACK",
    EventRole.STATEMENT: "DROP TABLE t",
    EventRole.CREATE: "CREATE TABLE `t` (`i` int) START TRANSACTION",
    EventRole.SAVEPOINT: "SAVEPOINT `a`",
    EventRole.ROLLBACK_TO: "ROLLBACK TO `a`",
    EventRole.RELEASE: "RELEASE SAVEPOINT `a`",
}
_XA = {
    EventRole.XA_START: "START",
    EventRole.XA_END: "END",
    EventRole.XA_COMMIT: "COMMIT",
    EventRole.XA_ROLLBACK: "ROLLBACK",
}
_EVENTS = {
    EventRole.GTID: (EventType.GTID, gtid(2)),
    EventRole.GTID_BEGIN: (EventType.MARIADB_GTID, mariadb_gtid(1)),
    EventRole.GTID_XA_START: (EventType.MARIADB_GTID, mariadb_gtid(1, gtrid=b"x")),
    EventRole.CHANGE: (EventType.TABLE_MAP, table_map()),
    EventRole.XA_PREPARE: (EventType.XA_PREPARE, xa_prepare(b"x")),
    EventRole.XA_ONE_PHASE: (EventType.XA_PREPARE, xa_prepare(b"x", one_phase=True)),
    EventRole.PAYLOAD: (EventType.TRANSACTION_PAYLOAD, payload(nested_transaction(1))),
    EventRole.POSITION: (EventType.STOP, b""),
    EventRole.NOTE: (EventType.ROWS_QUERY, b"\0"),
    EventRole.HEARTBEAT: (EventType.HEARTBEAT, b"binlog.000001"),
    EventRole.VALUE: (EventType.INTVAR, b"\x02" + bytes(8)),
}


def _add(log: Log, kind: EventRole) -> None:
    if kind in _QUERIES:
        log.add(EventType.QUERY, query(_QUERIES[kind]))
    elif kind in _XA:
        log.add(EventType.QUERY, xa(_XA[kind], b"x"))
    else:
        log.add(*_EVENTS[kind])


@pytest.mark.parametrize(("version", "groups"), [("9.7.4-made", [4]), ("8.0.15", [2, 2])])
def test_a_group_was_written_by_one_version(version: str, groups: list[int]) -> None:
    """Where the server was upgraded between two files, what stands before is handed out first,
    while the buffer still knows the version that wrote it."""
    log = Log()
    log.transaction(1)
    log.transaction(2)
    log.add(EventType.ROTATE, rotate("binlog.000002"))
    log.offset = 4
    log.add(EventType.FORMAT_DESCRIPTION, format_description(version))
    log.transaction(3)
    log.transaction(4)
    buffer, found = a_buffer(), []
    buffer.put(received(log.wire()))
    for over in (False, True):
        if over:
            buffer.end()
        while (group := buffer.get()) is not None:
            assert buffer.description is not None
            found.append((len(group.transactions), buffer.description.server_version))
            buffer.ack()
    assert found == list(zip(groups, ["9.7.4-made", version][-len(groups) :], strict=True))


def test_a_reading_is_not_stopped_at_the_beginning_of_a_file() -> None:
    """No event of that file is before the place, by which a later run could recognise it: the
    reading stops after the next event."""
    log = Log()
    log.transaction(1)
    log.add(EventType.ROTATE, rotate("binlog.000002"))
    before, log.offset = len(log.packets), 4
    log.add(EventType.FORMAT_DESCRIPTION, format_description())
    buffer, sent, cut_at = a_buffer(), log.wire(end=False), _length(log, before)
    list(feed(buffer, [sent[:cut_at]]))
    buffer.stop()
    has_stopped = [buffer.has_stopped]
    list(feed(buffer, [sent[cut_at:]]))
    has_stopped.append(buffer.has_stopped)
    assert has_stopped == [False, True]
    assert (str(buffer.at), buffer.anchor and buffer.anchor.offset) == (
        f"binlog.000002:{4 + len(log.packets[before])}",
        4,
    )


@pytest.mark.parametrize("skipped", [0, 1])
def test_a_reading_is_not_stopped_before_its_first_transaction(skipped: int) -> None:
    """Otherwise a run whose time is over before the log arrives would never get on. Transactions
    before the start, where the dump begins earlier, do not count."""
    log = Log()
    for number in range(1, 4):
        log.transaction(number)
    ends = [out.end for out in feed(a_buffer(), [log.wire()])]
    start = Coordinates(START.file, ends[0]) if skipped else START
    buffer = a_buffer(start=start, begins=START)
    sent, cut_at = log.wire(), _length(log, 1)
    assert list(feed(buffer, [sent[:cut_at]])) == []
    buffer.stop()
    assert [buffer.has_stopped, buffer.has_ended] == [False, False]
    assert [out.end for out in feed(buffer, [sent[cut_at:]])] == [ends[skipped]]
    assert (buffer.has_stopped, buffer.at) == (True, Coordinates(START.file, ends[skipped]))


WHOLE = nested_transaction(1)


@pytest.mark.parametrize(
    ("body", "error", "match"),
    [
        (payload(WHOLE[: -(19 + 8)]), DamagedEvent, "has no end"),
        (payload(nested(40, payload(WHOLE))), DamagedEvent, "contains another"),
        (payload(WHOLE[:-1]), DamagedEvent, "length is not the one in its header"),
        (payload(nested(16, bytes(8))), DamagedEvent, "XID event comes announced"),
        (payload(WHOLE, declared=1), DamagedEvent, "bytes that it declares"),
        (payload(WHOLE, declared=10_000_000), DamagedEvent, "bytes that it declares"),
        (b"\2\1\1\1\1\1\0x", UnsupportedEvent, "algorithm 1"),
    ],
    ids=["no end", "itself", "cut", "no beginning", "too short", "too long", "not Zstandard"],
)
def test_a_payload_that_is_no_transaction_is_refused(
    body: bytes, error: type[Exception], match: str
) -> None:
    log = log_of("8.0.36")
    log.add(33, gtid(1))
    log.add(40, body)
    with pytest.raises(error, match=match):
        list(feed(a_buffer(), [log.wire()]))


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
    log.begin(number)
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
    log.prepare(2, b"a", *[2] * 3000)
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
from tests.pipeline.test_buffer import _large
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


def noted(log: Log, text: bytes) -> None:
    log.add(EventType.ROWS_QUERY, bytes([len(text) & 0xFF]) + text)


def logged(*texts: bytes, log: Log | None = None, number: int = 1, count: int = 1) -> Log:
    """A transaction of so many statements, with so many rows each."""
    log = log or Log()
    log.begin(number)
    for text in texts:
        noted(log, text)
        log.write(*range(count))
    log.end()
    return log


def read(log: Log, **options: int) -> list[Out]:
    return list(feed(a_buffer(**options), [log.wire()]))


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([b"x" * (MOST_TEXT_BYTES - 1)], None),
        ([b"x" * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 1]),
        ([b"x" * 60_000, b"y" * 10_000, b"z"], [60_000, MOST_TEXT_BYTES - 60_002]),
        ([b"x" * (MOST_TEXT_BYTES - 2), b"y"], [MOST_TEXT_BYTES - 2]),
        ([b"x" * (MOST_TEXT_BYTES - 1), b""], [MOST_TEXT_BYTES - 1]),
        (["ä".encode() * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 2]),
        (["x€".encode() * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 3]),
        (["\N{GRINNING FACE}".encode() * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 4]),
        ([b"\x80" * 2 * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 1]),
        ([b""] * (MOST_TEXT_BYTES + 5), [0] * MOST_TEXT_BYTES),
    ],
)
def test_so_much_text_is_kept(texts: list[bytes], kept: list[int] | None) -> None:
    """In whole characters; that something is left out is said, and the next one is whole."""
    log = Log()
    log.begin()
    for text in texts:
        noted(log, text)
    log.write(1)
    log.end()
    logged(b"next", log=log, number=2)
    cut, whole = read(log, text_bytes=0)
    expected = texts if kept is None else [t[:n] for t, n in zip(texts, kept, strict=False)]
    shown = tuple(text.decode("utf-8", "backslashreplace") for text in expected)
    assert (cut.texts, cut.cut) == (shown, kept is not None)
    assert (whole.texts, whole.cut) == (("next",), False)


@given(st.lists(st.lists(st.binary(max_size=12), max_size=4), max_size=5))
def test_any_bytes_are_a_text(transactions: list[list[bytes]]) -> None:
    """A client's character set is not logged with them: what is no UTF-8 is shown."""
    log = Log()
    for number, texts in enumerate(transactions, start=1):
        logged(*texts, log=log, number=number)
    expected = [
        tuple(text.decode("utf-8", "backslashreplace") for text in texts) for texts in transactions
    ]
    assert [one.texts for one in read(log)] == expected


@pytest.mark.parametrize("body", [b"", b"\xff", b"\x00insert", b"\xffinsert"])
def test_the_length_before_a_text_says_nothing(body: bytes) -> None:
    """It has one byte, and wraps; the event's end counts, also where it is missing."""
    log = Log()
    log.begin()
    log.add(EventType.ROWS_QUERY, body)
    log.end()
    assert [one.texts for one in read(log)] == [(body[1:].decode(),)]
