"""A shop: four tables, and customers who use them at the same time.

Its traffic has what a real source may have: transactions over several tables, hot rows, keys that
change, rollbacks and deadlocks. The caller makes the connections, so that this module needs no
driver.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, Self

DATABASE = "shop"
TABLES = ("customers", "orders", "order_lines", "stock")

_CREATE_TABLES = (
    """create table customers (
         id         int unsigned auto_increment primary key,
         name       varchar(80) not null,
         email      varchar(120),
         city       varchar(60),
         created_at datetime(3) not null
       )""",
    """create table orders (
         id          bigint unsigned auto_increment primary key,
         customer_id int unsigned not null,
         status      enum('placed', 'paid', 'sent', 'returned') not null,
         total       decimal(12, 2) not null,
         placed_at   datetime(3) not null,
         updated_at  timestamp(6) not null default current_timestamp(6)
                     on update current_timestamp(6),
         key (customer_id)
       )""",
    """create table order_lines (
         order_id bigint unsigned,
         line_no  smallint unsigned,
         sku      varchar(20) not null,
         quantity int not null,
         price    decimal(10, 2) not null,
         primary key (order_id, line_no)
       )""",
    """create table stock (
         sku     varchar(20) primary key,
         on_hand int not null
       )""",
)

_NAMES = ("Ada Okafor", "Zoë Martin", "Łukasz Nowak", "山田 花子", "José Ibáñez", "Mia O'Neill")
_CITIES = ("Lagos", "Köln", "Łódź", "京都", "Cádiz", "Galway", None)
_STATUSES = ("paid", "sent", "returned")
ARTICLE_COUNT = 40
_HOT_ARTICLE_COUNT = 4
CUSTOMER_COUNT = 200

_DEADLOCK_ERRORS = (1205, 1213)  # lock wait timeout, deadlock: MySQL asks to try again


class Connection(Protocol):
    """The part of DB-API 2.0's connection that the shop uses."""

    def cursor(self) -> Any: ...

    def commit(self) -> Any: ...

    def rollback(self) -> Any: ...

    def close(self) -> Any: ...


class Cursor(Protocol):
    """The part of DB-API 2.0's cursor that the shop uses (parameters as `%s`)."""

    @property
    def lastrowid(self) -> int | None: ...

    def execute(self, query: str, args: Sequence[object] = (), /) -> Any: ...

    def executemany(self, query: str, args: Sequence[Sequence[object]], /) -> Any: ...


def create(connection: Connection, database: str = DATABASE) -> None:
    """Create the database, its tables and their first rows; none of it may exist yet."""
    cursor = connection.cursor()
    cursor.execute(f"create database `{database}` character set utf8mb4")
    cursor.execute(f"use `{database}`")
    for table in _CREATE_TABLES:
        cursor.execute(table)
    cursor.execute("begin")
    customers = [customer_values(number) for number in range(CUSTOMER_COUNT)]
    cursor.executemany(
        "insert into customers (name, email, city, created_at) values (%s, %s, %s, now(3))",
        customers,
    )
    stock = [(sku(number), 1000) for number in range(ARTICLE_COUNT)]
    cursor.executemany("insert into stock (sku, on_hand) values (%s, %s)", stock)
    connection.commit()
    cursor.close()


def customer_values(number: int) -> tuple[str, str | None, str | None]:
    """Return name, e-mail and city of a customer; the city may be NULL."""
    name = _NAMES[number % len(_NAMES)]
    return name, f"customer{number}@example.org", _CITIES[number % len(_CITIES)]


def sku(number: int) -> str:
    """Return an article's number."""
    return f"ART-{number:04d}"


def is_deadlock(error: Exception) -> bool:
    """Return whether MySQL gave up waiting for locks of others, so that the transaction has to be
    tried again."""
    return bool(error.args) and error.args[0] in _DEADLOCK_ERRORS


# -- customers at the same time, each with a connection and a thread ----------------------------


@dataclass(frozen=True, slots=True)
class TransactionCounts:
    """Numbers of transactions by their end; MySQL itself rolled back the `deadlocked` ones."""

    committed: int = 0
    rolled_back: int = 0
    deadlocked: int = 0

    def __add__(self, other: TransactionCounts) -> TransactionCounts:
        return TransactionCounts(
            self.committed + other.committed,
            self.rolled_back + other.rolled_back,
            self.deadlocked + other.deadlocked,
        )


class Traffic:
    """Customers that work at the same time, each with a connection and a thread.

    The same seed gives each of them the same transactions; the server decides their order. `pause`:
    seconds between two transactions of a customer; `connect`: returns connections that use the
    shop's database; `first_customer`: its number, so that later traffic can have other
    customers.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        workers: int,
        seed: int,
        *,
        pause: float = 0.002,
        first_customer: int = 0,
    ) -> None:
        self._stopping = threading.Event()
        self._workers = [
            _Worker(connect, f"{seed}/{number}", number, pause, self._stopping)
            for number in range(first_customer, first_customer + workers)
        ]
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="shop")
        self._futures: list[Future[None]] = []

    def start(self) -> None:
        self._futures = [self._threads.submit(worker.run) for worker in self._workers]

    def stop(self) -> TransactionCounts:
        """Wait until all transactions have ended, and close the connections. Raise the error
        that stopped a customer, if any."""
        self._stopping.set()
        self._threads.shutdown()
        self.raise_error()
        return self.counts

    def raise_error(self) -> None:
        """Raise the error that stopped a customer, if any."""
        for future in self._futures:
            if future.done():
                future.result()

    @property
    def counts(self) -> TransactionCounts:
        """The transactions so far."""
        return sum((worker.counts for worker in self._workers), TransactionCounts())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Worker:
    def __init__(
        self,
        connect: Callable[[], Connection],
        seed: str,
        number: int,
        pause: float,
        stopping: threading.Event,
    ) -> None:
        self.counts = TransactionCounts()
        self._connect = connect
        self._errands = Errands(random.Random(seed), number)
        self._pause = pause
        self._stopping = stopping

    def run(self) -> None:
        with closing(self._connect()) as connection:
            while not self._stopping.wait(self._pause):
                self.counts += self._transaction(connection)

    def _transaction(self, connection: Connection) -> TransactionCounts:
        cursor = connection.cursor()
        errand = self._errands.choose()
        try:
            cursor.execute("begin")
            is_committed = errand(cursor)
            if is_committed:
                connection.commit()
            else:
                connection.rollback()
        except Exception as error:
            connection.rollback()
            if is_deadlock(error):
                return TransactionCounts(deadlocked=1)
            raise
        finally:
            cursor.close()
        return TransactionCounts(committed=1) if is_committed else TransactionCounts(rolled_back=1)


# -- the transactions of a customer, and how often each occurs ----------------------------------


class Errands:
    """The transactions of one customer, which are chosen at random. A transaction returns whether
    the customer commits it."""

    def __init__(self, generator: random.Random, customer: int) -> None:
        self._generator = generator
        self._customer = customer
        self._orders: list[int] = []
        self._article_count = 0

    def choose(self) -> Callable[[Cursor], bool]:
        errands = (
            (30, self._place_order),
            (4, self._change_mind),
            (20, self._advance_order),
            (12, self._change_quantity),
            (6, self._renumber_line),
            (6, self._cancel_order),
            (10, self._restock),
            (4, self._rename_article),
            (4, self._register_customer),
            (4, self._move_house),
        )
        return self._generator.choices(
            [errand for _, errand in errands], [weight for weight, _ in errands]
        )[0]

    def _place_order(self, cursor: Cursor) -> bool:
        count = self._generator.randint(1, 4)
        lines = [
            (self._any_article(), self._generator.randint(1, 5), self._price())
            for _ in range(count)
        ]
        total = sum((quantity * price for _, quantity, price in lines), Decimal(0))
        cursor.execute(
            "insert into orders (customer_id, status, total, placed_at)"
            " values (%s, 'placed', %s, now(3))",
            (self._generator.randint(1, CUSTOMER_COUNT), total),
        )
        order = cursor.lastrowid or 0
        cursor.executemany(
            "insert into order_lines (order_id, line_no, sku, quantity, price)"
            " values (%s, %s, %s, %s, %s)",
            [(order, number, *line) for number, line in enumerate(lines, 1)],
        )
        for article_sku, quantity, _ in lines:
            cursor.execute(
                "update stock set on_hand = on_hand - %s where sku = %s", (quantity, article_sku)
            )
        self._orders.append(order)
        return True

    def _change_mind(self, cursor: Cursor) -> bool:
        self._place_order(cursor)
        self._orders.pop()
        return False

    def _advance_order(self, cursor: Cursor) -> bool:
        status = self._generator.choice(_STATUSES)
        cursor.execute("update orders set status = %s where id = %s", (status, self._any_order()))
        return True

    def _change_quantity(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update order_lines set quantity = %s, price = %s where order_id = %s and line_no = 1",
            (self._generator.randint(1, 9), self._price(), self._any_order()),
        )
        return True

    def _renumber_line(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update order_lines set line_no = line_no + 10 where order_id = %s"
            " order by line_no desc limit 1",
            (self._any_order(),),
        )
        return True

    def _cancel_order(self, cursor: Cursor) -> bool:
        order = self._any_order()
        cursor.execute("delete from order_lines where order_id = %s", (order,))
        cursor.execute("delete from orders where id = %s", (order,))
        return True

    def _restock(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update stock set on_hand = on_hand + %s where sku = %s",
            (self._generator.randint(10, 50), self._any_article()),
        )
        return True

    def _rename_article(self, cursor: Cursor) -> bool:
        self._article_count += 1
        own_sku = f"W{self._customer}-{self._article_count:05d}"
        cursor.execute("insert into stock (sku, on_hand) values (%s, 0)", (own_sku,))
        if self._article_count > 1:
            previous_sku = f"W{self._customer}-{self._article_count - 1:05d}"
            cursor.execute(
                "update stock set sku = %s where sku = %s", (f"{previous_sku}-OLD", previous_sku)
            )
        return True

    def _register_customer(self, cursor: Cursor) -> bool:
        cursor.execute(
            "insert into customers (name, email, city, created_at) values (%s, %s, %s, now(3))",
            customer_values(self._generator.randrange(10_000)),
        )
        return True

    def _move_house(self, cursor: Cursor) -> bool:
        cursor.execute(
            "update customers set city = %s, email = null where id = %s",
            (self._generator.choice(_CITIES), self._generator.randint(1, CUSTOMER_COUNT)),
        )
        return True

    def _any_order(self) -> int:
        return self._generator.choice(self._orders) if self._orders else 0

    def _any_article(self) -> str:
        hot = self._generator.random() < 0.5
        return sku(self._generator.randrange(_HOT_ARTICLE_COUNT if hot else ARTICLE_COUNT))

    def _price(self) -> Decimal:
        return Decimal(self._generator.randint(100, 20_000)) / 100
