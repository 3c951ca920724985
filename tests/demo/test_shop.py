"""The shop's tables and its traffic, on a real server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from demo import shop
from demo.guide import alter_tables
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance


@pytest.fixture
def opened(mysql: MySqlStand) -> Iterator[str]:
    """A shop in a database of the test's own."""
    name = mysql.fresh_name()
    with mysql.connect() as connection:
        shop.create(connection, name)
    yield name
    mysql.execute(f"drop database `{name}`")


def busy(mysql: MySqlStand, database: str, *, until: int, seed: int = 1) -> shop.TransactionCounts:
    """Traffic of three people until so many transactions were committed."""
    traffic = shop.Traffic(lambda: mysql.connect(database), 3, seed, pause=0)
    with traffic:
        while traffic.counts.committed < until:
            traffic.raise_error()
            threading.Event().wait(0.01)
    return traffic.counts


def test_the_shop_opens_with_customers_and_stock(mysql: MySqlStand, opened: str) -> None:
    """The four tables are there; customers and articles are in them, orders not yet."""
    counts = [mysql.rows(f"select count(*) from {table}", opened)[0][0] for table in shop.TABLES]
    assert counts == [200, 0, 0, 40]


def test_every_committed_transaction_is_in_the_log(mysql: MySqlStand, opened: str) -> None:
    """The server executed no more transactions than were counted, and changes of all kinds.
    Transactions over several tables leave no line without its order."""
    gtids = "select @@gtid_executed"
    before = mysql.rows(gtids)[0][0]
    counts = busy(mysql, opened, until=600)
    query = f"select gtid_subtract(@@gtid_executed, '{before}')"
    logged = str(mysql.rows(query)[0][0])
    first, _, last = logged.rpartition(":")[2].partition("-")
    assert counts.committed >= int(last) - int(first) + 1 > counts.committed // 2
    assert counts.rolled_back > 0
    kept = mysql.rows("select count(*) from orders", opened)[0][0]
    highest = mysql.rows("select max(id) from orders", opened)[0][0]
    moved = mysql.rows("select count(*) from order_lines where line_no > 10", opened)[0][0]
    renamed = mysql.rows("select count(*) from stock where sku like '%-OLD'", opened)[0][0]
    assert (0 < kept < highest, moved > 0, renamed > 0) == (True, True, True)
    orphans = "select count(*) from order_lines left join orders on id = order_id where id is null"
    assert mysql.rows(orphans, opened) == [(0,)]


def test_nobody_is_left_when_traffic_stopped(mysql: MySqlStand, opened: str) -> None:
    """Threads are joined and counts stand still."""
    counts = busy(mysql, opened, until=50)
    left = [t.name for t in threading.enumerate() if t.name.startswith("shop")]
    assert (left, counts.committed >= 50) == ([], True)


def test_what_stops_a_worker_is_raised() -> None:
    """A worker that cannot work is no silence: stopping raises its error."""

    def refused() -> shop.Connection:
        raise ConnectionRefusedError("nobody there")

    traffic = shop.Traffic(refused, 2, 1)
    traffic.start()
    with pytest.raises(ConnectionRefusedError):
        traffic.stop()


def test_tables_are_altered_despite_a_deadlock(mysql: MySqlStand, opened: str) -> None:
    """Copying the stock into a new table waits for a purchase, which then wants an article whose
    row the copy has locked. MySQL rolls back the copy, which has changed less; it is made again."""
    deadlocks = "select count from information_schema.innodb_metrics where name = 'lock_deadlocks'"
    waiting = "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
    before = mysql.rows(deadlocks)[0][0]
    lines = [(number, 1, "ART-0010", 1, 1) for number in range(1000)]
    with closing(mysql.connect(opened)) as purchase, ThreadPoolExecutor(1) as threads:
        cursor = purchase.cursor()
        cursor.execute("begin")
        cursor.executemany("insert into order_lines values (%s, %s, %s, %s, %s)", lines)
        cursor.execute("update stock set on_hand = 1 where sku = 'ART-0010'")
        altering = threads.submit(alter_tables, lambda: mysql.connect(opened), 0)
        while not mysql.rows(waiting)[0][0]:
            assert not altering.done()
            # MySQL renews that table only if nobody has read it for 0.1 s.
            time.sleep(0.2)
        cursor.execute("update stock set on_hand = 1 where sku = 'ART-0000'")
        purchase.commit()
        assert len(altering.result()) == 2
    counts = "select count(*), (select count(*) from order_lines) from prices"
    assert mysql.rows(counts, opened) == [(40, 1000)]
    assert mysql.rows(deadlocks)[0][0] == before + 1
