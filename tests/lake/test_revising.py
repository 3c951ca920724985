"""Some files of a changelog in the place of others: in one commit, once, and proven first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from lockstep.pipeline.ports.changelog import Published
from lockstep.pipeline.values.errors import SegmentsLost
from lockstep.pipeline.values.segment import SegmentFile, with_revised_names
from tests.lake.conftest import Lake
from tests.lake.made import PEOPLE, changes
from tests.lake.test_changelog import FOLDER, ROWS, published, segment

SCRATCH = "shop/_replays/t"


@pytest.fixture
def lake(stored_lake: Lake) -> Lake:
    """An object store's too."""
    return stored_lake


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
