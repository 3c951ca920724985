"""Whatever `lockstep plan` and each `--dry-run` say is what then happens: random histories, and
orders that are asked about, given and carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.model.table_state import OrderKind, Supplier, TableEvent
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.orders import (
    OrderRequest,
    give_order,
    give_reload,
    plan_reload,
    plan_repairs,
    plan_resume,
)
from lockstep.pipeline.run.rebuild import origin_at, rebuild_as_of
from lockstep.pipeline.run.replay.replay import plan_replay, replay
from lockstep.pipeline.run.table_plans import TablePlans
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    LedgerRefused,
    PastRefused,
    PositionPurged,
    SourceMoving,
    SpanRefused,
    StoppedBy,
    VersionSetUnknown,
)
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.outside import RecoveryCase, plan_recovery, recover, verify
from tests.positions.follower import SOURCE, KeptLedger
from tests.positions.foreseen import Done, counted, require_told, run_as_planned, steps_of
from tests.positions.paused import Shop, open_shop
from tests.positions.test_wants_at_random import LATE, TABLES, Chance
from tests.twins.copies import MemoryCopies
from tests.twins.mirrors import MemoryMirrors
from tests.twins.segments import MemorySegments

ACTIONS, MORE = 14, 40
"""In every run, and in the soak."""


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    shop = open_shop(mysql, database, TABLES)
    shop.follower.tables = [f"{database}.{table}" for table in TABLES]
    shop.make([LATE])
    return shop


class ReadSegments(MemorySegments):
    """The files of changelogs that were read are known."""

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop.follower.lake)
        self.read = set[str]()

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        files = tuple(files)
        self.read |= {file.path for file in files}
        return super().pieces(folder, files, columns)


class ReadMirrors(MemoryMirrors):
    """The versions of mirrors that were read are known."""

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop.follower.lake)
        self.read = set[tuple[str, int]]()

    def rows(
        self,
        mirror: str,
        columns: Sequence[str],
        version: int,
        near: tuple[str, Sequence[ValueRange]] | None = None,
    ) -> Iterator[Any]:
        self.read.add((mirror, version))
        return super().rows(mirror, columns, version, near)


class Foresight(Chance):
    """What happens next; whatever is ordered is carried out at once, so that nothing comes between
    what was told and what is done. `places`: of the log, as of which tables are made again. `copy`:
    of the ledger, as a backup that may be restored."""

    def __init__(self, shop: Shop, random: Random) -> None:
        super().__init__(shop, random)
        self.places: list[str] = []
        self.copy: KeptLedger | None = None

    def act(self) -> None:
        acts = (
            *(self.write,) * 6,
            *(self.change,) * 2,
            *(self.swap,) * 2,
            *(self.pause,) * 4,
            *(self.resume,) * 3,
            *(self.reload,) * 4,
            *(self.run,) * 3,
            *(self.rebuild,) * 2,
            *(self.replay,) * 2,
            *(self.repair,) * 2,
            self.recover,
            self.undo,
            self.purge,
            self.prepare,
            self.end,
            self.rotate,
            self.late,
        )
        act = self.random.choice(acts)
        act(self.random.choice(TABLES))
        self.places.append(str(head(self.shop.stand)))

    def swap(self, table: str) -> None:
        """Two tables get the names of each other."""
        other = self.random.choice([one for one in TABLES if one != table])
        if not {table, other} & {*self.prepared.values()}:
            self.do(f"rename table {table} to x, {other} to {table}, x to {other}")

    def run(self, _: str) -> None:
        self.planned()

    def estimate(self) -> None:
        """The server's estimates are its rows, unless some are prepared."""
        tables = ", ".join((*TABLES, LATE))
        self.shop.do(f"analyze no_write_to_binlog table {tables}")

    def planned(self) -> Done:
        """A run as the plan says."""
        self.estimate()
        plan, done = run_as_planned(self.shop.follower, exact=not self.prepared)
        assert plan.reading is not None
        self.unforeseen = plan.reading.rereads.keys() | done.stopped
        return done

    def resume(self, table: str) -> None:
        """What `lockstep resume --dry-run` says of its rows, columns and log."""
        shop, name = self.shop, self.shop.table(table)
        asked = OrderRequest(name, "ann", "")
        try:
            told = plan_resume(shop.follower.ports(), asked).sentence
        except LedgerRefused:
            return
        with shop.follower.leased() as lease:
            assert (
                give_order(shop.follower.ports(), lease, OrderKind.RESUME, asked).sentence == told
            )
        done = self.planned()
        kinds = {kind for one, (kind, _) in done.supplied if one == name}
        if name not in self.unforeseen:
            assert ("rows" in kinds) == (f"reads {name} from" in told or "reads it from" in told)
            assert ("columns" in kinds) == ("reads its new columns" in told)
        assert ("log" in kinds) == ("catches" in told)

    def reload(self, table: str) -> None:
        """What `lockstep reload --dry-run` says, wherever its rows may come from."""
        supplier = self.random.choice([None, Supplier.CHANGELOG, Supplier.SOURCE])
        self.reloaded(table, supplier)

    def late(self, _: str) -> None:
        follower = self.shop.follower
        self.write(LATE)
        before = follower.tables
        follower.tables = [*{*before, str(self.shop.table(LATE))}]
        if not self.reloaded(LATE, Supplier.LOG):
            follower.tables = before

    def reloaded(self, table: str, supplier: Supplier | None) -> bool:
        shop, name = self.shop, self.shop.table(table)
        self.estimate()
        try:
            told = plan_reload(shop.follower.ports(), OrderRequest(name, "ann", "why"), supplier)
        except (LedgerRefused, PastRefused):
            return False
        with shop.follower.leased() as lease:
            given = give_reload(shop.follower.ports(), lease, told)
        assert replace(given, order=None, load_id=told.load_id) == told
        done = self.planned()
        if name not in self.unforeseen:
            if told.origin is not None:
                assert (name, ("changelog", told.origin.clause)) in done.supplied
            assert (name in done.asked) == (
                told.estimated_rows is not None or told.is_already_reading
            )
            assert told.estimated_rows in (None, done.rows[name]) or self.prepared
        return True

    def rebuild(self, table: str) -> None:
        """No version of a mirror and no file of a changelog is read but what `lockstep rebuild
        --dry-run` names."""
        follower, name = self.shop.follower, self.shop.table(table)
        try:
            place = parse_place(self.random.choice(self.places))
            origin = origin_at(follower.ports(), name, place)
        except (ConfigurationError, PastRefused, IndexError):
            return
        segments, mirrors = ReadSegments(self.shop), ReadMirrors(self.shop)
        ports = replace(follower.ports(), segments=segments, mirrors=mirrors)
        rebuild_as_of(ports, MemoryCopies(follower.lake), origin, f"/past/{len(self.places)}")
        base, parts = origin.changelog_origin.base, origin.changelog_origin.contents
        named = {f.path for part in parts for segment in part.segments for f in segment.files}
        assert segments.read <= named
        assert mirrors.read == (set() if base is None else {(base.mirror, base.delta_version)})

    def repair(self, table: str) -> None:
        """What `lockstep verify --repair --dry-run` says, of rows that changed without a word in
        the log: which are read, about how many, and why."""
        follower = self.shop.follower
        self.planned()
        try:
            verify(follower.ports())
        except SourceMoving:
            return
        if not self.shop.state(table).is_complete:
            return  # nothing repairs it until it is resumed
        self.do("set sql_log_bin = 0", f"update {table} set v = 7 where id % 3 = 1")
        self.estimate()
        found = verify(follower.ports())
        if self.random.random() < 0.3:
            differing = tuple(replace(one, where=None) for one in found.tables)
            found = replace(found, tables=differing)
        repairs = plan_repairs(follower.ports(), found, "ann")
        for repair in repairs:
            ports = follower.ports()
            if repair.condition_rows is None:
                with follower.leased() as lease:
                    give_reload(ports, lease, repair)
                continue
            with counted(follower) as count:
                ports = follower.ports()
                follower.steps(
                    replace(ports, source=replace(ports.source, reread_rows=repair.condition_rows))
                )
            assert count.rows == {repair.table: repair.estimated_rows} or self.prepared
            reasons = [event.reason or "" for event in self.events(repair.table)]
            assert reasons[-1].endswith(repair.request.reason)
        done = self.planned()
        for repair in repairs:
            if repair.condition_rows is None and repair.table not in self.unforeseen:
                assert (repair.table, ("rows", repair.request.reason)) in done.supplied
                assert repair.estimated_rows == done.rows[repair.table] or self.prepared

    def events(self, table: TableName) -> list[TableEvent]:
        ledger = self.shop.follower.ledger
        contents = [
            batch_content(ledger, SOURCE, one.id) for one in self.shop.follower.live_batches()
        ]
        return [event for content in contents for event in content.events if event.table == table]

    def recover(self, _: str) -> None:
        """What `lockstep recover` says of the run after it, of a ledger that is lost or restored
        from a backup, however many tables are stopped or moved away."""
        follower, copy = self.shop.follower, self.copy
        if copy is None or self.prepared:
            self.copy = follower.kept_ledger()
        elif self.random.random() < 0.5:
            follower.lose_ledger()
            self.recovered()
        else:
            follower.restore_ledger(copy)
            self.recovered()

    def undo(self, _: str) -> None:
        """What `lockstep undo` says, with the ledger that still holds the source."""
        follower = self.shop.follower
        behind = self.random.choice(follower.live_batches()[-4:]).id
        if self.prepared:
            return
        try:
            told = plan_recovery(follower.ports(), behind)
        except (PositionPurged, VersionSetUnknown):
            return
        assert told.case is RecoveryCase.REFUSED
        follower.lose_ledger()
        self.recovered(behind, told.table_plans)

    def recovered(self, behind: int | None = None, before: TablePlans | None = None) -> None:
        """`before`: what was told before the ledger was given up."""
        follower = self.shop.follower
        self.copy = None
        self.estimate()
        try:
            told = plan_recovery(follower.ports(), behind)
        except PositionPurged:
            told = plan_recovery(follower.ports(), start_over=True)
        assert before is None or steps_of(before).keys() == steps_of(told.table_plans).keys()
        start_over = told.case is RecoveryCase.START_OVER
        with follower.leased() as lease:
            ports = follower.ports()
            recover(ports, lease, author="ann", after_batch=behind, start_over=start_over)
        require_told(told.table_plans, follower.ports())
        self.planned()

    def replay(self, _: str) -> None:
        """The batches that `lockstep replay --dry-run` takes from the log, and those that it takes
        from their changelogs alone, are those of the replay."""
        follower = self.shop.follower
        span = Span(parse_place("earliest"), parse_place("latest"))
        try:
            told = plan_replay(follower.ports(), span)
        except SpanRefused:
            return
        with follower.leased() as lease:
            commit = self.random.random() < 0.5
            done = replay(follower.ports(), lease, span, commit=commit)
        assert [one.batch for one in done.batches] == [one.batch for one in told.batches]
        whys = [one.reason_not_recaptured for one in done.batches]
        assert whys == [one.reason_not_recaptured for one in told.batches]
        assert (done.tables, done.lake_end) == (told.tables, told.lake_end)


@pytest.mark.parametrize(
    ("seed", "actions"),
    [
        (0, ACTIONS),
        *(pytest.param(seed, MORE, marks=pytest.mark.soak) for seed in range(1, 15)),
    ],
)
def test_what_is_told_is_done(shop: Shop, seed: int, actions: int) -> None:
    chance = Foresight(shop, Random(seed))
    for _ in range(actions):
        chance.act()
    for xid in list(chance.prepared):
        chance.finish(xid, "commit")
    for table in TABLES:
        chance.resume(table)
    chance.run("")
    followed = shop.follower.ledger.table_states(SOURCE)
    for table in (*TABLES, LATE):
        if shop.table(table) in followed and shop.state(table).is_complete:
            shop.require_same(table)


def test_a_reason_stays_when_another_table_catches_up_first(shop: Shop) -> None:
    """The tables are planned again after one of them caught up through the log."""
    shop.run()
    shop.pause("a", "b")
    shop.do("insert into a values (2, 2)", "insert into b values (2, 2)")
    shop.run()
    shop.resume("a")
    shop.follower.reload(shop.table("b"), Supplier.SOURCE)
    plan, _ = run_as_planned(shop.follower)
    assert shop.table("a") in plan.table_plans.spans
    shop.require_same("a")
    shop.require_same("b")


def test_a_paused_table_is_not_read_after_a_recovery(shop: Shop) -> None:
    """The lake is ahead of a ledger that was restored. Of the tables that differ one is paused, and
    stays so, as the dry run says; once a person resumes it, it is read."""
    follower = shop.follower
    copy = follower.kept_ledger()
    shop.do("insert into a values (2, 2)", "insert into b values (2, 2)")
    shop.run()
    follower.restore_ledger(copy)
    shop.pause("a")
    told = plan_recovery(follower.ports())
    assert (told.case, {table.name for table, _ in told.reloads}) == (
        RecoveryCase.KEEP_LEDGER,
        {"a", "b"},
    )
    assert {table.name for table in steps_of(told.table_plans)} == {"b"}
    with follower.leased() as lease:
        recover(follower.ports(), lease, author="ann")
    require_told(told.table_plans, follower.ports())
    _, done = run_as_planned(follower)
    assert {table.name for table in done.asked} == {"b"}
    assert shop.state("a").stopped_by is StoppedBy.PERSON
    shop.resume("a")
    _, done = run_as_planned(follower)
    assert {table.name for table in done.asked} == {"a"}
    for table in ("a", "b"):
        shop.require_same(table)


def test_a_table_that_is_written_again_is_not_copied(shop: Shop) -> None:
    """It catches up, its mirror is to be written again, and then the log gives it another name: as
    the plan says, the same run stops it, and reads it at once."""
    shop.follower.tables = [f"{shop.name}.*"]
    shop.pause("b")
    shop.do("insert into b values (2, 2)")
    shop.run()
    shop.follower.reload(shop.table("b"))
    shop.do("rename table b to e", "insert into e values (3, 3)")
    plan, done = run_as_planned(shop.follower)
    assert plan.reading is not None
    assert plan.reading.rereads.keys() == {shop.table("e")} <= done.asked
    assert shop.state("e").is_complete
    shop.require_same("e")
