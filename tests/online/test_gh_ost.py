"""gh-ost itself, where it is on PATH, under a writer: the mirror is the table. The statements that
it sends are in `gh_ost`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.mysql_search import MySql
from demo.mysqld import mysql_server
from tests.fix_mysql import MySqlStand
from tests.online.load import Load
from tests.online.made import ALTER, Shop, copied
from tests.online.toolkit import Tool
from tests.positions.servers import make_account

pytestmark = pytest.mark.soak

OPTIONS = [
    pytest.param(("--ok-to-drop-table",), set(), False, id="as it comes"),
    pytest.param(("--ok-to-drop-table",), set(), True, id="helpers are followed"),
    pytest.param(("--cut-over=two-step",), {"_t_del"}, False, id="two-step, keeps the old table"),
    pytest.param(("--cut-over=two-step",), {"_t_del"}, True, id="two-step, helpers are followed"),
]


@pytest.fixture(scope="module")
def watched(mysql_program: MySql, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlStand]:
    """A server with the performance schema, whose log names no columns."""
    options = ("--performance-schema=ON", "--binlog-row-metadata=MINIMAL")
    folder = tmp_path_factory.mktemp("watched")
    with mysql_server(mysql_program, folder, os.environ, options=options) as server:
        stand = MySqlStand(server)
        make_account(stand)
        yield stand


def gh_ost_itself(mysql: MySqlStand, database: str, log: Path, *more: str) -> Tool:
    """gh-ost on the server that applications write to, a hundred rows a chunk with a rest
    after each."""
    program = shutil.which("gh-ost")
    if program is None:
        pytest.skip("gh-ost is not on PATH; its statements are tested anyway")
    command = [
        *(program, "--execute", "--allow-on-master", "--assume-rbr"),
        *("--host=127.0.0.1", f"--port={mysql.port}"),
        *(f"--user={mysql.server.user}", f"--password={mysql.server.password}"),
        *(f"--database={database}", "--table=t", f"--alter={ALTER}"),
        *("--chunk-size=100", "--nice-ratio=5", "--cut-over-lock-timeout-seconds=10"),
        *("--default-retries=200", f"--serve-socket-file={log}.sock"),
    ]
    return Tool([*command, *more], dict(os.environ), log)


@pytest.mark.parametrize(("options", "left", "helped"), OPTIONS)
def test_a_run_in_the_middle_and_one_behind(
    options: tuple[str, ...], left: set[str], watched: MySqlStand, tmp_path: Path, *, helped: bool
) -> None:
    """The first run comes while the program copies, the second while writers go on behind
    the swap; the rows of the new table come in one commit. They are read from MySQL, unless the
    program's own tables are followed too."""
    database = watched.fresh_name()
    watched.execute(f"create database {database} character set utf8mb4")
    shop = Shop.made(watched, database, ["t"], rows=20_000, helped=helped)
    started = gh_ost_itself(watched, database, tmp_path / "log", *options)
    with started as tool, Load(watched, shop.names) as load:
        tool.hold(lambda: copied(watched, database, "_t_gho") > 0)
        load.go_on()
        assert "_t_gho" in shop.helpers()
        shop.run()
        before = shop.commits("t")
        assert shop.columns("t") == ["id", "v"]
        tool.go_on()
        tool.require_done()
        load.go_on()
        shop.run()
        assert shop.commits("t") == [*before, before[-1]]
        load.go_on()
    shop.run()
    assert shop.columns("t") == ["id", "v", "note"]
    assert shop.read_anew() == ([] if helped else ["t"])
    assert shop.helpers() == left
    shop.require_followed()
