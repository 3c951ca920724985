"""Consumers as `lockstep status` tells of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lockstep.consumer_report import consumer_pairs, consumers_json
from pipeline.consumers import Consumer

MADE = datetime(2026, 11, 1, 6, tzinfo=UTC)


def test_the_object_has_every_figure() -> None:
    """A cursor before the first batch is null."""
    told = consumers_json([Consumer("shop", "billing", None, 3, 20, 1, MADE)])
    assert told == [
        {
            "name": "billing",
            "cursor": None,
            "batches_behind": 3,
            "changes_behind": 20,
            "out": 1,
            "made_at": "2026-11-01T06:00:00+00:00",
        }
    ]


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
    assert consumer_pairs(consumers_json([consumer])) == {"consumer billing": sentence}


def test_without_consumers_there_is_no_line() -> None:
    """Nobody needs to know of a feature they do not use."""
    assert consumer_pairs(consumers_json([])) == {}
