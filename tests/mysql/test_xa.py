"""XA transactions of real servers: rows come out where they are committed, or never."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.values.errors import PreparedElsewhere
from lockstep.resources.mysql.watermarks import prepared_transactions
from tests.fix_mysql import MySqlStand, end_prepared
from tests.mysql.sessions import Shop, inserted


@pytest.fixture(params=["mysql", "mariadb", "mariadb11"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Each server in turn; nothing stays prepared there."""
    yield from _shop(request.getfixturevalue(request.param))


@pytest.fixture
def mysql_shop(mysql: MySqlStand) -> Iterator[Shop]:
    """One for what MySQL alone does."""
    yield from _shop(mysql)


def _shop(stand: MySqlStand) -> Iterator[Shop]:
    with stand.own_database() as name:
        stand.execute(f"create table {name}.t (id int primary key)")
        yield Shop(stand, name)
        for form, gtrid, _, xid in stand.rows("xa recover"):
            parts = xid.encode("latin-1") if isinstance(xid, str) else xid
            one, two = parts[:gtrid].hex(), parts[gtrid:].hex()
            stand.execute(f"xa rollback x'{one}', x'{two}', {form}")


def prepared(xid: str, *values: int) -> list[str]:
    """The statements of a transaction that is prepared."""
    return [f"xa start {xid}", *rows(*values), f"xa end {xid}", f"xa prepare {xid}"]


def rows(*values: int) -> list[str]:
    return [f"insert into t values ({value})" for value in values]


def end(shop: Shop, word: str, xid: str) -> None:
    """In another session than the one that prepared."""
    end_prepared(shop.do, f"xa {word} {xid}")


def test_each_commit_finds_its_own(shop: Shop) -> None:
    """In any order, whichever session commits, whatever bytes and parts the XID has."""
    xids = ["'a'", "'a','b'", "'ab','c',7", "'A','',2147483647", "x'00ff27','',0"]
    xids.append(f"'{'g' * 64}','{'b' * 64}',5")
    source = shop.source()
    for number, xid in enumerate(xids):
        shop.do(*prepared(xid, number))
    for xid in reversed(xids):
        end(shop, "commit", xid)
    assert inserted(source.capture()) == [5, 4, 3, 2, 1, 0]


def test_a_list_of_the_prepared_has_the_bytes_of_each(shop: Shop) -> None:
    """Whatever stands in an XID, as each server prints it."""
    xids = [
        Xid(1, b"a,b", b"c"),
        Xid(1, b"it's", b"d','e"),
        Xid(7, b"a, b", b""),
        Xid(0, b"\x00\x7f'", b",\x01"),
        Xid(5, b"X'61'", b"\\"),
    ]
    for number, xid in enumerate(xids):
        literals = f"x'{xid.gtrid.hex()}', x'{xid.bqual.hex()}', {xid.format_id}"
        shop.do(*prepared(literals, number))
    with shop.stand.connect() as connection, connection.cursor() as cursor:
        assert prepared_transactions(cursor) == frozenset(xids)


def test_what_was_prepared_before_the_start_stops(shop: Shop) -> None:
    """Its commit has no rows to give; its rollback needs none."""
    shop.do(*prepared("'early'", 1))
    shop.do(*prepared("'undone'", 2))
    source = shop.source()
    end(shop, "rollback", "'undone'")
    assert source.capture() == []
    end(shop, "commit", "'early'")
    with pytest.raises(PreparedElsewhere, match="X'6561726c79'"):
        source.capture()


def test_a_commit_finds_rows_whose_log_was_purged(shop: Shop) -> None:
    """Prepared in one capture, committed in the third, its own log gone."""
    source = shop.source()
    shop.do(*prepared("'kept'", 1))
    shop.do(*prepared("'undone'", 2))
    assert source.capture() == []
    assert len(source.prepared) == 2
    shop.do(*rows(3))
    assert inserted(source.capture()) == [3]
    shop.do("flush binary logs")
    assert source.capture() == []
    shop.do(f"purge binary logs to '{source.at.file}'")
    end(shop, "rollback", "'undone'")
    end(shop, "commit", "'kept'")
    assert inserted(source.capture()) == [1]
    assert source.prepared == {}


def test_an_xid_is_used_again_over_captures(shop: Shop) -> None:
    """Each capture begins with the XID open and ends with it open anew."""
    source, found = shop.source(), []
    shop.do(*prepared("'again'", 0))
    for number in range(1, 4):
        found.append(inserted(source.capture()))
        end(shop, "commit", "'again'")
        shop.do(*prepared("'again'", number))
    end(shop, "rollback", "'again'")
    found.append(inserted(source.capture()))
    assert found == [[], [0], [1], [2]]
    assert source.prepared == {}


def test_prepared_rows_larger_than_the_ring(shop: Shop) -> None:
    """They wait in a file, and come out whole in a later capture."""
    shop.do("alter table t add v varchar(2000)")
    source = shop.source()
    large = [f"insert into t values ({n}, repeat('x', 2000))" for n in range(50)]
    shop.do("xa start 'big'", *large, "xa end 'big'", "xa prepare 'big'")
    assert source.capture(ring_bytes=1 << 14) == []
    end(shop, "commit", "'big'")
    assert inserted(source.capture(ring_bytes=1 << 14)) == list(range(50))


def test_without_rows_nothing_waits(shop: Shop) -> None:
    """An XA transaction that only read leaves the log as readable as before."""
    source = shop.source()
    shop.do("xa start 'r'", "select * from t", "xa end 'r'", "xa prepare 'r'", "xa commit 'r'")
    shop.do(*rows(1))
    assert (inserted(source.capture()), source.prepared) == ([1], {})


@pytest.mark.parametrize("word", ["commit", "rollback"])
@pytest.mark.since(8, 0, 20)
def test_a_compressed_one_waits_too(mysql_shop: Shop, word: str) -> None:
    """Its XA_PREPARE stands inside the payload."""
    source, compressed = mysql_shop.source(), "set binlog_transaction_compression = on"
    mysql_shop.do(compressed, *prepared("'p'", 1, 2))
    mysql_shop.do(*rows(3))
    end(mysql_shop, word, "'p'")
    one_phase = ["insert into t values (4)", "xa end 'p'", "xa commit 'p' one phase"]
    mysql_shop.do(compressed, "xa start 'p'", *one_phase)
    assert inserted(source.capture()) == ([3, 1, 2, 4] if word == "commit" else [3, 4])


@pytest.mark.since(8, 3)
def test_with_tagged_gtids(mysql_shop: Shop) -> None:
    """Prepare and commit have an identity each, both with the tag."""
    source = mysql_shop.source()
    start = source.at
    statements = ["set gtid_next = 'AUTOMATIC:xa'", *prepared("'g'", 1), "xa commit 'g'"]
    mysql_shop.do(*statements, "set gtid_next = 'AUTOMATIC'")
    assert inserted(source.capture()) == [1]
    identities = [one.gtid.split(":")[1:] for one in mysql_shop.read(start)]
    assert identities == [["xa", "1"], ["xa", "2"]]


@pytest.mark.parametrize("number", [2**31, 2**32 - 1, 2**32 + 1])
def test_format_ids_beyond_31_bits(mysql_shop: Shop, number: int) -> None:
    """MySQL takes 64 bits, and XA_PREPARE has four bytes of them; two that differ in it
    alone cannot be open at once."""
    source = mysql_shop.source()
    mysql_shop.do(*prepared(f"'f','',{number}", 1))
    with pytest.raises(pymysql.err.OperationalError, match="XAER_DUPID"):
        mysql_shop.do(*prepared("'f','',1", 2))
    assert source.capture() == []
    end(mysql_shop, "commit", f"'f','',{number}")
    assert inserted(source.capture()) == [1]
