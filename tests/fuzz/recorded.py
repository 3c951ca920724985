"""Logs of real servers with every kind of event, recorded and cut into their transactions."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.stream.compressed import payload_pieces
from lockstep.pipeline.binlog.stream.framing import Event, EventType, read_event
from lockstep.pipeline.binlog.stream.intake import dump_events
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server

AT: Final = Coordinates(LogFile("binlog", 1), 4)
"""Where a log that was put together anew begins."""

_GTIDS: Final = frozenset({33, 34, 42, 162})

_COLUMNS: Final = """
id int primary key auto_increment, ti tinyint, tu tinyint unsigned, si smallint, mi mediumint,
bi bigint, bu bigint unsigned, f float, d double, d1 decimal(10,2), d2 decimal(30,10),
d3 decimal(65,30), b1 bit(1), b13 bit(13), b64 bit(64), y year, da date, t0 time, t3 time(3),
t6 time(6), dt0 datetime, dt5 datetime(5), ts0 timestamp null, ts6 timestamp(6) null,
c char(10), vl varchar(300) character set latin1, vg varchar(50) character set gbk,
vs varchar(20) character set utf16, bn binary(5), vb varbinary(300), tb tinyblob, bb blob,
lt longtext, e enum('a','b','c'), s set('x','y','z'), g geometry, j json"""

_VALUES: Final = (
    "(null, -1, 200, -300, -70000, -5, 18446744073709551615, 1.5, -2.25, -12345.67,"
    " 123456789012345.0123456789, -1.5, 1, 4097, 1, 1999, '2024-02-29', '-12:34:56',"
    " '838:59:59', '01:02:03.456789', '2024-01-02 03:04:05', '1999-12-31 23:59:59.12345',"
    " '2024-01-02 03:04:05', '2038-01-01 00:00:00.000001', 'abc', 'grün', '汉字', 'ü😀',"
    " x'6162', x'00ff', 'tiny', repeat('b', 300), 'long', 'b', 'x,z',"
    " st_geomfromtext('linestring(0 0, 1 1)', 4326),"
    ' \'{"a": [1, 2.5, "x"], "bb": {"c": null, "d": true}}\')',
    "(null" + ", null" * 36 + ")",
    "(null, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, '1000-01-01', '00:00:00', '0:0:0.001',"
    " '-0:0:0.000001', '9999-12-31 23:59:59', '1000-01-01', '1970-01-02', '1970-01-02', '', '',"
    " '', '', '', '', '', '', '', 'c', '', null, '[]')",
)

_UNDONE: Final = "'undone'"
_JSON: Final = """insert into documents values
(1, json_array(cast('12.340' as decimal(10,3)), date'2024-02-29', time'-12:34:56.7', 1e100)),
(2, json_object('p', st_geomfromtext('point(1 2)'), 'k', cast(x'00ff' as json))),
(3, concat('[', repeat('1,', 300), '"x"]')), (4, concat('"', repeat('x', 700), '"'))"""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A server's events without checksums. `transactions`: each with its GTID first;
    `inside`: the events in a TRANSACTION_PAYLOAD, by its bytes."""

    flavour: str
    description: bytes
    transactions: tuple[tuple[bytes, ...], ...]
    inside: dict[bytes, tuple[bytes, ...]]

    def save(self, path: Path) -> None:
        parts = (self.flavour, self.description, self.transactions, self.inside)
        path.write_bytes(pickle.dumps(parts))

    @classmethod
    def load(cls, path: Path) -> Corpus:
        return cls(*pickle.loads(path.read_bytes()))

    @property
    def row_events(self) -> list[tuple[bytes, bytes]]:
        """Every table map with a row event that follows it in its transaction."""
        found = []
        for one in [*self.transactions, *self.inside.values()]:
            maps: dict[bytes, bytes] = {}
            for event in one:
                if event[4] == EventType.TABLE_MAP:
                    maps[event[19:25]] = event
                elif event[4] in ROW_EVENTS and event[19:25] in maps:
                    found.append((maps[event[19:25]], event))
        return found


ROW_EVENTS: Final = (23, 24, 25, 30, 31, 32, 39)


def record(stand: MySqlStand, database: str, flavour: str) -> Corpus:
    """Write something of everything, and read it back."""
    source = server(stand)
    start = head(stand)
    with stand.connect(database) as connection, connection.cursor() as cursor:
        for statement in _statements(flavour):
            cursor.execute(statement)
    with closing(source.dump(start)) as dump:
        return recorded(list(dump_events(dump)), flavour)


def recorded(packets: Iterable[bytes], flavour: str) -> Corpus:
    """A dump's events, cut into transactions."""
    description = b""
    groups: list[list[bytes]] = []
    for packet in packets:
        event = packet[:-4]
        if event[4] == EventType.FORMAT_DESCRIPTION:
            description = description or event[:13] + bytes(6) + event[19:]
        elif event[4] in _GTIDS:
            groups.append([event])
        elif event[4] not in (EventType.ROTATE, EventType.STOP) and groups:
            groups[-1].append(event)
    inside = {e: tuple(_inside(e)) for g in groups for e in g if e[4] == 40}
    small = [tuple(group) for group in groups if sum(map(len, group)) < _LARGEST]
    return Corpus(flavour, description, tuple(small), inside)


_LARGEST: Final = 6000
"""Larger transactions would only make every input slower."""


def _inside(raw: bytes) -> Iterator[bytes]:
    event: Event = read_event(raw, AT, has_checksum=False)
    data = np.concatenate(list(payload_pieces(event))).tobytes()
    while data:
        size = int.from_bytes(data[9:13], "little")
        yield data[:size]
        data = data[size:]


def _statements(flavour: str) -> Iterator[str]:
    if flavour == "mariadb":
        yield from _shared(_COLUMNS, _VALUES)
        yield from _MARIADB
        return
    vectors = ("to_vector('[1,2,3]')", "null", "null")
    values = [f"{v[:-1]}, {x})" for v, x in zip(_VALUES, vectors, strict=True)]
    yield from _shared(_COLUMNS + ", v vector(3)", values)
    yield from _MYSQL


def _shared(columns: str, values: Sequence[str]) -> Iterator[str]:
    yield "set sql_mode = ''"
    yield f"create table every ({columns})"
    yield "create table small (id int primary key, v varchar(20), n int)"
    yield "create table documents (id int primary key, j json)"
    for value in values:
        yield f"insert into every values {value}"
    yield f"insert into every values {values[0]}, {values[1]}, {values[2]}"
    yield "update every set ti = 5, vl = 'ä', da = '0000-00-00' where id > 1"
    yield "insert into small values (1, 'a', 1), (2, 'b', 2), (3, null, null)"
    yield "update small, every set small.n = 7, every.si = 8 where small.id = every.id"
    yield "set session binlog_row_image = minimal"
    yield "update every set f = 3 where id = 1"
    yield "set session binlog_row_image = full"
    yield from ("begin", "insert into small values (4, 'x', 0)", "savepoint `a b`")
    yield from ("insert into small values (5, 'y', 0)", "rollback to `a b`")
    yield from ("delete from small where id = 4", "commit")
    yield "create table chosen (id int primary key) select id from small"
    yield "delete from every where id = 2"
    yield "alter table small add w int default 3"
    for name in ("'plain'", "'gtrid', 'bqual'", _UNDONE):
        yield f"xa start {name}"
        yield f"insert into small values ({10 + len(name)}, 'xa', 1, 2)"
        yield from (f"xa end {name}", f"xa prepare {name}")
        yield f"xa {'rollback' if name == _UNDONE else 'commit'} {name}"


_MYSQL: Final = (
    _JSON,
    "set session binlog_row_value_options = partial_json",
    "update documents set j = json_set(j, '$[1]', 2) where id = 3",
    "update every set j = json_remove(j, '$.a') where id = 1",
    "set session binlog_row_value_options = ''",
    "set session binlog_rows_query_log_events = on",
    "update small set v = 'noted' where id = 1",
    "set session binlog_rows_query_log_events = off",
    "xa start 'phase'",
    "update small set v = 'one phase' where id = 1",
    "xa end 'phase'",
    "xa commit 'phase' one phase",
    "set session binlog_transaction_compression = on",
    "update every set si = si + 1",
    "insert into small values (50, repeat('z', 20), 1, 1)",
    "set session binlog_transaction_compression = off",
    "set session gtid_next = 'AUTOMATIC:some_tag'",
    "update small set v = 'tagged'",
    "set session gtid_next = 'AUTOMATIC'",
    "delete from documents",
)

_MARIADB: Final = (
    "set global log_bin_compress = on, global log_bin_compress_min_len = 10",
    "update every set si = si + 1",
    "update small set v = 'compressed'",
    "create table packed (id int primary key comment 'a statement that is worth compressing')",
    "set global log_bin_compress = off, global log_bin_compress_min_len = 256",
    "create sequence numbers",
    "do nextval(numbers)",
    "delete from small",
)
