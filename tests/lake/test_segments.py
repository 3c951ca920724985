"""Segments, on disk and in memory: one contract."""

from __future__ import annotations

import hashlib
import re
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.mirror.layout import logged_field, updated_field
from lockstep.pipeline.ports.segments import SegmentStore
from lockstep.pipeline.values.errors import LakeUnavailable
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.resources.lake.changelog.segments import ParquetSegments
from tests.lake.conftest import Lake
from tests.lake.made import PEOPLE, changes

FOLDER = "shop/_changes/shop/t=C3=A4ble"


@pytest.fixture
def lake(stored_lake: Lake) -> Lake:
    """An object store's too."""
    return stored_lake


def written(
    store: SegmentStore, *batches: pa.Table, batch: int = 7, folder: str = FOLDER
) -> tuple[SegmentFile, ...]:
    writer = store.open(folder, batch=batch, schema_version=1, schema=batches[0].schema)
    for some in batches:
        writer.write(some)
    return writer.close()


def test_reads_what_was_written_in_order(lake: Lake) -> None:
    """Row images come back in the order they were written, by column where asked."""
    one = changes(PEOPLE, [{"id": 1, "name": "a"}, {"id": 2, "name": None}])
    two = changes(PEOPLE, [{"id": 3, "name": "c"}], first=3)
    files = written(lake.segments, one, two)
    assert pa.concat_tables(lake.segments.pieces(FOLDER, files)) == pa.concat_tables([one, two])
    assert pa.concat_tables(lake.segments.pieces(FOLDER, files, ["name"])).to_pydict() == {
        "name": ["a", None, "c"]
    }


def test_images_that_leave_columns_out_have_files_of_their_own(lake: Lake) -> None:
    """Their names say so, and what each image has is read where it is asked for; the changelog
    gets the columns that the log had, and not what is known otherwise."""
    whole = changes(PEOPLE, [{"id": 1, "name": "a"}])
    listed = changes(PEOPLE, [{"id": 3}], first=3)
    logged = logged_field(["id", "name"])
    listed = listed.append_column(logged, pa.array([["id"]]))
    partial = changes(PEOPLE, [{"id": 2}], first=2)
    partial = partial.append_column(logged, pa.array([["id"]]))
    partial = partial.append_column("_present", pa.array([b"\x01"], pa.binary()))
    files = written(lake.segments, whole, listed, partial)
    assert [(file.has_logged, file.has_present) for file in files] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert [file.images for file in files] == [1, 1, 1]
    assert lake.segments.damage_sentences(FOLDER, files) == []
    found = pa.concat_tables(lake.segments.pieces(FOLDER, files[2:], ["id", "_present"]))
    assert found.to_pylist() == [{"id": 2, "_present": b"\x01"}]
    for batch, brought in enumerate((files[:1], files[1:]), start=7):
        published = lake.changelog.publish(
            FOLDER,
            app_id="app",
            batch=batch,
            schema=whole.schema.append(logged) if batch > 7 else whole.schema,
            files=brought,
            user_metadata=str(batch),
        )
        assert not published.was_skipped
    if lake.folder is not None:
        shown = DeltaTable(lake.folder / FOLDER).to_pyarrow_table(columns=["id", "_logged"])
        assert sorted(shown.to_pylist(), key=itemgetter("id")) == [
            {"id": 1, "_logged": None},
            {"id": 2, "_logged": ["id"]},
            {"id": 3, "_logged": ["id"]},
        ]
    assert lake.segments.delete_batch("shop", 7) == 3


def test_files_that_say_what_updates_changed_are_told_by_name(lake: Lake) -> None:
    """Also where images leave columns out; a batch that is given up leaves none of them."""
    names = ["id", "name"]
    whole = changes(PEOPLE, [{"id": 1, "name": "a"}])
    whole = whole.append_column(updated_field(names), pa.array([["name"]]))
    listed = whole.append_column(logged_field(names), pa.array([["id"]]))
    writer = lake.segments.open(
        FOLDER, batch=7, schema_version=1, schema=whole.schema, has_updated=True
    )
    writer.write(whole)
    writer.write(listed)
    files = writer.close()
    assert [(file.has_updated, file.has_logged) for file in files] == [(True, False), (True, True)]
    assert pa.concat_tables(lake.segments.pieces(FOLDER, files[:1])) == whole
    assert not any(file.has_updated for file in written(lake.segments, listed, batch=8))
    assert [lake.segments.delete_batch("shop", batch) for batch in (7, 8)] == [2, 1]


def test_values_that_a_file_has_once_are_counted_as_often_as_memory_has_them(lake: Lake) -> None:
    """A number that repeats, and NULLs, are next to nothing in a file."""
    rows = changes(PEOPLE, [{"id": 1, "name": None}] * 10_000)
    files = written(lake.segments, rows)
    read = pa.concat_tables(lake.segments.pieces(FOLDER, files))
    assert lake.segments.unpacked_bytes(FOLDER, files) >= 0.9 * read.nbytes


def test_damage_is_told(lake: Lake) -> None:
    """What was closed is what is found; one sentence for each file that is not there. A writer that
    got nothing leaves nothing."""
    assert written(lake.segments, changes(PEOPLE, [])) == ()
    files = written(lake.segments, changes(PEOPLE, [{"id": 1}]))
    assert lake.segments.damage_sentences(FOLDER, files) == []
    lake.segments.delete_batch("shop", 7)
    assert [
        text.endswith("is missing") for text in lake.segments.damage_sentences(FOLDER, files)
    ] == [True]


def test_discard_takes_one_batch_of_one_source(lake: Lake) -> None:
    """Other batches, other sources and batch 70 beside batch 7 stay."""
    kept = [
        (folder, written(lake.segments, changes(PEOPLE, [{"id": 1}]), batch=batch, folder=folder))
        for folder, batch in ((FOLDER, 8), (FOLDER, 70), ("crm/_changes/shop/a", 7))
    ]
    for folder in (FOLDER, "shop/_changes/other/b"):
        written(lake.segments, changes(PEOPLE, [{"id": 1}]), folder=folder)
    assert lake.segments.delete_batch("shop", 7) == 2
    assert lake.segments.delete_batch("shop", 7) == 0
    assert [lake.segments.damage_sentences(folder, files) for folder, files in kept] == [[], [], []]


def test_file_names_sizes_and_checksums_are_the_files_own(tmp_path: Path) -> None:
    """The name carries batch and schema version; size and SHA-256 are of the bytes on disk."""
    (file,) = written(ParquetSegments(tmp_path), changes(PEOPLE, [{"id": 1}, {"id": 2}]))
    data = (tmp_path / FOLDER / file.path).read_bytes()
    assert re.fullmatch(r"batch-000000000007-v1-[0-9a-f]{8}-00000\.parquet", file.path)
    assert file == SegmentFile(file.path, 2, len(data), hashlib.sha256(data).hexdigest())


def test_two_processes_keep_off_each_others_files(tmp_path: Path) -> None:
    """Their ledgers are two copies of one, and gave the same number to their batches. A process
    that comes later deletes all of a batch, also what Lockstep 0.1 wrote."""
    first, second, later = (ParquetSegments(tmp_path) for _ in range(3))
    ours = written(first, changes(PEOPLE, [{"id": 1}]))
    theirs = written(second, changes(PEOPLE, [{"id": 2}]))
    assert first.damage_sentences(FOLDER, [*ours, *theirs]) == []
    assert second.delete_batch("shop", 7) == 1
    assert first.damage_sentences(FOLDER, ours) == []
    (tmp_path / FOLDER / "batch-000000000007-v1-00000-updated-logged.parquet").touch()
    assert later.delete_batch("shop", 7) == 2


def test_a_changed_byte_is_damage(tmp_path: Path) -> None:
    """Same size, other content."""
    store = ParquetSegments(tmp_path)
    files = written(store, changes(PEOPLE, [{"id": 1}]))
    path = tmp_path / FOLDER / files[0].path
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    found = store.damage_sentences(FOLDER, files)
    assert found == [f"{path} has another checksum than when it was written"]


def test_files_roll_over_by_size(tmp_path: Path) -> None:
    """A file that reached the size is closed; none of the rows is lost or moved."""
    store = ParquetSegments(tmp_path, file_bytes=1)
    rows = [{"id": number, "name": str(number)} for number in range(2_000)]
    batches = [changes(PEOPLE, rows[at : at + 1_000], first=at + 1) for at in (0, 1_000)]
    files = written(store, *batches)
    assert [file.images for file in files] == [1_000, 1_000]
    assert [file.path[-13:] for file in files] == ["00000.parquet", "00001.parquet"]
    read = pa.concat_tables(store.pieces(FOLDER, files, ["id"]))
    assert read["id"].to_pylist() == list(range(2_000))


def test_the_format_is_one_that_every_reader_takes(tmp_path: Path) -> None:
    """zstd, no INT96, timestamps in microseconds."""
    schema = pa.schema([("at", pa.timestamp("us")), ("seen", pa.timestamp("us", tz="UTC"))])
    (file,) = written(ParquetSegments(tmp_path), changes(schema, [{"at": None}]))
    metadata = pq.read_metadata(tmp_path / FOLDER / file.path)
    group = metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert "INT96" not in {column.physical_type for column in columns}
    assert {column.path_in_schema: column.physical_type for column in columns}["at"] == "INT64"


def test_a_folder_that_cannot_be_made_is_the_lake_unavailable(tmp_path: Path) -> None:
    """The operating system's error travels as the cause."""
    (tmp_path / "shop").write_text("a file where a folder should be")
    with pytest.raises(LakeUnavailable) as caught:
        written(ParquetSegments(tmp_path), changes(PEOPLE, [{"id": 1}]))
    assert isinstance(caught.value.__cause__, OSError)
