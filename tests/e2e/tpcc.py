"""The order entry of TPC-C, small: its tables, three of its transactions, its conditions.

Belongs here: what of the specification (revision 5.11, clauses 1.3, 2.4 to 2.7 and 3.3.2) is true
of the data at each moment, however many write. Does not: its rates and its response times.
`history` has a key of its own, so that its rows can be told apart.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from typing import Any

import pymysql

WAREHOUSES, DISTRICTS, CUSTOMERS, ITEMS = 2, 2, 4, 20
TABLES = (
    "create table warehouse (w_id int primary key, w_ytd decimal(12, 2) not null)",
    """create table district (d_w_id int, d_id int, d_ytd decimal(12, 2) not null,
         d_next_o_id int not null, primary key (d_w_id, d_id))""",
    """create table customer (c_w_id int, c_d_id int, c_id int,
         c_balance decimal(12, 2) not null, c_ytd_payment decimal(12, 2) not null,
         primary key (c_w_id, c_d_id, c_id))""",
    """create table history (h_id bigint auto_increment primary key, h_c_w_id int, h_c_d_id int,
         h_c_id int, h_w_id int, h_d_id int, h_amount decimal(6, 2))""",
    """create table orders (o_w_id int, o_d_id int, o_id int, o_c_id int not null,
         o_carrier_id int, o_ol_cnt int not null, primary key (o_w_id, o_d_id, o_id))""",
    "create table new_order (no_w_id int, no_d_id int, no_o_id int, "
    "primary key (no_w_id, no_d_id, no_o_id))",
    """create table order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int,
         ol_i_id int not null, ol_amount decimal(6, 2) not null, ol_delivery_d datetime(3),
         primary key (ol_w_id, ol_d_id, ol_o_id, ol_number))""",
    "create table stock (s_w_id int, s_i_id int, s_quantity int not null, s_ytd int not null, "
    "primary key (s_w_id, s_i_id))",
)
NAMES = (
    "warehouse",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
    "stock",
)
PAUSE = 0.1
"""Seconds that a terminal rests between two transactions."""

_AGAIN = (1205, 1213)  # lock wait timeout, deadlock

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def create(connection: Any, database: str) -> None:
    """All tables, and what stands in them before anybody orders."""
    with connection.cursor() as cursor:
        cursor.execute(f"create database {database}")
        cursor.execute(f"use {database}")
        for statement in TABLES:
            cursor.execute(statement)
        cursor.execute("begin")
        for w in range(WAREHOUSES):
            cursor.execute("insert into warehouse values (%s, 0)", (w,))
            stock = [(w, i, 100, 0) for i in range(ITEMS)]
            cursor.executemany("insert into stock values (%s, %s, %s, %s)", stock)
            for d in range(DISTRICTS):
                cursor.execute("insert into district values (%s, %s, 0, 1)", (w, d))
                people = [(w, d, c) for c in range(CUSTOMERS)]
                cursor.executemany("insert into customer values (%s, %s, %s, 0, 0)", people)
        cursor.execute("commit")


@contextmanager
def ordering(connect: Callable[[], Any], workers: int, seed: int) -> Iterator[None]:
    """So many terminals at once; what stops one of them is raised at the end."""
    stop, failed = threading.Event(), []

    def ports(number: int) -> None:
        chance = random.Random(f"{seed}/{number}")
        try:
            with closing(connect()) as connection:
                while not stop.wait(PAUSE):
                    _transaction(connection, chance)
        except Exception as error:  # noqa: BLE001 - raised by who asked for the terminals
            failed.append(error)

    terminals = [threading.Thread(target=ports, args=(number,)) for number in range(workers)]
    for terminal in terminals:
        terminal.start()
    try:
        yield
    finally:
        stop.set()
        for terminal in terminals:
            terminal.join()
    for error in failed:
        raise error


def _transaction(connection: Any, chance: random.Random) -> None:
    kind = chance.choices((_new_order, _payment, _delivery), (45, 43, 12))[0]
    with connection.cursor() as cursor:
        cursor.execute("begin")
        try:
            kind(cursor, chance)
            # One new order in a hundred is rolled back by the specification; here one in ten.
            cursor.execute("rollback" if chance.random() < 0.1 else "commit")
        except pymysql.err.OperationalError as error:
            if error.args[0] not in _AGAIN:
                raise
            with suppress(pymysql.err.OperationalError):
                cursor.execute("rollback")


def _new_order(cursor: Any, chance: random.Random) -> None:
    w, d, c = chance.randrange(WAREHOUSES), chance.randrange(DISTRICTS), chance.randrange(CUSTOMERS)
    cursor.execute(
        "select d_next_o_id from district where d_w_id = %s and d_id = %s for update", (w, d)
    )
    ((number,),) = cursor.fetchall()
    cursor.execute(
        "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = %s and d_id = %s", (w, d)
    )
    lines = chance.randint(1, 5)
    cursor.execute("insert into orders values (%s, %s, %s, %s, null, %s)", (w, d, number, c, lines))
    cursor.execute("insert into new_order values (%s, %s, %s)", (w, d, number))
    for line in range(lines):
        item, quantity = chance.randrange(ITEMS), chance.randint(1, 10)
        cursor.execute(
            "update stock set s_quantity = s_quantity - %s, s_ytd = s_ytd + %s "
            "where s_w_id = %s and s_i_id = %s",
            (quantity, quantity, w, item),
        )
        cursor.execute(
            "insert into order_line values (%s, %s, %s, %s, %s, %s, null)",
            (w, d, number, line, item, Decimal(chance.randint(1, 999_999)) / 100),
        )


def _payment(cursor: Any, chance: random.Random) -> None:
    w, d, c = chance.randrange(WAREHOUSES), chance.randrange(DISTRICTS), chance.randrange(CUSTOMERS)
    amount = Decimal(chance.randint(100, 500_000)) / 100
    cursor.execute("update warehouse set w_ytd = w_ytd + %s where w_id = %s", (amount, w))
    cursor.execute(
        "update district set d_ytd = d_ytd + %s where d_w_id = %s and d_id = %s", (amount, w, d)
    )
    cursor.execute(
        "update customer set c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s "
        "where c_w_id = %s and c_d_id = %s and c_id = %s",
        (amount, amount, w, d, c),
    )
    cursor.execute(
        "insert into history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount) "
        "values (%s, %s, %s, %s, %s, %s)",
        (w, d, c, w, d, amount),
    )


def _delivery(cursor: Any, chance: random.Random) -> None:
    w, carrier = chance.randrange(WAREHOUSES), chance.randint(1, 10)
    for d in range(DISTRICTS):
        cursor.execute(
            "select no_o_id from new_order where no_w_id = %s and no_d_id = %s "
            "order by no_o_id limit 1 for update",
            (w, d),
        )
        oldest = cursor.fetchall()
        if not oldest:
            continue
        place = (w, d, oldest[0][0])
        cursor.execute(
            "delete from new_order where no_w_id = %s and no_d_id = %s and no_o_id = %s", place
        )
        of_order = "where o_w_id = %s and o_d_id = %s and o_id = %s"
        cursor.execute(f"select o_c_id from orders {of_order}", place)
        ((customer,),) = cursor.fetchall()
        cursor.execute(f"update orders set o_carrier_id = %s {of_order}", (carrier, *place))
        of_line = "where ol_w_id = %s and ol_d_id = %s and ol_o_id = %s"
        cursor.execute(f"update order_line set ol_delivery_d = now(3) {of_line}", place)
        cursor.execute(f"select sum(ol_amount) from order_line {of_line}", place)
        ((amount,),) = cursor.fetchall()
        cursor.execute(
            "update customer set c_balance = c_balance + %s "
            "where c_w_id = %s and c_d_id = %s and c_id = %s",
            (amount, w, d, customer),
        )


def broken(rows: Rows) -> list[str]:
    """Which of the conditions 1 to 10 and 12 of clause 3.3.2 are not met, and where. (The 11th is
    about the rows that the specification begins with.)"""
    lines = [
        (*(line[f"ol_{part}"] for part in ("w_id", "d_id", "o_id")), line)
        for line in rows["order_line"]
    ]
    count = Counter((w, d, o) for w, d, o, _ in lines)
    waiting = {(row["no_w_id"], row["no_d_id"], row["no_o_id"]) for row in rows["new_order"]}
    orders = {(row["o_w_id"], row["o_d_id"], row["o_id"]): row for row in rows["orders"]}
    paid_here: defaultdict[Any, Decimal] = defaultdict(Decimal)
    paid_by: defaultdict[Any, Decimal] = defaultdict(Decimal)
    for row in rows["history"]:
        paid_here[row["h_w_id"], row["h_d_id"]] += row["h_amount"]
        paid_by[row["h_c_w_id"], row["h_c_d_id"], row["h_c_id"]] += row["h_amount"]
    delivered: defaultdict[Any, Decimal] = defaultdict(Decimal)
    for w, d, o, line in lines:
        if line["ol_delivery_d"] is not None:
            delivered[w, d, orders[w, d, o]["o_c_id"]] += line["ol_amount"]
    found = []

    def require(holds: bool, condition: int, where: object) -> None:
        if not holds:
            found.append(f"condition {condition} at {where}")

    for row in rows["warehouse"]:
        w = row["w_id"]
        districts = [one for one in rows["district"] if one["d_w_id"] == w]
        require(row["w_ytd"] == sum(district["d_ytd"] for district in districts), 1, w)
        require(row["w_ytd"] == sum(paid_here[w, district["d_id"]] for district in districts), 8, w)
    for row in rows["district"]:
        here = (row["d_w_id"], row["d_id"])
        numbers = [o for w, d, o in orders if (w, d) == here]
        open_numbers = [o for w, d, o in waiting if (w, d) == here]
        require(row["d_next_o_id"] - 1 == max(numbers, default=0), 2, here)
        if open_numbers:
            require(max(open_numbers) == max(numbers), 2, here)
            require(max(open_numbers) - min(open_numbers) + 1 == len(open_numbers), 3, here)
        ordered = sum(one["o_ol_cnt"] for key, one in orders.items() if key[:2] == here)
        require(ordered == sum(n for key, n in count.items() if key[:2] == here), 4, here)
        require(row["d_ytd"] == paid_here[here], 9, here)
    for key, row in orders.items():
        require((row["o_carrier_id"] is None) == (key in waiting), 5, key)
        require(row["o_ol_cnt"] == count[key], 6, key)
    for w, d, o, line in lines:
        same = (line["ol_delivery_d"] is None) == (orders[w, d, o]["o_carrier_id"] is None)
        require(same, 7, (w, d, o))
    for row in rows["customer"]:
        person = (row["c_w_id"], row["c_d_id"], row["c_id"])
        require(row["c_balance"] == delivered[person] - paid_by[person], 10, person)
        require(row["c_balance"] + row["c_ytd_payment"] == delivered[person], 12, person)
    return found
