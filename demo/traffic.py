"""The transactions of the shop's customers, chosen at random: the statements of each, and how
often it occurs. `shop` has the threads and connections, and commits."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

_NAMES = ("Ada Okafor", "Zoë Martin", "Łukasz Nowak", "山田 花子", "José Ibáñez", "Mia O'Neill")
_CITIES = ("Lagos", "Köln", "Łódź", "京都", "Cádiz", "Galway", None)
_STATUSES = ("paid", "sent", "returned")
ARTICLES = 40
_HOT_ARTICLES = 4
CUSTOMERS = 200


class Cursor(Protocol):
    """The part of DB-API 2.0's cursor that the shop uses (parameters as `%s`)."""

    @property
    def lastrowid(self) -> int | None: ...

    def execute(self, query: str, args: Sequence[object] = (), /) -> Any: ...

    def executemany(self, query: str, args: Sequence[Sequence[object]], /) -> Any: ...


def person(number: int) -> tuple[str, str | None, str | None]:
    """Return name, e-mail and city of a customer; the city may be NULL."""
    name = _NAMES[number % len(_NAMES)]
    return name, f"customer{number}@example.org", _CITIES[number % len(_CITIES)]


def article(number: int) -> str:
    """Return an article's number (SKU)."""
    return f"ART-{number:04d}"


class Errands:
    """Chooses the transactions of one customer. Each returns whether it is committed."""

    def __init__(self, chance: random.Random, number: int) -> None:
        self._chance = chance
        self._number = number
        self._orders: list[int] = []
        self._articles = 0

    def choose(self) -> Callable[[Cursor], bool]:
        errands = (
            (30, self._place),
            (4, self._change_mind),
            (20, self._advance),
            (12, self._change_quantity),
            (6, self._renumber),
            (6, self._cancel),
            (10, self._restock),
            (4, self._rename_article),
            (4, self._register),
            (4, self._move_house),
        )
        return self._chance.choices([e for _, e in errands], [weight for weight, _ in errands])[0]

    def _place(self, cursor: Cursor) -> bool:
        count = self._chance.randint(1, 4)
        lines = [
            (self._any_article(), self._chance.randint(1, 5), self._price()) for _ in range(count)
        ]
        total = sum((quantity * price for _, quantity, price in lines), Decimal(0))
        cursor.execute(
            "insert into orders (customer_id, status, total, placed_at)"
            " values (%s, 'placed', %s, now(3))",
            (self._chance.randint(1, CUSTOMERS), total),
        )
        order = cursor.lastrowid or 0
        cursor.executemany(
            "insert into order_lines (order_id, line_no, sku, quantity, price)"
            " values (%s, %s, %s, %s, %s)",
            [(order, number, *line) for number, line in enumerate(lines, 1)],
        )
        for article, quantity, _ in lines:
            cursor.execute(
                "update stock set on_hand = on_hand - %s where sku = %s", (quantity, article)
            )
        self._orders.append(order)
        return True

    def _change_mind(self, cursor: Cursor) -> bool:
        self._place(cursor)
        self._orders.pop()
        return False

    def _advance(self, cursor: Cursor) -> bool:
        status = self._chance.choice(_STATUSES)
        cursor.execute("update orders set status = %s where id = %s", (status, self._any_order()))
        return True

    def _change_quantity(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update order_lines set quantity = %s, price = %s where order_id = %s and line_no = 1",
            (self._chance.randint(1, 9), self._price(), self._any_order()),
        )
        return True

    def _renumber(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update order_lines set line_no = line_no + 10 where order_id = %s"
            " order by line_no desc limit 1",
            (self._any_order(),),
        )
        return True

    def _cancel(self, cursor: Cursor) -> bool:
        order = self._any_order()
        cursor.execute("delete from order_lines where order_id = %s", (order,))
        cursor.execute("delete from orders where id = %s", (order,))
        return True

    def _restock(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update stock set on_hand = on_hand + %s where sku = %s",
            (self._chance.randint(10, 50), self._any_article()),
        )
        return True

    def _rename_article(self, cursor: Cursor) -> bool:
        self._articles += 1
        mine = f"W{self._number}-{self._articles:05d}"
        cursor.execute("insert into stock (sku, on_hand) values (%s, 0)", (mine,))
        if self._articles > 1:
            before = f"W{self._number}-{self._articles - 1:05d}"
            cursor.execute("update stock set sku = %s where sku = %s", (f"{before}-OLD", before))
        return True

    def _register(self, cursor: Cursor) -> bool:
        cursor.execute(
            "insert into customers (name, email, city, created_at) values (%s, %s, %s, now(3))",
            person(self._chance.randrange(10_000)),
        )
        return True

    def _move_house(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update customers set city = %s, email = null where id = %s",
            (self._chance.choice(_CITIES), self._chance.randint(1, CUSTOMERS)),
        )
        return True

    def _any_order(self) -> int:
        return self._chance.choice(self._orders) if self._orders else 0

    def _any_article(self) -> str:
        hot = self._chance.random() < 0.5
        return article(self._chance.randrange(_HOT_ARTICLES if hot else ARTICLES))

    def _price(self) -> Decimal:
        return Decimal(self._chance.randint(100, 20_000)) / 100
