"""Revisions: the files that a replay put in the place of a batch's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.ports.ledger import Ledger, batch_content
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused
from lockstep.pipeline.values.intent import REPLAY
from lockstep.pipeline.values.segment import RevisedSegment, Revision, Revisions, with_revised_names
from tests.ledger.made import ORDERS, begun_write, next_captured
from tests.ledger.refusals import refused


def revision(ledger: Ledger, lease: Lease, batch: int) -> Revision:
    """Of the batch's first segment, whose files are named by another content."""
    segment = batch_content(ledger, lease.source, batch).segments[0]
    files = with_revised_names(replace(file, sha256="1" * 64) for file in segment.files)
    told = RevisedSegment(batch, segment.table, segment.schema_version, files)
    return ledger.begin_revision(lease, [told])


def test_files_are_those_of_the_newest_settled_revision(
    ledger: Ledger, lease: Lease, batches: list[int]
) -> None:
    """An open one, and one that was given up, change nothing; settling is for good."""
    first, source = batches[0], lease.source
    before = batch_content(ledger, lease.source, first).segments

    def counts() -> dict[int, int]:
        return dict(ledger.special_batches(source, first, batches[-1]).revision_counts)

    assert ledger.revisions(source) == Revisions(0, None)
    opened = revision(ledger, lease, first)
    assert ledger.revisions(source) == Revisions(opened.id, opened)
    assert (batch_content(ledger, lease.source, first).segments, counts()) == (before, {})
    with pytest.raises(LedgerRefused):
        revision(ledger, lease, first)
    ledger.end_revision(lease, opened, settled=False)
    with refused(ledger, lease, "revisions_end_once"):
        ledger.end_revision(lease, opened, settled=True)
    assert batch_content(ledger, lease.source, first).segments == before
    assert ledger.revisions(source) == Revisions(opened.id, None)
    done = revision(ledger, lease, first)
    for _ in range(2):
        ledger.end_revision(lease, done, settled=True)
    [other, *rest] = batch_content(ledger, lease.source, first).segments
    assert other == replace(before[0], files=done.segments[0].files)
    assert (rest, counts()) == (list(before[1:]), {first: 1})
    ledger.end_revision(lease, revision(ledger, lease, first), settled=True)
    assert counts() == {first: 2}


def test_what_is_no_revision(ledger: Ledger, lease: Lease) -> None:
    """One that nobody began."""
    with refused(ledger, lease, "revisions_known"):
        ledger.end_revision(lease, Revision(0, ()), settled=True)


def test_writes_of_replays(ledger: Ledger, lease: Lease, batches: list[int]) -> None:
    """They are of acknowledged batches, as often as somebody wants, and cover nothing."""
    for version in (10, 11):
        intent = begun_write(ledger, lease, ORDERS, "m", batches[-1], batches[-1], REPLAY)
        assert ledger.open_intents(lease.source) == [intent]
        ledger.settle(lease, intent, version)
    captured = next_captured(ledger, lease, ORDERS)
    assert ledger.pending_batches(lease.source) == {ORDERS: [captured.id]}
