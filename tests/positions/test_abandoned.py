"""Captures that died or were overtaken: nothing of them is recorded, no file stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.batch import BatchState
from pipeline.errors import (
    LeaseLost,
)
from pipeline.ports.ledger import content_of
from pipeline.runs.capture import capture
from pipeline.runs.context import Workplace
from resources.lake.segments import ParquetSegments, ParquetSegmentWriter
from resources.lake.spool import FileSpool
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.interrupted import Crash, Interrupted, interrupted, mortal
from tests.positions.two_tables import Asleep, Shop, books, open_shop, overtaken


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


@dataclass
class Folder:
    """The follower's captures go to files of a folder."""

    shop: Shop
    lake: Path

    def work(self) -> Workplace:
        return replace(
            self.shop.follower.work(),
            segments=ParquetSegments(self.lake),
            spool=FileSpool(self.lake, self.lake.parent / "scratch"),
        )

    def capture(self) -> None:
        with self.shop.follower.ledger.lock(SOURCE, "test", None) as lease:
            capture(self.work(), lease)

    def files(self) -> tuple[int, int]:
        """Those of changes and transactions, and of prepared transactions."""
        found = [
            [path for path in (self.lake / SOURCE / part).rglob("*") if path.is_file()]
            for part in ("_changes", "_transactions", "_prepared")
        ]
        return len(found[0]) + len(found[1]), len(found[2])

    def expected(self) -> tuple[int, int]:
        ledger = self.shop.follower.ledger
        live = [one for one in ledger.unfinished(SOURCE) if one.state is BatchState.CAPTURED]
        segments = sum(
            len(segment.files)
            for batch in live
            for segment in content_of(ledger, SOURCE, batch.id).segments
        )
        parts = sum(
            len(part.files)
            for batch in live
            for part in content_of(ledger, SOURCE, batch.id).source_parts
        )
        return segments + parts, len([one for one in ledger.open_prepared(SOURCE) if one.file])


@pytest.fixture
def folder(shop: Shop, tmp_path: Path) -> Folder:
    return Folder(shop, tmp_path / "lake")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["begin_batch", "record_capture", "abandon"])
def test_a_capture_that_died_leaves_no_files(folder: Folder, step: str, after: bool) -> None:
    """Segments and prepared transactions alike: after the next capture there are those of
    live batches and no others."""
    shop = folder.shop
    shop.write()
    with shop.stand.connect(shop.name) as connection, connection.cursor() as cursor:
        for statement in (f"xa start '{shop.name}'", f"insert into a values ({10**6}, 0)"):
            cursor.execute(statement)
        cursor.execute(f"xa end '{shop.name}'")
        cursor.execute(f"xa prepare '{shop.name}'")
    try:
        with mortal(shop.follower, "record_capture", after=False), pytest.raises(Crash):
            folder.capture()
        assert folder.files() == (3, 1)
        with mortal(shop.follower, step, after=after), pytest.raises(Crash):
            folder.capture()
        folder.capture()
        assert folder.files() == folder.expected() == (3, 1)
    finally:
        shop.stand.execute(f"xa rollback '{shop.name}'")


class SleepySegments(ParquetSegments):
    """A holder that falls asleep before its first file is made."""

    def __init__(self, lake: Path, asleep: Asleep) -> None:
        super().__init__(lake)
        self._asleep = asleep

    def open(self, folder: str, **told: Any) -> ParquetSegmentWriter:
        self._asleep()
        return super().open(folder, **told)


def test_a_capture_that_wakes_up_before_its_files_leaves_none(folder: Folder) -> None:
    """Overtaken before it wrote: it is told, and what it wrote all the same goes with the next
    run; nothing of it is recorded."""
    asleep = Asleep()
    late = replace(folder.work(), segments=SleepySegments(folder.lake, asleep))
    _overtaken_capture(folder, asleep, late)


def test_a_capture_that_wakes_up_behind_its_files_leaves_none(folder: Folder) -> None:
    """Overtaken before it told the ledger: the same."""
    asleep = Asleep()
    ledger: Any = Interrupted(folder.shop.follower.ledger, "record_capture", asleep)
    _overtaken_capture(folder, asleep, replace(folder.work(), ledger=ledger))


def _overtaken_capture(folder: Folder, asleep: Asleep, late: Workplace) -> None:
    shop = folder.shop
    shop.write()
    recorded: list[Any] = []

    def meanwhile() -> None:
        folder.capture()
        recorded.extend(books(shop))

    error = overtaken(shop, asleep, capture, late)(meanwhile)
    assert type(error) is LeaseLost
    assert books(shop) == recorded
    assert shop.states()[1:] == [BatchState.ABANDONED, BatchState.CAPTURED]
    shop.write()
    folder.capture()
    assert folder.files() == folder.expected()


def test_a_capture_that_was_overtaken_touches_no_files_of_the_next(folder: Folder) -> None:
    """It wakes up, finds MySQL's connection gone and begins again: the unfinished capture that
    it finds then is the next holder's, and so are its files."""
    shop = folder.shop
    ledger = shop.follower.ledger
    shop.write()
    with ledger.lock(SOURCE, "sleeper", None) as stale:
        ledger.lose_lock(SOURCE)

        def awake() -> None:
            assert folder.files() == (3, 0)
            with pytest.raises(LeaseLost):
                capture(folder.work(), stale)

        with interrupted(shop.follower, "record_capture", awake):
            folder.capture()
    assert folder.files() == folder.expected() == (3, 0)
    assert shop.states()[1:] == [BatchState.CAPTURED]
