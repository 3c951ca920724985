"""Changelogs, on disk, in memory and in an object store: segments are published, files are put in
the place of others, each in one commit, once; and they are read elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from lockstep.pipeline.ports.changelog import Published
from lockstep.pipeline.values.errors import (
    CommitConflict,
    ForeignCommit,
    LakeUnavailable,
    SegmentsLost,
    TableError,
)
from lockstep.pipeline.values.segment import SegmentFile, with_revised_names
from lockstep.resources.lake.changelog import changelog
from lockstep.resources.lake.delta.delta_log import commit_file
from tests.lake.conftest import Lake
from tests.lake.made import PEOPLE, changes

FOLDER = "shop/_changes/shop/t=C3=A4ble"
WRITERS = 6
ROWS = changes(PEOPLE, [{"id": 1}])
MOMENT = datetime(2026, 3, 29, 2, 30, 0, 123456)


@pytest.fixture
def lake(stored_lake: Lake) -> Lake:
    """An object store's too."""
    return stored_lake


def segment(lake: Lake, batch: int, rows: pa.Table) -> tuple[SegmentFile, ...]:
    writer = lake.segments.open(FOLDER, batch=batch, schema_version=1, schema=rows.schema)
    writer.write(rows)
    return writer.close()


def published(
    lake: Lake,
    batch: int,
    rows: pa.Table,
    files: tuple[SegmentFile, ...] | None = None,
) -> Published:
    if files is None:
        files = segment(lake, batch, rows)
    return lake.changelog.publish(
        FOLDER,
        app_id="app",
        batch=batch,
        schema=rows.schema,
        files=files,
        user_metadata=f"batch {batch}",
    )


def test_what_a_hand_over_leaves_out_is_published_again(lake: Lake) -> None:
    """Once: its number was recorded before, and is the newest no more."""
    first, second = segment(lake, 3, ROWS), segment(lake, 5, ROWS)
    published(lake, 3, ROWS, first)
    published(lake, 5, ROWS, second)
    lake.changelog.restate(FOLDER, app_id="app", batch=3, files=first, user_metadata="a hand-over")
    assert {*(lake.changelog.listed_files(FOLDER) or {})} == {one.path for one in first}
    assert [published(lake, 5, ROWS, second).was_skipped for _ in range(2)] == [False, True]
    assert {*(lake.changelog.listed_files(FOLDER) or {})} == {one.path for one in (*first, *second)}


def test_each_batch_is_one_commit(lake: Lake) -> None:
    """The first creates the table, later ones add to it. One that is there is skipped, also behind
    a later one; its number with other files is refused, for a ledger that was restored gives its
    numbers a second time. The newest is known, of each application id."""
    assert lake.changelog.newest_batch(FOLDER, "app") is None
    batches = {batch: segment(lake, batch, ROWS) for batch in (3, 5)}
    done = [published(lake, batch, ROWS, files) for batch, files in batches.items()]
    assert done == [Published(0, was_skipped=False), Published(1, was_skipped=False)]
    again = [published(lake, batch, ROWS, batches[batch]) for batch in (5, 3)]
    assert [one.was_skipped for one in again] == [True, True]
    others = segment(lake, 9, ROWS)
    for batch in (3, 4, 5):
        with pytest.raises(ForeignCommit):
            published(lake, batch, ROWS, others)
    recorded = [lake.changelog.newest_batch(FOLDER, app_id) for app_id in ("app", "other")]
    assert recorded == [5, None]
    assert published(lake, 6, ROWS) == Published(2, was_skipped=False)


def test_other_columns_quarantine_the_table(disk: Lake) -> None:
    """delta-rs would commit files whose columns the table does not have."""
    published(disk, 3, changes(PEOPLE, [{"id": 1}]))
    other = pa.schema([("id", pa.string()), ("name", pa.string())])
    with pytest.raises(TableError, match="'id'"):
        published(disk, 4, changes(other, [{"id": "x"}]))


@pytest.mark.parametrize("more", [False, True], ids=["the same columns", "more columns"])
@pytest.mark.parametrize(
    ("place", "exists"),
    [
        ("commit_files", False),
        ("commit_files", True),
        ("_add_columns", True),
        ("refuse_other_columns", True),
    ],
)
def test_a_batch_that_comes_late_is_not_added_again(
    disk: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch, place: str, exists: bool, more: bool
) -> None:
    """Another holder published it meanwhile, and the next one: whoever slept before its commit,
    or between its columns and its commit, finds both."""
    wider = pa.schema([*PEOPLE, ("more", pa.string())]) if more else PEOPLE
    if exists:
        published(disk, 3, changes(PEOPLE, [{"id": 1}]))
    files = segment(disk, 4, changes(wider, [{"id": 2}], first=2))
    original = getattr(changelog, place)
    slept: list[Published] = []

    def sleeper(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(changelog, place, original)
        slept.append(published(disk, 4, changes(wider, []), files))
        published(disk, 5, changes(wider, [{"id": 3}], first=3))
        return original(*args, **options)

    monkeypatch.setattr(changelog, place, sleeper)
    late = published(disk, 4, changes(wider, []), files)
    assert [late] == [Published(one.delta_version, was_skipped=True) for one in slept]
    rows = DeltaTable(folder / FOLDER).to_pyarrow_table(columns=["id"])["id"].to_pylist()
    assert sorted(rows) == ([1, 2, 3] if exists else [2, 3])


@pytest.mark.parametrize("exists", [False, True])
def test_a_batch_has_the_version_of_its_own_commit(
    disk: Lake, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    """Also where somebody else's commit is behind it before anybody asks."""
    if exists:
        published(disk, 3, changes(PEOPLE, [{"id": 1}]))
    original = changelog.commit_files

    def overtaken(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(changelog, "commit_files", original)
        made = original(*args, **options)
        published(disk, 5, changes(PEOPLE, [{"id": 3}], first=3))
        return made

    monkeypatch.setattr(changelog, "commit_files", overtaken)
    found = published(disk, 4, changes(PEOPLE, [{"id": 2}], first=2))
    assert found == Published(1 if exists else 0, was_skipped=False)


def test_of_many_that_publish_one_batch_one_does(disk: Lake, folder: Path) -> None:
    """At the same moment, the first batch and later ones; each is there once."""
    rows = changes(PEOPLE, [{"id": 1}])
    with ThreadPoolExecutor(WRITERS) as pool:
        for batch in range(1, 11):
            files, together = segment(disk, batch, rows), Barrier(WRITERS)

            def attempt(
                _: int,
                batch: int = batch,
                files: tuple[SegmentFile, ...] = files,
                together: Barrier = together,
            ) -> bool:
                together.wait(60)
                try:
                    return not published(disk, batch, rows, files).was_skipped
                except CommitConflict:
                    return False

            assert sum(pool.map(attempt, range(WRITERS))) == 1
    assert DeltaTable(folder / FOLDER).version() == 9
    assert len(DeltaTable(folder / FOLDER).file_uris()) == 10


def test_a_damaged_log_is_named(disk: Lake, folder: Path) -> None:
    """A commit of which a crash of the machine left a part."""
    published(disk, 3, changes(PEOPLE, [{"id": 1}]))
    commit_file(folder / FOLDER, 1).write_bytes(b'{"add":{"pa')
    with pytest.raises(LakeUnavailable, match=FOLDER):
        published(disk, 4, changes(PEOPLE, [{"id": 2}], first=2))
    with pytest.raises(LakeUnavailable, match=r"00001\.json cannot be used: it is damaged"):
        disk.changelog.log_since(FOLDER, 0)


def test_columns_that_are_new_are_added(lake: Lake) -> None:
    """NULL in older rows, whatever the order of the columns; what a batch lacks is NULL."""
    wider = pa.schema([("at", pa.timestamp("us")), *PEOPLE, ("v", pa.list_(pa.float32()))])
    published(lake, 3, changes(PEOPLE, [{"id": 1, "name": "a"}]))
    published(lake, 4, changes(wider, [{"id": 2, "at": MOMENT, "v": [0.5]}], first=2))
    narrow = pa.schema([("id", pa.int64())])
    done = published(lake, 5, changes(narrow, [{"id": 3}], first=3))
    assert lake.changelog.newest_batch(FOLDER, "app") == 5
    columns = ["id", "name", "at", "v"]
    rows = pa.Table.from_batches(lake.mirrors.rows(FOLDER, columns, done.delta_version))
    assert rows.sort_by("id").to_pylist() == [
        {"id": 1, "name": "a", "at": None, "v": None},
        {"id": 2, "name": None, "at": MOMENT, "v": [0.5]},
        {"id": 3, "name": None, "at": None, "v": None},
    ]


def test_columns_are_added_once(disk: Lake, folder: Path) -> None:
    """A run that ends between the two commits leaves columns that the next one finds."""
    published(disk, 3, changes(PEOPLE, [{"id": 1, "name": "a"}]))
    wider = pa.schema([*PEOPLE, ("more", pa.string())])
    lost = (SegmentFile("gone", 1, 1, "00"),)
    with pytest.raises(SegmentsLost):
        published(disk, 4, changes(wider, [{"id": 2}]), lost)
    table = DeltaTable(folder / FOLDER)
    table.alter.add_columns(Schema.from_arrow(pa.schema([("more", pa.string())])).fields)
    assert published(disk, 4, changes(wider, [{"id": 2}])) == Published(2, was_skipped=False)
    assert DeltaTable(folder / FOLDER).version() == 2


# -- files in the place of others --------------------------------------------------------


SCRATCH = "shop/_replays/t"


def test_files_are_replaced_once_and_whole(lake: Lake) -> None:
    """What waits elsewhere is brought, as often as it takes; what is gone is listed no more, what
    was not named stays. A second try finds the first, by what is listed and not by its number; a
    file that is not as recorded, or a commit that was not made, changes nothing."""
    old = segment(lake, 3, ROWS)
    published(lake, 3, ROWS, old)
    other = segment(lake, 5, ROWS)
    published(lake, 5, ROWS, other)
    writer = lake.segments.open(SCRATCH, batch=3, schema_version=1, schema=ROWS.schema)
    writer.write(changes(PEOPLE, [{"id": 7, "name": "new"}]))
    files = with_revised_names(writer.close())
    assert {file.path for file in files}.isdisjoint(lake.changelog.listed_files(FOLDER) or {})
    with pytest.raises(SegmentsLost):
        _revise(lake, 1, old, files)
    for _ in range(2):
        lake.segments.move_files(SCRATCH, FOLDER, files)
    lake.segments.delete_folder("shop/_replays")
    lake.segments.delete_folder("shop/_replays")
    with pytest.raises(SegmentsLost):
        _revise(lake, 1, old, [replace(files[0], size=1)])

    def lost() -> None:
        raise RuntimeError("somebody else has the source")

    with pytest.raises(RuntimeError):
        _revise(lake, 1, old, files, require_held=lost)
    before = {one.path for one in (*old, *other)}
    assert set(lake.changelog.listed_files(FOLDER) or {}) == before
    assert _revise(lake, 1, old, files) == Published(2, was_skipped=False)
    shown = frozenset(one.path for one in (*files, *other))
    assert set(lake.changelog.listed_files(FOLDER) or {}) == shown
    assert _revise(lake, 1, old, files).was_skipped
    assert set(lake.changelog.listed_files(FOLDER) or {}) == shown
    assert _revise(lake, 2, files, old) == Published(3, was_skipped=False)
    for gone, there in ((old, files), (files, old)):  # by a ledger that was restored
        assert not _revise(lake, 2, gone, there).was_skipped
    assert set(lake.changelog.listed_files(FOLDER) or {}) == before
    assert lake.changelog.newest_batch(FOLDER, "app") == 5
    assert not published(lake, 6, ROWS).was_skipped
    rows = pa.concat_tables(lake.segments.pieces(FOLDER, files))
    assert rows.column("id").to_pylist() == [7]
    newest = set(lake.changelog.listed_files(FOLDER) or {}) - before
    for skipped in (False, True):
        done = _revise(lake, 5, (*old, *other), (), app_id="app/forgotten", schema=pa.schema([]))
        assert done.was_skipped is skipped
    assert set(lake.changelog.listed_files(FOLDER) or {}) == newest
    assert not published(lake, 7, ROWS).was_skipped
    lake.segments.delete_files(FOLDER, (*old, *other))
    assert len(lake.segments.damage_sentences(FOLDER, (*old, *other))) == 2


def test_a_changelog_shows_an_earlier_version_again(lake: Lake) -> None:
    """As a commit of its own, by who holds the source; what came since is no longer listed."""
    old = segment(lake, 3, ROWS)
    published(lake, 3, ROWS, old)
    published(lake, 5, ROWS)

    def lost() -> None:
        raise RuntimeError("somebody else has the source")

    again = partial(
        lake.changelog.restore, FOLDER, 0, app_id="app/restated", txn_version=5, user_metadata="0"
    )
    with pytest.raises(RuntimeError):
        again(require_held=lost)
    assert again() == 2
    assert set(lake.changelog.listed_files(FOLDER) or {}) == {file.path for file in old}
    assert lake.changelog.newest_batch(FOLDER, "app/restated") == 5
    assert not published(lake, 6, ROWS).was_skipped


def _revise(
    lake: Lake,
    number: int,
    gone: tuple[SegmentFile, ...],
    files: list[SegmentFile] | tuple[SegmentFile, ...],
    require_held: Callable[[], None] = lambda: None,
    *,
    app_id: str = "app/revision",
    schema: pa.Schema = ROWS.schema,
) -> Published:
    return lake.changelog.revise(
        FOLDER,
        app_id=app_id,
        revision=number,
        schema=schema,
        removed_paths=[one.path for one in gone],
        files=files,
        user_metadata=f"revision {number}",
        require_held=require_held,
    )
