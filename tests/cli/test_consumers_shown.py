"""Consumers as `lockstep status` tells of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lockstep.commands.status import consumer_pairs
from lockstep.pipeline.values.consumers import Consumer

MADE = datetime(2026, 11, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("consumer", "sentence"),
    [
        (
            Consumer("shop", "billing", None, 3, 20_000, 2, MADE),
            "before the first batch, 3 batches behind (20,000 changes), 2 deliveries out",
        ),
        (
            Consumer("shop", "billing", 7, 1, 1, 1, MADE),
            "after batch 7, 1 batch behind (1 change), 1 delivery out",
        ),
        (Consumer("shop", "billing", 8, 0, 0, 0, MADE), "after batch 8, nothing behind"),
    ],
)
def test_a_person_reads_a_sentence(consumer: Consumer, sentence: str) -> None:
    """One line a consumer."""
    assert consumer_pairs([consumer]) == {"consumer billing": sentence}
