"""What a refused step has in common: the rule's name, and books that stay as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import psycopg2
import pytest
from psycopg2.extensions import connection as Connection

from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused
from lockstep.resources.postgres.ledger import PostgresLedger

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


def _rows(ledger: Ledger, source: str) -> list[object]:
    """All that the database has of a source but who held it and what was said of it."""
    assert isinstance(ledger, PostgresLedger)
    with _connected(ledger._session.address.dsn).cursor() as cursor:
        cursor.execute("execute books (%s)", [source])
        return list(cursor.fetchall())


@contextmanager
def refused(ledger: Ledger, lease: Lease, rule: str) -> Iterator[None]:
    """The block is refused by this rule and the books are as before."""
    before = _rows(ledger, lease.source)
    with pytest.raises(LedgerRefused, match=rf"\({rule}\)"):
        yield
    assert _rows(ledger, lease.source) == before
