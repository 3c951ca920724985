"""TRANSACTION_PAYLOAD, made: what may stand in one, and what may not."""

from __future__ import annotations

import pytest

from lockstep.pipeline.values.errors import DamagedEvent, UnsupportedEvent
from tests.pipeline.buffered import a_buffer, feed
from tests.pipeline.dialects_made import log_of
from tests.pipeline.made import (
    gtid,
    nested,
    nested_transaction,
    payload,
    rows,
    table_map,
    xa,
    xa_prepare,
)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_payload_may_hold_a_prepared_transaction(compressed: bool) -> None:
    """XA START to XA_PREPARE inside; the commit comes later, bare."""
    log = log_of("8.0.36")
    inside = [
        nested(2, xa("START", b"a")),
        nested(29, b"\6insert"),
        nested(19, table_map()),
        nested(30, rows(4, 5)),
        nested(2, xa("END", b"a")),
        nested(38, xa_prepare(b"a")),
    ]
    log.add(33, gtid(1))
    log.add(40, payload(b"".join(inside), compressed=compressed))
    log.transaction(2)
    log.add(33, gtid(3))
    log.add(2, xa("COMMIT", b"a"))
    assert [one.values for one in feed(a_buffer(), [log.wire()])] == [[], [2], [4, 5]]


@pytest.mark.parametrize(
    ("inside", "match"),
    [
        (nested_transaction(1)[: -(19 + 8)], "has no end"),
        (nested(40, payload(nested_transaction(1))), "contains another"),
        (nested_transaction(1)[:-1], "length is not the one in its header"),
        (nested(16, bytes(8)), "XID event comes announced"),
    ],
)
def test_a_payload_that_is_no_transaction_is_damage(inside: bytes, match: str) -> None:
    """Without an end, within itself, cut short, without a beginning."""
    log = log_of("8.0.36")
    log.add(33, gtid(1))
    log.add(40, payload(inside))
    with pytest.raises(DamagedEvent, match=match):
        list(feed(a_buffer(), [log.wire()]))


def test_a_payload_of_another_compression_stops() -> None:
    """Zstandard and none are all that there are."""
    log = log_of("8.0.36")
    log.add(33, gtid(1))
    log.add(40, b"\2\1\1\1\1\1\0x")
    with pytest.raises(UnsupportedEvent, match="algorithm 1"):
        list(feed(a_buffer(), [log.wire()]))
