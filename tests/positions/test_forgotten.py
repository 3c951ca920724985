"""Random histories in which old changes are deleted: what somebody needs stays, what is gone is
refused with a sentence.

MySQL is asked for its rows behind every few statements. Runs, replays, consumers, reloads, and
upkeeps that die between two of their steps follow each other; the clock is the test's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

import pytest

from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.rebuild import origin_at, rebuild_as_of
from lockstep.pipeline.run.recovery.recover import recover
from lockstep.pipeline.run.replay.replay import replay
from lockstep.pipeline.run.status.schema_history import show_schema
from lockstep.pipeline.run.status.span_report import report_of_span
from lockstep.pipeline.run.status.version_sets import version_set_at
from lockstep.pipeline.run.upkeep import delete_changes, plan_changes
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.upkeep.changes import ChangesPlan
from lockstep.pipeline.values.consumers import ConsumerStart, DeliveryBounds
from lockstep.pipeline.values.errors import (
    ConsumerRefused,
    ForeignCommit,
    LockstepError,
    PastRefused,
    SchemaUnknownAt,
    SpanRefused,
    VersionSetUnknown,
)
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName
from tests.fix_ledger import LedgerOfTest
from tests.fix_mysql import MySqlStand
from tests.hostile.histories import go_on, lake_of
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Clock, Follower
from tests.positions.interrupted import Crash, interrupted
from tests.twins.copies import MemoryCopies

TABLES = ("a", "b")
QUIET = "quiet"
STEPS = {"begin_deletion": 1, "note_deletion_step": 3, "prune": 3}
"""Steps that an upkeep may die at, and how often an upkeep takes each of them."""
KEEP, PROMISED = timedelta(hours=2), timedelta(hours=1)
GONE = "as `keep_changes` says"

Rows = list[dict[str, Any]]


@dataclass
class Kept:
    """`seen`: what MySQL showed, by place; `read`: the batches that each consumer acknowledged, and
    the one it began behind; `captured`: all batches, also those that the ledger has deleted."""

    stand: MySqlStand
    name: str
    random: Random
    clock: Clock
    follower: Follower
    number: int = 0
    refused: int = 0
    seen: dict[str, dict[str, Rows]] = field(default_factory=dict)
    read: dict[str, tuple[int, list[int]]] = field(default_factory=dict)
    captured: set[int] = field(default_factory=set)

    def act(self) -> None:
        acts = (
            *(self.write,) * 12,
            *(self.run,) * 12,
            *(self.upkeep,) * 3,
            *(self.killed_upkeep,) * 3,
            *(self.consume,) * 8,
            *(self.replay, self.rebuild, self.rebuild, self.begin, self.end, self.reload),
        )
        self.random.choice(acts)()
        self.clock.now += timedelta(minutes=self.random.randrange(10))

    def ports(self) -> RunPorts:
        return replace(self.follower.ports(), clock=self.clock)

    def write(self) -> None:
        self.number += 1
        table, key = self.random.choice(TABLES), self.random.randrange(12)
        self.stand.execute(
            f"insert ignore into {table} (id, v) values ({key}, {self.number})",
            f"update {table} set v = {self.number} where id >= {self.random.randrange(12)}",
            self.random.choice((f"truncate {table}", f"delete from {table} where id = 3", "do 0")),
            database=self.name,
        )
        self.seen[str(head(self.stand))] = {table: self.shown(table) for table in TABLES}

    def run(self) -> None:
        self.follower.run()
        known = self.follower.ledger.live_batches(SOURCE, 1, 1 << 60)
        self.captured |= {batch.id for batch in known}

    # -- old changes -----------------------------------------------------------------------

    def upkeep(self) -> ChangesPlan:
        ports = self.ports()
        done = delete_changes(ports, plan_changes(ports, KEEP, PROMISED), "test")
        assert done.obstacle is None or "no run for longer" in done.obstacle
        self.require()
        return done

    def killed_upkeep(self) -> None:
        step, after = self.random.choice(list(STEPS)), self.random.random() < 0.5
        calls, last = count(1), self.random.randint(1, STEPS[step])

        def die() -> None:
            if next(calls) == last:
                raise Crash

        with interrupted(self.follower, step, die, after=after), suppress(Crash):
            self.upkeep()

    @property
    def through(self) -> int:
        return self.follower.ledger.deletion_notes(SOURCE).last_batch

    def require(self) -> None:
        """Changelogs list what is kept, and nothing else; files of before go in the end."""
        ledger, lake = self.follower.ledger, self.follower.lake
        notes = [one for one in ledger.deletion_notes(SOURCE).unfinished if not one.is_deleted]
        below = min((one.after_batch for one in notes), default=self.through)
        for batch in ledger.live_batches(SOURCE, 1, 1 << 60):
            for folder, file in self.files(batch.id):
                there = not self.ports().segments.damage_sentences(folder, [file])
                listed = file.path in (self.ports().changelog.listed_files(folder) or {})
                if batch.id > self.through and batch.state is BatchState.ACKNOWLEDGED:
                    assert (there, listed) == (True, True), (batch.id, self.through, folder)
                elif batch.id <= below:
                    assert (there, listed) == (False, False), (batch.id, below, folder)
        assert lake.tables

    def files(self, batch: int) -> Iterator[tuple[str, SegmentFile]]:
        ledger = self.follower.ledger
        for segment in batch_content(ledger, SOURCE, batch).segments:
            version = ledger.schema_version(SOURCE, segment.table, segment.schema_version)
            for file in segment.files:
                yield changelog_path(SOURCE, segment.table, version.generation), file
        for part in batch_content(ledger, SOURCE, batch).system_segments:
            for file in part.files:
                yield system_table_path(SOURCE, part.table), file

    # -- who needs them ----------------------------------------------------------------------

    def begin(self) -> None:
        """A consumer, from anywhere."""
        name, ledger = f"c{self.number}", self.follower.ledger
        known = [one.id for one in ledger.live_batches(SOURCE, 1, 1 << 60)]
        starts: list[ConsumerStart] = ["earliest", "latest", *known]
        start = self.random.choice(starts)
        with suppress(ConsumerRefused):
            made = ledger.consumers.make_consumer(SOURCE, name, start)
            self.read[name] = (made.cursor or 0, [])
            assert start == "latest" or (made.cursor or 0) >= self.through

    def end(self) -> None:
        if self.read:
            name = self.random.choice(sorted(self.read))
            self.follower.ledger.consumers.drop_consumer(
                SOURCE, name, author="somebody", reason="because"
            )
            del self.read[name]

    def consume(self) -> None:
        for name in self.read:
            self.take(name, DeliveryBounds(max_batches=self.random.randrange(1, 9)))

    def take(self, name: str, bounds: DeliveryBounds, *, sure: bool = False) -> bool:
        consumers = self.follower.ledger.consumers
        delivery = consumers.deliver(SOURCE, name, bounds)
        if delivery is None:
            return False
        for batch in delivery.batches:
            for folder, file in self.files(batch):
                assert not self.ports().segments.damage_sentences(folder, [file]), (name, batch)
                assert file.path in (self.ports().changelog.listed_files(folder) or {}), (
                    name,
                    batch,
                )
        if sure or self.random.random() < 0.8:
            consumers.ack_delivery(SOURCE, name, delivery.id)
            self.read[name][1].extend(delivery.batches)
        else:
            consumers.roll_back(SOURCE, name)
        return True

    def replay(self) -> None:
        self.run()
        self.require_replayed(self.random.choice(["earliest", *self.seen]))

    def require_replayed(self, since: str) -> None:
        span = Span(parse_place(since), parse_place("latest"))
        try:
            with self.follower.leased() as lease:
                report = replay(self.ports(), lease, span)
        except SpanRefused as error:
            if GONE in error.message:
                assert since != "earliest"
                assert self.lies_before(since)
                self.refused += 1
        else:
            assert all(one.batch.id > self.through for one in report.batches)

    def lies_before(self, place: str) -> bool:
        gone = self.follower.ledger.deletion_notes(SOURCE).newest
        return gone is not None and parse_place(place).at < gone.end.at  # type: ignore[union-attr]

    def rebuild(self) -> None:
        self.run()
        self.require_rebuilt(self.random.sample(sorted(self.seen), min(len(self.seen), 4)))

    def require_rebuilt(self, places: Iterable[str]) -> None:
        """As MySQL showed it; only what lies inside deleted batches is refused."""
        for place in places:
            table, self.number = self.random.choice(TABLES), self.number + 1
            into = f"/past/{self.number}"
            try:
                origin = origin_at(self.ports(), TableName(self.name, table), parse_place(place))
                rebuild_as_of(self.ports(), MemoryCopies(self.follower.lake), origin, into)
            except PastRefused as error:
                assert GONE in error.message, (place, error)
                assert self.lies_before(place)
                self.refused += 1
            else:
                found = self.follower.lake.tables[into][-1].rows.to_pylist()
                assert _ordered(found) == self.seen[place][table]

    def require_told(self) -> None:
        """Reports, versions and structures of all places behind what is known; of those before,
        that they are not known any more, or what some batch that is left still tells."""
        ledger, before = self.follower.ledger, 0
        mark = ledger.pruned_through(SOURCE)
        [first] = ledger.live_batches(SOURCE, mark, mark)
        assert first.end is not None
        for place in list(self.seen)[:-1]:
            at, source = parse_place(place), SOURCE
            span = Span(at, parse_place("latest"))
            gone = at.at < first.end.at  # type: ignore[union-attr]
            before += gone
            with _refused(SpanRefused, gone):
                report = report_of_span(ledger, source, span, self.clock())
                assert all(one.id > mark for one in report.batches)
            with _refused(VersionSetUnknown, gone):
                version_set_at(ledger, source, at)
            with _refused(SchemaUnknownAt, gone, or_told=True):
                shown = show_schema(
                    ledger, source, TableName(self.name, "a"), at, self.ports
                ).shown_version
                assert shown.version.knowledge is Knowledge.KNOWN
        assert before

    def reload(self) -> None:
        """From its changelog, which may have to begin with an earlier version of the mirror; or
        from the source where a person does not mind and the changelog does not go back any more."""
        table = TableName(self.name, self.random.choice(TABLES))
        with suppress(PastRefused):
            self.follower.reload(table, self.random.choice((None, Supplier.CHANGELOG)))
        self.run()

    def shown(self, table: str) -> Rows:
        found = self.stand.rows(f"select id, v from {self.name}.{table}")
        return _ordered([dict(zip(("id", "v"), row, strict=True)) for row in found])


@contextmanager
def _refused(kind: type[LockstepError], gone: bool, *, or_told: bool = False) -> Iterator[None]:
    try:
        yield
    except kind as error:
        assert gone, error
        assert GONE in error.message or "they begin at" in error.message
    else:
        assert or_told or not gone


def _ordered(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.parametrize(
    ("seed", "actions"),
    [(0, 25), *(pytest.param(n, 100, marks=pytest.mark.soak) for n in range(40))],
)
def test_what_is_needed_is_kept(mysql: MySqlStand, database: str, seed: int, actions: int) -> None:
    """No consumer misses a change, mirrors equal MySQL, places behind what was deleted are rebuilt
    and replayed; a ledger made from such a lake goes on with it, and such a ledger with a lake of
    a batch that it has forgotten."""
    begin = str(head(mysql))
    mysql.execute(
        *(f"create table {t} (id int primary key, v int)" for t in (*TABLES, QUIET)),
        database=database,
    )
    clock = Clock()
    follower = Follower(
        server(mysql), [f"{database}.*"], start=begin, ledger=LedgerOfTest(clock=clock)
    )
    kept = Kept(mysql, database, Random(seed), clock, follower)
    kept.write()
    kept.run()
    lakes = []
    for _ in range(actions):
        kept.act()
        lakes.append(lake_of(follower.lake))
    kept.run()
    for name, (start, batches) in kept.read.items():
        while kept.take(name, DeliveryBounds(), sure=True):
            pass
        assert batches == sorted(number for number in kept.captured if number > start)
    mysql.execute(f"insert into {QUIET} values (1, 1)", database=database)
    for number in range(13):  # nobody holds them now
        clock.now += timedelta(minutes=30)
        kept.write()
        kept.run()
        for name in kept.read:
            kept.take(name, DeliveryBounds(), sure=True)
        if number % 4 == 0:
            kept.upkeep()
    mysql.execute(f"insert into {QUIET} values (2, 2)", database=database)
    kept.run()
    assert len(follower.mirror(f"{database}.{QUIET}")) == 2
    kept.require_rebuilt(kept.seen)
    assert kept.refused
    kept.require_told()
    for place in ("earliest", next(iter(kept.seen)), next(reversed(kept.seen))):
        kept.require_replayed(place)
    assert {t: _ordered(follower.mirror(f"{database}.{t}")) for t in TABLES} == {
        t: kept.shown(t) for t in TABLES
    }

    older, known = follower.kept_ledger(), {batch.id for batch in follower.live_batches()}
    follower.lose_ledger()
    with follower.leased() as lease:
        done = recover(kept.ports(), lease, author="somebody")
    assert done.reloads == ()
    kept.write()
    kept.run()
    assert {t: _ordered(follower.mirror(f"{database}.{t}")) for t in TABLES} == {
        t: kept.shown(t) for t in TABLES
    }

    follower.restore_ledger(older)
    follower.lake = next(one for one in lakes if one.claims[SOURCE].batch not in known)
    with pytest.raises(ForeignCommit, match="the lake is behind its ledger"):
        kept.run()
    assert go_on(follower)
    assert {t: _ordered(follower.mirror(f"{database}.{t}")) for t in TABLES} == {
        t: kept.shown(t) for t in TABLES
    }
