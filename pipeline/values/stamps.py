"""Stamps: columns that say, of each row of a mirror (the Delta table with a table's
current rows), which change was its last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

STAMPS = pa.schema(
    [
        pa.field("_committed_at", pa.timestamp("us", tz="UTC")),
        pa.field("_sequence", pa.int64()),
        pa.field("_gtid", pa.string()),
    ]
)
"""The columns that the setting `stamps` adds to a mirror. Their values are those that
the changelog has for the row's last change. Every write sets them like the table's own
columns."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The values of the columns `STAMPS` for a change to all rows of a table: Lockstep
    read all rows from the source, or the source deleted all rows. `sequence` is the
    change's number; `gtid` is None if the server gave it none."""

    sequence: int
    committed_at: datetime | None = None
    gtid: str | None = None

    def value(self, name: str) -> pa.Scalar:
        """Return the value of a column of `STAMPS`."""
        values = {
            "_committed_at": self.committed_at,
            "_sequence": self.sequence,
            "_gtid": self.gtid,
        }
        return pa.scalar(values[name], STAMPS.field(name).type)
