"""GTID sets beside the servers' own: what MySQL computes and MariaDB prints, we do."""

from __future__ import annotations

import random

from lockstep.pipeline.values.gtid import GtidSet
from tests.fix_mysql import MySqlStand

UUIDS = [f"{n:08x}-00cd-0000-0000-000000000001" for n in range(3)]
SOURCES = [*UUIDS, f"{UUIDS[0]}:tag", f"{UUIDS[0]}:b_9", f"{UUIDS[2]}:tag"]
CASES = 300


def _random_text(dice: random.Random, *, tags: bool) -> str:
    """Sources and intervals in any order, overlapping, in either case, with white space."""
    sources = SOURCES if tags else UUIDS
    parts = []
    for _ in range(dice.randint(0, 6)):
        first = dice.randint(1, 20)
        interval = f"{first}-{first + dice.randint(0, 9)}" if dice.random() < 0.7 else f"{first}"
        source = dice.choice(sources)
        parts.append(f"{source.upper() if dice.random() < 0.3 else source}:{interval}")
    return dice.choice([",", ", ", ",\n", " , "]).join(parts)


def test_mysql_computes_the_same(mysql: MySqlStand) -> None:
    """GTID_SUBTRACT and GTID_SUBSET of random sets are our difference and containment, and
    MySQL's text of a set is ours; tags only where the server knows them."""
    dice = random.Random("gtid sets")
    ((version,),) = mysql.rows("select version()")
    tags = tuple(map(int, version.split(".")[:2])) >= (8, 3)
    with mysql.connect() as connection, connection.cursor() as cursor:
        for _ in range(CASES):
            a, b = (_random_text(dice, tags=tags) for _ in range(2))
            cursor.execute(
                "select gtid_subtract(%s, ''), gtid_subtract(%s, %s), gtid_subset(%s, %s)",
                (a, a, b, a, b),
            )
            ((canonical, difference, subset),) = cursor.fetchall()
            ours, other = GtidSet.parse(a), GtidSet.parse(b)
            assert str(ours) == canonical.replace("\n", "")
            assert str(ours.difference(other)) == difference.replace("\n", "")
            assert other.contains(ours) == bool(subset)


def test_mariadb_prints_what_we_read(mariadb: MySqlStand, mariadb_database: str) -> None:
    """`gtid_binlog_state` after transactions of two servers in two domains is a set, which
    holds each of them, and grows by exactly what was written."""
    before = GtidSet.parse(_state(mariadb))
    with mariadb.connect(mariadb_database) as connection, connection.cursor() as cursor:
        cursor.execute("create table t (id int)")
        for server, domain in [(7, 0), (8, 0), (7, 3)]:
            cursor.execute(f"set session server_id = {server}, session gtid_domain_id = {domain}")
            cursor.execute("insert into t values (1)")
        cursor.execute("set session gtid_seq_no = 900")
        cursor.execute("insert into t values (2)")
    after = GtidSet.parse(_state(mariadb))
    assert after.flavour == "mariadb"
    assert {"0-7", "0-8", "3-7"} <= set(after.sources)
    assert after.contains(before)
    assert after.contains(GtidSet.parse("3-7-900"))
    assert not before.contains(GtidSet.parse("3-7-900"))
    assert GtidSet.parse(str(after)) == after
    assert set(str(after).split(",")) == set(_state(mariadb).split(","))


def test_mariadb_says_the_set_at_a_place(mariadb: MySqlStand, mariadb_database: str) -> None:
    """`binlog_gtid_pos` at the log's end, the newest of each domain, lies in the state."""
    mariadb.execute("create table t (id int)", database=mariadb_database)
    ((file, offset, *_),) = mariadb.rows("show master status")
    ((text,),) = mariadb.rows(f"select binlog_gtid_pos('{file}', {offset})")
    at_the_end = GtidSet.parse(text)
    assert at_the_end.flavour == "mariadb"
    assert str(at_the_end) == ",".join(sorted(text.split(","), key=_domain))
    assert GtidSet.parse(_state(mariadb)).contains(at_the_end)


def _state(stand: MySqlStand) -> str:
    ((text,),) = stand.rows("select @@global.gtid_binlog_state")
    return str(text)


def _domain(gtid: str) -> int:
    return int(gtid.partition("-")[0])
