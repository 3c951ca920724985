"""A server that keeps the case of names and ignores it (`lower_case_table_names = 2`), which it is
only on a file system that ignores case, too; and one that is nothing but its log."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from demo.mysql_search import Program
from demo.mysqld import ProgramMySql
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.ports.source import (
    Baseline,
    CurrentSchemas,
    ListedTable,
    ServerFacts,
    SourceServer,
    TableSnapshot,
)
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.schema.model import DatabaseSchema, TableSchema
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.table import TableName, TableStructure
from tests.fix_mysql import MySqlStand, killed_at_last
from tests.lake.caseless import caseless_folder
from tests.mysql.reading import server
from tests.pipeline.made import query
from tests.positions.fake import SCHEMA, TABLE, FakeServer
from tests.positions.follower import Follower
from tests.positions.paused import Shop
from tests.positions.servers import SMALL, make_account
from tests.shape.follower import ShapedFollower

OPTIONS = (
    *SMALL,
    "--server-id=77",
    "--lower-case-table-names=2",
    "--binlog-row-metadata=FULL",
)
CAPITAL = TableName("shop", "T")
CREATE = "create table {} (id int not null primary key, v int) engine = InnoDB"


@dataclass(slots=True)
class CaselessServer(FakeServer):
    """Its log has the rows of table shop.t, which the server spells in capital letters, or does not
    have any more: then it has another one. `reads`: how often rows were read."""

    spelled: TableName = CAPITAL
    exists: bool = True
    reads: int = 0

    def state(self, text: str) -> None:
        """Log a statement."""
        log = self.files[-1]
        self.number += 1
        gtid = b"\0" + UUID(self.uuid).bytes + struct.pack("<q", self.number)
        log.add(EventType.GTID, gtid, self.clock, self.server_id)
        self.executed = self.executed.union(GtidSet.parse(f"{self.uuid}:{self.number}"))
        log.add(EventType.QUERY, query(text), self.clock, self.server_id)

    @property
    def schemas(self) -> dict[TableName, TableSchema]:
        name = self.spelled if self.exists else TableName("low", "other")
        return {name: replace(SCHEMA, name=name)}

    def facts(self) -> ServerFacts:
        facts = FakeServer.facts(self)
        return replace(facts, settings={**facts.settings, "lower_case_table_names": "2"})

    def tables(self) -> list[ListedTable]:
        return [ListedTable(name, "InnoDB", len(self.rows), ("id",)) for name in self.schemas]

    def engines(self) -> dict[TableName, str]:
        return dict.fromkeys(self.schemas, "InnoDB")

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        found = [table for name, table in self.schemas.items() if names is None or name in names]
        database = DatabaseSchema(self.spelled.database, "utf8mb4", "utf8mb4_0900_ai_ci")
        return replace(FakeServer.baseline(self), tables=tuple(found), databases=(database,))

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return CurrentSchemas(self.schemas, self.head, self.uuid)

    @contextmanager
    def snapshot(
        self, table: TableSchema | TableStructure, columns: Sequence[str] | None = None
    ) -> Iterator[TableSnapshot]:
        self.reads += 1
        with FakeServer.snapshot(self, table, columns) as snapshot:
            yield snapshot


def follow(fake: CaselessServer, start: str) -> Follower:
    return Follower(cast("SourceServer", fake), ["*.*"], start=start)


def fake(**options: Any) -> CaselessServer:
    return CaselessServer("3e11fa47-71ca-11e1-9e33-c80aa9429562", 1, **options)


@pytest.mark.parametrize("start", ["earliest", "latest", "snapshot"])
@pytest.mark.parametrize(
    ("spelled", "cure"),
    [
        (CAPITAL, "in a second statement to shop.t"),
        (TableName("Shop", "t"), "in another database"),
    ],
    ids=str,
)
def test_both_spellings_of_a_name_stop_before_a_row_is_taken(
    spelled: TableName, cure: str, start: str
) -> None:
    """The log describes its columns, but settings for the table do not match the name there. Nor
    is a table read that is not followed."""
    server = fake(spelled=spelled)
    server.write(1, 10)
    follower = follow(server, start)
    assert make_plan(follower.ports()).new_quarantines == sorted([spelled, TABLE])
    hints = {one.table: one.hint for one in follower.run().quarantined}
    assert hints.keys() == {spelled, TABLE}
    assert all(cure in str(hint) and "exclude both" in str(hint) for hint in hints.values())
    server.write(2, 20)
    follower.run()
    assert not any(follower.recorded_segments().values())
    assert server.reads == 0


@pytest.mark.parametrize(
    ("spelled", "typed"), [(CAPITAL, "T"), (TableName("Shop", "t"), "shop.t")], ids=str
)
def test_a_table_that_the_log_creates_stops_at_the_first_row_under_its_other_name(
    spelled: TableName, typed: str
) -> None:
    """It is dropped before the log's end, so the server's names say nothing of it. A CREATE TABLE
    may spell the database as the log does, and not as the server."""
    server = fake(spelled=spelled, exists=False)
    follower = follow(server, "earliest")
    follower.run()
    server.state(CREATE.format(typed))
    server.write(1, 10)
    server.state(f"drop table {typed}")
    assert make_plan(follower.ports()).new_quarantines == [TABLE]
    [stopped] = follower.run().quarantined
    assert stopped.table == TABLE
    assert f"the server logs rows of {spelled} under this name" in stopped.reason
    assert not any(follower.recorded_segments().values())


def test_a_table_that_only_the_log_describes_may_have_capital_letters() -> None:
    """Elsewhere it is followed, from its first row on."""
    server = fake(exists=False)
    follower = follow(server, "earliest")
    follower.run()
    server.write(1, 10)
    [stopped] = follower.run().quarantined
    assert stopped.table == TABLE
    assert "known from the log alone" in stopped.reason
    assert not any(follower.recorded_segments().values())


@pytest.fixture
def stand(mysql_program: Program, tmp_path: Path) -> Iterator[MySqlStand]:
    with caseless_folder(tmp_path, 1 << 30) as folder:
        made = ProgramMySql(mysql_program, folder, folder / "cache", port=0, options=OPTIONS)
        with killed_at_last(made) as running:
            stand = MySqlStand(running)
            make_account(stand)
            yield stand


@pytest.mark.soak
def test_a_table_whose_rows_are_logged_under_another_name_is_not_followed_without_them(
    stand: MySqlStand,
) -> None:
    """It would stay as it was read. In lower case, and under that name, it is followed."""
    assert stand.rows("select @@lower_case_table_names") == [(2,)]
    stand.execute("create database shop")
    shop = Shop(stand, "shop", Follower(server(stand), ["shop.*"], "snapshot"))
    shop.do("create table Orders (id int primary key)", "insert into Orders values (1)")
    shop.do("create table plain (id int primary key)")
    shop.run()
    assert "logs its rows as those of shop.orders" in str(shop.state("Orders").reason)
    assert "rows of shop.Orders under this name" in str(shop.state("orders").reason)
    shop.do("insert into Orders values (2)", "insert into PLAIN values (2)")
    assert "it would be quarantined again" in shop.resume("Orders")
    assert make_plan(shop.follower.ports()).new_quarantines == [shop.table("Orders")]
    shop.run()
    assert shop.state("Orders").has_stopped
    shop.require_same("plain")
    shop.do("rename table Orders to renamed", "insert into renamed values (3)")
    shop.run()
    shop.do("insert into renamed values (4)")
    shop.run()
    shop.require_same("renamed")


@pytest.mark.soak
def test_no_hidden_column_is_written_under_the_name_in_the_log(stand: MySqlStand) -> None:
    """Settings name the table as the server spells it, and the log has the columns' names. Once
    its name is in lower case, it comes back."""
    hidden = ShapeRules(exclude_columns=("email",))
    follower = ShapedFollower(
        stand, ["shop.*", "[Ss]tore.*"], {"shop.Orders": hidden}, start="snapshot"
    )
    stand.execute("create database shop", "create database Store")
    shop = Shop(stand, "shop", follower)
    create = "(id int primary key, email varchar(20))"
    shop.do(f"create table Orders {create}", "insert into Orders values (1, 'secret')")
    shop.do(f"create table Store.goods {create}", "insert into Store.goods values (1, 'secret')")
    shop.run()
    shop.do(
        "insert into Orders values (2, 'secret')", "insert into Store.goods values (2, 'secret')"
    )
    shop.run()
    shop.do(f"create table Later {create}", "insert into Later values (1, 'secret')")
    shop.run()
    stopped = {str(table) for table, state in follower.states().items() if state.has_stopped}
    names = ["shop.Later", "shop.later", "shop.Orders", "shop.orders", "Store.goods", "store.goods"]
    assert stopped == set(names)
    assert not any(follower.recorded_segments().values())
    assert "secret" not in str([table.to_pylist() for table in follower.lake.files.values()])

    shop.do("rename table Orders to other", "rename table other to orders")
    follower.shapes = {"shop.orders": hidden}
    shop.run()
    assert shop.state("orders").has_stopped
    shop.resume("orders")
    shop.run()
    shop.do("insert into orders values (3, 'secret')")
    shop.run()
    assert follower.mirror("shop.orders") == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert "secret" not in str([table.to_pylist() for table in follower.lake.files.values()])
