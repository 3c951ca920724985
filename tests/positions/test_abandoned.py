"""Captures that died or were overtaken: nothing of them is recorded, no file stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.errors import LeaseLost
from lockstep.resources.lake.changelog.segments import ParquetSegments, ParquetSegmentWriter
from lockstep.resources.lake.changelog.spool import FileSpool
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.interrupted import (
    Crash,
    Interrupted,
    Moments,
    at_moments,
    interrupted,
    mortal,
    noted,
)
from tests.positions.servers import prepare_xa
from tests.positions.two_tables import Asleep, Shop, books, open_shop, overtaken


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


@dataclass
class Folder:
    """The follower's captures go to files of a folder."""

    shop: Shop
    lake: Path

    def ports(self) -> RunPorts:
        return replace(
            self.shop.follower.ports(),
            segments=ParquetSegments(self.lake),
            spool=FileSpool(self.lake, self.lake.parent / "scratch"),
        )

    def capture(self) -> None:
        with self.shop.follower.leased() as lease:
            capture(self.ports(), lease)

    def files(self) -> tuple[int, int]:
        """Those of changes and transactions, and of prepared transactions."""
        found = [
            [path for path in (self.lake / SOURCE / part).rglob("*") if path.is_file()]
            for part in ("_changes", "_transactions", "_prepared")
        ]
        return len(found[0]) + len(found[1]), len(found[2])

    def expected(self) -> tuple[int, int]:
        ledger = self.shop.follower.ledger
        live = [
            one for one in ledger.unfinished_batches(SOURCE) if one.state is BatchState.CAPTURED
        ]
        segments = sum(
            len(segment.files)
            for batch in live
            for segment in batch_content(ledger, SOURCE, batch.id).segments
        )
        parts = sum(
            len(part.files)
            for batch in live
            for part in batch_content(ledger, SOURCE, batch.id).system_segments
        )
        return segments + parts, len([one for one in ledger.open_prepared(SOURCE) if one.file])


@pytest.fixture
def folder(shop: Shop, tmp_path: Path) -> Folder:
    return Folder(shop, tmp_path / "lake")


STEPS = ("begin_batch", "record_capture", "abandon")


@at_moments
def test_a_capture_that_died_leaves_no_files(folder: Folder, moments: Moments) -> None:
    """Segments and prepared transactions alike: after the next capture there are those of
    live batches and no others."""
    shop = folder.shop
    prepare_xa(shop.stand, shop.name, f"insert into {shop.name}.a values (-1000, 0)")
    try:
        for number, (step, after) in enumerate(moments(STEPS), start=1):
            with noted(f"killed at {step}, after it: {after}"):
                shop.write()
                with mortal(shop.follower, "record_capture", after=False), pytest.raises(Crash):
                    folder.capture()
                assert folder.files() == (3 * number, 1)
                with mortal(shop.follower, step, after=after), pytest.raises(Crash):
                    folder.capture()
                folder.capture()
                assert folder.files() == folder.expected() == (3 * number, 1)
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


@pytest.mark.parametrize("wrote", [False, True])
def test_a_capture_that_wakes_up_late_leaves_no_files(folder: Folder, wrote: bool) -> None:
    """Overtaken before it wrote, or before it told the ledger: it is told, and what it wrote goes
    with the next run; nothing of it is recorded."""
    asleep, ports = Asleep(), folder.ports()
    if wrote:
        ledger: Any = Interrupted(folder.shop.follower.ledger, "record_capture", asleep)
        ports = replace(ports, ledger=ledger)
    else:
        ports = replace(ports, segments=SleepySegments(folder.lake, asleep))
    _overtaken_capture(folder, asleep, ports)


def _overtaken_capture(folder: Folder, asleep: Asleep, late: RunPorts) -> None:
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
                capture(folder.ports(), stale)

        with interrupted(shop.follower, "record_capture", awake):
            folder.capture()
    assert folder.files() == folder.expected() == (3, 0)
    assert shop.states()[1:] == [BatchState.CAPTURED]
