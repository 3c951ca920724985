"""Ledgers as a version of Lockstep leaves them behind, kept for the versions to come.

`python -m tests.ledger.kept` tells the story below to a new embedded ledger and keeps all its
rows in `kept_NNNN.sql`, named by the newest migration; do so before the first migration behind
a release. Belongs here: the story and the dump. Does not: what must be true of it afterwards
(`test_migrations`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from psycopg2.extensions import connection as Connection

from pipeline.batch import Batch, BatchKind
from pipeline.consumers import DeliveryBounds
from pipeline.decisions import Decision, Lease
from pipeline.errors import Recovery, Remedy
from pipeline.position import ServerLife, SetWitness
from pipeline.schema.history import DatabaseVersion, History, SchemaStatement
from pipeline.schema.model import DatabaseSchema
from pipeline.segment import SegmentFile, SourcePart, SourceTable
from pipeline.table import TableName
from pipeline.table_state import (
    Extent,
    Quarantine,
    SnapshotPart,
    TableCondition,
    TableEvent,
    TableEventKind,
)
from pipeline.tables import TablePatterns
from resources.postgres.connection import LedgerAddress
from resources.postgres.ledger import PostgresLedger
from resources.postgres.migrate import migrations
from tests.ledger.made import (
    CONTIGUOUS,
    DECISION,
    GAP,
    MOMENT,
    ORDERS,
    SERVER,
    STOCK,
    begun,
    captured_elsewhere,
    elsewhere,
    first_captured,
    following,
    intended,
    merged,
    newest,
    place,
    prepared,
    record,
    segment,
    state,
    version,
)
from tests.ledger.schema_dump import write_dump

FOLDER = Path(__file__).parent
SALES = TableName("shop", "sales")
HINT = "give the account its privileges"
_FILE = SegmentFile("0.parquet", 5, 1000, "0" * 64)
_STATEMENT = SchemaStatement(
    begin=place(10),
    end=place(20),
    gtid=f"{SERVER}:5",
    committed_at=MOMENT,
    database="shop",
    text="create table sales (id int primary key)",
    outcome="followed",
    effects=("shop.sales is created",),
    context={"sql_mode": ["ANSI_QUOTES"]},
)


def kept() -> dict[int, Path]:
    """The ledgers that are kept, by their newest migration."""
    found = sorted(FOLDER.glob("kept_*.sql"))
    return {int(re.sub(r"\D", "", path.stem)): path for path in found}


def tell(ledger: PostgresLedger) -> None:
    """Three sources: `shop`, to which most happened that can, and which was cut off while it
    captured; `till`, whose server had its GTIDs switched off behind the last batch; `mill`,
    whose last two batches were captured and nothing more."""
    with ledger.lock("shop", "a run", "run-1") as lease:
        _first(ledger, lease)
        _acknowledged(ledger, lease)
        ledger.consumers.make_consumer("shop", "billing", "earliest")
        ledger.consumers.deliver("shop", "billing", DeliveryBounds())
        ledger.note_looked(lease, {"s/shop/orders": 4})
        _caught_up(ledger, lease)
        _failed(ledger, lease)
        _elsewhere(ledger, lease)
        following(ledger, lease)
    with ledger.lock("till", "a run", "run-2") as lease:
        batch = first_captured(ledger, lease)
        batch = following(ledger, lease)
        ledger.record_capture(lease, batch.id, replace(record(batch), by_gtid=True))
        _found_off(ledger, lease)
    with ledger.lock("mill", "a run", "run-3") as lease:
        _not_merged(ledger, lease)


def _first(ledger: PostgresLedger, lease: Lease) -> None:
    """Orders and stock are there already, sales come with the log."""
    batch = begun(ledger, lease)
    made = record(batch, ORDERS, STOCK, first=True)
    sales = replace(version(SALES, 1, 20), statement=0)
    made = replace(
        made,
        by_gtid=True,
        life=ServerLife(MOMENT, 0),
        tables=(*made.tables, state(SALES)),
        history=History(
            (_STATEMENT,),
            (*made.history.versions, sales),
            (DatabaseVersion("shop", place(4), DatabaseSchema("shop", "latin1", "latin1_bin")),),
        ),
        prepared=(prepared(batch, b"open", _FILE),),
        source_parts=(SourcePart(SourceTable.DDL, (_FILE,)),),
        extents=(Extent(ORDERS, place(4)), Extent(STOCK, place(4))),
        set_witnesses=(SetWitness(f"{SERVER}:7", 1793512800123456),),
        scope=TablePatterns(("shop.*",)),
    )
    ledger.record_capture(lease, batch.id, made)


def _acknowledged(ledger: PostgresLedger, lease: Lease) -> None:
    batch = newest(ledger, lease)
    for number, table in enumerate((ORDERS, STOCK), start=2):
        merged(ledger, lease, table, batch.id, batch.id, number)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)


def _caught_up(ledger: PostgresLedger, lease: Lease) -> None:
    """Orders are paused for a batch in which stock is read anew, and catch up; sales are
    quarantined."""
    ledger.pause_table(lease, ORDERS, author="ada", reason="a repair")
    batch = following(ledger, lease)
    made = record(batch, STOCK)
    ledger.record_capture(
        lease,
        batch.id,
        replace(
            made,
            by_gtid=True,
            events=(TableEvent(STOCK, TableEventKind.REREAD, batch.base, 1, place(110), "why"),),
            snapshots=(SnapshotPart(STOCK, 1, batch.base, (_FILE,)),),
            quarantined=(
                Quarantine(SALES, "why", "hint", str(place(120)), place(120), Remedy.BACKFILL),
            ),
        ),
    )
    order = ledger.resume_table(lease, ORDERS, author="ada", reason="it is repaired")
    again = _catching_up(ledger, lease)
    cursor = ledger.captured_cursor("shop")
    assert cursor is not None
    caught = replace(
        record(again, end=cursor.position),
        changes=10,
        segments=(segment(ORDERS, again.base + 1, again.base + 10),),
        orders_done=(order.id,),
        witness=cursor.witness,
        by_gtid=cursor.by_gtid,
    )
    ledger.record_capture(lease, again.id, caught)


def _catching_up(ledger: PostgresLedger, lease: Lease) -> Batch:
    before = newest(ledger, lease)
    return elsewhere(
        ledger, lease, before, CONTIGUOUS, start=before.start, kind=BatchKind.CATCHING_UP
    )


def _failed(ledger: PostgresLedger, lease: Lease) -> None:
    """A batch that came to nothing, and a run that did not begin."""
    batch = following(ledger, lease)
    ledger.abandon(lease, batch.id, "cut off")
    failed = Decision("failure", "AccessDenied", "the server refuses", {"hint": HINT})
    ledger.decide(lease, replace(failed, recovery=Recovery.CONFIGURATION, hint=HINT))
    ended = Decision("failure", "StreamEndedEarly", "it ended", {"hint": ""})
    ledger.decide(lease, replace(ended, recovery=Recovery.RETRY))


def _elsewhere(ledger: PostgresLedger, lease: Lease) -> None:
    """A start that a person chose, with a gap before it."""
    choice = ledger.choose_start(lease, place="x:4", reason="the disk was lost", author="ada")
    gap = replace(GAP, override=choice.id)
    batch = elsewhere(ledger, lease, newest_captured(ledger), gap)
    captured_elsewhere(ledger, lease, batch)
    waiting = ledger.pending("shop")[ORDERS]
    intended(ledger, lease, ORDERS, waiting[0], waiting[0])


def _not_merged(ledger: PostgresLedger, lease: Lease) -> None:
    """Orders were paused and come back in a batch that drops stock; sales are quarantined by the
    next one, in which orders are dropped."""
    _first(ledger, lease)
    _acknowledged(ledger, lease)
    ledger.pause_table(lease, ORDERS, author="ada", reason="a repair")
    order = ledger.resume_table(lease, ORDERS, author="ada", reason="it is repaired")
    batch = following(ledger, lease)
    made = replace(record(batch, ORDERS), orders_done=(order.id,))
    gone = replace(state(STOCK), condition=TableCondition.DROPPED, stopped=None)
    ledger.record_capture(lease, batch.id, replace(made, tables=(*made.tables, gone)))
    batch = following(ledger, lease)
    gone = replace(state(ORDERS), condition=TableCondition.DROPPED, stopped=None)
    quarantined = Quarantine(SALES, "why", "hint", str(place(220)), place(220), Remedy.BACKFILL)
    made = replace(record(batch), tables=(gone,), quarantined=(quarantined,))
    ledger.record_capture(lease, batch.id, made)


def _found_off(ledger: PostgresLedger, lease: Lease) -> None:
    ledger.note_gtids_off(lease)
    ledger.decide(lease, replace(DECISION, kind="idle", facts={"gtid_mode": "ON_PERMISSIVE"}))
    ledger.decide(lease, replace(DECISION, kind="idle", facts={"gtid_mode": "ON"}))


def newest_captured(ledger: PostgresLedger) -> Batch:
    return next(batch for batch in ledger.batches("shop") if batch.state.value == "captured")


_COLUMNS = """
select c.relname, array_agg(quote_ident(a.attname) order by a.attnum),
       max(a.attname) filter (where a.attidentity = 'a')
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = 'lockstep'::regnamespace and c.relkind = 'r' and a.attgenerated = ''
  and c.relname <> 'schema_migrations'
group by c.relname
order by c.relname collate "C"
"""


def dump(connection: Connection) -> str:
    """All rows, to be loaded into the empty tables of the same migration."""
    parts = ["set session_replication_role = replica;", "delete from lockstep.ledger;"]
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS)
        for table, columns, identity in cursor.fetchall():
            values = " || ', ' || ".join(f"quote_nullable({name}::text)" for name in columns)
            cursor.execute(f"select {values} from lockstep.{table} t order by 1")
            if found := [f"({row})" for (row,) in cursor.fetchall()]:
                names, rows = ", ".join(columns), ",\n".join(found)
                parts.append(
                    f"insert into lockstep.{table} ({names})\n"
                    f"overriding system value values\n{rows};"
                )
            if identity is not None:
                cursor.execute(
                    f"select last_value from pg_sequences where schemaname = 'lockstep'"
                    f" and sequencename = '{table}_{identity}_seq'"
                )
                ((last,),) = cursor.fetchall()
                if last is not None:
                    at = f"pg_get_serial_sequence('lockstep.{table}', '{identity}')"
                    parts.append(f"select setval({at}, {last});")
    connection.rollback()
    parts.append("select setval('lockstep.txn_versions', max(txn_version)) from lockstep.writes;")
    parts.append("set session_replication_role = default;")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Keep a ledger of this version."""
    write_dump(FOLDER / f"kept_{migrations()[-1].number:04d}.sql", dump, _fill)


def _fill(target: LedgerAddress) -> None:
    with PostgresLedger(target) as ledger:
        tell(ledger)


if __name__ == "__main__":
    main()
