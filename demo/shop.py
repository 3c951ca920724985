"""A shop: four tables, and customers who use them at the same time.

Its traffic has what a real source may have: transactions over several tables, hot rows, keys that
change, rollbacks and deadlocks. The caller makes the connections, so that this module needs no
driver.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, Self

from demo.traffic import ARTICLES, CUSTOMERS, Errands, article, person

DATABASE = "shop"
TABLES = ("customers", "orders", "order_lines", "stock")

_TABLES = (
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
_DEADLOCKS = (1205, 1213)  # lock wait timeout, deadlock: MySQL asks to try again


class Connection(Protocol):
    """The part of DB-API 2.0's connection that the shop uses."""

    def cursor(self) -> Any: ...

    def commit(self) -> Any: ...

    def rollback(self) -> Any: ...

    def close(self) -> Any: ...


def create(connection: Connection, database: str = DATABASE) -> None:
    """Create the database, its tables and their first rows; none of it may exist yet."""
    cursor = connection.cursor()
    cursor.execute(f"create database `{database}` character set utf8mb4")
    cursor.execute(f"use `{database}`")
    for table in _TABLES:
        cursor.execute(table)
    cursor.execute("begin")
    people = [person(number) for number in range(CUSTOMERS)]
    cursor.executemany(
        "insert into customers (name, email, city, created_at) values (%s, %s, %s, now(3))", people
    )
    articles = [(article(number), 1000) for number in range(ARTICLES)]
    cursor.executemany("insert into stock (sku, on_hand) values (%s, %s)", articles)
    connection.commit()
    cursor.close()


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of transactions; MySQL itself rolled back the `deadlocked` ones."""

    committed: int = 0
    rolled_back: int = 0
    deadlocked: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.committed + other.committed,
            self.rolled_back + other.rolled_back,
            self.deadlocked + other.deadlocked,
        )


class Traffic:
    """Customers that work at the same time, each with a connection and a thread.

    The same seed gives each of them the same transactions; the server decides their order. `pause`:
    seconds between two transactions of a customer; `connect`: returns connections that use the
    shop's database; `first`: the number of the first customer, so that later traffic can have other
    customers.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        workers: int,
        seed: int,
        *,
        pause: float = 0.002,
        first: int = 0,
    ) -> None:
        self._closing = threading.Event()
        self._workers = [
            _Worker(connect, f"{seed}/{number}", number, pause, self._closing)
            for number in range(first, first + workers)
        ]
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="shop")
        self._ends: list[Future[None]] = []

    def start(self) -> None:
        self._ends = [self._threads.submit(worker.run) for worker in self._workers]

    def stop(self) -> Counts:
        """Wait until all transactions have ended, and close the connections. Raise the error
        that stopped a customer, if any."""
        self._closing.set()
        self._threads.shutdown()
        self.check()
        return self.counts

    def check(self) -> None:
        """Raise the error that stopped a customer, if any."""
        for end in self._ends:
            if end.done():
                end.result()

    @property
    def counts(self) -> Counts:
        """The transactions so far."""
        return sum((worker.counts for worker in self._workers), Counts())

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
        closed: threading.Event,
    ) -> None:
        self.counts = Counts()
        self._connect = connect
        self._errand = Errands(random.Random(seed), number)
        self._pause = pause
        self._closing = closed

    def run(self) -> None:
        with closing(self._connect()) as connection:
            while not self._closing.wait(self._pause):
                self.counts += self._transaction(connection)

    def _transaction(self, connection: Connection) -> Counts:
        cursor = connection.cursor()
        errand = self._errand.choose()
        try:
            cursor.execute("begin")
            keep = errand(cursor)
            if keep:
                connection.commit()
            else:
                connection.rollback()
        except Exception as error:
            connection.rollback()
            if error.args[:1] and error.args[0] in _DEADLOCKS:
                return Counts(deadlocked=1)
            raise
        finally:
            cursor.close()
        return Counts(committed=1) if keep else Counts(rolled_back=1)
