"""GTID sets as COM_BINLOG_DUMP_GTID and PREVIOUS_GTIDS carry them.

Format: `Gtid_set::encode` in MySQL's `sql/rpl_gtid_set.cc`: the number of sources 8, then
for each its UUID 16, its number of intervals 8, and first and end (exclusive) of each, 8
bytes each. A set with tags (MySQL 8.3+) has 1 as its first and eighth byte, the number of
sources in the six between, and twice the tag's length (length-encoded) and the tag after
each UUID.
"""

from __future__ import annotations

import struct
from uuid import UUID

from lockstep.pipeline.binlog.stream.event_reader import Reader
from lockstep.pipeline.binlog.stream.outcomes import damaged
from lockstep.pipeline.values.gtid import GtidSet


def encode_gtid_set(gtids: GtidSet) -> bytes:
    """Return the set's bytes for a dump command, in the form with tags only if it has tags."""
    tagged = any(":" in source for source in gtids.intervals)
    count = len(gtids.intervals)
    middle = count.to_bytes(6, "little")
    parts = [b"\x01" + middle + b"\x01" if tagged else struct.pack("<Q", count)]
    for source, spans in gtids.intervals.items():
        uuid, _, tag = source.partition(":")
        parts.append(UUID(uuid).bytes)
        if tagged:
            parts.append(bytes([2 * len(tag)]) + tag.encode("ascii"))
        parts.append(struct.pack("<Q", len(spans)))
        parts += [struct.pack("<QQ", first, last + 1) for first, last in spans]
    return b"".join(parts)


def decode_gtid_set(data: bytes) -> GtidSet:
    """Read a set from such bytes; DamagedEvent if they are not a GTID set."""
    reader = Reader(data, "a PREVIOUS_GTIDS event")
    head = reader.take(8)
    tagged = head[7] == 1
    count = int.from_bytes(head[1:7] if tagged else head, "little")
    parts = []
    for _ in range(count):
        source = str(UUID(bytes=reader.take(16)))
        if tagged:
            tag = reader.take(reader.length_encoded() // 2).decode("ascii", "replace")
            source = f"{source}:{tag}" if tag else source
        for _ in range(reader.integer(8)):
            first, end = reader.integer(8), reader.integer(8)
            parts.append(f"{source}:{first}-{end - 1}")
    try:
        return GtidSet.parse(",".join(parts))
    except ValueError as error:
        raise damaged(f"a PREVIOUS_GTIDS event is not a GTID set: {error}") from error
