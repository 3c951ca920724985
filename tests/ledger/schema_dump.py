"""The migrated schema as text, the same on every Postgres from 13 on.

`schema.sql` is this text, for reading and for noticing a change; migrations make the
schema. Renew it by `python -m tests.ledger.schema_dump`, which migrates an
embedded server in a temporary folder. Does not belong here: applying anything.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from psycopg2.extensions import connection as Connection

from resources.postgres.connection import LedgerAddress, connect
from resources.postgres.embedded import EmbeddedServer
from resources.postgres.migrate import migrate

SCHEMA = Path(__file__).with_name("schema.sql")

_HEADING = "-- The ledger's schema, made by its migrations; see schema_dump.py."

# Catalogue names come before text that only some versions print: not-null constraints
# are a column's property before Postgres 18 and rows of pg_constraint since.
_COLUMNS = """
select c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
    || case when a.attnotnull then ' not null' else '' end
    || case when a.attidentity = 'a' then ' generated always as identity' else '' end
    || case a.attgenerated when 's' then ' generated always as (' else '' end
    || case when d.adbin is null then '' when a.attgenerated = '' then ' default ' else '' end
    || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
    || case a.attgenerated when 's' then ') stored' else '' end
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'lockstep'::regnamespace and c.relkind = 'r'
order by c.relname collate "C", a.attnum
"""

_CONSTRAINTS = """
select c.relname, k.conname, pg_get_constraintdef(k.oid)
from pg_constraint k join pg_class c on c.oid = k.conrelid
where k.connamespace = 'lockstep'::regnamespace and k.contype in ('c', 'f', 'p', 'u', 'x')
order by c.relname collate "C", k.conname collate "C"
"""

_OTHERS = """
select 1, relname::text, pg_get_indexdef(c.oid) || ';' from pg_class c
where c.relnamespace = 'lockstep'::regnamespace and c.relkind = 'i'
  and not exists (select from pg_constraint k where k.conindid = c.oid)
union all
select 2, relname::text, 'create sequence lockstep.' || relname || ';' from pg_class c
where c.relnamespace = 'lockstep'::regnamespace and c.relkind = 'S'
  and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')
union all
select 3, relname::text, 'create view lockstep.' || relname || ' as' || e'\\n'
    || pg_get_viewdef(c.oid) from pg_class c
where c.relnamespace = 'lockstep'::regnamespace and c.relkind = 'v'
union all
select 4, p.proname::text, rtrim(pg_get_functiondef(p.oid), e'\\n') || ';' from pg_proc p
where p.pronamespace = 'lockstep'::regnamespace
union all
select 5, c.relname || t.tgname, pg_get_triggerdef(t.oid) || ';'
from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relnamespace = 'lockstep'::regnamespace and not t.tgisinternal
"""


def dump(connection: Connection) -> str:
    """Tables, indexes, sequences, views, functions, triggers, each kind by name."""
    tables: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS)
        for table, column, text in cursor.fetchall():
            tables.setdefault(table, []).append(f"    {column} {text}")
        cursor.execute(_CONSTRAINTS)
        for table, constraint, text in cursor.fetchall():
            tables[table].append(f"    constraint {constraint} {text}")
        cursor.execute(_OTHERS)
        others = [text for *_, text in sorted(cursor.fetchall())]
    connection.rollback()
    made = [
        f"create table lockstep.{name} (\n" + ",\n".join(lines) + "\n);"
        for name, lines in tables.items()
    ]
    return "\n\n".join([_HEADING, *made, *others]) + "\n"


def write_dump(
    path: Path,
    dump: Callable[[Connection], str],
    fill: Callable[[LedgerAddress], None] | None = None,
) -> None:
    """Write what `dump` says of a new ledger on a temporary server, `fill`ed before."""
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedServer(Path(folder))
        try:
            target = LedgerAddress(server.dsn, "a temporary server")
            with closing(connect(target)) as connection:
                migrate(target, connection)
                if fill is not None:
                    fill(target)
                path.write_text(dump(connection), encoding="utf-8")
        finally:
            server.close()
    sys.stderr.write(f"{path} written\n")


def main() -> None:
    """Write schema.sql anew."""
    write_dump(SCHEMA, dump)


if __name__ == "__main__":
    main()
