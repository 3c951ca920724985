"""Runs that hang at a place of their work, and wake up when another has done it.

A run is stopped at one call, another takes the source over and finishes, then the first goes on.
Both sides are equal then, each step is one commit, and the first says that it was taken over.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.resources.lake.spark import log_store
from lockstep.resources.lake.spark.jars import jars_folder
from tests.chance import by_chance
from tests.e2e.points import Point
from tests.e2e.project import Project, followed
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.hostile.takeovers import Hanging, asleep, asleep_in_java, taking_over
from tests.lake import build_log_store

TABLES = ("taken.changed", "taken.plain")

COMMITTING = {
    "before a changelog's commit": (Point.CHANGELOG_COMMITTED, 1),
    "before the last changelog's commit": (Point.CHANGELOG_COMMITTED, 4),
    "before columns are added to a changelog": (Point.CHANGELOG_WIDENED, 1),
    "before the first step of a mirror's columns": (Point.MIRROR_STEP, 1),
    "before the second step": (Point.MIRROR_STEP, 2),
    "before the third": (Point.MIRROR_STEP, 3),
    "before a mirror's rows": (Point.MIRROR_ROWS, 1),
    "before the last mirror's rows": (Point.MIRROR_ROWS, 2),
}
"""Calls that write to the lake."""

RECORDING = {
    "before the ledger has the capture": (Point.CAPTURE_RECORDED, 1),
    "before a batch": (Point.BATCH_BEGUN, 1),
    "before a segment": (Point.SEGMENT_OPENED, 1),
    "before the intents": (Point.WRITE_INTENDED, 1),
    "before the holder is asked": (Point.HOLDER_ASKED, 1),
    "before it is asked again": (Point.HOLDER_ASKED, 3),
    "before a write is settled": (Point.WRITE_SETTLED, 1),
    "before the other is": (Point.WRITE_SETTLED, 2),
    "before all is merged": (Point.BATCH_MERGED, 1),
    "before it is acknowledged": (Point.BATCH_ACKNOWLEDGED, 1),
}
"""Calls that are about the books."""

READING = {
    "before what is prepared is asked for": (Point.PREPARED_ASKED, 1),
    "before the cursor is": (Point.CURSOR_ASKED, 2),
    "before the tables' states are": (Point.STATES_ASKED, 2),
}
"""Calls that read the books: what was read before is of another moment than what is read then."""

COMMITS = [("changed", 1), ("changed", 4), ("plain", 1)]
"""Commits that are stopped in the middle, by table and version."""

EXAMPLE = (
    "xa commit 'taken'",
    "alter table taken.changed rename column x to y, add column x int",
    "update taken.changed set x = id * 10 where id > 1",
    "update taken.plain set v = v + 1",
    "insert into taken.plain values (9, 9)",
)


@pytest.fixture(scope="module")
def begun(
    mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess
) -> Project:
    """A project after its first run; then a column was renamed and another came in its name."""
    made = followed(
        mysql,
        "taken",
        tmp_path_factory.mktemp("taken") / "project",
        warm,
        "create table taken.changed (id int primary key, x int)",
        "create table taken.plain (id int primary key, v int)",
        "insert into taken.changed values (1, 1), (2, 2), (3, 3)",
        "insert into taken.plain values (1, 1), (2, 2), (3, 3)",
        "xa start 'taken'",
        "insert into taken.plain values (4, 4)",
        "xa end 'taken'",
        "xa prepare 'taken'",
    )
    made.run("run")
    mysql.execute(*EXAMPLE)
    return made


@pytest.fixture
def project(begun: Project, tmp_path: Path) -> Project:
    return begun.copied(tmp_path / "project")


@pytest.mark.parametrize(
    "kind",
    [COMMITTING, RECORDING],
    ids=["a call that writes to the lake", "one of the books"],
)
def test_a_run_that_was_taken_over_changes_nothing(
    project: Project, rival: WarmProcess, kind: dict[str, tuple[str, int]]
) -> None:
    """Before one of these calls, by chance."""
    place = by_chance().choice(sorted(kind))
    print(place)
    require_nothing_changed(project, rival, *kind[place])


def test_what_was_read_before_is_not_held_against_the_log(
    project: Project, rival: WarmProcess
) -> None:
    """A run that wakes up reads a log whose XA transaction the books no longer have open: it says
    that it was taken over, and not that a person has to leave out part of the log."""
    require_nothing_changed(project, rival, *READING["before what is prepared is asked for"])


@pytest.mark.soak
@pytest.mark.parametrize(
    ("place", "nth"),
    (COMMITTING | RECORDING | READING).values(),
    ids=COMMITTING | RECORDING | READING,
)
def test_a_run_that_was_taken_over_anywhere(
    project: Project, rival: WarmProcess, place: str, nth: int
) -> None:
    require_nothing_changed(project, rival, place, nth)


def require_nothing_changed(project: Project, rival: WarmProcess, place: str, nth: int) -> None:
    with asleep(replace(project, warm=rival), place, nth) as hanging:
        require_too_late(project, hanging)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log store that waits in the middle of a commit."""
    if shutil.which("javac") is None:
        pytest.skip("there is no javac")
    folder = tmp_path_factory.mktemp("held")
    against = f"{build_log_store.compile_path(jars_folder(sys.prefix))}:{log_store.LOG_STORE_JAR}"
    source = Path(__file__).with_name("HeldLogStore.java")
    command = (
        *("javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"),
        *("--release", build_log_store.RELEASE, "-d", str(folder), "-cp", against),
    )
    subprocess.run([*command, str(source)], check=True)
    shutil.make_archive(str(folder / "held"), "zip", folder, "lockstep")
    (folder / "held.zip").rename(folder / "held.jar")
    return folder


@pytest.mark.parametrize(
    ("table", "version"),
    [
        pytest.param(*one, marks=[pytest.mark.soak] if number else [])
        for number, one in enumerate(COMMITS)
    ],
)
def test_java_that_was_stopped_inside_a_commit_overwrites_nothing(
    project: Project, rival: WarmProcess, store: Path, table: str, version: int
) -> None:
    """Its draft is written; the commit that has the name meanwhile keeps it. Of the log store by
    itself, `tests/lake/test_log_store.py` proves that a name is given once."""
    commit = f"shop/taken/{table}/_delta_log/{version:020d}.json"
    with asleep_in_java(replace(project, warm=rival), store, commit) as hanging:
        assert not (project.lake / commit).exists()
        require_too_late(project, hanging)


def require_too_late(project: Project, hanging: Hanging) -> None:
    """Another run takes over and finishes; the one that hung goes on, and what it does is of
    no account."""
    taking_over(project)
    before, told = logs(project), books(project)
    hanging.wake()
    code, said = hanging.end()
    # A run that was stopped within a statement of the ledger lost its connection there. It tries
    # the step again as a run that begins now, and finds nothing to do.
    tried_again = code == 0 and "Trying again" in said
    assert tried_again or (code, "took over" in said) == (3, True), said
    assert (logs(project), books(project)) == (before, told)
    require_equal(project)


def logs(project: Project) -> dict[str, bytes]:
    """Every commit in the lake."""
    return {
        str(path.relative_to(project.lake)): path.read_bytes()
        for path in project.lake.rglob("_delta_log/*.json")
    }


def books(project: Project) -> dict[str, object]:
    told = project.status()
    return {key: told[key] for key in ("acknowledged", "captured", "open_batches")}


def require_equal(project: Project) -> None:
    """MySQL and the lake are, and each write and each step is one commit."""
    assert project.proven() == set(TABLES)
    changelogs = (f"_changes.{table}" for table in TABLES)
    project.require_once(*TABLES, *changelogs, "_transactions", "_ddl")
    said = [
        json.loads(commit["commitInfo"]["userMetadata"])["lockstep"]
        for commit in project.commits("taken.changed")
    ]
    steps = Counter(one["step"] for one in said if "step" in one)
    assert steps == {1: 1, 2: 1, 3: 1}
