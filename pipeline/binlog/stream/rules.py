"""The rules of the transaction buffer, as prose and as the table that is the code.

A transaction is announced by a GTID event, real or anonymous. What follows it is

- one lone statement (DDL and the like: a QUERY that is not BEGIN), a transaction of its
  own; or
- BEGIN, table maps and rows, and an end: XID, COMMIT, or ROLLBACK, after which nothing
  of it comes out; or
- XA START, table maps and rows, XA END and XA_PREPARE. What was prepared waits, under its
  XID, for an XA COMMIT that comes out in its stead, perhaps many runs later, or for an
  XA ROLLBACK. A prepare in one phase is a commit; or
- TRANSACTION_PAYLOAD: the events of a whole transaction, compressed, which go through
  the same rules.

CREATE TABLE … AS SELECT stands inside BEGIN, before the rows it made; any other statement
there stands for rows that its session leaves out of the log. It is kept with its transaction, even
one that is rolled back: the log has such a one because a table without transactions was changed.
What a statement used that its text does not say (INTVAR, RAND, …) changes nothing. MariaDB's GTID
event is BEGIN (or XA START) at once, unless it announces a lone statement. SAVEPOINT remembers a
place inside a transaction and ROLLBACK TO drops what came after it.
Everything else (ROTATE, PREVIOUS_GTIDS, …) stands between transactions and moves the
position alone. Notes, which have the text of a statement whose rows follow, are kept with its
transaction; heartbeats change nothing.

Nothing leaves the buffer before its transaction's last event has come in. An event that
no rule allows in the present phase is refused, and the buffer is left as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, Self

import numpy as np
import numpy.typing as npt


class Worded(IntEnum):
    """A number for compiled code, with words for a person."""

    words: str

    def __new__(cls, number: int, words: str) -> Self:
        self = int.__new__(cls, number)
        self._value_ = number
        self.words = words
        return self


class Phase(Worded):
    """Where the buffer stands."""

    BETWEEN = 0, "between transactions"
    ANNOUNCED = 1, "announced by a GTID"
    OPEN = 2, "inside BEGIN"
    XA_OPEN = 3, "inside XA START"
    XA_ENDED = 4, "after XA END"


class EventRole(Worded):
    """What an event is to the rules."""

    GTID = 0, "GTID"
    GROUP = 1, "GTID of MariaDB"
    XA_GROUP = 2, "GTID of MariaDB with an XID"
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
    PLACE = 19, "ROTATE, FORMAT_DESCRIPTION, PREVIOUS_GTIDS, STOP …"
    NOTE = 20, "ROWS_QUERY, ANNOTATE_ROWS"
    HEARTBEAT = 21, "HEARTBEAT"
    VALUE = 22, "INTVAR, RAND, USER_VAR, blocks of LOAD DATA"


class BufferAction(Worded):
    """What the buffer does about an event."""

    REFUSE = 0, "refuse"
    BEGIN = 1, "begin a transaction"
    KEEP = 2, "keep"
    EMIT = 3, "let the transaction out"
    EMIT_NOTHING = 4, "let it out without its rows"
    MARK = 5, "remember the place"
    DROP_TO_MARK = 6, "drop what came after the place"
    PREPARE = 7, "keep the rows under the XID"
    EMIT_PREPARED = 8, "let the prepared rows out"
    FORGET_PREPARED = 9, "forget the prepared rows"
    UNPACK = 10, "take the events inside"
    MOVE = 11, "move the position"
    PASS = 12, "nothing"


_P, _I, _A = Phase, EventRole, BufferAction

TRANSITIONS: Final[Mapping[tuple[Phase, EventRole], tuple[BufferAction, Phase]]] = MappingProxyType(
    {
        (_P.BETWEEN, _I.GTID): (_A.BEGIN, _P.ANNOUNCED),
        (_P.BETWEEN, _I.GROUP): (_A.BEGIN, _P.OPEN),
        (_P.BETWEEN, _I.XA_GROUP): (_A.BEGIN, _P.XA_OPEN),
        (_P.BETWEEN, _I.PLACE): (_A.MOVE, _P.BETWEEN),
        (_P.BETWEEN, _I.HEARTBEAT): (_A.PASS, _P.BETWEEN),
        (_P.ANNOUNCED, _I.BEGIN): (_A.KEEP, _P.OPEN),
        (_P.ANNOUNCED, _I.XA_START): (_A.KEEP, _P.XA_OPEN),
        (_P.ANNOUNCED, _I.PAYLOAD): (_A.UNPACK, _P.ANNOUNCED),
        (_P.ANNOUNCED, _I.STATEMENT): (_A.EMIT, _P.BETWEEN),
        (_P.ANNOUNCED, _I.CREATE): (_A.EMIT, _P.BETWEEN),
        (_P.ANNOUNCED, _I.XA_COMMIT): (_A.EMIT_PREPARED, _P.BETWEEN),
        (_P.ANNOUNCED, _I.XA_ROLLBACK): (_A.FORGET_PREPARED, _P.BETWEEN),
        (_P.ANNOUNCED, _I.NOTE): (_A.KEEP, _P.ANNOUNCED),
        (_P.ANNOUNCED, _I.VALUE): (_A.PASS, _P.ANNOUNCED),
        (_P.ANNOUNCED, _I.HEARTBEAT): (_A.PASS, _P.ANNOUNCED),
        (_P.OPEN, _I.CHANGE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.CREATE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.STATEMENT): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.VALUE): (_A.PASS, _P.OPEN),
        (_P.OPEN, _I.SAVEPOINT): (_A.MARK, _P.OPEN),
        (_P.OPEN, _I.ROLLBACK_TO): (_A.DROP_TO_MARK, _P.OPEN),
        (_P.OPEN, _I.RELEASE): (_A.PASS, _P.OPEN),
        (_P.OPEN, _I.COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.OPEN, _I.ROLLBACK): (_A.EMIT_NOTHING, _P.BETWEEN),
        (_P.OPEN, _I.NOTE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.HEARTBEAT): (_A.PASS, _P.OPEN),
        (_P.XA_OPEN, _I.CHANGE): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _I.STATEMENT): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _I.VALUE): (_A.PASS, _P.XA_OPEN),
        (_P.XA_OPEN, _I.SAVEPOINT): (_A.MARK, _P.XA_OPEN),
        (_P.XA_OPEN, _I.ROLLBACK_TO): (_A.DROP_TO_MARK, _P.XA_OPEN),
        (_P.XA_OPEN, _I.RELEASE): (_A.PASS, _P.XA_OPEN),
        (_P.XA_OPEN, _I.XA_END): (_A.PASS, _P.XA_ENDED),
        (_P.XA_OPEN, _I.XA_PREPARE): (_A.PREPARE, _P.BETWEEN),
        (_P.XA_OPEN, _I.NOTE): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _I.HEARTBEAT): (_A.PASS, _P.XA_OPEN),
        (_P.XA_ENDED, _I.XA_PREPARE): (_A.PREPARE, _P.BETWEEN),
        (_P.XA_ENDED, _I.XA_ONE_PHASE): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _I.XA_COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _I.ROLLBACK): (_A.EMIT_NOTHING, _P.BETWEEN),
        (_P.XA_ENDED, _I.XA_ROLLBACK): (_A.EMIT_NOTHING, _P.BETWEEN),
        (_P.XA_ENDED, _I.COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _I.HEARTBEAT): (_A.PASS, _P.XA_ENDED),
    }
)


def compiled_table() -> npt.NDArray[np.int64]:
    """`TRANSITIONS` for compiled code: [phase, input] → (action, next phase)."""
    table = np.zeros((len(Phase), len(EventRole), 2), np.int64)
    for (phase, event), (action, following) in TRANSITIONS.items():
        table[phase, event] = action, following
    return table
