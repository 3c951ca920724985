"""Ledgers that are lost, restored and given up, runs that are undone, lakes that are restored or
lose folders, each cut off at times and one after the other: a new ledger goes on with what counts,
and with nothing that the lake went back from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import pytest

from lockstep.commands import undo
from lockstep.commands.recover import recovery_lines
from lockstep.grammar import parse
from lockstep.pipeline.model.claim import BatchSpan, Claim
from lockstep.pipeline.model.table_state import OrderKind, Supplier, TableCondition
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.mirror_folders import former_folders
from lockstep.pipeline.run.rebuild import origin_at, rebuild_as_of
from lockstep.pipeline.run.replay.selection import select_batches
from lockstep.pipeline.run.status.span_report import report_of_span
from lockstep.pipeline.run.status.status import log_state
from lockstep.pipeline.schema.model import ValueDefault
from lockstep.pipeline.schema.rows import schema_of
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    ForeignCommit,
    LedgerRefused,
    LockstepError,
    PastRefused,
    PositionPurged,
    SegmentsLost,
    SpanRefused,
    StoppedBy,
)
from lockstep.pipeline.values.places import AtMoment, Earliest, Latest, moment_text, parse_place
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from lockstep.resources.lake.changelog.claims import CLAIM_NAME, STRUCTURES_FOLDER, FileClaims
from tests.chance import by_chance, seed_of
from tests.fix_mysql import MySqlStand
from tests.hostile.histories import brought_together, changelog, go_on, lake_of, replayed
from tests.hostile.test_recovered import recovered, undone
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import (
    RunPorts,
    RunToUndo,
    acknowledge,
    capture,
    declare_undone,
    merge,
    plan_recovery,
    publish,
    recover,
    run_to_undo,
)
from tests.positions.follower import SOURCE, Follower, KeptLedger
from tests.twins.copies import MemoryCopies
from tests.twins.lake import MemoryCommit, MemoryLake


def followed(mysql: MySqlStand, name: str) -> Follower:
    """A source of one database, from here on."""
    return Follower(server(mysql), [f"{name}.*"], start=str(head(mysql)))


TWO_TABLES = (
    "create table a (id int primary key)",
    "create table b (id int primary key)",
    "insert into a values (1)",
)


def begun(mysql: MySqlStand, name: str, *statements: str) -> Follower:
    """A source after its first run, in which these statements were read."""
    follower = followed(mysql, name)
    mysql.execute(*statements, database=name)
    follower.run()
    return follower


def require_equal(follower: Follower, mysql: MySqlStand, name: str) -> None:
    """Each table of the database is followed, its mirror is the table, and no change is in its
    changelogs twice."""
    states = follower.states()
    tables = [str(row[0]) for row in mysql.rows(f"show tables from {name}")]
    for table in tables:
        state = states[TableName(name, table)]
        assert state.is_complete, state
        columns = [str(row[0]) for row in mysql.rows(f"desc {name}.{table}")]
        rows = follower.lake.tables[state.mirror][-1].rows.to_pylist()
        mirror = sorted(str(tuple(row[column] for column in columns)) for row in rows)
        assert mirror == sorted(map(str, mysql.rows(f"select * from {name}.{table}"))), table
        marks = changelog(follower, name, table)
        assert len(marks) == len(set(marks)), table


# -- a table that was read as a batch of its own ------------------------------------------------


def renamed(mysql: MySqlStand, name: str) -> Follower:
    """Batch 3 is undone, and batch 4, in which the table under its new name was read from the
    source: no transaction is in it, and no mirror up to batch 2 has anything of that table."""
    tables = [f"create table {table} (id int primary key, v int)" for table in "db"]
    rows = [f"insert into {table} values (1, 1), (2, 2)" for table in "db"]
    follower = begun(mysql, name, *tables, *rows)
    mysql.execute(f"insert into {name}.b values (3, 3)")
    follower.run()
    mysql.execute(
        f"use {name}",
        "alter table d rename to d2, add column w int",
        "create table d (id int primary key, v int)",
        "update b set v = v + 10",
    )
    follower.run()
    [newest] = follower.batches(limit=1)
    assert (newest.id, batch_content(follower.ledger, SOURCE, 4).system_segments) == (4, ())
    return follower


def test_what_was_before_an_undone_run_is_told_to_be_gone(mysql: MySqlStand, database: str) -> None:
    """First the preview says so; afterwards a span of the time before is refused, and is not taken
    for the batch that was read again. How far the source is behind is known."""
    follower = begun(mysql, database, *TWO_TABLES)
    [kept] = follower.batches(limit=1)
    mysql.execute(f"insert into {database}.a values (2)")
    follower.run()
    outcome = plan_recovery(follower.ports(), kept.id)
    assert outcome.plan is not None
    told = "".join(recovery_lines(SOURCE, outcome, outcome.plan, []))
    assert f"`replay` no longer work for places before the end of batch {kept.id}" in told
    undone(follower, kept.id)
    cursor = follower.ledger.cursors(SOURCE).acknowledged
    assert cursor is not None
    assert cursor.position == kept.end
    _, lag, _ = log_state(follower.ports(), datetime.now(UTC))
    assert kept.end is not None
    assert kept.end.committed_at is not None
    assert lag.seconds is not None
    assert lag.seconds >= (datetime.now(UTC) - kept.end.committed_at).total_seconds() - 1
    table, into_numbers = TableName(database, "a"), count(1)
    for _ in range(2):
        ports = follower.ports()
        for place in (str(kept.end), moment_text(kept.end.committed_at)):
            into, origin = (
                f"/past/{next(into_numbers)}",
                origin_at(ports, table, parse_place(place)),
            )
            rebuild_as_of(ports, MemoryCopies(follower.lake), origin, into)
            assert follower.lake.tables[into][-1].rows["id"].to_pylist() == [1]
        earlier = parse_place(moment_text(kept.end.committed_at - timedelta(seconds=1)))
        with pytest.raises(PastRefused, match="the history begins at"):
            origin_at(ports, table, earlier)
        follower.run()
    later = parse_place(moment_text(datetime.now(UTC)))
    early = AtMoment(kept.end.committed_at - timedelta(hours=1))
    middle = AtMoment(kept.end.committed_at - timedelta(minutes=30))
    for begun_before in (Span(early, middle), Span(early, later)):
        with pytest.raises(SpanRefused, match="the history begins at"):
            report_of_span(follower.ledger, SOURCE, begun_before, datetime.now(UTC))
        with pytest.raises(SpanRefused, match="the history begins at"):
            select_batches(follower.ports(), begun_before)
    assert select_batches(follower.ports(), Span(Earliest(), later)).batches


def test_a_span_before_the_first_run_is_refused(mysql: MySqlStand, database: str) -> None:
    """The first run began at the log's end, so that when the history begins is known."""
    follower = Follower(server(mysql), [f"{database}.*"], start="latest")
    early = parse_place(moment_text(datetime.now(UTC) - timedelta(seconds=30)))
    mysql.execute(TWO_TABLES[0], database=database)
    follower.run()
    mysql.execute(f"insert into {database}.a values (1)")
    follower.run()
    for until in ("latest", moment_text(datetime.now(UTC) - timedelta(seconds=20))):
        span = Span(early, parse_place(until))
        with pytest.raises(SpanRefused, match=r"the history begins at .* \(.*Z\)"):
            report_of_span(follower.ledger, SOURCE, span, datetime.now(UTC))
        with pytest.raises(SpanRefused, match=r"the history begins at .* \(.*Z\)"):
            select_batches(follower.ports(), span)
    assert select_batches(follower.ports(), Span(Earliest(), Latest())).batches


def test_a_ledger_lost_after_a_run_was_undone(mysql: MySqlStand, database: str) -> None:
    """The next one does not go on with what was undone, and gives none of its numbers again."""
    follower = renamed(mysql, database)
    undone(follower, 2)
    claim = follower.lake.claims[SOURCE]
    assert (claim.void, claim.batch) == ((BatchSpan(2, 4),), 5)
    follower.lose_ledger()
    done = recovered(follower)
    assert done.plan is not None
    assert (done.plan.lake_end.batch, done.plan.highest_batch) == (2, 5)
    follower.run()
    require_equal(follower, mysql, database)


def test_a_claim_lost_after_a_run_was_undone(mysql: MySqlStand, database: str) -> None:
    """Nothing says what is void: no batch is gone on with that a mirror alone shows."""
    follower = renamed(mysql, database)
    undone(follower, 2)
    del follower.lake.claims[SOURCE]
    follower.lose_ledger()
    recovered(follower)
    assert not follower.lake.claims[SOURCE].is_void_complete
    follower.run()
    require_equal(follower, mysql, database)


def test_a_ledger_that_a_recovery_began_to_leave_does_not_go_on(
    mysql: MySqlStand, database: str
) -> None:
    """It was moved back when the recovery was cut off; by another it goes on with what it has."""
    follower = renamed(mysql, database)
    ledger = follower.ledger
    follower.lose_ledger()
    with follower.leased() as lease, pytest.raises(CutOff):
        recover(mortal(follower.ports(), 3), lease, author="somebody", after_batch=2)
    follower.ledger = ledger
    with pytest.raises(ForeignCommit, match="went back to the end of batch 2"):
        follower.run()
    assert go_on(follower)
    assert follower.lake.claims[SOURCE].void == ()
    require_equal(follower, mysql, database)
    follower.lose_ledger()
    recovered(follower)
    follower.run()
    require_equal(follower, mysql, database)


def test_a_batch_that_was_gone_back_to_counts(mysql: MySqlStand, database: str) -> None:
    """It has no transactions either, and read a table again whose rows had been wrong: the version
    before it is not taken for that table."""
    follower = begun(mysql, database, *TWO_TABLES)
    commits = follower.lake.tables[f"{SOURCE}/{database}/a"]
    commits[-1] = replace(commits[-1], rows=commits[-1].rows.slice(0, 0))
    with follower.leased() as lease:
        table = TableName(database, "a")
        follower.ledger.order_load(lease, table, author="somebody", reason="a trial")
    follower.run()
    for key in (1, 2):
        mysql.execute(f"insert into {database}.b values ({key})")
        follower.run()
        if key == 1:
            done = undone(follower, 2)
            assert done.plan is not None
            assert (done.plan.lake_end.batch, done.plan.lake_end.is_whole) == (2, False)
    follower.lose_ledger()
    assert not recovered(follower).reloads
    require_equal(follower, mysql, database)


def test_a_ledger_from_before_its_recovery_gives_no_number_again(
    mysql: MySqlStand, database: str
) -> None:
    """It was restored twice, and does not know that batch 2 was undone in between: a batch 2 of its
    own would be taken for that one when the ledger is lost, and read once more."""
    follower = begun(mysql, database, "create table a (id int primary key)")
    older = follower.kept_ledger()
    mysql.execute(f"insert into {database}.a values (1)")
    follower.run()
    follower.restore_ledger(older)
    with follower.leased() as lease:
        brought_together(follower.ports(), lease)
    assert follower.lake.claims[SOURCE].void == (BatchSpan(1, 2),)
    follower.restore_ledger(older)
    mysql.execute(f"insert into {database}.a values (2)")
    with pytest.raises(ForeignCommit, match="went back from batch 2 to the end of batch 1"):
        follower.run()
    assert go_on(follower)
    assert 2 not in {batch.id for batch in follower.live_batches()}
    follower.lose_ledger()
    recovered(follower, 2)
    follower.run()
    require_equal(follower, mysql, database)


def test_a_claim_says_what_is_void(tmp_path: Path) -> None:
    claims, moment = FileClaims(tmp_path), datetime(2026, 1, 1, tzinfo=UTC)
    claim = Claim(SOURCE, "a ledger", moment, 9, void=(BatchSpan(2, 4), BatchSpan(5, 8)))
    claims.write(claim)
    assert claims.read(SOURCE) == claim


@pytest.mark.parametrize("damage", [b"\xff\xfe damaged", b'{"format": 1, "cleared": true'])
def test_damaged_files_say_nothing(tmp_path: Path, damage: bytes) -> None:
    """Of whichever bytes: a claim is refused with its cure, structures are as if there were none,
    and are not written again."""
    claims = FileClaims(tmp_path)
    file = tmp_path / SOURCE / STRUCTURES_FOLDER / "a key.json"
    file.parent.mkdir(parents=True)
    for path in (file, tmp_path / SOURCE / CLAIM_NAME):
        path.write_bytes(damage)
    with pytest.raises(ForeignCommit, match="does not say which ledger"):
        claims.read(SOURCE)
    assert claims.structures(SOURCE, "a key") is None
    claims.clear_structures(SOURCE, lambda structure: structure)
    assert file.read_bytes() == damage


def test_cleared_structures_are_read_by_their_key(tmp_path: Path) -> None:
    """The values are gone from the file, whose hash is another than its name by then."""
    claims = FileClaims(tmp_path)
    column = Column("v", "varchar", length=9, charset="utf8mb4")
    schema = schema_of(TableStructure(TableName("shop", "t"), (column,), ()))
    [plain] = schema.columns
    with_value = replace(schema, columns=(replace(plain, default=ValueDefault("secret")),))
    key = claims.store_structures(SOURCE, [with_value])
    assert claims.structures(SOURCE, key) == [with_value]
    for _ in range(2):
        claims.clear_structures(SOURCE, lambda _: schema)
        assert claims.structures(SOURCE, key) == [schema]
    texts = [file.read_text() for file in tmp_path.rglob("*.json")]
    assert not any("secret" in text for text in texts)
    assert claims.structures(SOURCE, "another key") is None


# -- other siblings ----------------------------------------------------------------------------


@pytest.mark.parametrize("back", ["before", "after"])
def test_a_table_that_was_left_out_is_not_taken_as_it_was(
    mysql: MySqlStand, database: str, back: str
) -> None:
    """Patterns left it out while it changed, and name it again before the ledger is made from the
    lake, or after: the lake says so. Until then its mirror stays."""
    follower = begun(mysql, database, *TWO_TABLES)
    follower.tables = [f"{database}.b"]
    mysql.execute(f"use {database}", "insert into a values (2)", "insert into b values (2)")
    follower.run()
    mysql.execute(f"use {database}", "insert into b values (3)")
    follower.run()
    follower.tables = [f"{database}.{'*' if back == 'before' else 'b'}"]
    follower.lose_ledger()
    recovered(follower)
    if back == "after":
        follower.run()
        assert former_folders(follower.ports()) == []
        follower.tables = [f"{database}.*"]
    follower.run()
    require_equal(follower, mysql, database)


def test_a_table_that_a_later_batch_caught_up_stood_still(mysql: MySqlStand, database: str) -> None:
    """It came back before the batch was published that lacks it: the lake says that it does."""
    follower = begun(mysql, database, *TWO_TABLES)
    table = TableName(database, "a")
    follower.order(OrderKind.PAUSE, table)
    mysql.execute(f"use {database}", "insert into a values (2)", "insert into b values (2)")
    follower.capture()
    follower.order(OrderKind.RESUME, table)
    follower.capture()
    assert follower.states()[table].is_complete
    with follower.leased() as lease:
        merge(follower.ports(), lease, only_tables=frozenset({TableName(database, "b")}))
    follower.lose_ledger()
    recovered(follower)
    follower.run()
    require_equal(follower, mysql, database)


def test_a_recovery_keeps_what_the_ledger_was_made_from(mysql: MySqlStand, database: str) -> None:
    """A ledger that was made from the lake has no file of before on record; its changelogs list
    them all the same."""
    follower = begun(mysql, database, "create table a (id int primary key)")
    mysql.execute(f"use {database}", "insert into a values (1)")
    follower.run()
    follower.lose_ledger()
    recovered(follower)
    older = follower.kept_ledger()
    mysql.execute(f"use {database}", "insert into a values (2)")
    follower.run()
    follower.restore_ledger(older)
    assert go_on(follower)
    folder = follower.lake.tables[f"{SOURCE}/_changes/{database}/a"]
    kinds = [(row["id"], row["_change_type"]) for row in folder[-1].rows.to_pylist()]
    assert (1, "insert") in kinds
    require_equal(follower, mysql, database)


@pytest.mark.parametrize("published", [False, True])
def test_an_older_ledger_without_the_claim(
    mysql: MySqlStand, database: str, published: bool
) -> None:
    """A batch that it does not know is in changelogs alone: it gives that number to no batch of its
    own, whose files would have the same names; a recovery that was cut off is known as such."""
    follower = followed(mysql, database)
    mysql.execute(f"use {database}", "create table a (id int primary key)")
    if published:
        follower.run()
    else:
        follower.capture()
    older = follower.kept_ledger()
    mysql.execute(f"insert into {database}.a values (1)")
    follower.capture()
    with follower.leased() as lease:
        publish(follower.ports(), lease)
    del follower.lake.claims[SOURCE]
    lake = lake_of(follower.lake)
    mysql.execute(f"insert into {database}.a values (2)")
    done = False
    for calls in count(by_chance().randint(1, 8), step=8):
        follower.lake = lake_of(lake)
        follower.restore_ledger(older)
        with pytest.raises(ForeignCommit, match="the ledger is behind its lake"):
            follower.run()
        with follower.leased() as lease, suppress(CutOff):
            brought_together(mortal(follower.ports(), calls), lease)
            done = True
        go_on(follower)
        require_equal(follower, mysql, database)
        if done:
            break


def test_a_table_is_dropped_whose_files_are_lost(mysql: MySqlStand, database: str) -> None:
    """A recovery merged their batch without any table; nothing is made of them, and the table
    ends."""
    follower = followed(mysql, database)
    mysql.execute(
        f"use {database}",
        "create table a (id int primary key)",
        "create table b (id int primary key)",
    )
    older = lake_of(follower.lake)
    follower.run()
    mysql.execute(f"insert into {database}.a values (1)")
    follower.capture()
    follower.lake = older
    with follower.leased() as lease:
        brought_together(follower.ports(), lease)
    mysql.execute(f"drop table {database}.a")
    go_on(follower)
    require_equal(follower, mysql, database)
    states = follower.states()
    assert states[TableName(database, "a")].condition is TableCondition.DROPPED
    assert not follower.ledger.pending_batches(SOURCE)


def test_an_undo_that_dies_is_ended_by_any_recovery(mysql: MySqlStand, database: str) -> None:
    """Nobody has to say again which batch it went back to. A ledger that is put back is refused,
    and may go on as it is."""
    follower = begun(mysql, database, *TWO_TABLES)
    [kept] = follower.batches(limit=1)
    for key in (2, 3):
        mysql.execute(f"insert into {database}.a values ({key})")
        follower.run()
    for is_moved in (False, True):
        ports = follower.ports()
        with follower.leased() as lease:
            declare_undone(ports, lease, plan_recovery(ports, kept.id))
        with pytest.raises(ForeignCommit, match="went back to the end of batch"):
            follower.run()
        if is_moved:
            follower.lose_ledger()
        plan = recovered(follower).plan
        assert is_moved is (plan is not None)
        assert plan is None or plan.lake_end.batch == kept.id
        go_on(follower)
        require_equal(follower, mysql, database)


@pytest.mark.parametrize("is_undo", [True, False])
def test_what_no_log_has_is_read_again(mysql: MySqlStand, database: str, is_undo: bool) -> None:
    """A row that was changed without the log, and read from the source by a run that is undone, or
    that came after the batch to which a lost ledger goes back. Other tables go on with their
    mirrors."""
    follower = begun(mysql, database, *TWO_TABLES, "insert into b values (1)")
    mysql.execute(
        f"use {database}",
        "insert into a values (2)",
        "set sql_log_bin = 0",
        "update a set id = 9 where id = 1",
        "set sql_log_bin = 1",
    )
    order = RereadRows(TableName(database, "a"), read_condition("id in (1, 9)"), "ann", "differs")
    ports = follower.ports()
    with follower.ledger.lock(SOURCE, "test", "the-repair") as lease:
        reading = replace(ports, source=replace(ports.source, reread_rows=order))
        capture(reading, lease)
        merge(ports, lease)
        acknowledge(ports, lease)
    require_equal(follower, mysql, database)
    run = run_to_undo(follower.ledger, SOURCE, "the-repair")
    assert run.reread_tables == (TableName(database, "a"),)
    reread = run.reread_tables if is_undo else ()
    shown = plan_recovery(ports, run.previous_batch, reread_tables=reread)
    assert [table for table, _ in shown.reloads] == [TableName(database, "a")]
    follower.lose_ledger()
    with follower.leased() as lease:
        recover(
            follower.ports(),
            lease,
            author="ann",
            after_batch=run.previous_batch,
            reread_tables=reread,
        )
    [decided] = follower.decisions(limit=1)
    assert decided.decision.facts["read_again"] == [f"{database}.a"]
    go_on(follower)
    require_equal(follower, mysql, database)


def test_rows_that_were_read_in_a_batch_of_their_own_are_read_again(
    mysql: MySqlStand, database: str
) -> None:
    """Such a batch is not in `_transactions`, which alone counts once the claim was lost."""
    follower = begun(mysql, database, *TWO_TABLES, "insert into a values (2)")
    mysql.execute(f"use {database}", "set sql_log_bin = 0", "update a set id = 9 where id = 1")
    follower.reload(TableName(database, "a"), Supplier.SOURCE)
    follower.run()
    require_equal(follower, mysql, database)
    follower.lake.claims.clear()
    follower.lose_ledger()
    assert [table.name for table, _ in recovered(follower).reloads] == ["a"]
    follower.run()
    require_equal(follower, mysql, database)


def test_an_undo_that_is_refused_is_not_offered(mysql: MySqlStand, database: str) -> None:
    """The whole ledger would be moved away, and it is in a Postgres of the user's."""
    follower, lines = begun(mysql, database, *TWO_TABLES), list[str]()
    mysql.execute(f"insert into {database}.a values (2)")
    with follower.ledger.lock(SOURCE, "test", "the-run") as lease:
        capture(follower.ports(), lease)
    adapters = SimpleNamespace(consumers=lambda: SimpleNamespace(consumers=lambda _: []))
    context: Any = SimpleNamespace(
        one_source=lambda _: SimpleNamespace(name=SOURCE),
        open_source=lambda _: nullcontext((adapters, follower.ports())),
        settings=SimpleNamespace(ledger_dsn=lambda: "env:DSN", sources=()),
        say=lambda *more: lines.extend(more),
    )
    assert undo.perform(parse(["undo", "the-run"]), context).payload["done"] is False
    assert lines[0].startswith(f"{SOURCE}: run the-run would be undone, from batch ")
    assert "hint: name one as [ledger] dsn" in lines[-1]
    assert "does it" not in lines[-1]
    with pytest.raises(ConfigurationError, match="a Postgres of yours"):
        undo.perform(parse(["undo", "the-run", "--yes"]), context)


def test_a_refused_undo_names_every_command_that_takes_its_place() -> None:
    """The ledger is moved away for all of its sources, and no table is forgotten."""
    sources = [SimpleNamespace(name=name) for name in ("shop", "crm", "web")]
    settings = SimpleNamespace(ledger_dsn=lambda: "embedded", sources=sources)
    context: Any = SimpleNamespace(settings=settings)
    ledger: Any = SimpleNamespace(cursors=lambda _: SimpleNamespace(captured="binlog.000001:4"))
    run = RunToUndo("the-run", 3, 2, 0, (TableName("shop", "a"),))
    refusal = undo._refusal(context, "shop", ledger, run)
    assert refusal is not None
    for command in (
        "recover --source shop --back-to 2 --yes",
        "recover --source crm --yes",
        "recover --source web --yes",
        "reload shop.a --from source --reason …",
    ):
        assert f"`lockstep {command}`" in refusal.hint


# -- by chance ----------------------------------------------------------------------------------


class CutOff(Exception):
    """The process ends."""


WRITES: Final = frozenset(
    {
        *("write", "evolve", "restore", "remove", "publish", "restate", "revise", "move_away"),
        *(
            "record_capture",
            "note_examined_versions",
            "mark_merged",
            "acknowledge",
            "settle",
            "intend",
        ),
        *("order_load", "number_above", "decide", "begin_batch", "quarantine"),
        "abandon",
    }
)
"""The calls of ports that leave something behind."""


@dataclass
class Mortal:
    """A port with whose last call the process ends, before or after that is done."""

    port: Any
    life: list[int]

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.port, name)
        return self._counted(call) if name in WRITES else call

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self._tick()
            done = call(*given, **named)
            self._tick()
            return done

        return counted

    def _tick(self) -> None:
        self.life[0] -= 1
        if self.life[0] == 0:
            raise CutOff


def mortal(ports: RunPorts, calls: int) -> RunPorts:
    """0: it lives on."""
    life = [calls]
    ledger: Any = Mortal(ports.ledger, life)
    changelog: Any = Mortal(ports.changelog, life)
    mirrors: Any = Mortal(ports.mirrors, life)
    claims: Any = Mortal(ports.claims, life)
    return replace(ports, ledger=ledger, changelog=changelog, mirrors=mirrors, claims=claims)


@dataclass
class Writer:
    """Statements by chance, of tables that come and go, are renamed and made again. `tables`:
    whether each has a key."""

    mysql: MySqlStand
    name: str
    random: Random
    tables: dict[str, bool] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        for key in (True, True, False):
            self.do(self._make(key), *self.rows())

    def do(self, *statements: str) -> None:
        self.mysql.execute(f"use {self.name}", *statements)

    def write(self) -> None:
        self.do(*self.rows())
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self.do(*self._structure(), *self.rows())

    def rows(self, share: float = 0.6) -> list[str]:
        """Of most tables; some stay empty for long."""
        found = []
        for table in self.tables:
            if self.random.random() >= share:
                continue
            self.number += 1
            found += [
                f"insert into {table} (id, v) values ({self.number}, 0)",
                f"update {table} set v = coalesce(v, 0) + 1 where id % 3 = {self.number % 3}",
                f"delete from {table} where id % 9 = {self.number % 9}",
            ]
        return found

    def _make(self, key: bool, name: str = "") -> str:
        self.number += 1
        name = name or f"t{self.number}"
        self.tables[name] = key
        return f"create table {name} (id int{' primary key' if key else ''}, v int)"

    def _structure(self) -> list[str]:
        table = self.random.choice(sorted(self.tables))
        self.number += 1
        match self.random.randrange(6):
            case 0:
                return [self._make(self.random.random() < 0.7)]
            case 1 | 2:
                key = self.tables.pop(table)
                self.tables[f"r{self.number}"] = key
                moved = f"rename table {table} to r{self.number}"
                return [moved, self._make(key, table)] if self.random.random() < 0.7 else [moved]
            case 3 if len(self.tables) > 1:
                del self.tables[table]
                return [f"drop table {table}"]
            case 4:
                return [f"alter table {table} add column c{self.number} int default 7"]
            case _:
                return [f"truncate table {table}"]


@dataclass
class Chaos:
    """`older`: the two sides as they were before."""

    writer: Writer
    follower: Follower
    older: list[tuple[KeptLedger, MemoryLake]] = field(default_factory=list)

    @property
    def random(self) -> Random:
        return self.writer.random

    def step(self) -> None:
        steps = {
            self.run: 4,
            self.capture: 2,
            self.reload: 2,
            self.disturb: 1,
            self.pause: 1,
            self.rejoin: 1,
            self.leave_out: 1,
            self.replay: 1,
            self.vacuum: 1,
            self.undo: 3,
            self.lose_ledger: 3,
            self.restore_ledger: 1,
            self.restore_lake: 1,
            self.lose_folder: 1,
            self.lose_claim: 1,
        }
        if self.random.random() < 0.7:
            self.writer.write()
        [step] = self.random.choices(list(steps), list(steps.values()))
        print(step.__name__)
        step()

    # Runs, and what persons do about tables.

    def run(self) -> None:
        self._tried(self.follower.steps)

    def capture(self) -> None:
        def captured(ports: RunPorts) -> None:
            with self.follower.leased() as lease:
                capture(ports, lease)

        self._tried(captured)

    def _tried(self, steps: Callable[[RunPorts], Any]) -> None:
        try:
            steps(mortal(self.follower.ports(), self._calls()))
        except CutOff:
            pass
        except (ForeignCommit, SegmentsLost):
            self._bring_together()
        kept = self.follower.kept_ledger(), lake_of(self.follower.lake)
        self.older = [*self.older[-8:], kept]

    def _calls(self) -> int:
        """Until the process ends; most do not."""
        return self.random.choice((0, 0, 0, self.random.randint(1, 60)))

    def _one(self) -> Sequence[TableName]:
        states = self.follower.states().items()
        active = [table for table, state in states if state.is_complete]
        return self.random.sample(sorted(active), min(1, len(active)))

    def reload(self) -> None:
        for table in self._one():
            with suppress(PastRefused, LedgerRefused):
                self.follower.reload(table, self.random.choice((None, *Supplier)))
        self.run()

    def pause(self) -> None:
        for table in self._one():
            self.follower.order(OrderKind.PAUSE, table)
        self.writer.write()
        self.run()

    def disturb(self) -> None:
        """Somebody else writes to a mirror, and the table is quarantined."""
        for table in self._one():
            mirror = self.follower.states()[table].mirror
            if commits := self.follower.lake.tables.get(mirror):
                commits.append(MemoryCommit("", 0, "", commits[-1].rows))
        self.writer.write()
        self.run()

    def rejoin(self) -> None:
        for table, state in self.follower.states().items():
            if state.stopped_by is StoppedBy.PERSON:
                self.follower.order(OrderKind.RESUME, table)
            if state.has_stopped:
                self.follower.order(OrderKind.RESUME, table)
        self.run()

    def leave_out(self) -> None:
        """The configuration names all tables but one for a while."""
        names = sorted(self.writer.tables)
        left = self.random.choice(["", *names])
        self.follower.tables = [f"{self.writer.name}.{name}" for name in names if name != left]
        if self.follower.tables:
            self.run()
            self.writer.do(*self.writer.rows())
            self.run()
        self.follower.tables = [f"{self.writer.name}.*"]

    def replay(self) -> None:
        try:
            replayed(self.follower)
        except LockstepError as error:
            print(error)

    def vacuum(self) -> None:
        """Only the newest version of some mirrors has its files."""
        lake = self.follower.lake
        lake.vacuumed |= {
            name: len(commits) - 1
            for name, commits in lake.tables.items()
            if "/_" not in name and self.random.random() < 0.5
        }

    # What becomes of the two sides.

    def undo(self) -> None:
        batches = self.follower.batches(limit=6)
        if not batches:
            return
        behind = self.random.choice(batches).id
        try:
            plan_recovery(self.follower.ports(), behind)
        except LockstepError as error:
            print(error)
            return
        self._recover(behind)
        if self.random.random() < 0.3:
            self.lose_ledger()

    def lose_ledger(self) -> None:
        folders = self.follower.lake.tables
        if any(folder.startswith(f"{SOURCE}/{self.writer.name}") for folder in folders):
            self._recover()

    def _recover(self, behind: int | None = None) -> None:
        """Cut off at times; then the same again, or with no batch, or in another ledger."""
        self.follower.lose_ledger()
        for calls in (self._calls(), 0):
            try:
                with self.follower.leased() as lease:
                    ports = mortal(self.follower.ports(), calls)
                    recover(ports, lease, author="somebody", after_batch=behind)
            except CutOff:
                behind = self.random.choice((behind, None))
                if self.random.random() < 0.3:
                    self.follower.lose_ledger()
            except ForeignCommit as error:
                assert "holds shop already" in error.message, "it was done"
            except PositionPurged:
                # The lake went back to before its first batch, or a batch was never published in
                # all tables: a person starts over, as the hint says.
                assert not self._listed(), "a batch that counts is not gone on with"
                self._bring_together()
                return
            else:
                return

    def _listed(self) -> int:
        """Transactions in the lake, as a reader sees them."""
        commits = self.follower.lake.tables.get(f"{SOURCE}/_transactions")
        return commits[-1].rows.num_rows if commits else 0

    def restore_ledger(self) -> None:
        if self.older:
            self.follower.restore_ledger(self.random.choice(self.older)[0])
            self.random.choice((self.run, self.writer.write))()

    def restore_lake(self) -> None:
        if self.older:
            self.follower.lake = lake_of(self.random.choice(self.older)[1])
            self._either_way()

    def lose_folder(self) -> None:
        lake = self.follower.lake
        lake.tables.pop(self.random.choice(sorted(lake.tables) or [""]), None)
        self._either_way()

    def lose_claim(self) -> None:
        self.follower.lake.claims.clear()
        self._either_way()

    def _either_way(self) -> None:
        self.random.choice((self.run, self.lose_ledger))()

    def _bring_together(self) -> None:
        """Cut off at times; then the same again, or not."""
        for calls in (self._calls(), 0):
            try:
                with self.follower.leased() as lease:
                    brought_together(mortal(self.follower.ports(), calls), lease)
            except CutOff:
                if self.random.random() < 0.7:
                    continue
            return

    def settle(self) -> None:
        """All tables are back, and equal to the source."""
        self.writer.do(*self.writer.rows(share=1))
        for _ in range(4):
            for table, state in self.follower.states().items():
                if state.stopped_by is StoppedBy.PERSON:
                    self.follower.order(OrderKind.RESUME, table)
            go_on(self.follower)
        require_equal(self.follower, self.writer.mysql, self.writer.name)


@pytest.mark.parametrize("histories", [1, pytest.param(40, marks=pytest.mark.soak)])
def test_histories_by_chance(mysql: MySqlStand, database: str, histories: int) -> None:
    """Whatever happened, and is gone back from: in the end the lake equals the source, and once
    more after the ledger is lost at last."""
    seed = seed_of("SOAK_SEED")
    for number in range(histories):
        name = f"{database}_{number}"
        mysql.execute(f"create database {name}")
        follower = followed(mysql, name)
        chaos = Chaos(Writer(mysql, name, Random(seed + number)), follower)
        try:
            for _ in range(12):
                chaos.step()
            chaos.settle()
            chaos.writer.write()
            chaos.lose_ledger()
            chaos.settle()
        except Exception as error:
            error.add_note(f"SOAK_SEED={seed + number}")
            raise
