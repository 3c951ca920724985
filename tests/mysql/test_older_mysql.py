"""What older versions of MySQL do otherwise: 5.7, and 8.0.15, whose log has the signs of numbers
beside a YEAR, and the columns that functional indexes hide."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from demo.mysql_search import Program
from demo.mysqld import mysql_server
from lockstep.pipeline.run.begin import RunStart, foresee_start
from lockstep.pipeline.run.dump.initial_schemas import structures_at
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.proof.verify_schema import verify_schema
from lockstep.pipeline.values.errors import TlsRefused
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import UNHURRIED, MySqlStand, killed_at_last
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower

METADATA = ("FULL", "MINIMAL")


@dataclass
class Shop:
    """A database of the old server, followed from `follow` on."""

    stand: MySqlStand
    database: str
    _follower: Follower | None = field(default=None)

    def do(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.database)

    @property
    def follower(self) -> Follower:
        if self._follower is None:
            self._follower = Follower(server(self.stand), [f"{self.database}.*"])
        return self._follower

    def run(self) -> None:
        self.follower.run()

    def values(self, table: str, column: str) -> list[Any]:
        """A column of a mirror, sorted."""
        mirror = self.follower.states()[TableName(self.database, table)].mirror
        rows = self.follower.lake.tables[mirror][-1].rows.to_pylist()
        return sorted(row[column] for row in rows)

    def faults(self) -> Sequence[str]:
        """What is wrong: quarantined tables, mirrors that are not equal, structures that are not
        the server's."""
        states = self.follower.ledger.table_states(SOURCE).values()
        found = verify(self.follower.ports())
        told = [str(state.reason) for state in states if state.reason]
        told += [str(table) for table in found.tables if not table.equal]
        schemas = verify_schema(self.follower.ports())
        return told + [
            str(one) for one in (*schemas.history_disagreements, *schemas.server_disagreements)
        ]


@pytest.fixture
def shop(mysql80: MySqlStand) -> Iterator[Shop]:
    mysql80.begin_file()
    with mysql80.own_database() as name:
        yield Shop(mysql80, name)


@pytest.mark.parametrize("metadata", METADATA)
def test_signs_beside_a_year(shop: Shop, metadata: str) -> None:
    """Every number has its own sign, whether its table is known from the server, from statements
    or from the log alone."""
    columns = "id int primary key, y year, b bigint unsigned, c int, z year, d tinyint unsigned"
    values = "2001, 18000000000000000000, -4, 1999, 200"
    with shop.stand.metadata(metadata):
        shop.do(f"create table t ({columns})")
        shop.run()
        shop.do(
            f"insert into t values (2, {values})",
            f"create table u ({columns})",
            f"insert into u values (3, {values})",
            "alter table t add e int unsigned after id, add f year first, modify d int unsigned",
            "insert into t values (1999, 3, 4000000000, 2000, 1, -1, 1901, 4000000000)",
        )
        shop.run()
    assert shop.faults() == []
    assert shop.values("t", "d") == [200, 4000000000]
    assert shop.values("u", "b") == [18000000000000000000]


def test_signs_beside_a_year_by_the_log_alone(shop: Shop) -> None:
    """A table that was altered after the history's beginning is read as its table maps say."""
    shop.do("create table t (id int primary key, y year, b int unsigned, c int)")
    place = "{}:{}".format(*shop.stand.head())
    shop.do("insert into t values (1, 2001, 4000000000, -5)", "alter table t add d int unsigned")
    shop.follower.start = place
    shop.do("insert into t values (2, 2001, 4000000000, -4, 3000000000)")
    shop.run()
    assert shop.values("t", "b") == [4000000000, 4000000000]
    assert shop.values("t", "c") == [-5, -4]


HIDING = (
    "create table t (id int primary key, v varchar(10), n bigint, key lower ((lower(v))),"
    " key next ((n + 1)))",
    "alter table t add w varchar(10), add m bigint",
    "create index more on t ((m + 1), (upper(w)))",
    "alter table t add o bigint, add p varchar(10) after v",
)


@pytest.mark.thin
@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
def test_hidden_columns(shop: Shop, metadata: str, image: str) -> None:
    """Tables with functional indexes are captured without the columns that these hide, whatever
    the images leave out and wherever the hidden columns stand."""
    session = f"set binlog_row_image = {image}"
    with shop.stand.metadata(metadata):
        shop.do("create table z (id int primary key)")
        shop.run()
        shop.do(
            *HIDING,
            session,
            "insert into t (id, v, n, w, m, o, p) values (1, 'A', 2, 'b', 3, 4, 'C'),"
            " (2, 'D', 5, 'e', 6, 7, 'F'), (3, null, null, null, null, null, null)",
            "update t set n = n + 1 where id = 1",
            "update t set id = 9, v = 'X' where id = 2",
            "delete from t where id = 3",
        )
        shop.run()
        shop.do(
            "alter table t drop index next, add q bigint, modify m bigint after id",
            "create table u like t",
            session,
            "insert into t values (4, 1, 'a', 'b', 2, 'c', 3, 4)",
            "insert into u select * from t",
            "update t set q = 5 where id = 4",
            "alter table t drop index lower, rename index more to less, add r bigint first",
            "update t set r = 5, m = 8 where id = 4",
            "alter table t drop index less",
            "update t set r = 6, o = 8 where id = 1",
        )
        shop.run()
        assert shop.faults() == []
        assert shop.values("t", "o") == [3, 7, 8]


@pytest.mark.parametrize("metadata", METADATA)
def test_hidden_columns_of_tables_that_were_there(shop: Shop, metadata: str) -> None:
    """Tables are loaded without hidden columns, whose places come from what the server counts.
    Which of them a key takes along is not known if several have some, until they are read again."""
    shop.follower.start = "snapshot"
    with shop.stand.metadata(metadata):
        shop.do(*HIDING, "insert into t (id, v, n) values (1, 'A', 2)")
        shop.run()
        shop.do("insert into t values (2, 'A', 'b', 1, 'c', 2, 3)", "update t set n = 9")
        shop.run()
        assert shop.faults() == []
        shop.do("alter table t drop index next", "update t set n = 10")
        shop.run()
        states = shop.follower.ledger.table_states(SOURCE).values()
        found = [str(state.reason) for state in states if state.reason]
        assert ["does not say which" in reason for reason in found] == (
            [True] if metadata == "MINIMAL" else []
        )


def test_places_are_of_one_server(shop: Shop) -> None:
    """On another server than before, the places of hidden columns are not known: it may have been
    filled from a dump, which does not tell them."""
    shop.do("create table z (id int primary key)")
    shop.run()
    shop.do(*HIDING)
    shop.run()
    ports, table = shop.follower.ports(), TableName(shop.database, "t")
    run_start = foresee_start(ports, ports.ledger.cursors(SOURCE).captured, None).outcome
    assert isinstance(run_start, RunStart)
    elsewhere = replace(run_start.start, server_uuid="another")
    places = []
    for start in (run_start, replace(run_start, start=elsewhere)):
        version = structures_at(ports, start).version(table)
        assert version is not None and version.schema is not None
        places.append([column.place for column in version.schema.expression_columns])
    assert places == [[4, 5, 8, 9], []]


def test_a_hidden_column_that_the_log_alone_does_not_tell(shop: Shop) -> None:
    """A table that is known from the log alone waits if one of its columns may be hidden."""
    shop.do(*HIDING[:1])
    place = "{}:{}".format(*shop.stand.head())
    shop.do("insert into t values (1, 'A', 2)", "alter table t add w int")
    shop.follower.start = place
    shop.run()
    (state,) = shop.follower.ledger.table_states(SOURCE).values()
    assert "a hidden column of a functional index" in str(state.reason)


def test_a_server_without_a_certificate_says_so(mysql57: MySqlStand) -> None:
    """Builds of 5.7 without OpenSSL make none by themselves."""
    with pytest.raises(TlsRefused, match="has no certificate and does not support TLS") as refused:
        MySqlServer(settings(mysql57, tls="required")).facts()
    assert "ssl_cert" in refused.value.hint


def test_a_tls_that_is_too_old_says_so(
    mysql_newest: MySqlStand, mysql57_program: Program, tmp_path: Path
) -> None:
    """With a certificate they speak TLS 1.1, which the OpenSSL of today does not."""
    with _with_certificate(mysql57_program, tmp_path, mysql_newest) as stand:
        for tls in ("required", "verify"):
            with pytest.raises(TlsRefused, match=r"TLS 1\.1 at most") as refused:
                MySqlServer(settings(stand, tls=tls)).facts()
            assert "5.7.28" in refused.value.hint
        assert server(stand).facts().version.startswith("5.7.22")


@contextmanager
def _with_certificate(program: Program, folder: Path, newest: MySqlStand) -> Iterator[MySqlStand]:
    """With the certificate that the newest server made for itself, and its key in the older form of
    the two."""
    ((made,),) = newest.rows("select @@datadir")
    key = serialization.load_pem_private_key(Path(made, "server-key.pem").read_bytes(), None)
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    options = (
        *UNHURRIED,
        *(
            f"--ssl-{name}={made}{file}.pem"
            for name, file in (("ca", "ca"), ("cert", "server-cert"))
        ),
        f"--ssl-key={folder / 'key.pem'}",
    )
    with killed_at_last(mysql_server(program, folder, os.environ, options=options)) as running:
        yield MySqlStand(running, running.user, running.password)
