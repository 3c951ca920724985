"""The log as mysql-replication reads it: the rows of every row event, accessed and discarded."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from benchmarks.workloads import Written
from lockstep.resources.mysql.connection import ConnectionSettings

_SERVER_ID = 4_000_000_002


@dataclass(frozen=True, slots=True)
class Pass:
    """Rows and transactions that were read in `seconds`, including connecting. `whole`: false if
    the time was over before the log ended."""

    rows: int
    transactions: int
    seconds: float
    whole: bool


def read(settings: ConnectionSettings, log: Written, seconds: float) -> Pass:
    """Read from `log.start` to `log.end`, or until `seconds` have passed."""
    clock = perf_counter()
    stream = BinLogStreamReader(
        connection_settings={
            "host": settings.host,
            "port": settings.port,
            "user": settings.user,
            "passwd": settings.password,
            "ssl_disabled": True,
        },
        ctl_connection_settings=None,
        server_id=_SERVER_ID,
        resume_stream=True,
        blocking=False,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent],
        log_file=str(log.start.file),
        log_pos=log.start.offset,
        enable_logging=False,
    )
    end = (str(log.end.file), log.end.offset)
    rows = transactions = 0
    spent, whole = 0.0, False
    try:
        for event in stream:
            if isinstance(event, XidEvent):
                transactions += 1
            else:
                rows += len(event.rows)
            spent = perf_counter() - clock
            whole = (stream.log_file, stream.log_pos) == end
            if whole or spent > seconds:
                break
    finally:
        stream.close()
    return Pass(rows, transactions, spent, whole)
