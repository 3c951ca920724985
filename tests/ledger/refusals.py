"""What a refused step has in common: the rule's name, and books that stay as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import psycopg2
import pytest
from psycopg2.extensions import connection as Connection

from pipeline.decisions import Lease
from pipeline.errors import LedgerRefused
from pipeline.ports.ledger import Ledger
from resources.postgres.ledger import PostgresLedger

_SAID = frozenset({"decisions", "leases", "overrides"})
"""Tables of what may be written before the step that is refused, and stays."""

_KEYS = """
select c.relname, min(a.attname::text) filter (where a.attname = 'source'),
       min(a.attname::text) filter (where a.attname <> 'source')
from pg_class c
join pg_attribute a on a.attrelid = c.oid
    and a.attname in ('source', 'load', 'revision', 'segment', 'snapshot')
where c.relnamespace = 'lockstep'::regnamespace and c.relkind = 'r'
group by c.relname
"""


@cache
def _connected(dsn: str) -> Connection:
    """A connection beside the ledger's, which knows the question for all rows of a source."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(_KEYS)
        parts = []
        for table, source, owner in cursor.fetchall():
            if table in _SAID or (source or owner) is None:
                continue
            whose = (
                "source = $1"
                if source
                else f"{owner} in (select id from lockstep.{owner}s where source = $1)"
            )
            parts.append(
                f"select '{table}', string_agg(t::text, e'\\n' order by t::text)"
                f" from lockstep.{table} t where {whose}"
            )
        cursor.execute(f"prepare books (text) as {' union all '.join(parts)}")
    return connection


def _rows(ledger: PostgresLedger, source: str) -> list[object]:
    """All that the database has of a source but who held it and what was said of it."""
    with _connected(ledger._session.target.dsn).cursor() as cursor:
        cursor.execute("execute books (%s)", [source])
        return list(cursor.fetchall())


def _books(ledger: Ledger, source: str) -> list[object]:
    if isinstance(ledger, PostgresLedger):
        return _rows(ledger, source)
    batches = ledger.batches(source)
    return [
        batches,
        [ledger.segments(batch.id) for batch in batches],
        [ledger.source_parts(batch.id) for batch in batches],
        [ledger.settled(source, batch.id) for batch in batches],
        [ledger.version_set(source, batch.id) for batch in batches],
        ledger.table_states(source),
        ledger.last_versions(source),
        ledger.newest_schemas(source),
        ledger.schema_statements(source),
        ledger.databases(source),
        [ledger.table_events(source, batch.id) for batch in batches],
        [ledger.snapshots(source, batch.id) for batch in batches],
        ledger.pending(source),
        ledger.open_loads(source),
        ledger.open_orders(source),
        ledger.open_intents(source),
        ledger.open_prepared(source),
        ledger.open_revision(source),
    ]


@contextmanager
def refused(ledger: Ledger, lease: Lease, rule: str) -> Iterator[None]:
    """The block is refused by this rule and the books are as before."""
    before = _books(ledger, lease.source)
    with pytest.raises(LedgerRefused, match=rf"\({rule}\)"):
        yield
    assert _books(ledger, lease.source) == before
