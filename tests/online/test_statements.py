"""The statements of gh-ost, one after the other under a writer: runs in the middle of the copy and
behind the swap, and the mirror is the table.

spirit swaps its table as pt-online-schema-change does (`test_toolkit`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.fix_mysql import MySqlStand
from tests.online.gh_ost import gh_ost
from tests.online.load import Load
from tests.online.made import ALTER, Shop

ROWS = 250
"""Some chunks of them: a run comes between two."""

KINDS = [
    pytest.param(gh_ost, {"_t_gho", "_t_ghc", "_t_del"}, id="gh-ost"),
    pytest.param(
        partial(gh_ost, two_step=True, keep_old=True),
        {"_t_gho", "_t_ghc", "_t_del"},
        id="gh-ost, two-step, keeps the old table",
        marks=pytest.mark.soak,
    ),
]


@pytest.mark.parametrize(("change", "helpers"), KINDS)
def test_the_mirror_becomes_the_new_table(
    change: Callable[..., Any], helpers: set[str], mysql: MySqlStand, database: str
) -> None:
    """A run at every step; each finds the table as it is then, and no helper of the tool's."""
    shop = Shop.made(mysql, database, ["t"], rows=ROWS)
    met: set[str] = set()
    with Load(mysql, shop.names) as load:

        def between() -> None:
            load.go_on()
            met.update(shop.helpers())
            shop.run()

        change(mysql, database, "t", ALTER, between)
        met.update(shop.helpers())
        load.go_on()
        shop.run()
        load.go_on()
    shop.run()
    assert helpers == met
    assert shop.columns("t") == ["id", "v", "note"]
    shop.require_followed()


def test_one_commit_replaces_the_rows(mysql: MySqlStand, database: str) -> None:
    """Copy, swap and what writers did meanwhile, read in one run: one commit of the mirror. Who
    asks for the old tables gets them too."""
    shop = Shop.made(mysql, database, ["t"], rows=ROWS)
    shop.follower.tables = [f"{database}.*", f"{database}._*_del"]
    before = shop.commits("t")
    with Load(mysql, shop.names) as load:
        gh_ost(mysql, database, "t", ALTER, load.go_on, keep_old=True)
        load.go_on()
    shop.run()
    assert [*before, before[-1]] == shop.commits("t")
    shop.tables = ["t", "_t_del"]
    assert shop.columns("_t_del") == ["id", "v"]
    shop.require_followed()


@pytest.mark.soak
def test_two_changes_in_one_run(mysql: MySqlStand, database: str) -> None:
    """The second in two steps, on what the first one made of the table."""
    shop = Shop.made(mysql, database, ["t", "other"])
    with Load(mysql, shop.names) as load:
        gh_ost(mysql, database, "t", ALTER, load.go_on)
        gh_ost(mysql, database, "other", "modify v bigint", load.go_on)
        gh_ost(mysql, database, "t", "modify v decimal(20, 0)", load.go_on, two_step=True)
    shop.run()
    assert shop.columns("t") == ["id", "v", "note"]
    shop.require_followed()


@pytest.mark.soak
def test_the_key_changes(mysql: MySqlStand, database: str) -> None:
    """The new table has another key: its mirror merges by that from then on."""
    shop = Shop.made(mysql, database, ["t"], rows=ROWS)
    alter = "modify v bigint not null, drop primary key, add primary key (v, id), add unique (id)"
    with Load(mysql, shop.names) as load:
        gh_ost(mysql, database, "t", alter, load.go_on)
        load.go_on()
        shop.run()
        load.go_on()
    shop.run()
    shop.require_followed()


@pytest.mark.soak
def test_changes_that_never_stop(mysql: MySqlStand, database: str) -> None:
    """One follows the other while runs do: what a run reads from the source may be another
    table by the time it has read it."""
    shop = Shop.made(mysql, database, ["t"], rows=ROWS)
    with Load(mysql, shop.names) as load, ThreadPoolExecutor(1) as tools:
        changing = tools.submit(change_again_and_again, mysql, database, load)
        while not changing.done():
            shop.run()
        changing.result()
    shop.run()
    assert shop.columns("t") == ["id", "v"]
    shop.require_followed()


def change_again_and_again(mysql: MySqlStand, database: str, load: Load) -> None:
    for number in range(6):
        tool = (gh_ost, partial(gh_ost, two_step=True))[number % 2]
        tool(
            mysql,
            database,
            "t",
            f"add column c{number} int default {number}, modify v bigint",
            load.go_on,
        )
        tool(mysql, database, "t", f"drop column c{number}, modify v decimal(20)", load.go_on)
