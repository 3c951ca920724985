"""Whatever `lockstep plan` and each `--dry-run` say is what then happens: random histories, and
orders that are asked about, given and carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.model.table_state import OrderKind, Supplier
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.rebuild.origin import origin_at
from lockstep.pipeline.run.rebuild.rebuild import rebuild_as_of
from lockstep.pipeline.run.replay.replay import plan_replay, replay
from lockstep.pipeline.run.status.reloads import give_reload, plan_reload
from lockstep.pipeline.run.status.table_commands import OrderRequest, give_order, plan_resume
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    LedgerRefused,
    PastRefused,
    SpanRefused,
)
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.segment import SegmentFile
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.positions.follower import SOURCE
from tests.positions.foreseen import Done, run_as_planned
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
    what was told and what is done. `places`: of the log, as of which tables are made again."""

    def __init__(self, shop: Shop, random: Random) -> None:
        super().__init__(shop, random)
        self.places: list[str] = []

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
            self.purge,
            self.prepare,
            self.end,
            self.rotate,
            self.late,
        )
        self.random.choice(acts)(self.random.choice(TABLES))
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
            told = plan_resume(shop.follower.work(), asked).next
        except LedgerRefused:
            return
        with shop.follower.leased() as lease:
            assert give_order(shop.follower.work(), lease, OrderKind.RESUME, asked).next == told
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
            told = plan_reload(shop.follower.work(), OrderRequest(name, "ann", "why"), supplier)
        except (LedgerRefused, PastRefused):
            return False
        with shop.follower.leased() as lease:
            given = give_reload(shop.follower.work(), lease, told)
        assert replace(given, order=None, load=told.load) == told
        done = self.planned()
        if name not in self.unforeseen:
            if told.origin is not None:
                assert (name, ("changelog", told.origin.told)) in done.supplied
            assert (name in done.asked) == (told.rows is not None or told.reading)
            assert told.rows in (None, done.rows[name]) or self.prepared
        return True

    def rebuild(self, table: str) -> None:
        """No version of a mirror and no file of a changelog is read but what `lockstep rebuild
        --dry-run` names."""
        follower, name = self.shop.follower, self.shop.table(table)
        try:
            place = parse_place(self.random.choice(self.places))
            origin = origin_at(follower.work(), name, place)
        except (ConfigurationError, PastRefused, IndexError):
            return
        segments, mirrors = ReadSegments(self.shop), ReadMirrors(self.shop)
        work = replace(follower.work(), segments=segments, mirrors=mirrors)
        rebuild_as_of(work, MemoryCopies(follower.lake), origin, f"/past/{len(self.places)}")
        base, parts = origin.changes.base, origin.changes.parts
        named = {f.path for part in parts for segment in part.segments for f in segment.files}
        assert segments.read <= named
        assert mirrors.read == (set() if base is None else {(base.mirror, base.delta_version)})

    def replay(self, _: str) -> None:
        """The batches that `lockstep replay --dry-run` takes from the log, and those that it takes
        from their changelogs alone, are those of the replay."""
        follower = self.shop.follower
        span = Span(parse_place("earliest"), parse_place("latest"))
        try:
            told = plan_replay(follower.work(), span)
        except SpanRefused:
            return
        with follower.leased() as lease:
            commit = self.random.random() < 0.5
            done = replay(follower.work(), lease, span, commit=commit)
        assert [one.batch for one in done.batches] == [one.batch for one in told.batches]
        whys = [one.as_recorded for one in done.batches]
        assert whys == [one.as_recorded for one in told.batches]
        assert (done.tables, done.early) == (told.tables, told.early)


@pytest.mark.parametrize(
    ("seed", "actions"),
    [
        *((seed, ACTIONS) for seed in (0, 1, 2)),
        *(pytest.param(seed, MORE, marks=pytest.mark.soak) for seed in range(3, 15)),
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
        if shop.table(table) in followed and shop.state(table).complete:
            shop.require_same(table)
