"""Percona Toolkit itself: under pt-online-schema-change and a writer the mirror is the table, and
the statements of pt-heartbeat and pt-table-checksum stop nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fix_mysql import MySqlStand
from tests.online.load import Load
from tests.online.made import ALTER, FIRST_STILL, STILL, Shop, copied
from tests.online.toolkit import PerconaToolkit


@pytest.mark.parametrize("helped", [False, True], ids=["by default", "helpers are followed"])
def test_a_run_in_the_middle_and_one_behind(
    toolkit: PerconaToolkit, mysql: MySqlStand, database: str, tmp_path: Path, *, helped: bool
) -> None:
    """The copy is half done when the first run comes: the rows of the new table come in one commit.
    They are read from MySQL, unless the program's own table is followed too."""
    shop = Shop.made(mysql, database, ["t"], helped=helped)
    log = tmp_path / "log"
    with (
        Load(mysql, shop.names) as load,
        toolkit.online_schema_change(mysql, database, "t", ALTER, log) as tool,
    ):
        tool.hold(lambda: copied(mysql, database, "_t_new") > 0)
        load.go_on()
        assert {"_t_new"} == shop.helpers()
        shop.run()
        assert 0 < copied(mysql, database, "_t_new") < STILL
        before = shop.commits("t")
        assert shop.columns("t") == ["id", "v"]
        tool.go_on()
        tool.require_done()
        load.go_on()
    shop.run()
    assert [*before, before[-1]] == shop.commits("t")
    assert shop.columns("t") == ["id", "v", "note"]
    assert set() == shop.helpers()
    assert shop.read_anew() == ([] if helped else ["t"])
    shop.require_followed()


def test_statements_in_place_of_rows(toolkit: PerconaToolkit, mysql80: MySqlStand) -> None:
    """pt-heartbeat and pt-table-checksum set their sessions to statement format: what they write
    to their own tables is passed and counted, reading captured tables is fine."""
    mysql = mysql80
    with mysql.own_database() as name, mysql.own_database() as own:
        mysql.execute(f"grant trigger on `{own}`.* to {mysql.account}")
        shop = Shop.made(mysql, name, ["t"])
        beaten = toolkit.run(
            *("pt-heartbeat", mysql, f"--database={own}", "--table=heartbeat", "--create-table"),
            *("--update", "--run-time=2", "--interval=0.5", "--no-version-check"),
        )
        summed = toolkit.run(
            *("pt-table-checksum", mysql, f"--databases={name}", f"--replicate={own}.checksums"),
            *("--recursion-method=none", "--no-version-check", "--chunk-size=50"),
        )
        mysql.execute(f"insert into {name}.t values (-1, 1)")
        report = shop.follower.run()
        written = mysql.rows(f"select count(*) from {own}.checksums")[0][0]
        assert written > 0, summed
        assert mysql.rows(f"select count(*) from {own}.heartbeat") == [(1,)], beaten
        assert report.passed_statements > written
        assert (report.stop_error, report.quarantined) == (None, ())
        shop.require_followed()


@pytest.mark.soak
def test_old_tables_that_are_kept(
    toolkit: PerconaToolkit, mysql: MySqlStand, database: str, tmp_path: Path
) -> None:
    """Three changes of one table, whose old ones get one more `_` each: a run behind the first
    and one over the other two."""
    shop = Shop.made(mysql, database, ["t"])
    with Load(mysql, shop.names) as load:
        for number, alter in enumerate((ALTER, "drop column note", "modify v decimal(30, 0)")):
            log = tmp_path / str(number)
            more = ("--no-drop-old-table",)
            with toolkit.online_schema_change(mysql, database, "t", alter, log, *more) as tool:
                tool.require_done()
            if number != 1:
                shop.run()
            load.go_on()
    shop.run()
    assert {"_t_old", "__t_old", "___t_old"} == shop.helpers()
    assert shop.columns("t") == ["id", "v"]
    shop.require_followed()


@pytest.mark.soak
def test_a_parent_of_foreign_keys(
    toolkit: PerconaToolkit, mysql: MySqlStand, database: str, tmp_path: Path
) -> None:
    """The child's constraint is made anew behind the swap; its rows stay as they are."""
    shop = Shop.made(mysql, database, ["t", "child"])
    mysql.execute(
        f"delete from {database}.child",
        f"alter table {database}.child add column t_id int,"
        f" add constraint parent foreign key (t_id) references {database}.t (id)",
        f"insert into {database}.child (id, t_id) values (1, {FIRST_STILL})",
    )
    log, more = tmp_path / "log", ("--alter-foreign-keys-method=rebuild_constraints",)
    with (
        Load(mysql, [f"{database}.t"]) as load,
        toolkit.online_schema_change(mysql, database, "t", ALTER, log, *more) as tool,
    ):
        tool.hold(lambda: copied(mysql, database, "_t_new") > 0)
        shop.run()
        tool.go_on()
        tool.require_done()
        load.go_on()
        shop.run()
        load.go_on()
    shop.run()
    assert shop.columns("t") == ["id", "v", "note"]
    shop.require_followed()
