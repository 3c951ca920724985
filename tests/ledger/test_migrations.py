"""How the ledger's schema comes to be, is upgraded, and what it refuses to touch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from lockstep.pipeline.values.errors import LedgerNewer, LedgerRefused
from lockstep.resources.postgres.connection import LedgerAddress, connect
from lockstep.resources.postgres.ledger import Migration, migrate, migrations, open_ledger
from tests.ledger.made import ORDERS, first_captured, newest
from tests.ledger.servers import EACH_POSTGRES, run

_DATABASES = count(1)
_APPLIED = "select number, name, sha256, applied_at from lockstep.schema_migrations order by 1"


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


def test_a_ledger_is_upgraded_once(empty_dsn: str) -> None:
    """A later version applies what is outstanding to a ledger that is in use, and nothing again; an
    earlier one then refuses it."""
    target = LedgerAddress(empty_dsn, "a ledger that is upgraded")
    later = Migration(9999, "later", "alter table lockstep.batches add column later text")
    with open_ledger(empty_dsn, Path()) as ledger, ledger.lock("shop", "a test", None) as lease:
        batch = first_captured(ledger, lease, ORDERS)
    first = run(empty_dsn, _APPLIED)
    assert [row[:3] for row in first] == [(m.number, m.name, m.sha256) for m in migrations()]
    for _ in range(2):
        with closing(connect(target)) as connection:
            migrate(target, connection, (*migrations(), later))
    applied = run(empty_dsn, _APPLIED)
    assert applied[:-1] == first
    assert applied[-1][:3] == (9999, "later", later.sha256)
    with pytest.raises(LedgerNewer, match="9999"):
        open_ledger(empty_dsn, Path())
    run(empty_dsn, "delete from lockstep.schema_migrations where number = 9999")
    with open_ledger(empty_dsn, Path()) as ledger, ledger.lock("shop", "a test", None) as lease:
        assert newest(ledger, lease) == batch


def test_a_migration_that_was_changed_is_refused(empty_dsn: str) -> None:
    """The ledger was made by another one than this version has."""
    open_ledger(empty_dsn, Path()).close()
    run(empty_dsn, "update lockstep.schema_migrations set sha256 = 'x'")
    with pytest.raises(LedgerRefused, match="differs from this version's"):
        open_ledger(empty_dsn, Path())


def test_several_processes_may_open_a_new_ledger_at_once(empty_dsn: str) -> None:
    """One migrates, the others wait for it."""
    with ThreadPoolExecutor(8) as threads:
        for opened in [threads.submit(open_ledger, empty_dsn, Path()) for _ in range(8)]:
            opened.result().close()
    ((applied,),) = run(empty_dsn, "select count(*) from lockstep.schema_migrations")
    assert applied == len(migrations())
