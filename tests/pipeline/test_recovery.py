"""Which batch a new ledger goes on behind: found again in histories made by chance, in which it is
known what each version of a mirror shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.claim import BatchSpan, Claim
from lockstep.pipeline.model.lake_commit import LakeCommit, metadata_text
from lockstep.pipeline.recovery import (
    RECENT_BATCHES,
    BatchRecord,
    LakeFacts,
    LedgerContent,
    MirrorFacts,
    RecordedCursor,
    RecoveryCase,
    ShownBatch,
    case_of,
    decide,
    mirror_facts,
    needed_commits,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_folders import table_of_folder
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile
from lockstep.pipeline.values.table import TableName

TABLES = tuple(TableName("shop", name) for name in "abc")
OWN, OTHER = "own", "other"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
ANCHOR = Anchor(offset=1, length=1, crc32=1, gtid="", file_created=1)


def place(batch: int) -> Coordinates:
    return Coordinates(LogFile("binlog", 1), 100 * batch)


@dataclass
class Mirror:
    """`versions`: for each Delta version the batches of its table that it has."""

    versions: list[frozenset[int]] = field(default_factory=list)
    shown: list[ShownBatch] = field(default_factory=list)
    begins: set[int] = field(default_factory=set)
    pending: list[int] = field(default_factory=list)
    published: set[int] = field(default_factory=set)

    def write(self) -> None:
        if not self.pending:
            return
        before = next(
            (version for version in reversed(self.versions) if -1 not in version), frozenset[int]()
        )
        self.shown.insert(0, ShownBatch(len(self.versions), self.pending[-1], OWN))
        self.begins.add(self.pending[0])
        self.versions.append(before | set(self.pending))
        self.pending.clear()

    def disturb(self) -> None:
        """A commit that cannot be read, or a step of a write that died."""
        if self.versions:
            self.versions.append(frozenset({-1}))


def told_of(batch: int, ledger: str, at: Coordinates, **more: Any) -> BatchRecord:
    """What commits tell of a batch of a server that is read by its places."""
    return BatchRecord(
        batch, ledger, at, RecordedCursor("server", None, False, ANCHOR, batch), **more
    )


def decided(facts: LakeFacts, reaches: Callable[[BatchRecord], bool] = lambda _: True) -> Any:
    """The decision, which there has to be."""
    plan = decide(facts, reaches)
    assert plan is not None
    return plan


def shown_by(*newest_first: LakeCommit) -> list[int]:
    """The versions that a mirror's log shows a batch by."""
    found = mirror_facts("a", newest_first)
    assert found is not None
    return [one.version for one in found.shown_batches]


@st.composite
def lakes(draw: st.DrawFn) -> tuple[LakeFacts, dict[TableName, Mirror]]:
    """Batches that touch tables, which are written each by itself, some of them late; a run that
    dies leaves tables unwritten, and the last batch half published."""
    mirrors = {table: Mirror() for table in TABLES}
    told: list[BatchRecord] = []
    for batch in range(1, draw(st.integers(1, 12)) + 1):
        touched = set(TABLES) if batch == 1 else draw(st.sets(st.sampled_from(TABLES)))
        for table in touched:
            mirrors[table].pending.append(batch)
            if draw(st.booleans()):
                mirrors[table].published.add(batch)
        told.append(
            told_of(batch, OWN, place(batch), is_whole=True, touched_tables=frozenset(touched))
        )
        for table in draw(st.sets(st.sampled_from(TABLES))) if batch > 1 else TABLES:
            mirrors[table].write()
            if draw(st.integers(0, 9)) == 0:
                mirrors[table].disturb()
    return LakeFacts(OWN, tuple(told), _facts(mirrors)), mirrors


def _facts(mirrors: dict[TableName, Mirror]) -> tuple[MirrorFacts, ...]:
    return tuple(
        MirrorFacts(
            table,
            str(table),
            len(one.versions) - 1,
            tuple(one.shown),
            frozenset(one.begins),
            frozenset(one.published),
        )
        for table, one in mirrors.items()
    )


@pytest.mark.parametrize(
    ("standing", "asked", "case"),
    [
        (LedgerContent.NOTHING, "", RecoveryCase.FROM_LAKE),
        (LedgerContent.NOTHING, "back_to", RecoveryCase.FROM_LAKE),
        (LedgerContent.NOTHING, "start_over", RecoveryCase.START_OVER),
        (LedgerContent.RECOVERING, "", RecoveryCase.FINISH),
        (LedgerContent.RECOVERING, "back_to", RecoveryCase.FINISH),
        (LedgerContent.RECOVERING, "start_over", RecoveryCase.REFUSED),
        (LedgerContent.RECORDED, "", RecoveryCase.KEEP_LEDGER),
        (LedgerContent.RECORDED, "back_to", RecoveryCase.REFUSED),
        (LedgerContent.RECORDED, "start_over", RecoveryCase.REFUSED),
    ],
)
def test_which_side_follows_the_other(
    standing: LedgerContent, asked: str, case: RecoveryCase
) -> None:
    """Where both tell the same, or nothing is there to be moved, nothing is done."""
    given = {asked: True} if asked else {}
    assert case_of(standing, lambda: True, lambda: True, **given) is case
    done_nothing = (
        RecoveryCase.AGREE if case in (RecoveryCase.KEEP_LEDGER, RecoveryCase.START_OVER) else case
    )
    assert case_of(standing, lambda: False, lambda: False, **given) is done_nothing


@given(lakes(), st.integers(1, 12))
def test_every_mirror_that_is_taken_shows_that_batch(
    lake: tuple[LakeFacts, dict[TableName, Mirror]], oldest: int
) -> None:
    """Each table that is taken over has exactly what its batches up to there have; no batch that
    the log reaches among the newest would spare more tables; nothing is both taken and read."""
    facts, mirrors = lake
    touched = {told.batch: told.touched_tables for told in facts.records}

    def of(table: TableName, batch: int) -> set[int]:
        return {number for number in touched if number <= batch and table in touched[number]}

    plan = decide(facts, lambda told: told.batch >= oldest)
    reached = [number for number in touched if number >= oldest]
    assert (plan is None) == (not reached)
    if plan is None:
        return
    for one in plan.adoptions:
        table = one.mirror.table
        assert mirrors[table].versions[one.version] == of(table, plan.lake_end.batch)
    taken = [one.mirror.table for one in plan.adoptions]
    assert sorted([*taken, *(table for table, _ in plan.reloads)]) == sorted(TABLES)
    near = [number for number in sorted(touched)[-RECENT_BATCHES:] if number >= oldest]
    for number in near:
        whole = [t for t in TABLES if frozenset(of(t, number)) in mirrors[t].versions]
        if number >= plan.lake_end.batch or not near:
            assert len(whole) <= len(taken)
    assert plan.highest_batch >= max(touched)


def test_a_table_that_stood_still_is_read_again() -> None:
    """Its mirror looks as if nothing had happened to it: only `_transactions` tells."""
    table = TABLES[0]
    mirror = MirrorFacts(table, "a", 0, (ShownBatch(0, 1, OWN),), frozenset({1}), frozenset({1}))
    still = {table: "quarantined"}
    told = (
        told_of(1, OWN, place(1), is_whole=True, touched_tables=frozenset({table})),
        told_of(2, OWN, place(2), is_whole=True, stopped_tables=still),
        told_of(3, OWN, place(3)),
    )
    plan = decided(LakeFacts(OWN, told, (mirror,)), lambda one: one.batch > 1)
    assert [read for read, _ in plan.reloads] == [table]
    dropped = (told[0], told_of(2, OWN, place(2), is_whole=True, stopped_tables={table: "dropped"}))
    plan = decided(LakeFacts(OWN, dropped, (mirror,)))
    assert [one.table for one in plan.unchanged_mirrors] == [table]


def test_a_mirror_that_lacks_older_rows_lacks_them_in_later_batches() -> None:
    """The last commit to `_transactions` tells, although a mirror shows a later batch."""
    table, begins = TABLES[0], {TABLES[0]: place(1)}
    mirror = MirrorFacts(
        table, "a", 1, (ShownBatch(1, 2, OWN), ShownBatch(0, 1, OWN)), frozenset({1, 2})
    )
    told = (
        told_of(1, OWN, place(1), is_whole=True, mirror_begins=begins),
        told_of(2, OWN, place(2)),
    )
    plan = decided(LakeFacts(OWN, told, (mirror,)))
    assert (plan.lake_end.batch, plan.lake_end.mirror_begins) == (2, begins)


def test_a_second_ledger_shows_nothing_that_counts() -> None:
    """Batches of two ledgers under the same numbers: those of the folder's owner count. A ledger
    whose numbers all lie below was followed by the owner."""
    table = TABLES[0]
    shown = (ShownBatch(2, 3, OTHER), ShownBatch(1, 2, OWN), ShownBatch(0, 1, OWN))
    mirror = MirrorFacts(table, "a", 2, shown, frozenset({1, 2, 3}))
    told = tuple(
        told_of(number, ledger, place(number), is_whole=True)
        for number, ledger in ((1, OWN), (2, OWN), (2, OTHER), (3, OTHER))
    )
    plan = decided(LakeFacts(OWN, told, (mirror,)))
    assert (plan.lake_end.batch, [one.version for one in plan.adoptions]) == (2, [1])
    assert plan.highest_batch == 3
    assert [OTHER in doubt for doubt in plan.doubts] == [True, False][: len(plan.doubts)]
    earlier = (ShownBatch(1, 5, OWN), ShownBatch(0, 1, OTHER))
    followed = MirrorFacts(table, "a", 1, earlier, frozenset({1, 5}))
    told = (told_of(1, OTHER, place(1), is_whole=True), told_of(5, OWN, place(5), is_whole=True))
    plan = decided(LakeFacts(OWN, told, (followed,)), lambda one: one.batch == 1)
    assert [one.version for one in plan.adoptions] == [0]


def test_batches_that_are_void_do_not_count() -> None:
    """A ledger went on that did not know them: what a mirror had of them is no place to go on."""
    table = TABLES[0]
    shown = (ShownBatch(1, 2, OWN), ShownBatch(0, 1, OWN))
    mirror = MirrorFacts(
        table, "a", 1, shown, frozenset({1, 2}), records=(told_of(2, OWN, place(2)),)
    )
    told = (told_of(1, OWN, place(1), is_whole=True),)
    facts = LakeFacts(OWN, told, (mirror,), void_spans=(BatchSpan(1, 4),))
    plan = decided(facts)
    assert (plan.lake_end.batch, [one.version for one in plan.adoptions]) == (1, [0])
    assert plan.highest_batch == 4, "their numbers are not given again"


def test_a_folder_that_may_have_gone_back_is_believed_where_all_tables_are_described() -> None:
    """Its claim is lost: what a mirror alone shows may be void."""
    table = TABLES[0]
    shown = (ShownBatch(1, 2, OWN), ShownBatch(0, 1, OWN))
    mirror = MirrorFacts(
        table, "a", 1, shown, frozenset({1, 2}), records=(told_of(2, OWN, place(2)),)
    )
    told = (told_of(1, OWN, place(1), is_whole=True),)
    for complete, batch in ((True, 2), (False, 1)):
        plan = decided(LakeFacts(OWN, told, (mirror,), is_claim_complete=complete))
        assert plan.lake_end.batch == batch
    plan = decided(LakeFacts(OWN, (), (mirror,), is_claim_complete=False))
    assert "may lack batches that were undone" in plan.doubts[-1]


def commit(version: int, **said: object) -> LakeCommit:
    """A write to the mirror of `shop.a`."""
    words = {
        "kind": "merge",
        "ledger": OWN,
        "name": ["shop", "a"],
        "batches": [version + 1, version + 1],
        "place": str(place(version + 1)),
        "cursor": {
            "server_uuid": "server",
            "gtid_set": None,
            "by_gtid": False,
            "anchor": [1, 1, 1, "", 1],
            "sequence": version,
        },
        **said,
    }
    number = {"lockstep/s/shop.a/mirror/1": version}
    return LakeCommit(version, "MERGE", None, metadata_text(words), number)


GARBAGE = [
    {"batches": None},
    {"batches": ["x", "y"]},
    {"batches": [7]},
    {"place": 3},
    {"place": "nowhere"},
    {"name": 5},
    {"cursor": {"server_uuid": 1}},
    {"cursor": {"gtid_set": "?", "server_uuid": "", "by_gtid": 0, "anchor": [], "sequence": "x"}},
]


@given(
    st.sampled_from(GARBAGE)
    | st.dictionaries(
        st.sampled_from(["batches", "place", "name"]),
        st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one, max_size=2)),
    )
)
def test_what_cannot_be_read_says_nothing(said: dict[str, object]) -> None:
    """A commit with garbage for words shows no batch, or one that it does name; those around it
    show theirs."""
    log = [commit(2), commit(1, **said), commit(0)]
    assert {0, 2} <= {*shown_by(*log)} <= {0, 1, 2}
    bare = LakeCommit(1, "MERGE", None, "}{", {"lockstep/s/shop.a/mirror/1": 1})
    assert shown_by(commit(2), bare, commit(0)) == [2, 0]


def test_what_somebody_else_wrote_is_in_all_that_follows() -> None:
    """Until all rows are written anew, or an earlier version is shown once more. A commit that
    leaves the table as it was does not matter."""
    foreign = LakeCommit(1, "WRITE", None, None, {})
    neutral = LakeCommit(1, "OPTIMIZE", None, None, {})
    assert shown_by(commit(2), foreign, commit(0)) == [0]
    assert shown_by(commit(2, kind="rewrite"), foreign, commit(0)) == [2, 0]
    assert shown_by(commit(2, kind="restore", batches=[1, 1]), foreign, commit(0)) == [2, 0]
    assert shown_by(neutral, commit(0)) == [1]
    described, corrected = commit(0, structure="k", shape="f"), commit(1)
    log = mirror_facts("a", [corrected, described])
    assert log is not None
    assert [(one.structure_key, one.shape) for one in log.shown_batches] == [("k", "f")] * 2
    alter = commit(1, kind="alter")
    step = LakeCommit(1, "ADD COLUMNS", None, alter.user_metadata, {})
    assert shown_by(commit(2), step, commit(0)) == [2, 0]
    assert shown_by(step, commit(0)) == [0]


def test_rows_that_no_log_has_are_read_again_also_if_the_mirror_went_back_already() -> None:
    """A recovery that was cut off has set the mirror back: the one that follows still knows that a
    later write had rows from elsewhere. After a batch that has them, nothing is read."""
    written, repaired = commit(0, batches=[1, 1]), commit(1, batches=[2, 2], rows_without_log=True)
    back = commit(2, kind="restore", batches=[1, 1])
    for log, reloads in (([back, repaired, written], [TABLES[0]]), ([repaired, written], [])):
        found = mirror_facts("a", log)
        assert found is not None and found.last_without_log == 2
        plan = decided(LakeFacts(None, (), (found,)))
        assert [one.mirror.table for one in plan.adoptions] == [TABLES[0]]
        assert [table for table, _ in plan.reloads] == reloads


def test_the_table_of_a_folder_is_named_by_its_last_write() -> None:
    """However often somebody else put the files together since."""
    others = [LakeCommit(version, "OPTIMIZE", None, None, {}) for version in range(100, 0, -1)]
    written = commit(0, name=["shop", "b"])
    ports = SimpleNamespace(mirrors=SimpleNamespace(history=lambda _: iter([*others, written])))
    assert table_of_folder(cast("RunPorts", ports), "a") == TABLES[1]


def test_a_log_is_read_as_far_as_a_recovery_needs_it() -> None:
    """The newest commits, and further back where none of them shows a batch that counts: a quiet
    table's are all of somebody who puts its files together, and a person goes back to a batch of
    last week."""
    quiet = [*(LakeCommit(version, "OPTIMIZE", None, None, {}) for version in range(9, 2, -1))]
    others = [commit(2, kind="alter"), commit(1, kind="forget"), commit(0, kind="restate")]
    log = [commit(version) for version in range(9, -1, -1)]

    def oldest(log: list[LakeCommit], after: int | None = None, *void: BatchSpan) -> int:
        return needed_commits(iter(log), void, after, 3)[-1].delta_version

    assert oldest(log) == 7
    assert oldest([*quiet, *log[-3:]]) == 2
    assert oldest([*quiet, *others]) == 0
    assert oldest(log, 10) == 7
    assert oldest(log, 4) == 3
    assert oldest(log, 4, BatchSpan(2, 5)) == 1
    assert oldest(log, 0) == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 5)), max_size=8))
def test_what_a_folder_went_back_from_is_void_for_ever(
    history: list[tuple[bool, int, int]],
) -> None:
    """Batches are numbered on, and at times the folder goes back to one that counts: void is what
    came after it, and nothing else, whatever was void before."""
    claim, counting, highest = Claim("s", OWN, MOMENT), [0], 0
    for goes_back, where, batches in history:
        if goes_back:
            behind = counting[where % len(counting)]
            counting = [batch for batch in counting if batch <= behind]
            claim = claim.reset_to(behind, highest)
        else:
            counting += range(highest + 1, highest + batches + 1)
            highest += batches
        void = {batch for batch in range(highest + 1) if any(batch in one for one in claim.void)}
        assert void == set(range(highest + 1)) - set(counting)
        spans = LakeFacts(None, (), (), void_spans=claim.void).valid_spans(counting[-1])
        taken_over = [n for n in range(highest + 1) if any(n in one for one in spans)]
        assert taken_over == counting[1:]
