"""Schema changes of the shop, in portions that happen between two runs while people shop. They
do not touch what purchases use, so that no purchase fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

CHANGES: Final[Sequence[tuple[str, ...]]] = (
    (
        "alter table customers add column tier varchar(10) not null default 'new'",
        "update customers set tier = 'old' where id % 3 = 0",
        "create table prices (sku varchar(20) primary key, price decimal(8, 2) not null)",
        "insert into prices select sku, 9.99 from stock",
    ),
    (
        "alter table customers rename column tier to standing",
        "alter table stock modify on_hand bigint not null",
        "update customers set standing = 'best' where id % 7 = 0",
    ),
    (
        "create table prices_new (sku varchar(20) primary key, price decimal(10, 3) not null, "
        "since datetime not null default current_timestamp)",
        "insert into prices_new (sku, price) select sku, price * 1.1 from prices",
        "rename table prices to prices_old, prices_new to prices",
        "drop table prices_old",
        "update prices set price = price + 1 where sku like '%1'",
    ),
)
"""Adds a column; renames and widens columns; replaces a table by a new one."""


class Cursor(Protocol):
    """The part of DB-API 2.0's cursor that this module uses."""

    def execute(self, statement: str) -> Any: ...


def rebuild(cursor: Cursor, portion: int) -> tuple[str, ...]:
    """Execute a portion; return its statements that change a structure."""
    for statement in CHANGES[portion]:
        cursor.execute(statement)
    changing = ("alter", "create", "rename", "drop")
    return tuple(change for change in CHANGES[portion] if change.startswith(changing))
