"""How the ledger's schema comes to be, and what it refuses to touch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from lockstep.status_report import exit_code
from pipeline.batch import BatchState
from pipeline.decisions import AttemptOutcome, Continuity, Decision, Lease
from pipeline.errors import LedgerNewer, LedgerRefused, Recovery, Remedy, SourceUnavailable
from pipeline.position import Reign, ServerLineage, SetWitness
from pipeline.runs.inspecting.status import stand
from pipeline.standing.verdict import verdict
from pipeline.table import Column, TableStructure
from pipeline.table_state import OrderKind, Stopped
from pipeline.tables import TablePatterns
from resources.postgres.connection import LedgerAddress, connect
from resources.postgres.ledger import PostgresLedger, open_ledger
from resources.postgres.migrate import migrate, migrations
from tests.ledger.kept import HINT, SALES, kept
from tests.ledger.made import (
    ORDERS,
    OTHER,
    SERVER,
    STOCK,
    following,
    merged,
    newest,
    place,
    position,
    prepared,
    record,
)
from tests.ledger.schema_dump import SCHEMA, dump
from tests.ledger.servers import EACH_POSTGRES, run

_DATABASES = count(1)
_FIRST_DATA, _SECOND_DATA, _FOURTH_DATA = (
    Path(__file__).with_name(f"data_000{number}.sql") for number in (1, 2, 4)
)


@pytest.fixture(params=EACH_POSTGRES)
def empty_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of its own."""
    dsn = request.getfixturevalue(request.param)
    name = f"migrated{next(_DATABASES)}"
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"create database {name}")
        yield make_dsn(dsn, dbname=name)
        cursor.execute(f"drop database {name}")
    connection.close()


def test_the_migrated_schema_is_the_one_in_the_checkout(empty_dsn: str) -> None:
    """`python -m tests.ledger.schema_dump` renews schema.sql. Each migration is applied once:
    opening again changes nothing. A ledger that is newer is for a newer Lockstep to read, and a
    migration that was changed after it was applied made another schema."""
    applied = "select number, name, sha256, applied_at from lockstep.schema_migrations"
    open_ledger(empty_dsn, Path()).close()
    connection = psycopg2.connect(empty_dsn)
    try:
        assert dump(connection) == SCHEMA.read_text(encoding="utf-8")
    finally:
        connection.close()
    first = run(empty_dsn, applied)
    open_ledger(empty_dsn, Path()).close()
    assert run(empty_dsn, applied) == first
    assert [row[:3] for row in first] == [(m.number, m.name, m.sha256) for m in migrations()]
    run(empty_dsn, "insert into lockstep.schema_migrations values (9999, 'later', '')")
    with pytest.raises(LedgerNewer, match="9999"):
        open_ledger(empty_dsn, Path())
    run(empty_dsn, "delete from lockstep.schema_migrations where number = 9999")
    run(empty_dsn, "update lockstep.schema_migrations set sha256 = 'x'")
    with pytest.raises(LedgerRefused):
        open_ledger(empty_dsn, Path())


def test_a_ledger_of_the_first_schema_goes_on(empty_dsn: str) -> None:
    """What it holds is kept, and its batches keep the rules that came later."""
    target = LedgerAddress(empty_dsn, "a ledger of the first schema")
    connection = connect(target)
    migrate(target, connection, migrations()[:1])
    connection.close()
    run(empty_dsn, _FIRST_DATA.read_text(encoding="utf-8"))
    with open_ledger(empty_dsn, Path()) as ledger, ledger.lock("shop", "a test", None) as lease:
        kept = [BatchState.CAPTURED, BatchState.ABANDONED, BatchState.ACKNOWLEDGED]
        assert [batch.state for batch in ledger.batches("shop")] == kept
        batch = following(ledger, lease)
        xa = prepared(batch, b"a")
        ledger.record_capture(lease, batch.id, replace(record(batch), prepared=(xa,)))
        assert ledger.open_prepared("shop") == [xa]
        ledger.abandon(lease, newest(ledger, lease).id, "damaged")
        assert ledger.open_prepared("shop") == []


def test_a_ledger_of_the_second_schema_goes_on(empty_dsn: str) -> None:
    """A batch follows its predecessor, and a start decision tells behind which batch it
    went on, also one that came to nothing or whose batch was abandoned."""
    target = LedgerAddress(empty_dsn, "a ledger of the second schema")
    connection = connect(target)
    migrate(target, connection, migrations()[:2])
    connection.close()
    for data in (_FIRST_DATA, _SECOND_DATA):
        run(empty_dsn, data.read_text(encoding="utf-8"))
    with open_ledger(empty_dsn, Path()) as ledger, ledger.lock("shop", "a test", None) as lease:
        batches = ledger.batches("shop")
        chain = [
            (batch.id, batch.follows)
            for batch in batches
            if batch.state is not BatchState.ABANDONED
        ]
        assert chain == [(6, 4), (4, 3), (3, 1), (1, None)]
        assert all(batch.follows == batch.predecessor for batch in batches)
        facts = [decision.decision.facts for decision in ledger.decisions("shop")]
        assert [fact.get("after") for fact in facts] == [4, 4, 4, 3, None]
        cursor = ledger.captured_cursor("shop")
        assert cursor is not None
        assert (cursor.batch, cursor.by_gtid, cursor.lapsed) == (6, False, False)
        assert ledger.lineage("shop") == ServerLineage((Reign("uuid", 1),))
        assert (ledger.gaps("shop"), ledger.open_override("shop")) == ([], None)
        scopes = ledger.capture_scopes("shop")
        assert [(scope.batch, scope.begins) for scope in scopes] == [(4, "binlog.000001:204")]
        gap = Decision("start", "chosen-start", "x", {}, "ada", 6, Continuity.GAP, ("shop.a",))
        decided = ledger.decide(lease, gap)
        ledger.begin_batch(lease, position(4, 3), predecessor=None, start_decision=decided.id)
        assert [one.begin for one in ledger.gaps("shop")] == ["binlog.000001:404"]


def test_a_ledger_of_the_fourth_schema_goes_on(empty_dsn: str) -> None:
    """Versions are read back as schemas, whichever batch has them now; a table that is quarantined
    stopped where the log says, or behind its last changes."""
    target = LedgerAddress(empty_dsn, "a ledger of the fourth schema")
    connection = connect(target)
    for upto, data in ((1, _FIRST_DATA), (2, _SECOND_DATA), (4, _FOURTH_DATA)):
        migrate(target, connection, migrations()[:upto])
        run(empty_dsn, data.read_text(encoding="utf-8"))
    connection.close()
    with open_ledger(empty_dsn, Path()) as ledger, ledger.lock("shop", "a test", None) as lease:
        last, live, abandoned, *_ = [batch.id for batch in ledger.batches("shop")]
        assert abandoned < live < last
        versions = ledger.newest_schemas("shop")
        assert [(str(version.since), version.batch) for version in versions] == [
            ("binlog.000001:450", live),
            ("binlog.000001:480", live),
        ]
        assert ledger.has_history("shop") is False
        for one in versions:
            assert one.schema is not None
            assert one.structure == TableStructure(
                one.table,
                (
                    Column("id", "int", nullable=False, unsigned=True),
                    Column("note", "text", length=2, charset="utf8mb4"),
                ),
                ("id",),
            )
        states = ledger.table_states("shop")
        assert [
            (str(name), one.stopped, one.behind, one.mirror_version) for name, one in states.items()
        ] == [
            ("shop.orders", Stopped(last, place(550)), last, 1),
            ("shop.stock", Stopped(live, place(504)), live, None),
        ]
        for name in states:
            ledger.release_table(lease, name, author="ada", reason="Lockstep follows it now")
        assert [order.stopped for order in ledger.open_orders("shop")] == [
            state.stopped for state in states.values()
        ]


_CHAIN = """
create function pg_temp.follow(a_source text) returns void language sql as $$
    insert into lockstep.sources (name, token) values (a_source, 1);
    insert into lockstep.leases (source, token, holder, backend_pid) values (a_source, 1, 'x', 1);
    insert into lockstep.decisions (source, token, kind, rule, reason, facts, author, decided_at)
    values (a_source, 1, 'start', 'x', 'x', '{"tables": {"include": ["shop.*"], "exclude": []}}',
            'x', now() - interval '1 minute');
$$;
create function pg_temp.capture(a_source text, a_start integer, a_gtid text, a_moment timestamptz,
    how_many bigint)
returns void language sql as $$
    insert into lockstep.batches (source, state, predecessor, start_decision, base, token,
        start_base, start_number, start_offset, start_gtid_set, start_server_uuid)
    select a_source, 'capturing', max(id), case when count(*) = 0
        then (select min(d.id) from lockstep.decisions d where d.source = a_source) end,
        0, 1, 'binlog', 1, a_start, '', 'uuid'
    from lockstep.batches where source = a_source;
    update lockstep.batches set state = 'captured', captured_at = clock_timestamp(),
        end_base = 'binlog', end_number = 1, end_offset = a_start + 100, end_gtid_set = '',
        end_server_uuid = 'uuid', end_committed_at = a_moment, transactions = how_many,
        witness_offset = 1, witness_length = 1, witness_crc32 = 1, witness_gtid = a_gtid,
        witness_file_created = 1
    where state = 'capturing'
$$;
"""
_MOMENT = "2026-11-01T06:00:00.123456Z"


def test_what_older_ledgers_kept_is_a_witness_and_a_scope(empty_dsn: str) -> None:
    """The last transaction of a batch with its commit time, not one of whole seconds, nor of
    a batch that read none; and the patterns of the decision before it."""
    target = LedgerAddress(empty_dsn, "a ledger of the tenth schema")
    connection = connect(target)
    migrate(target, connection, migrations()[:10])
    connection.close()
    captures = (
        ("shop", 4, f"{SERVER}:7", _MOMENT, 3),
        ("shop", 104, "0-1-5", _MOMENT, 3),
        ("shop", 204, f"{SERVER}:9", "2026-11-01T06:00:01Z", 3),
        ("shop", 304, f"{OTHER}:1", _MOMENT, 0),
    )
    calls = ";".join(f"select pg_temp.capture{capture}" for capture in captures)
    run(empty_dsn, _CHAIN + "select pg_temp.follow('shop');" + calls)
    with open_ledger(empty_dsn, Path()) as ledger:
        assert ledger.set_witnesses("shop", 4) == [SetWitness(f"{SERVER}:7", 1793512800123456)]
        [scope] = ledger.capture_scopes("shop")
        assert (scope.batch, scope.patterns) == (1, TablePatterns(("shop.*",)))


_OWED = {
    "a": ("the next run reads it from the source", "batch 3", Remedy.RESNAPSHOT),
    "b": ("the next run reads its new columns from the source", "x:4", Remedy.BACKFILL),
    "c": ("a key; a release reads it from the source", "x:4", Remedy.RELEASED_RESNAPSHOT),
    "d": ("make room", "batch 3", Remedy.REWRITE_MIRROR),
    "e": ("exclude it", "x:4", Remedy.CATCH_UP),
}


def test_what_tables_are_owed_is_carried_over_from_sentences(empty_dsn: str) -> None:
    """Ledgers of before said it in a hint's words and in a position."""
    target = LedgerAddress(empty_dsn, "a ledger of the tenth schema")
    connection = connect(target)
    migrate(target, connection, migrations()[:10])
    connection.close()
    rows = ", ".join(
        f"('shop', 'shop', '{name}', 'quarantined', 1, 'm', 'c', 'why', '{hint}', '{place}')"
        for name, (hint, place, _) in _OWED.items()
    )
    run(
        empty_dsn,
        "insert into lockstep.sources (name) values ('shop'); insert into lockstep.table_states "
        "(source, database, name, condition, generation, mirror, changelog, reason, hint, position)"
        f" values {rows}, ('shop', 'shop', 'f', 'active', 1, 'm', 'c', null, null, null)",
    )
    with open_ledger(empty_dsn, Path()) as ledger:
        states = ledger.table_states("shop")
        found = {name.name: state.remedy for name, state in states.items()}
    assert found == {"f": None} | {name: remedy for name, (_, _, remedy) in _OWED.items()}


_REFUSED, _FAILED, _IDLE = AttemptOutcome.REFUSED, AttemptOutcome.FAILED, AttemptOutcome.IDLE
_ENDED = (
    ("start", "resume-same-server", '{"head": "x.000001:4"}', None),
    ("refusal", "position-purged", '{"hint": "restore it"}', (_REFUSED, 5, "restore it", None)),
    ("failure", "AccessDenied", '{"hint": "grant it"}', (_FAILED, 2, "grant it", None)),
    ("failure", "DamagedEvent", '{"hint": null}', (_FAILED, 5, "", None)),
    ("failure", "CommitConflict", '{"hint": "again"}', (_FAILED, 3, "again", None)),
    ("failure", "NobodyKnowsIt", "{}", (_FAILED, 3, "", None)),
    ("idle", "nothing-to-do", '{"head": "x.y.000012:4567"}', (_IDLE, 0, "", "x.y.000012:4567")),
    ("idle", "nothing-to-do", '{"head": "x.2147483647:4"}', (_IDLE, 0, "", "x.2147483647:4")),
    ("idle", "nothing-to-do", '{"head": "x.12:4"}', (_IDLE, 0, "", None)),
    ("idle", "nothing-to-do", '{"head": "x.000012"}', (_IDLE, 0, "", None)),
    ("idle", "nothing-to-do", "{}", (_IDLE, 0, "", None)),
)
"""Kind, rule and facts as older ledgers kept them; and the values in their place."""


def test_how_attempts_ended_is_carried_over_from_names_and_facts(empty_dsn: str) -> None:
    """Ledgers of before said it in the name of an error and in facts; those stay as they are."""
    before = _ledger_of_before(empty_dsn, {"shop": [ended[:3] for ended in _ENDED]})
    with open_ledger(empty_dsn, Path()) as ledger:
        attempts = ledger.attempts("shop")
        found = [
            (
                one.outcome,
                0 if one.recovery is None else one.recovery.exit_code,
                one.hint,
                None if one.head is None else str(one.head),
            )
            for one in reversed(attempts)
        ]
        assert found == [values for *_, values in _ENDED if values is not None]
        assert [one.reason for one in attempts] == ["why"] * len(attempts)
        with ledger.lock("shop", "a test", None) as lease:
            ledger.decide(lease, Decision("idle", "x", "x", head=place(4)))
    assert run(empty_dsn, _SHOWN)[:-1] == before


_AWAY = SourceUnavailable("MySQL cannot be reached", hint="start it")
_NOW = datetime(2026, 11, 1, 7, tzinfo=UTC)
_SINCE = "since 2026-11-01 06:00:00 UTC"
_SAYS = (
    ("refusal", "position-purged", "restore it", 5, f"1 attempt failed {_SINCE}: why"),
    ("failure", "AccessDenied", "grant it", 2, f"1 attempt failed {_SINCE}: why"),
    ("failure", "CommitConflict", "again", 3, f"{_AWAY.message} (1 failed {_SINCE})"),
    ("idle", "nothing-to-do", "", 3, _AWAY.message),
)


def test_status_says_of_an_older_ledger_what_it_said(empty_dsn: str) -> None:
    """What failed last, whose move it is and what to do; and since when nothing was behind."""
    facts = {rule: {"hint": hint, "head": "binlog.000001:104"} for _, rule, hint, *_ in _SAYS}
    ended = {rule: [(kind, rule, json.dumps(facts[rule]))] for kind, rule, *_ in _SAYS}
    _ledger_of_before(empty_dsn, ended)
    with open_ledger(empty_dsn, Path()) as ledger:
        for kind, source, hint, code, sentence in _SAYS:
            standing = stand(source, TablePatterns(("shop.*",)), ledger, _AWAY, _NOW)
            told = verdict(standing, _NOW, None)
            assert (told.sentence, exit_code(standing, _NOW, None)) == (sentence, code)
            assert told.hint == (_AWAY.hint if code == 3 else hint)
            assert standing.lag.seconds == (3600.0 if kind == "idle" else 2 * 3600.0)


_SHOWN = (
    "select id, kind, rule, reason, facts, author, decided_at from lockstep.decisions order by id"
)


def _ledger_of_before(
    dsn: str, decisions: dict[str, list[tuple[str, str, str]]]
) -> list[tuple[object, ...]]:
    """One of migration 0033 with an acknowledged batch of each source, and these decisions of it
    since, a second after each other."""
    target = LedgerAddress(dsn, "a ledger of the thirty-third schema")
    connection = connect(target)
    migrate(target, connection, migrations()[:33])
    connection.close()
    rows = ", ".join(
        f"('{source}', 1, '{kind}', '{rule}', 'why', '{facts}', 'x',"
        f" '2026-11-01 06:00:00Z'::timestamptz + interval '{number} s')"
        for source, several in decisions.items()
        for number, (kind, rule, facts) in enumerate(several)
    )
    captures = "".join(
        f"select pg_temp.follow('{source}');"
        f"select pg_temp.capture('{source}', 4, '', '2026-11-01 05:00:00Z', 3);"
        for source in decisions
    )
    run(
        dsn,
        _CHAIN
        + captures
        + "update lockstep.batches set state = 'merged', merged_at = '2026-11-01 05:01:00Z';"
        "update lockstep.batches set state = 'acknowledged',"
        " acknowledged_at = '2026-11-01 05:02:00Z';"
        "insert into lockstep.decisions (source, token, kind, rule, reason, facts, author,"
        f" decided_at) values {rows}",
    )
    return run(dsn, _SHOWN)


@pytest.mark.parametrize("number", kept())
def test_a_ledger_that_a_version_left_behind_goes_on(empty_dsn: str, number: int) -> None:
    """Every row of it is there, says what it said, and the next run takes it up: what was cut
    off is abandoned, what waited is merged, a batch goes on where the last one ended."""
    connection = connect(LedgerAddress(empty_dsn, "a ledger that was kept"))
    migrate(LedgerAddress(empty_dsn, "a ledger that was kept"), connection, migrations()[:number])
    connection.close()
    run(empty_dsn, kept()[number].read_text(encoding="utf-8"))
    with open_ledger(empty_dsn, Path()) as ledger:
        _stands_as_it_was_left(ledger)
        with ledger.lock("shop", "a test", None) as lease:
            _taken_up(ledger, lease)


def _stands_as_it_was_left(ledger: PostgresLedger) -> None:
    cut_off, chosen, abandoned, caught_up, second, first = ledger.batches("shop")
    states = [one.state.value for one in (first, second, caught_up, abandoned, chosen, cut_off)]
    assert states == [
        *("acknowledged", "captured", "captured", "abandoned", "captured", "capturing")
    ]
    assert [one.catches_up for one in (second, caught_up, chosen)] == [False, True, False]
    assert (caught_up.start, caught_up.end) == (second.start, second.end)
    assert ledger.pending("shop") == {ORDERS: [caught_up.id], STOCK: [second.id]}
    [intent] = ledger.open_intents("shop")
    assert (intent.table, intent.first_batch) == (ORDERS, caught_up.id)
    states_of = ledger.table_states("shop")
    assert [(str(name), one.remedy) for name, one in states_of.items()] == [
        ("shop.orders", None),
        ("shop.sales", Remedy.BACKFILL),
        ("shop.stock", None),
    ]
    assert states_of[SALES].stopped == Stopped(second.id, place(120))
    [gap] = ledger.gaps("shop")
    assert (gap.batch, gap.open_tables) == (chosen.id, ("shop.orders", "shop.stock"))
    assert ledger.open_override("shop") is None
    [scope] = ledger.capture_scopes("shop")
    assert (scope.batch, scope.patterns) == (first.id, TablePatterns(("shop.*",)))
    assert [witness.gtid for witness in ledger.set_witnesses("shop", first.id)] == [f"{SERVER}:7"]
    assert [one.table for one in ledger.partial("shop")] == [ORDERS, STOCK]
    [still] = ledger.open_prepared("shop")
    assert (still.xid.gtrid, still.batch) == (b"open", first.id)
    assert ledger.looked("shop") == {"s/shop/orders": 4}
    assert [(one.recovery, one.hint) for one in ledger.attempts("shop")] == [
        (Recovery.RETRY, ""),
        (Recovery.CONFIGURATION, HINT),
    ]
    assert [(one.outcome.value, one.head) for one in ledger.attempts("till")] == [
        ("idle", None)
    ] * 2
    [consumer] = ledger.consumers.consumers("shop")
    [out] = ledger.consumers.deliveries_out("shop", consumer.name)
    assert (consumer.name, out.batches) == ("billing", (first.id,))
    cursor = ledger.acknowledged_cursor("shop")
    assert cursor is not None
    assert (cursor.batch, cursor.by_gtid) == (first.id, True)
    till = ledger.captured_cursor("till")
    assert till is not None
    assert (till.by_gtid, till.lapsed) == (False, True)


def _taken_up(ledger: PostgresLedger, lease: Lease) -> None:
    cut_off, chosen, _, caught_up, second, _ = ledger.batches("shop")
    ledger.abandon(lease, cut_off.id, "cut off")
    [intent] = ledger.open_intents("shop")
    ledger.settle(lease, intent, 5)
    merged(ledger, lease, STOCK, second.id, second.id, 6)
    assert ledger.mark_merged(lease) == [second.id, caught_up.id, chosen.id]
    for batch in (second, caught_up, chosen):
        ledger.acknowledge(lease, batch.id)
    assert ledger.pending("shop") == {}
    batch = following(ledger, lease)
    assert batch.id > cut_off.id
    assert (batch.start, batch.predecessor) == (chosen.end, chosen.id)
    ledger.release_table(lease, SALES, author="ada", reason="it is followed now")
    made = record(batch, ORDERS, STOCK, end=position(600, 3))
    ledger.record_capture(lease, batch.id, made)
    assert newest(ledger, lease).changes == 20


def test_batches_of_before_may_still_be_abandoned(empty_dsn: str) -> None:
    """What each of them changed of a table is taken back alone, newest first: dropped tables
    are there again, an order that was carried out is open, who was quarantined stopped where the
    batch began."""
    connection = connect(LedgerAddress(empty_dsn, "a ledger that was kept"))
    migrate(LedgerAddress(empty_dsn, "a ledger that was kept"), connection, migrations()[:19])
    connection.close()
    run(empty_dsn, kept()[19].read_text(encoding="utf-8"))
    with open_ledger(empty_dsn, Path()) as ledger, ledger.lock("mill", "a test", None) as lease:
        newer, older, first = ledger.batches("mill")
        assert _lives(ledger) == ["dropped", "quarantined", "dropped"]
        ledger.abandon(lease, newer.id, "damaged")
        assert _lives(ledger) == ["active", "quarantined", "dropped"]
        assert ledger.table_states("mill")[SALES].stopped == Stopped(newer.id, newer.start.at)
        assert ledger.open_orders("mill") == []
        ledger.abandon(lease, older.id, "damaged")
        assert _lives(ledger) == ["paused", "quarantined", "active"]
        [order] = ledger.open_orders("mill")
        assert (order.table, order.kind) == (ORDERS, OrderKind.RESUME)
        assert order.stopped == Stopped(first.id, place(104))


def _lives(ledger: PostgresLedger) -> list[str]:
    """Of orders, sales and stock."""
    return [state.condition.value for state in ledger.table_states("mill").values()]


def test_several_processes_may_open_a_new_ledger_at_once(empty_dsn: str) -> None:
    """One migrates, the others wait for it."""
    with ThreadPoolExecutor(8) as threads:
        for opened in [threads.submit(open_ledger, empty_dsn, Path()) for _ in range(8)]:
            opened.result().close()
    ((applied,),) = run(empty_dsn, "select count(*) from lockstep.schema_migrations")
    assert applied == len(migrations())
