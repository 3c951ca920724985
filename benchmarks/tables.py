"""`python -m benchmarks.tables`, which `reading` starts: readers of a whole table, each in a
process of its own.

Its standard input is a JSON object: the server's `host`, `port`, `user` and `password`, `reader`, a
name of `READERS`, `database` and `table`, `folder` to write to, the number of `rows` and `passes`,
and `pid`, the server's process. It prints a JSON object with the fields of `Pass`.
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
    """The best of some passes: wall seconds, processor seconds of this process and of the
    server, bytes received (0 if not counted), and the process's highest resident size."""

    seconds: float
    processor_seconds: float
    server_seconds: float
    received_bytes: int
    peak_bytes: int


Task = dict[str, Any]
_EOF_BYTES = 9
COLUMNS = "id, big, num, amount, name, note, made, seen, ratio, flag"


def ours(task: Task) -> int:
    """Read as the product does; discard the Arrow batches."""
    server, name = _server_and_table(task)
    with server.rows(server.structure(name)) as batches:
        _require_rows(task, sum(batch.num_rows for batch in batches))
    return 0


def ours_written(task: Task) -> int:
    """Write a snapshot as Parquet, as for a table that must be read again."""
    from lockstep.pipeline.values.row_groups import row_groups
    from lockstep.resources.lake.changelog.segments import ParquetSegments

    server, name = _server_and_table(task)
    (schema,) = server.baseline([name]).tables
    with server.snapshot(schema) as snapshot:
        writer = ParquetSegments(Path(task["folder"])).open(
            "ours", batch=1, schema_version=0, schema=snapshot.schema
        )
        for group in row_groups(snapshot.batches):
            writer.write(group)
        _require_rows(task, sum(file.images for file in writer.close()))
    return 0


def socket(task: Task) -> int:
    """Receive and discard the same answer: the limit of every reader."""
    from lockstep.resources.mysql.connection import connect
    from lockstep.resources.mysql.receiving import ReadingCursor
    from lockstep.resources.mysql.select import BEGIN

    with connect(_settings(task)) as connection:
        cursor = connection.cursor(ReadingCursor)
        cursor.execute(BEGIN)
        cursor.ask(f"select {COLUMNS} from {task['database']}.{task['table']}")
        stream: Any = connection
        received = discard_answer(stream._sock)
        stream._force_close()
    return received


def by_connectorx(task: Task) -> int:
    """Read by ConnectorX into Arrow, by its binary protocol; it holds the whole table at the
    end."""
    import connectorx

    account = f"{task['user']}:{task['password']}" if task["password"] else task["user"]
    table = connectorx.read_sql(
        f"mysql://{account}@{task['host']}:{task['port']}/{task['database']}",
        f"select {COLUMNS} from {task['table']}",
        return_type="arrow",
        protocol="binary",
    )
    _require_rows(task, table.num_rows)
    return 0


def cursor_written(task: Task) -> int:
    """Read by PyMySQL's unbuffered cursor and write Parquet by pyarrow, as anybody would write
    it."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pymysql.cursors import SSCursor

    from lockstep.pipeline.schema.types import arrow_schema
    from lockstep.resources.mysql.connection import connect

    server, name = _server_and_table(task)
    schema = arrow_schema(server.structure(name))
    rows = 0
    with connect(_settings(task)) as connection:
        cursor = connection.cursor(SSCursor)
        cursor.execute(f"select {COLUMNS} from {name}")
        target = Path(task["folder"]) / "cursor.parquet"
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            while rows_of_chunk := cursor.fetchmany(100_000):
                columns = zip(*rows_of_chunk, strict=True)
                arrays = [
                    pa.array(column, kind)
                    for column, kind in zip(columns, schema.types, strict=True)
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
                rows += len(rows_of_chunk)
    _require_rows(task, rows)
    return 0


def mysqldump(task: Task) -> int:
    """Discard the statements of the server's own tool."""
    program = which("mysqldump") or which("mariadb-dump")
    if program is None:
        raise SystemExit("there is no mysqldump on the PATH")
    account = [f"--host={task['host']}", f"--port={task['port']}", f"--user={task['user']}"]
    subprocess.run(
        [program, *account, "--single-transaction", task["database"], task["table"]],
        env={"MYSQL_PWD": task["password"]},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return 0


READERS: dict[str, Callable[[Task], int]] = {
    "ours": ours,
    "ours, written": ours_written,
    "socket": socket,
    "ConnectorX": by_connectorx,
    "cursor, written": cursor_written,
    "mysqldump": mysqldump,
}


def _settings(task: Task) -> Any:
    from lockstep.resources.mysql.connection import ConnectionSettings

    return ConnectionSettings(task["host"], task["port"], task["user"], task["password"], tls="off")


def _server_and_table(task: Task) -> Any:
    from lockstep.pipeline.values.table import TableName
    from lockstep.resources.mysql.server import MySqlServer

    return MySqlServer(_settings(task)), TableName(task["database"], task["table"])


def _require_rows(task: Task, rows: int) -> None:
    if rows != task["rows"]:
        raise SystemExit(f"{task['reader']} read {rows} rows of {task['rows']}")


def discard_answer(sock: Any, min_bytes: int = 0) -> int:
    """Receive until at least `min_bytes` arrived and the last of them are an EOF packet (MySQL
    manual, "Protocol::EOF_Packet"); return their number."""
    buffer = bytearray(1 << 20)
    received, tail = 0, b""
    while received < min_bytes or not (tail[:3] == b"\5\0\0" and tail[4:5] == b"\xfe"):
        count = sock.recv_into(buffer)
        if count == 0:
            raise SystemExit(f"the server closed the connection after {received} bytes")
        received += count
        tail = (tail + buffer[max(0, count - _EOF_BYTES) : count])[-_EOF_BYTES:]
    return received


def main() -> None:
    """Read `passes` times, the first time to warm up if there are several, and print the fastest
    pass."""
    task = json.load(sys.stdin)
    read = READERS[task["reader"]]
    passes = []
    for _ in range(task["passes"]):
        timer_start, own_start = perf_counter(), process_time()
        server_start = processor_seconds(task["pid"])
        received = read(task)
        seconds, own = perf_counter() - timer_start, process_time() - own_start
        server = processor_seconds(task["pid"]) - server_start
        passes.append(Pass(seconds, own, server, received, highest_resident_size()))
    best = min(passes, key=lambda each: each.seconds)
    print(json.dumps({**asdict(best), "peak_bytes": max(each.peak_bytes for each in passes)}))


if __name__ == "__main__":
    main()
