"""Tables that go at a bad moment: with nothing to merge, or before they were ever read."""

from __future__ import annotations

from lockstep.pipeline.values.policies import Deletes, LakePolicies
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE
from tests.schema.mixed_log import minimal_log
from tests.schema.reader import Reader


def test_a_table_goes_and_nothing_else(mysql: MySqlStand) -> None:
    """What the mirror held stays, deleted rows among it."""
    with minimal_log(mysql) as name:
        policies = LakePolicies(deletes=Deletes.SOFT)
        reader = Reader(server(mysql), [f"{name}_p.*"], lake_policies=policies)
        reader.run()
        table = f"{name}_p.first"
        mysql.execute(f"insert into {table} values (1), (2)", f"delete from {table} where id = 1")
        reader.run()
        mysql.execute(f"drop table {table}", f"create table {name}_p.other (id int)")
        reader.run()
        shown = [(row["id"], row["_deleted_at"] is None) for row in reader.mirror(table)]
        assert shown == [(1, False), (2, True)]


def test_a_table_goes_before_it_was_read(mysql: MySqlStand) -> None:
    """It got a captured name, so it must be read from the source, which has it no more."""
    with minimal_log(mysql) as name:
        reader = Reader(server(mysql), [f"{name}_p.first", f"{name}_x.*"])
        mysql.execute(
            f"create database {name}_x",
            f"create table {name}_x.there (id int primary key)",
            f"create table {name}_p.elsewhere (id int primary key)",
            f"insert into {name}_p.elsewhere values (1)",
        )
        reader.run()
        mysql.execute(
            f"rename table {name}_p.elsewhere to {name}_x.briefly",
            f"insert into {name}_x.briefly values (2)",
            f"drop table {name}_x.briefly",
        )
        reader.run()
        assert reader.quarantined() == {}
        assert reader.mirror(f"{name}_x.briefly") == []
        assert reader.ledger.unfinished_batches(SOURCE) == []
