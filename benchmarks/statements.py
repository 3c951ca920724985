"""The SQL of the engine's workloads: columns, the values of row `n`, and procedures that fill
tables."""

from __future__ import annotations

from benchmarks.ground import DATABASE

MIXED_TABLES = 20
MIXED_STANDING = 1_000
"""Number of rows that every mixed table has at first. Updates change these, deletes later ones."""

NARROW = "(id int primary key, a bigint, b decimal(12,2), c varchar(20), d datetime(3), e double)"
NARROW_VALUES = "n, n * 7, n / 3, concat('row ', n), '2026-01-01' + interval n second, n / 7e0"

WIDE = """(
  id int primary key, trip bigint, vendor tinyint, passengers tinyint unsigned, rate_code smallint,
  zone_from int, zone_to int, picked_up datetime(6), dropped_off datetime(6),
  booked_at timestamp null, day date, distance double, heading double,
  store_and_forward char(1), payment varchar(16), licence varchar(12), company varchar(40),
  note varchar(60),
  fare decimal(8,2), extra decimal(6,2), tax decimal(6,2), tip decimal(8,2), tolls decimal(8,2),
  improvement decimal(4,2), total decimal(10,2), congestion decimal(6,3), airport decimal(5,2),
  rate decimal(12,6), longitude decimal(9,6), exact decimal(18,9)
)"""
WIDE_VALUES = """
  n, n * 1000003, n % 3, n % 7, n % 300, n % 263, (n * 17) % 263,
  '2026-01-01' + interval n * 1000037 microsecond,
  '2026-01-01 00:20:00' + interval n * 1000039 microsecond,
  '2026-01-01' + interval n second, date('2026-01-01') + interval n % 365 day,
  n / 977e0, n % 360 / 7e0, if(n % 50, 'N', 'Y'), elt(1 + n % 4, 'card', 'cash', 'dispute', 'none'),
  concat('T', n % 99991), concat('Company number ', n % 57), if(n % 5, null, concat('note ', n)),
  n % 10007 / 100, n % 700 / 100, n % 50 / 100, -(n % 3001) / 100, n % 997 / 100,
  1.00, n % 100003 / 100, n % 2753 / 1000, if(n % 9, null, 1.75),
  n % 1000003 / 1000, -73.9 - n % 100000 / 1000000, n * 1.000000007"""

DOCUMENT = "(id int primary key, document json)"
DOCUMENT_VALUES = """
  n, concat('{"order": ', n, ', "state": "', elt(1 + n % 3, 'paid', 'shipped', 'returned'),
  '", "customer": {"id": ', n * 7, ', "name": "Customer ', n, '", "email": "customer', n,
  '@example.com", "vip": ', if(n % 4, 'false', 'true'), ', "phone": null}, "total": ',
  n % 9973, '.', 10 + n % 89, ', "currency": "EUR", "lines": [{"sku": "A-', n % 1009,
  '", "name": "A thing of beauty", "count": ', 1 + n % 5, ', "price": ', n % 97,
  '.25}, {"sku": "B-', n % 2003, '", "name": "Joy for ever", "count": 1, "price": ', n % 89,
  '.5, "gift": true}], "tags": ["web", "summer", "', n % 13,
  '"], "address": {"street": "Long Street ', n % 301, '", "city": "Harbour", "zip": "',
  10000 + n % 89999, '", "location": [', n % 90, '.', n % 9973, ', -', n % 180, '.', n % 9967,
  ']}, "discount": null, "weight": 0.', 1 + n % 997, '}')"""
"""Made as text, so that its fractions are doubles, as an application's are."""


def single_procedure(table: str) -> str:
    """Return `fill_single(count)`, which inserts rows into `table`, each in its own transaction."""
    return f"""
create procedure {DATABASE}.fill_single(count int)
begin
  declare n int default 1;
  while n <= count do
    insert into {DATABASE}.{table} select {NARROW_VALUES};
    set n = n + 1;
  end while;
end"""


def mixed_tables() -> tuple[str, ...]:
    """Return the names of the tables that `fill_mixed` writes to."""
    return tuple(f"mixed_{number}" for number in range(MIXED_TABLES))


def mixed_procedure() -> str:
    """Return `fill_mixed(count, out changed)`, which makes transactions of 1 to 5 statements of
    one row each: about half are inserts, the rest updates and deletes, each on a table that a
    hash selects. `changed` counts the rows. A delete that finds no row inserts one instead."""
    branches = "\n".join(
        f"when {number} then {_change(f'{DATABASE}.{table}')}"
        for number, table in enumerate(mixed_tables())
    )
    return f"""
create procedure {DATABASE}.fill_mixed(count int, out changed int)
begin
  declare t int default 1;
  declare s int;
  declare n int;
  declare hash int unsigned;
  set changed = 0;
  while t <= count do
    set s = 1 + crc32(t) % 5;
    start transaction;
    while s > 0 do
      set hash = crc32(concat(t, '/', s));
      set n = {MIXED_STANDING} + t * 8 + s;
      case hash % {MIXED_TABLES}
      {branches}
      end case;
      set changed = changed + 1;
      set s = s - 1;
    end while;
    commit;
    set t = t + 1;
  end while;
end"""


def _change(table: str) -> str:
    """Return the statement that inserts, updates or deletes a row of `table`, as the variable
    `hash` says."""
    insert = f"insert into {table} select {NARROW_VALUES};"
    kind = f"(hash div {MIXED_TABLES}) % 10"
    return f"""
      if {kind} < 5 then
        {insert}
      elseif {kind} < 8 then
        update {table} set a = a + 1 where id = 1 + (hash div 1000) % {MIXED_STANDING};
      else
        delete from {table} where id > {MIXED_STANDING} order by id limit 1;
        if row_count() = 0 then
          {insert}
        end if;
      end if;"""
