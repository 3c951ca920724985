"""Two holders make the same write, one of them late: one commit, which both read back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from lockstep.pipeline.mirror.strategy import Scale
from lockstep.pipeline.ports.mirror_writes import FoldedChanges, MirrorWrite, Replace
from lockstep.pipeline.ports.mirrors import MirrorCommit
from lockstep.pipeline.values.errors import CommitConflict
from lockstep.resources.lake.delta.delta_log import commits_newest_first
from lockstep.resources.lake.delta.pin import Head
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import Lake
from tests.lake.made import PEOPLE, a_target, a_write, content, delete, update
from tests.lake.made import changes as images

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIRROR = "shop/shop/people"
BEFORE: list[dict[str, object]] = [{"id": number, "name": "old"} for number in (1, 2, 3)]


class Sleeper(SparkMirrors):
    """Falls asleep when it has seen that its write is not there yet."""

    def __init__(
        self,
        folder: Path,
        spark: SparkProcess,
        sleep: Callable[[], object],
        *,
        in_memory: bool = True,
    ) -> None:
        staging = folder.parent / "staging"
        super().__init__(folder, staging=staging, spark=spark, in_memory=in_memory)
        self._sleep = sleep

    def _commit_write(
        self, session: SparkSession, write: MirrorWrite, head: Head, chosen: Scale
    ) -> None:
        self._sleep()
        super()._commit_write(session, write, head, chosen)


def _the_write(disk: Lake, mode: str, number: int) -> MirrorWrite:
    changes: list[dict[str, object]] = [{"id": 4, "name": "new"}]
    if mode == "merge":
        changes += [update(id=1, name="new"), delete(id=2)]
    if mode == "replace":
        folded = FoldedChanges((disk.mirrors.stage("images", images(PEOPLE, changes)),))
        return Replace(a_target(number), ("id",), changes=folded)
    return a_write(disk.mirrors, number, mode, changes)


def _shown(mode: str, *, exists: bool) -> list[dict[str, object]]:
    new: dict[str, object] = {"id": 4, "name": "new"}
    if not exists or mode == "replace":
        return [new]
    if mode == "append":
        return [*BEFORE, new]
    return [{"id": 1, "name": "new"}, {"id": 3, "name": "old"}, new]


@pytest.mark.thin
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    ("mode", "exists"), [("append", False), ("append", True), ("merge", True), ("replace", True)]
)
def test_a_write_that_comes_late_makes_no_commit(
    disk: Lake, folder: Path, spark: SparkProcess, mode: str, exists: bool, in_memory: bool
) -> None:
    """Another holder made it meanwhile, and also the next one: the sleeper, with a query of Spark's
    or without, reads back the commit that was made, and the mirror stays as it is."""
    if exists:
        disk.mirrors.write(a_write(disk.mirrors, 1, "append", BEFORE))
    write = _the_write(disk, mode, 2)
    done: list[MirrorCommit] = []

    def meanwhile() -> None:
        done.append(disk.mirrors.write(write))
        disk.mirrors.write(a_write(disk.mirrors, 3, "merge", [update(id=3, name="later")]))

    late = Sleeper(folder, spark, meanwhile, in_memory=in_memory).write(write)
    assert [late] == done
    newest = disk.mirrors.version(MIRROR)
    assert newest == late.delta_version + 1
    shown = content(disk.mirrors, MIRROR, PEOPLE, late.delta_version)
    assert shown == _shown(mode, exists=exists)
    assert [row["name"] for row in content(disk.mirrors, MIRROR, PEOPLE, newest)].count("new") == (
        len([row for row in shown if row["name"] == "new"])
    )


@pytest.mark.parametrize(("mode", "exists"), [("append", False), ("merge", True)])
def test_the_same_write_by_two_at_once_is_one_commit(
    disk: Lake, folder: Path, spark: SparkProcess, mode: str, exists: bool
) -> None:
    """Whoever loses finds the other's commit, at once or when it tries again."""
    if exists:
        disk.mirrors.write(a_write(disk.mirrors, 1, "append", BEFORE))
    write = _the_write(disk, mode, 2)
    both = Barrier(2)
    holders = [Sleeper(folder, spark, lambda: both.wait(60)) for _ in range(2)]

    def attempt(holder: Sleeper) -> MirrorCommit:
        try:
            return holder.write(write)
        except CommitConflict:
            both.abort()
            return disk.mirrors.write(write)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(attempt, holders)
    assert first == second
    assert disk.mirrors.version(MIRROR) == first.delta_version == (1 if exists else 0)
    assert content(disk.mirrors, MIRROR, PEOPLE, first.delta_version) == _shown(mode, exists=exists)
    found = [
        commit.transactions[write.target.app_id] for commit in commits_newest_first(folder / MIRROR)
    ]
    assert found == ([2, 1] if exists else [2])
