"""A mirror that is cut: of its versions of before nothing is left, in no file of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from pipeline.changes.strategy import NOTHING
from pipeline.ports.mirror_writes import Replace
from resources.lake.session import SparkProcess
from tests.lake.conftest import lake_at
from tests.lake.made import PEOPLE, a_target, a_write, folded, own_part

MIRROR = "shop/shop/people"
WORD = b"canary"


@pytest.mark.parametrize("in_memory", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_no_file_has_what_it_showed(tmp_path: Path, spark: SparkProcess, in_memory: bool) -> None:
    """Deletion vectors, checkpoints and checksum files among them; rows that are written after it
    are read as before. Soft deletes of before go with the write that forgets them."""
    place = tmp_path / "lake"
    lake = lake_at(place, tmp_path / "staging", spark, NOTHING, in_memory=in_memory)
    mirrors, before = lake.mirrors, lake.before
    rows = [{"id": number, "name": f"canary {number}"} for number in range(30)]
    before.write(a_write(before, 1, "append", rows[:20]))
    before.write(a_write(before, 2, "append", rows[20:]))
    DeltaTable(place / MIRROR).create_checkpoint()
    gone = [{"_change_type": "delete", **row} for row in rows[:3]]
    mirrors.write(a_write(mirrors, 3, "merge", gone))
    bare = [{**row, "name": "x"} for row in rows[12:]]
    staged = mirrors.stage("read again", folded(PEOPLE, bare))
    parts = (own_part((staged,), PEOPLE),)
    version = mirrors.write(Replace(a_target(4), ("id",), parts, forgets=True)).delta_version
    there = [path for path in (place / MIRROR).rglob("*") if path.is_file()]
    shown = {"".join(path.suffixes[-2:]) for path in there if WORD in path.read_bytes()}
    assert {".json", ".checkpoint.parquet", ".crc"} <= shown
    for _ in range(2):
        mirrors.cut(MIRROR, version)
    there = [path for path in (place / MIRROR).rglob("*") if path.is_file()]
    assert [path for path in there if WORD in path.read_bytes()] == []
    assert mirrors.lacking(MIRROR, version - 1) is not None
    assert (mirrors.lacking(MIRROR, version), mirrors.look(MIRROR, version).commits) == (None, ())
    again = mirrors.write(a_write(mirrors, 5, "merge", [{"id": 1, "name": "y"}])).delta_version
    assert sum(batch.num_rows for batch in mirrors.rows(MIRROR, ["id", "name"], again)) == 19
