"""Stories of tables, told side by side: the runs of one source serve all of them.

A story writes to a database of its own and judges what it finds there. It is a generator, and
yields wherever the source is to be run. Belongs here: telling them. Does not: stories, nor what
concerns a run as a whole (both in the tests).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from inspect import isgeneratorfunction, signature
from typing import Any

from pymysql import MySQLError

from lockstep.pipeline.values.errors import LockstepError
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.paused import Shop

Story = Callable[[Shop], Iterator[None]]


def stories_in(module: Mapping[str, Any]) -> list[Story]:
    """The stories among a module's names: generator functions of a shop alone; those whose names
    begin with `_` are told elsewhere."""
    return [
        function
        for name, function in module.items()
        if isgeneratorfunction(function)
        and [*signature(function).parameters] == ["shop"]
        and not name.startswith("_")
    ]


def tell(
    stand: MySqlStand,
    stories: Iterable[Story],
    tables: Sequence[str] = ("a", "b"),
    more: Sequence[str] = (),
    captured: Sequence[str] = ("*",),
    *,
    opened: bool = True,
    **options: Any,
) -> Follower:
    """Tell all stories to their ends, and raise what failed of them together.

    Each finds `tables` of an id and a value with a row each, and what `more` made, in its database
    and in the lake: a first run brought them there from the log. Unless `opened`, stories begin
    before any run, and the log that is read begins behind the tables. `captured`: which tables of a
    database are; `options`: the follower's. Returns the follower of all databases.
    """
    failed: list[Exception] = []
    with ExitStack() as databases:
        names = {story: databases.enter_context(stand.own_database()) for story in stories}
        patterns = [f"{name}.{table}" for name in names.values() for table in captured]
        options = {"server": server(stand), "start": str(head(stand)), **options}
        follower = Follower(tables=patterns, **options)
        told = [(story, Shop(stand, name, follower)) for story, name in names.items()]
        for _, shop in told:
            shop.make(tables, more)
        if not opened and follower.start != "snapshot":
            follower.start = str(head(stand))
        going_on = [(story, shop, story(shop)) for story, shop in told]
        while going_on:
            if opened:
                report = follower.run()
                for _, shop, _ in going_on:
                    shop.reports.append(report)
            opened = True
            for telling in tuple(going_on):
                story, _, rest = telling
                try:
                    next(rest)
                except StopIteration:
                    going_on.remove(telling)
                except (AssertionError, LookupError, LockstepError, MySQLError) as error:
                    error.add_note(f"in {story}")
                    failed.append(error)
                    going_on.remove(telling)
    if failed:
        raise ExceptionGroup("stories that end otherwise", failed)
    return follower
