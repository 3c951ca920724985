"""Readers of a whole table, each in a process of its own: `python -m benchmarks.tables`,
started by `reading.py`.

Belongs here: what each contestant does. Does not: the table they read, and the figures.

Standard input is one JSON object: the server's `host`, `port`, `user` and `password`, `reader`,
a name of `READERS`, `database` and `table`, `folder` to write to, `rows` there are, `passes`, and
`pid`, the server's process. Standard output is one JSON object, of `Pass`'s fields.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which
from time import perf_counter, process_time
from typing import Any

from benchmarks.resident import highest_resident_size, processor_seconds


@dataclass(frozen=True, slots=True)
class Pass:
    """The best of some: wall seconds, the processor's of this process and of the server, bytes
    received (0 where nobody counted), and the process's peak of resident memory."""

    seconds: float
    processor: float
    server: float
    received: int
    peak: int


Given = dict[str, Any]
COLUMNS = "id, big, num, amount, name, note, made, seen, ratio, flag"


def ours(given: Given) -> int:
    """The product's reading; Arrow is thrown away."""
    server, name = _server(given)
    with server.rows(server.structure(name)) as batches:
        _require(given, sum(batch.num_rows for batch in batches))
    return 0


def ours_written(given: Given) -> int:
    """A snapshot, staged as Parquet as a table is that must be read again."""
    from pipeline.row_groups import row_groups
    from resources.lake.segments import ParquetSegments

    server, name = _server(given)
    (schema,) = server.baseline([name]).tables
    with server.snapshot(schema) as snapshot:
        writer = ParquetSegments(Path(given["folder"])).open(
            "ours", batch=1, schema_version=0, schema=snapshot.schema
        )
        for group in row_groups(snapshot.batches):
            writer.write(group)
        _require(given, sum(file.images for file in writer.close()))
    return 0


def socket(given: Given) -> int:
    """The same answer, received and thrown away: the limit of any reader."""
    from resources.mysql.answers import ReadingCursor
    from resources.mysql.connection import connect
    from resources.mysql.select import BEGIN

    with connect(_settings(given)) as connection:
        cursor = connection.cursor(ReadingCursor)
        cursor.execute(BEGIN)
        cursor.ask(f"select {COLUMNS} from {given['database']}.{given['table']}")
        stream: Any = connection
        received = _throw_away(stream._sock)
        stream._force_close()
    return received


def connectorx(given: Given) -> int:
    """ConnectorX into Arrow, in its binary protocol; it has the whole table at its end."""
    import connectorx as other

    account = f"{given['user']}:{given['password']}" if given["password"] else given["user"]
    found = other.read_sql(
        f"mysql://{account}@{given['host']}:{given['port']}/{given['database']}",
        f"select {COLUMNS} from {given['table']}",
        return_type="arrow",
        protocol="binary",
    )
    _require(given, found.num_rows)
    return 0


def cursor_written(given: Given) -> int:
    """PyMySQL's unbuffered cursor, pyarrow and Parquet, as anybody would write it."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pymysql.cursors import SSCursor

    from pipeline.schema.types import arrow_schema
    from resources.mysql.connection import connect

    server, name = _server(given)
    schema = arrow_schema(server.structure(name))
    rows = 0
    with connect(_settings(given)) as connection:
        cursor = connection.cursor(SSCursor)
        cursor.execute(f"select {COLUMNS} from {name}")
        target = Path(given["folder"]) / "cursor.parquet"
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            while found := cursor.fetchmany(100_000):
                columns = zip(*found, strict=True)
                arrays = [pa.array(c, k) for c, k in zip(columns, schema.types, strict=True)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
                rows += len(found)
    _require(given, rows)
    return 0


def mysqldump(given: Given) -> int:
    """The server's own tool, its statements thrown away."""
    program = which("mysqldump") or which("mariadb-dump")
    if program is None:
        raise SystemExit("there is no mysqldump on the PATH")
    account = [f"--host={given['host']}", f"--port={given['port']}", f"--user={given['user']}"]
    subprocess.run(
        [program, *account, "--single-transaction", given["database"], given["table"]],
        env={"MYSQL_PWD": given["password"]},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return 0


READERS: dict[str, Callable[[Given], int]] = {
    "ours": ours,
    "ours, written": ours_written,
    "socket": socket,
    "ConnectorX": connectorx,
    "cursor, written": cursor_written,
    "mysqldump": mysqldump,
}


def _settings(given: Given) -> Any:
    from resources.mysql.connection import ConnectionSettings

    return ConnectionSettings(
        given["host"], given["port"], given["user"], given["password"], tls="off"
    )


def _server(given: Given) -> Any:
    from pipeline.table import TableName
    from resources.mysql.server import MySqlServer

    return MySqlServer(_settings(given)), TableName(given["database"], given["table"])


def _require(given: Given, rows: int) -> None:
    if rows != given["rows"]:
        raise SystemExit(f"{given['reader']} read {rows} rows of {given['rows']}")


def _throw_away(sock: Any) -> int:
    """Receive until the last bytes are an EOF packet."""
    buffer = bytearray(1 << 20)
    received, tail = 0, b""
    while not (tail[:3] == b"\5\0\0" and tail[4:5] == b"\xfe" and len(tail) == 9):
        count = sock.recv_into(buffer)
        if count == 0:
            raise SystemExit(f"the server closed the answer after {received} bytes")
        received += count
        tail = (tail + buffer[max(0, count - 9) : count])[-9:]
    return received


def main() -> None:
    """Read so often, the first pass to warm up where there are several; tell the fastest."""
    given = json.load(sys.stdin)
    read = READERS[given["reader"]]
    found = []
    for _ in range(given["passes"]):
        clock, used, server = perf_counter(), process_time(), processor_seconds(given["pid"])
        received = read(given)
        seconds, used = perf_counter() - clock, process_time() - used
        server = processor_seconds(given["pid"]) - server
        found.append(Pass(seconds, used, server, received, highest_resident_size()))
    best = min(found, key=lambda one: one.seconds)
    print(json.dumps({**asdict(best), "peak": max(one.peak for one in found)}))


if __name__ == "__main__":
    main()
