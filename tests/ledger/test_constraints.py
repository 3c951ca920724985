"""The database refuses by itself what code might forget: each rule, tried by plain SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import cursor as Cursor

from lockstep.pipeline.model.batch import Batch, EndedTransaction
from lockstep.pipeline.model.life import REFUSALS, UNEXPECTED_EVENT, UNKNOWN_TABLE
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused
from lockstep.resources.postgres import refusals
from lockstep.resources.postgres.connection import LedgerAddress, translate_errors
from lockstep.resources.postgres.ledger import open_ledger
from lockstep.resources.postgres.session import queries
from tests.ledger.made import (
    DECISION,
    ORDERS,
    STOCK,
    first_captured,
    following,
    intended,
    merged,
    prepared,
    record,
)
from tests.ledger.servers import EACH_POSTGRES

SOURCE = "the source of test_constraints"
_HERE = Path(__file__).parent
_, *_PARTS = re.split(r"^-- rule: (\w+)\n", (_HERE / "violations.sql").read_text(), flags=re.M)
ATTEMPTS = list(zip(_PARTS[::2], _PARTS[1::2], strict=True))

# Refused by the adapter: there is no row for the database to judge.
WITHOUT_ROW = {
    *("batches_known", "writes_known", "table_states_known", "prepared_known"),
    *("deliveries_known", "table_orders_known", "table_states_dropped", "table_states_anew"),
    *("table_states_life", "loads_known", "load_chunks_known", "revisions_known"),
}


@dataclass(frozen=True)
class Scene:
    cursor: Cursor
    names: dict[str, object]


@pytest.fixture(scope="module", params=EACH_POSTGRES)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    dsn = request.getfixturevalue(request.param)
    with open_ledger(dsn, Path()) as ledger:
        names = _chain(ledger)
    connection = psycopg2.connect(dsn)
    with connection.cursor() as cursor:
        cursor.execute((_HERE / "attempts.sql").read_text())
        connection.commit()
        yield Scene(cursor, names)
    connection.close()


def _chain(ledger: Ledger) -> dict[str, object]:
    """The source that violations.sql describes."""
    with ledger.lock(SOURCE, "a test", None) as lease:
        a = first_captured(ledger, lease, ORDERS, STOCK).id
        merged(ledger, lease, ORDERS, a, a, 2)
        merged(ledger, lease, STOCK, a, a, 3)
        b = following(ledger, lease)
        waiting = tuple(prepared(b, gtrid) for gtrid in (b"open", b"ended"))
        ledger.record_capture(lease, b.id, replace(record(b), prepared_transactions=waiting))
        ledger.mark_merged(lease)
        ledger.acknowledge(lease, a)
        c = _captured_with_xa(ledger, lease, b).id
        merged(ledger, lease, ORDERS, c, c, 4)
        intended(ledger, lease, STOCK, c, c)
        d = following(ledger, lease).id
        e = ledger.decide(lease, DECISION).id
    return {"s": SOURCE, "a": a, "b": b.id, "c": c, "d": d, "e": e}


def _captured_with_xa(ledger: Ledger, lease: Lease, b: Batch) -> Batch:
    batch = following(ledger, lease)
    recorded = record(batch, ORDERS, STOCK)
    ended = (EndedTransaction(prepared(b, b"ended"), committed=True),)
    ledger.record_capture(lease, batch.id, replace(recorded, ended_transactions=ended))
    return batch


def test_the_database_refuses(scene: Scene) -> None:
    """Each statement that breaks a rule is refused by that rule's name."""
    told = [(rule, _refusal(scene, attempt)) for rule, attempt in ATTEMPTS]
    assert [(rule, found) for rule, found in told if found != rule] == []


def _refusal(scene: Scene, attempt: str) -> str | None:
    """The rule that an attempt broke, or what became of it."""
    try:
        scene.cursor.execute(attempt, scene.names)
    except psycopg2.IntegrityError as refused:
        return refused.diag.constraint_name
    except psycopg2.Error as failed:
        return str(failed)
    finally:
        scene.cursor.connection.rollback()
    return "not refused"


_NAMED = """
select conname from pg_constraint
where connamespace = 'lockstep'::regnamespace and contype in ('c', 'f', 'p', 'u', 'x')
union
select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relnamespace = 'lockstep'::regnamespace and i.indisunique
union
select match[1] from (
    select prosrc from pg_proc where pronamespace = 'lockstep'::regnamespace
    union all
    select pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'lockstep'::regnamespace and not t.tgisinternal
) code (text),
regexp_matches(text, '(?:refuse|stays(?:_but)?|while_capturing)\\(''(\\w+)''', 'g') match
"""


def test_every_rule_has_an_attempt(scene: Scene) -> None:
    """The schema and the attempts name the same rules; a sentence is about one of them."""
    scene.cursor.execute(_NAMED)
    named = {name for (name,) in scene.cursor.fetchall()}
    tried = {rule for rule, _ in ATTEMPTS}
    # Keys made by the database, and targets of foreign keys over a primary key.
    made = {name for name in named if name.endswith(("_of_source",))} | {
        *("batches_pk", "batches_end", "decisions_pk", "segments_pk", "writes_pk"),
        *("prepared_pk", "sources_pk", "schema_migrations_pk"),
        *("consumers_pk", "deliveries_pk", "overrides_pk", "schema_statements_pk"),
        *("database_versions_pk", "snapshots_pk", "table_orders_pk", "extents_pk"),
        "table_versions_source",  # a version's batch is of its source already
    }
    assert named - made == tried
    assert {*refusals.ORDERS, *refusals.CONSUMERS} <= tried | WITHOUT_ROW


_LEFT_OUT = """
select k.conname from pg_constraint k
join pg_attribute a on a.attrelid = k.conrelid and a.attnum = any(k.conkey)
where k.connamespace = 'lockstep'::regnamespace and k.contype = 'f' and not a.attnotnull
group by k.conname
having count(*) > 1 or bool_or(a.attname in ('source', 'database', 'name'))
"""


def test_a_reference_is_left_out_by_one_column_alone(scene: Scene) -> None:
    """Postgres does not check a foreign key of which a column is null. A reference that may be left
    out has one such column, which says so; never is it the source or the table."""
    scene.cursor.execute(_LEFT_OUT)
    assert scene.cursor.fetchall() == []


_REFERRING = """
select c.relname || '.' || a.attname from pg_constraint k
join pg_class c on c.oid = k.conrelid
join pg_attribute a on a.attrelid = c.oid and a.attnum = any(k.conkey) and a.attname <> 'source'
where k.contype = 'f' and k.confrelid = %s::regclass and c.relname <> %s
"""
_LOOKED_AT = """
select c.relname || '.' || a.attname from pg_rewrite r
join pg_depend d on d.objid = r.oid and d.refclassid = 'pg_class'::regclass
join pg_class c on c.oid = d.refobjid
join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid and a.attname <> 'source'
where r.ev_class = %s::regclass and c.relname not like '%%\\_uses'
"""


@pytest.mark.parametrize(("kind", "chain"), [("batch", "batches"), ("lease", "")])
def test_whatever_refers_to_a_row_keeps_it(scene: Scene, kind: str, chain: str) -> None:
    """Before a batch or a lease goes, every foreign key to it is looked at, but for the chain's,
    and where tables stopped."""
    table = {"batch": "batches", "lease": "leases"}[kind]
    scene.cursor.execute(_REFERRING, (f"lockstep.{table}", chain))
    referring = {name for (name,) in scene.cursor.fetchall()}
    scene.cursor.execute(_LOOKED_AT, (f"lockstep.{kind}_uses",))
    looked_at = {name for (name,) in scene.cursor.fetchall()}
    assert looked_at == referring | ({"table_life.details"} if kind == "batch" else set())
    scene.cursor.connection.rollback()


def test_code_refuses_by_known_rules() -> None:
    """The adapter refuses by a rule that the schema does not have only where there is no row."""
    tried = {rule for rule, _ in ATTEMPTS}
    machine = {*REFUSALS.values(), UNKNOWN_TABLE, UNEXPECTED_EVENT}
    assert (_refused_by("resources/postgres") | machine) - tried == WITHOUT_ROW


def _refused_by(folder: str) -> set[str]:
    """The rules that the code of a folder names where it refuses."""
    found = set()
    for file in (_HERE.parents[1] / folder).glob("*.py"):
        for call in re.findall(r"(?:refusal|run_or_refuse)\((?:[^()\n]|\n)*", file.read_text()):
            found |= set(re.findall(r'"([a-z]+_[a-z_]+)"', call))
    return found - queries().keys()


def test_a_refusal_tells_the_triggers_words_and_no_values(scene: Scene) -> None:
    """A trigger's complaint is told; of a constraint only its name, because Postgres' own
    texts hold what was to be recorded."""
    for rule, complaint in (
        ("writes_stay", ": rows of writes are never changed or deleted (writes_stay)."),
        ("overrides_reasoned", ": (overrides_reasoned)."),
    ):
        with (
            pytest.raises(LedgerRefused) as refused,
            translate_errors(LedgerAddress("", "a server")),
        ):
            scene.cursor.execute(dict(ATTEMPTS)[rule], scene.names)
        scene.cursor.connection.rollback()
        assert refused.value.message == f"The ledger refused a step{complaint}"
