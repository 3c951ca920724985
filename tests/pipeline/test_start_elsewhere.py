"""Each rule of the start table for a cursor that another server answers for, by its name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.start.question import (
    AnchorReading,
    SetReading,
    Since,
    Start,
    StartRule,
)
from lockstep.pipeline.start.rules import compare_set, decide_start
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    HistoryRewritten,
    HistoryUnproven,
    PositionPurged,
    SourceChanged,
    SourceDiverged,
)
from lockstep.pipeline.values.policies import OnSourceChanged, StartPolicies
from lockstep.pipeline.values.position import Position, SetAnchor
from tests.pipeline.start_made import (
    BATCH,
    COMMITTED,
    MARIA,
    MARIA_STANDBY,
    NOT_READ,
    READ_AT,
    A,
    B,
    C,
    at,
    chosen,
    cursor,
    facts,
    gtids,
    question_of,
    reached,
    refused,
    started,
)

READ = f"{A}:1-100"
BY_TIME = StartPolicies(on_source_changed=OnSourceChanged.TIMESTAMP)


SWITCHED = {
    "a replica that was promoted": (READ, "", READ),
    "with transactions of its own": (READ, "", f"{A}:1-100,{B}:1-5"),
    "that purged all that was read": (READ, READ, f"{A}:1-100,{B}:1-5"),
    "that purged less": (READ, f"{A}:1-40", f"{A}:1-130"),
    "a third server's, read too": (f"{A}:1-100,{C}:4", f"{C}:4", f"{A}:1-100,{C}:1-4"),
}


@pytest.mark.parametrize("case", SWITCHED)
def test_resume_other_server_after_the_set(case: str) -> None:
    """It executed everything that was read and purged nothing else. File names do not
    count, though the cursor's is listed."""
    read, purged, executed = SWITCHED[case]
    asked = question_of(facts(B, executed=executed, purged=purged), cursor(read=read))
    start = started(decide_start(asked))
    assert (start.rule, start.where) == (StartRule.RESUME_OTHER_SERVER, gtids(read))
    assert (start.continued_batch, start.previous_batch) == (None, BATCH)
    assert start.continuity is Continuity.CONTIGUOUS


def test_resume_other_server_of_mariadb() -> None:
    """Every number of a server in a domain up to the one in its state."""
    found = facts(MARIA_STANDBY, executed="0-1-90,0-2-95", purged="0-1-10")
    of = cursor(read="0-1-90", uuid=MARIA)
    assert decide_start(question_of(found, of)).rule is StartRule.RESUME_OTHER_SERVER


ONLY_BY_SET = {
    "another server": (facts(B, executed=READ, purged=f"{A}:1-40"), cursor(read=READ)),
    "this one, the file gone": (
        facts(executed=READ, purged=f"{A}:1-40"),
        cursor(at(1), read=READ),
    ),
}


@pytest.mark.parametrize("case", ONLY_BY_SET)
def test_set_reused_is_refused_whatever_else_holds(case: str) -> None:
    """A transaction under a GTID that was read is another one: the purged set does not
    matter, nor does a policy."""
    found, of = ONLY_BY_SET[case]
    for purged in ("", f"{A}:1-40", f"{B}:1-9"):
        reused = question_of(
            replace(found, gtid_purged=purged),
            of,
            policies=BY_TIME,
            set_reading=SetReading.DIFFERENT,
            reused_gtid=f"{A}:77",
        )
        refusal = refused(decide_start(reused))
        assert (refusal.rule, type(refusal.error)) == (StartRule.SET_REUSED, HistoryRewritten)
        assert f"{A}:77" in refusal.reason


@pytest.mark.parametrize("case", ONLY_BY_SET)
def test_set_unproven_is_for_a_person(case: str) -> None:
    """Where the set alone would do and its last transaction is purged; a choice of that
    set goes on behind it."""
    found, of = ONLY_BY_SET[case]
    unproven = question_of(found, of, policies=BY_TIME, set_reading=SetReading.PURGED)
    refusal = refused(decide_start(unproven))
    assert (refusal.rule, type(refusal.error)) == (StartRule.SET_UNPROVEN, HistoryUnproven)
    assert f"`lockstep start-at gtid:{READ} --source shop --reason " in refusal.error.hint
    said = replace(unproven, override=chosen(f"gtid:{READ}"), chosen_place=reached(gtids(READ)))
    assert started(decide_start(said)).continuity is Continuity.CONTIGUOUS
    reused = replace(said, set_reading=SetReading.DIFFERENT)
    assert started(decide_start(reused)).continuity is Continuity.GAP


KEPT = (SetAnchor(f"{A}:9", 50), SetAnchor(f"{B}:7", 40))


@pytest.mark.parametrize(
    ("found", "known", "reused"),
    [
        (KEPT, SetReading.SAME, ""),
        (KEPT[:1], SetReading.SAME, ""),
        (KEPT[1:], SetReading.PURGED, ""),
        ((), SetReading.PURGED, ""),
        ((replace(KEPT[0], committed_at=51), KEPT[1]), SetReading.DIFFERENT, f"{A}:9"),
        ((KEPT[0], replace(KEPT[1], committed_at=41)), SetReading.DIFFERENT, f"{B}:7"),
        ((KEPT[0], replace(KEPT[1], digest="x")), SetReading.DIFFERENT, f"{B}:7"),
    ],
)
def test_transactions_of_a_set_are_compared(
    found: tuple[SetAnchor, ...], known: SetReading, reused: str
) -> None:
    """The last one must be there; no other may differ."""
    shown = {one.gtid: one for one in found}
    assert compare_set(KEPT, shown) == (known, reused)
    assert compare_set((), shown) == (SetReading.NOT_COMPARED, "")


DIVERGED = {
    "the last ones were lost": (READ, f"{A}:1-98", "", f"{A}:99-100"),
    "a hole": (READ, f"{A}:1-49:51-100", "", f"{A}:50"),
    "a third server's": (f"{A}:1-100,{C}:1-2", f"{A}:1-200,{C}:1", "", f"{C}:2"),
    "purged more as well": (READ, f"{A}:1-98,{B}:1-9", f"{B}:1-9", f"{A}:99-100"),
    "a rebuilt server": (READ, "", "", READ),
}


@pytest.mark.parametrize("case", DIVERGED)
def test_source_diverged_names_what_is_missing(case: str) -> None:
    """The server read before had executed what this one never did; by time is no way out
    either. What of it came into the lake the sets do not tell, so nobody claims it."""
    read, executed, purged, missing = DIVERGED[case]
    found = facts(B, executed=executed, purged=purged)
    refusal = refused(decide_start(question_of(found, cursor(read=read), policies=BY_TIME)))
    assert (refusal.rule, type(refusal.error)) == (StartRule.SOURCE_DIVERGED, SourceDiverged)
    assert f"never executed {missing}, which {A} had executed at the place" in refusal.reason


def _batch(number: int, run: str | None, read: str, *, by_gtid: bool = True) -> Batch:
    end = Position(at(3, 100 * number), gtids(read), A)
    state = BatchState.ACKNOWLEDGED
    return Batch(
        number, "shop", state, end, None, None, 0, 1, run, READ_AT, end=end, by_gtid=by_gtid
    )


FIRST, LOSSY = _batch(1, "a", f"{A}:1-50"), _batch(3, "b", f"{A}:1-99")
UNDONE: dict[str, tuple[tuple[Batch, ...], str, str | None]] = {
    "the oldest run that read one": ((FIRST, LOSSY, _batch(4, "c", READ)), "", "b"),
    "from its first batch on": ((FIRST, _batch(2, "b", f"{A}:1-60"), LOSSY), "", "b"),
    "the first run read one": ((_batch(2, "b", f"{A}:1-60"), LOSSY), "", None),
    "a recovery stands for it": ((FIRST, replace(LOSSY, run_id=None)), "", None),
    "the log after the batch before is purged": ((FIRST, LOSSY), f"{A}:1-51", None),
    "the batch before is no place by GTID": ((replace(FIRST, by_gtid=False), LOSSY), "", None),
    "all is pruned": ((), "", None),
}


@pytest.mark.parametrize("case", UNDONE)
def test_source_diverged_names_the_run_to_undo(case: str) -> None:
    """If the server has everything that was read before it, and all that comes after."""
    batches, purged, run = UNDONE[case]
    found = facts(B, executed=f"{A}:1-98", purged=purged)
    asked = question_of(found, cursor(read=READ), unpruned_batches=batches)
    hint = refused(decide_start(asked)).error.hint
    assert hint is not None
    if run is None:
        assert "undo" not in hint
        assert "new source name" in hint
    else:
        assert f"`lockstep undo {run} --source shop`" in hint


@pytest.mark.parametrize("purged", [f"{A}:1-101", f"{B}:1"])
def test_purged_on_other_server_is_refused(purged: str) -> None:
    """A server checks its own UUID's transactions only, so the check is made here."""
    found = facts(B, executed=f"{A}:1-120,{B}:1-5", purged=purged)
    refusal = refused(decide_start(question_of(found, cursor(read=READ), policies=BY_TIME)))
    assert (refusal.rule, type(refusal.error)) == (StartRule.PURGED_ON_OTHER_SERVER, PositionPurged)
    assert str(gtids(purged).difference(gtids(READ))) in refusal.reason


NO_SET: dict[str, tuple[ServerFacts, str, bool]] = {
    "GTIDs are off there": (facts(B, mode="OFF"), READ, True),
    "anonymous transactions are possible there": (
        facts(B, executed=READ, mode="ON_PERMISSIVE"),
        READ,
        True,
    ),
    "some were possible meanwhile": (facts(B, executed=READ), READ, False),
    "nothing read had a GTID": (facts(B, executed=f"{B}:1-5"), "", False),
}


@pytest.mark.parametrize("case", NO_SET)
def test_search_by_time_by_policy(case: str) -> None:
    """A minute before the last commit that was read; what comes twice is an overlap."""
    found, read, by_gtid = NO_SET[case]
    of = cursor(read=read, by_gtid=by_gtid)
    start = started(decide_start(question_of(found, of, policies=BY_TIME)))
    assert start.rule is StartRule.SEARCH_BY_TIME
    assert start.where == Since(COMMITTED - timedelta(seconds=60), read_until=COMMITTED)
    assert (start.continued_batch, start.previous_batch) == (None, BATCH)
    assert start.continuity is Continuity.OVERLAP


def test_search_by_time_goes_back_by_the_interval() -> None:
    """`fallback_interval` says how far, and the reason says it too."""
    policies = replace(BY_TIME, fallback_interval=timedelta(minutes=10))
    start = started(decide_start(question_of(facts(B, mode="OFF"), cursor(), policies=policies)))
    assert start.where == Since(COMMITTED - timedelta(minutes=10), read_until=COMMITTED)
    assert "600 s before the last commit" in start.reason


@pytest.mark.parametrize("case", NO_SET)
def test_source_changed_by_default(case: str) -> None:
    """No GTID tells where to go on, and nobody said to search by time."""
    found, read, by_gtid = NO_SET[case]
    refusal = refused(decide_start(question_of(found, cursor(read=read, by_gtid=by_gtid))))
    assert (refusal.rule, type(refusal.error)) == (StartRule.SOURCE_CHANGED, SourceChanged)
    assert f"belongs to server {A}, but {B} answers" in refusal.reason
    assert "on_source_changed = 'timestamp'" in refusal.error.hint


def test_source_changed_where_no_commit_was_read() -> None:
    """There is no moment to search from; the hint does not name the policy that is set."""
    of = cursor(committed_at=None)
    refusal = refused(decide_start(question_of(facts(B, mode="OFF"), of, policies=BY_TIME)))
    assert refusal.rule is StartRule.SOURCE_CHANGED
    assert "no commit" in refusal.reason
    assert "on_source_changed" not in refusal.error.hint


@pytest.mark.parametrize("anchor", AnchorReading)
def test_the_anchor_says_nothing_of_another_server(anchor: AnchorReading) -> None:
    """The rules for another server do not look at it."""
    asked = question_of(facts(B, executed=READ), cursor(read=READ), anchor)
    assert decide_start(asked) == decide_start(replace(asked, anchor_reading=NOT_READ))
    assert isinstance(decide_start(asked), Start)
