"""Which change a row of a mirror shows: its stamps, and what they are where no image says it."""

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
"""A mirror's own columns where `stamps` asks for them: what the changelog says of the last change
of the row. They are columns of the mirror like the table's, so that every write brings them."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A change of all rows of a table, by its number: they were read from the source, or they went.
    `committed_at`: the moment of that; `gtid`: None where the server gave it none."""

    sequence: int
    committed_at: datetime | None = None
    gtid: str | None = None

    def value(self, name: str) -> pa.Scalar:
        """Return what a column of `STAMPS` is in such a row."""
        values = {
            "_committed_at": self.committed_at,
            "_sequence": self.sequence,
            "_gtid": self.gtid,
        }
        return pa.scalar(values[name], STAMPS.field(name).type)
