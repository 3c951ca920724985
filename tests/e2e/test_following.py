"""Structures that change between rows, and a log that names no columns: MySQL and the lake
are equal after it.

Two projects for the module, a run of each before and behind the statements of `altered`, without
those about some tables, by chance: one of all tables, and one that reads again what the log cannot
tell, of those tables. A run of each was killed before, in the middle of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import lockstep
from tests.chance import by_chance
from tests.e2e import altered
from tests.e2e.altered import DATABASE
from tests.e2e.points import Point
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

SHRUNK, PARTS, GONE, REBORN = (
    f"{DATABASE}.{name}" for name in ("shrunk", "parts", "gone", "reborn")
)

DRAWN = 2
"""So many of `altered.OTHERS`, by chance, in `make test`; all of them in `make soak`."""
MIRROR_KILLS = (
    (Point.MIRROR_STEP, "after", 3),
    (Point.MIRROR_EVOLVED, "after", 1),
    (Point.MIRROR_WRITTEN, "after", 1),
)
"""Between two steps of a mirror's columns, before its rows, and behind the commit of both."""
READING_KILLS = ((Point.CAPTURE_RECORDED, "after", 2), (Point.CAPTURE_RECORDED, "before", 2))
"""When a table was read anew: before its mirror shows it, and before the ledger knows."""


@dataclass(frozen=True)
class Stages:
    """What was told (JSON): `quarantined` by the run in which `altered.THEN` was read, `followed`
    by the `verify` behind it; `read_anew` and `then` by those of `other`; `resumed` and
    `afterwards` by the run and the `verify` behind `altered.AFTERWARDS`. `statements`: all that was
    done; `there`: the source's tables at the end."""

    project: Project
    other: Project
    quarantined: Any
    followed: Any
    read_anew: Any
    then: Any
    resumed: Any
    afterwards: Any
    statements: tuple[str, ...]
    there: frozenset[str]


@pytest.fixture(
    scope="module",
    params=[
        (DRAWN, MIRROR_KILLS[0], READING_KILLS[0]),
        *(
            pytest.param((len(altered.OTHERS), *kills), marks=pytest.mark.soak)
            for kills in zip(MIRROR_KILLS, cycle(READING_KILLS), strict=False)
        ),
    ],
    ids=lambda param: f"{param[0]}, {param[1][0].name}, {param[2][1]} the ledger knows",
)
def stages(
    request: pytest.FixtureRequest,
    mysql: MySqlStand,
    tmp_path_factory: pytest.TempPathFactory,
    warm: WarmProcess,
) -> Iterator[Stages]:
    drawn, of_mirrors, of_reading = request.param
    left_out = by_chance().sample(altered.OTHERS, len(altered.OTHERS) - drawn)
    first, then, afterwards = (
        altered.without(left_out, one) for one in (altered.FIRST, altered.THEN, altered.AFTERWARDS)
    )
    folder, start = tmp_path_factory.mktemp("following"), head(mysql)
    mysql.execute(*first)
    project = Project.made(
        folder / "default", port=mysql.port, tables=[f"{DATABASE}.*"], start=start, warm=warm
    )
    other = Project.made(
        folder / "resnapshot",
        port=mysql.port,
        tables=[SHRUNK, PARTS, GONE, REBORN],
        start=start,
        extra='on_rewrite = "resnapshot"\ndropped_tables = "drop"\n',
        warm=warm,
    )
    project.run("run")
    other.run("run")
    mysql.execute(*then)
    project.killed(*of_mirrors)
    quarantined = _told(project, "run", 6)
    followed = _told(project, "verify", None)
    other.killed(*of_reading)
    read_anew = _told(other, "run", 0)
    now = _told(other, "verify", None)
    mysql.execute(*afterwards)
    for table in (SHRUNK, PARTS):
        project.run("resume", table, "--reason", "what it has now is right")
    yield Stages(
        project,
        other,
        quarantined,
        followed,
        read_anew,
        now,
        _told(project, "run", 0),
        _told(project, "verify", None),
        (*first, *then, *afterwards),
        frozenset(f"{DATABASE}.{name}" for (name,) in mysql.rows(f"show tables from {DATABASE}")),
    )
    mysql.execute(f"drop database {DATABASE}")


def _told(project: Project, command: str, expect: int | None) -> Any:
    done = project.run(command, "--json", expect=expect)
    return json.loads(done.stdout)["sources"]["shop"]


def unequal(told: Any) -> dict[str, Any]:
    """The tables of a `verify` that are not equal, with what it says of them."""
    return {name: one for name, one in told["tables"].items() if not one["equal"]}


def lake_rows(project: Project, table: str) -> list[dict[str, Any]]:
    """A mirror's rows as another reader of Delta sees them, by their `id`."""
    mirror = DeltaTable(project.lake / "shop" / DATABASE / table)
    query = QueryBuilder().register("mirror", mirror).execute("select * from mirror order by id")
    rows: list[dict[str, Any]] = pa.table(query.read_all()).to_pylist()
    return rows


def test_rows_that_no_event_tells_of_quarantine_their_table(stages: Stages) -> None:
    """By default: with what happened, where, and what brings the table back. All others are
    followed, and equal."""
    assert unequal(stages.followed) == {}
    assert set(stages.followed["tables"]) == stages.there - {SHRUNK, PARTS}
    assert stages.quarantined["acknowledged"] == stages.quarantined["end"]
    told = {one["table"]: one for one in stages.quarantined["stopped"]}
    assert sorted(told) == [PARTS, SHRUNK]
    assert "stored values of v may have changed" in told[SHRUNK]["reason"]
    assert "TRUNCATE PARTITION" in told[PARTS]["reason"]
    for table, one in told.items():
        assert one["hint"] == f"`lockstep resume {table} --reason …` brings it back"
        assert one["place"].startswith("binlog.")


def test_with_resnapshot_they_are_read_anew(stages: Stages) -> None:
    """The very same statements: within that run the tables are equal, and nothing is left for a
    person to do, though the run before was killed when the ledger knew of rows that were read
    anew, and no mirror had them."""
    assert stages.read_anew["stopped"] == []
    assert unequal(stages.then) == {}
    assert set(stages.then["tables"]) == {SHRUNK, PARTS, REBORN}
    require_settled(stages.other, {SHRUNK, PARTS, REBORN})


def test_rows_afterwards_and_resumed_tables(stages: Stages) -> None:
    """One word for each table that was quarantined; rows are followed by the new structures, also
    where a run was killed between two steps of a mirror's columns."""
    assert stages.resumed["stopped"] == []
    assert unequal(stages.afterwards) == {}
    assert set(stages.afterwards["tables"]) == stages.there
    require_settled(stages.project, stages.there)


def require_settled(project: Project, tables: AbstractSet[str]) -> None:
    """No change is there twice, and nothing stays open."""
    project.require_once(*tables, *(f"_changes.{table}" for table in tables))
    assert project.status()["open_batches"] == []


def test_dropped_columns_keep_what_they_held(stages: Stages) -> None:
    """A row that came later has NULL there."""
    rows = {row["id"]: row["v"] for row in lake_rows(stages.project, "kept")}
    assert rows == {1: "one", 2: "two", 4: None}


def test_dropped_tables_keep_what_they_held(stages: Stages) -> None:
    """All up to the DROP; `verify` compares it with nothing."""
    rows = lake_rows(stages.project, "gone")
    assert rows == [{"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 3, "v": 3}]
    assert GONE not in stages.followed["tables"]


def test_dropped_tables_go_where_that_is_wanted(stages: Stages) -> None:
    """`dropped_tables = "drop"`: with their folder, and nothing else; the changelog stays."""
    lake = stages.other.lake / "shop"
    assert not (lake / "_removed").exists()
    assert (lake / "_changes" / DATABASE / "gone" / "_delta_log").is_dir()
    there = {f"{DATABASE}.{path.name}" for path in (lake / DATABASE).iterdir()}
    assert there == {SHRUNK, PARTS, REBORN}


def test_every_statement_is_a_row(stages: Stages) -> None:
    """Verbatim and in order, DROP TABLE as the server logs it; the changes before and behind it
    are told apart by their numbers."""
    path = stages.project.lake / "shop" / "_ddl"
    rows = (
        DeltaTable(path)
        .to_pyarrow_table()
        .sort_by([("_file", "ascending"), ("_offset", "ascending")])
    )
    told = [text for text in rows["statement"].to_pylist() if not text.startswith("DROP")]
    words = ("create ", "alter ", "rename ", "truncate ")
    assert told == [text for text in stages.statements if text.startswith(words)]
    assert set(rows["outcome"].to_pylist()) == {"followed"}
    (swap,) = (row for row in rows.to_pylist() if row["statement"].startswith("rename table"))
    assert {"this", "that"} <= {one["name"] for one in swap["tables"] if one["action"] == "copy"}
    changelog = DeltaTable(stages.project.lake / "shop" / "_changes" / DATABASE / "this")
    for change in changelog.to_pyarrow_table().to_pylist():
        if change["_change_type"] != "resnapshot":
            before = (change["_file"], change["_offset"]) < (swap["_file"], swap["_offset"])
            assert (change["_sequence"] <= swap["_sequence"]) == before


def test_every_transaction_is_a_row(stages: Stages) -> None:
    """Once; those that changed captured rows know which."""
    project = stages.project
    rows = DeltaTable(project.lake / "shop" / "_transactions").to_pyarrow_table().to_pylist()
    assert len({row["_gtid"] for row in rows}) == len(rows)
    found = {row["_gtid"]: (row["first_sequence"], row["last_sequence"]) for row in rows}
    changelog = DeltaTable(project.lake / "shop" / "_changes" / DATABASE / "added")
    for change in changelog.to_pyarrow_table().to_pylist():
        first, last = found[change["_gtid"]]
        assert first <= change["_sequence"] <= last


def test_a_changelog_tells_all_through_its_generations(stages: Stages, mysql: MySqlStand) -> None:
    """Another type begins the next one: read together, the last image of each row is the
    row; a consumer is given the same."""
    config, table = stages.project.config, f"{DATABASE}.widened"
    changelog = lockstep.read_changelog("shop", table, config=config)
    assert [generation.number for generation in changelog.generations] == [1, 2, 3]
    changes = changelog.arrow().to_pylist()
    names = ("id", "n", "f", "d", "s", "u")
    last = {change["id"]: tuple(change[name] for name in names) for change in changes}
    there = mysql.rows(f"select {', '.join(names)} from {table} order by id")
    assert [last[row[0]] for row in there] == there
    lockstep.make_consumer("shop", "everything", start="earliest", config=config)
    with lockstep.consume("shop", "everything", config=config) as consumer:
        delivery = consumer.get(max_changes=None)
        assert delivery is not None
        assert [generation.number for generation in delivery.generations(table)] == [1, 2, 3]
        assert delivery.arrow(table).to_pylist() == changes
