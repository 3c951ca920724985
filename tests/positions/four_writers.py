"""Four sessions that write to a shop while something is read from it.

Belongs here: how often they write, and what. Does not: what is read meanwhile, and what is true
then (the tests).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random

import pymysql
import pytest

from tests.positions.paused import Shop

PAUSE = 0.03
"""Seconds between two statements of a session: some come while a chunk is read, and the test does
not spend its time on them."""

MOST = 400
"""Statements of a session: a slow machine is not busy with them alone."""

MIXED = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 20))]
"""Seeds: no two runs of one mix the sessions' statements alike, so that one is tried with every
change."""


@contextmanager
def four_write(shop: Shop, random: Random, statement: Callable[[Random], str]) -> Iterator[None]:
    """For as long as the body lasts, or until each has made as many statements as it may."""
    stop = threading.Event()

    def write(own: Random) -> None:
        with shop.stand.connect(shop.name, autocommit=True) as session, session.cursor() as cursor:
            for _ in range(MOST):
                if stop.wait(PAUSE):
                    return
                with suppress(pymysql.err.OperationalError):  # a deadlock
                    cursor.execute(statement(own))

    threads = [threading.Thread(target=write, args=(Random(random.random()),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def of_one_row(random: Random, keys: range, table: str = "a", more: str = "") -> str:
    """Any change of a row of `table (id, v)`; `more`: the values of its other columns."""
    key, other = random.choice(keys), random.choice(keys)
    return random.choice(
        (
            f"update {table} set v = v + 1 where id = {key}",
            f"insert into {table} values ({key}, 0{more}) on duplicate key update v = v - 1",
            f"delete from {table} where id = {key}",
            f"update ignore {table} set id = {other} where id = {key}",
        )
    )
