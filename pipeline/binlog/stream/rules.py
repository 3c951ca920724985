"""The rules of the transaction buffer, as prose and as the table that the code runs.
They say what the buffer does with each event in each of its phases.

A transaction begins with a GTID event, real or anonymous. One of these follows:

- One statement that commits by itself, such as DDL (a QUERY that is not BEGIN).
- BEGIN, table maps and rows, and an end: XID or COMMIT; or ROLLBACK, which drops the
  rows.
- XA START, table maps and rows, XA END and XA_PREPARE. The prepared rows are kept under
  their XID, perhaps for many runs, until XA COMMIT emits them or XA ROLLBACK drops
  them. An XA_PREPARE in one phase commits at once.
- TRANSACTION_PAYLOAD: all events of a transaction, compressed, to which the same rules
  apply.

CREATE TABLE … AS SELECT stands inside BEGIN, before the rows that it inserts. Any other
statement inside BEGIN was logged in statement format, instead of its rows. It is kept
even if its transaction is rolled back: a server logs such a transaction only because it
changed a table whose engine has no transactions. Events with values for a statement
(INTVAR, RAND, …) are ignored. SAVEPOINT marks a place inside a transaction, and
ROLLBACK TO drops the events after that place. ROWS_QUERY and ANNOTATE_ROWS have the
text of the statement whose rows follow, and are kept. MariaDB's GTID event is also the
BEGIN (or XA START), unless a statement that commits by itself follows. ROTATE,
PREVIOUS_GTIDS and the like stand between transactions and only move the position;
heartbeats change nothing.

Nothing leaves the buffer before the last event of its transaction has arrived. An event
that no rule allows in the present phase is refused, and the buffer stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, Self

import numpy as np
import numpy.typing as npt


class Worded(IntEnum):
    """A number for compiled code, with words for messages and documentation."""

    words: str

    def __new__(cls, number: int, words: str) -> Self:
        self = int.__new__(cls, number)
        self._value_ = number
        self.words = words
        return self


class Phase(Worded):
    """The state of the buffer."""

    BETWEEN = 0, "between transactions"
    ANNOUNCED = 1, "announced by a GTID"
    OPEN = 2, "inside BEGIN"
    XA_OPEN = 3, "inside XA START"
    XA_ENDED = 4, "after XA END"


class EventRole(Worded):
    """The kinds of events that the rules distinguish."""

    GTID = 0, "GTID"
    GTID_BEGIN = 1, "GTID of MariaDB"
    GTID_XA_START = 2, "GTID of MariaDB with an XID"
    BEGIN = 3, "QUERY BEGIN"
    CHANGE = 4, "TABLE_MAP, rows"
    COMMIT = 5, "XID, QUERY COMMIT"
    ROLLBACK = 6, "QUERY ROLLBACK"
    STATEMENT = 7, "QUERY of any other kind"
    CREATE = 8, "QUERY CREATE TABLE"
    SAVEPOINT = 9, "QUERY SAVEPOINT"
    ROLLBACK_TO = 10, "QUERY ROLLBACK TO"
    RELEASE = 11, "QUERY RELEASE SAVEPOINT"
    XA_START = 12, "QUERY XA START"
    XA_END = 13, "QUERY XA END"
    XA_PREPARE = 14, "XA_PREPARE"
    XA_ONE_PHASE = 15, "XA_PREPARE in one phase"
    XA_COMMIT = 16, "QUERY XA COMMIT"
    XA_ROLLBACK = 17, "QUERY XA ROLLBACK"
    PAYLOAD = 18, "TRANSACTION_PAYLOAD"
    POSITION = 19, "ROTATE, FORMAT_DESCRIPTION, PREVIOUS_GTIDS, STOP …"
    NOTE = 20, "ROWS_QUERY, ANNOTATE_ROWS"
    HEARTBEAT = 21, "HEARTBEAT"
    VALUE = 22, "INTVAR, RAND, USER_VAR, blocks of LOAD DATA"


class BufferAction(Worded):
    """What the buffer does with an event."""

    REFUSE = 0, "refuse"
    BEGIN = 1, "begin a transaction"
    KEEP = 2, "keep"
    EMIT = 3, "emit the transaction"
    EMIT_WITHOUT_ROWS = 4, "emit the transaction without its rows"
    MARK = 5, "mark the place"
    DROP_TO_MARK = 6, "drop what came after the mark"
    PREPARE = 7, "keep the rows under the XID"
    EMIT_PREPARED = 8, "emit the prepared rows"
    FORGET_PREPARED = 9, "drop the prepared rows"
    UNPACK = 10, "process the events inside"
    MOVE = 11, "move the position"
    PASS = 12, "ignore"


_P, _R, _A = Phase, EventRole, BufferAction

TRANSITIONS: Final[Mapping[tuple[Phase, EventRole], tuple[BufferAction, Phase]]] = MappingProxyType(
    {
        (_P.BETWEEN, _R.GTID): (_A.BEGIN, _P.ANNOUNCED),
        (_P.BETWEEN, _R.GTID_BEGIN): (_A.BEGIN, _P.OPEN),
        (_P.BETWEEN, _R.GTID_XA_START): (_A.BEGIN, _P.XA_OPEN),
        (_P.BETWEEN, _R.POSITION): (_A.MOVE, _P.BETWEEN),
        (_P.BETWEEN, _R.HEARTBEAT): (_A.PASS, _P.BETWEEN),
        (_P.ANNOUNCED, _R.BEGIN): (_A.KEEP, _P.OPEN),
        (_P.ANNOUNCED, _R.XA_START): (_A.KEEP, _P.XA_OPEN),
        (_P.ANNOUNCED, _R.PAYLOAD): (_A.UNPACK, _P.ANNOUNCED),
        (_P.ANNOUNCED, _R.STATEMENT): (_A.EMIT, _P.BETWEEN),
        (_P.ANNOUNCED, _R.CREATE): (_A.EMIT, _P.BETWEEN),
        (_P.ANNOUNCED, _R.XA_COMMIT): (_A.EMIT_PREPARED, _P.BETWEEN),
        (_P.ANNOUNCED, _R.XA_ROLLBACK): (_A.FORGET_PREPARED, _P.BETWEEN),
        (_P.ANNOUNCED, _R.NOTE): (_A.KEEP, _P.ANNOUNCED),
        (_P.ANNOUNCED, _R.VALUE): (_A.PASS, _P.ANNOUNCED),
        (_P.ANNOUNCED, _R.HEARTBEAT): (_A.PASS, _P.ANNOUNCED),
        (_P.OPEN, _R.CHANGE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _R.CREATE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _R.STATEMENT): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _R.VALUE): (_A.PASS, _P.OPEN),
        (_P.OPEN, _R.SAVEPOINT): (_A.MARK, _P.OPEN),
        (_P.OPEN, _R.ROLLBACK_TO): (_A.DROP_TO_MARK, _P.OPEN),
        (_P.OPEN, _R.RELEASE): (_A.PASS, _P.OPEN),
        (_P.OPEN, _R.COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.OPEN, _R.ROLLBACK): (_A.EMIT_WITHOUT_ROWS, _P.BETWEEN),
        (_P.OPEN, _R.NOTE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _R.HEARTBEAT): (_A.PASS, _P.OPEN),
        (_P.XA_OPEN, _R.CHANGE): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _R.STATEMENT): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _R.VALUE): (_A.PASS, _P.XA_OPEN),
        (_P.XA_OPEN, _R.SAVEPOINT): (_A.MARK, _P.XA_OPEN),
        (_P.XA_OPEN, _R.ROLLBACK_TO): (_A.DROP_TO_MARK, _P.XA_OPEN),
        (_P.XA_OPEN, _R.RELEASE): (_A.PASS, _P.XA_OPEN),
        (_P.XA_OPEN, _R.XA_END): (_A.PASS, _P.XA_ENDED),
        (_P.XA_OPEN, _R.XA_PREPARE): (_A.PREPARE, _P.BETWEEN),
        (_P.XA_OPEN, _R.NOTE): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _R.HEARTBEAT): (_A.PASS, _P.XA_OPEN),
        (_P.XA_ENDED, _R.XA_PREPARE): (_A.PREPARE, _P.BETWEEN),
        (_P.XA_ENDED, _R.XA_ONE_PHASE): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _R.XA_COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _R.ROLLBACK): (_A.EMIT_WITHOUT_ROWS, _P.BETWEEN),
        (_P.XA_ENDED, _R.XA_ROLLBACK): (_A.EMIT_WITHOUT_ROWS, _P.BETWEEN),
        (_P.XA_ENDED, _R.COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _R.HEARTBEAT): (_A.PASS, _P.XA_ENDED),
    }
)


def compiled_table() -> npt.NDArray[np.int64]:
    """Return `TRANSITIONS` for compiled code: [phase, role] → (action, next phase)."""
    table = np.zeros((len(Phase), len(EventRole), 2), np.int64)
    for (phase, role), (action, next_phase) in TRANSITIONS.items():
        table[phase, role] = action, next_phase
    return table
