"""Tables without a key: copies are counted, in memory and by Spark alike."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.ports.mirror_writes import (
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import Mirrors
from tests.lake.conftest import Lake
from tests.lake.made import a_target, changes, own_part

MIRROR = "shop/shop/people"
SCHEMA = pa.schema([("n", pa.int32()), ("_change_type", pa.string()), ("x", pa.float64())])
VALUES = [(n, text, x) for n in (None, 1) for text in (None, "a") for x in (None, 0.0, -0.0, 1.5)]


@pytest.fixture
def lake(written_lake: Lake) -> Lake:
    """Each way to write proves the same contract."""
    return written_lake


def images(*given: tuple[str, tuple[Any, ...]]) -> pa.Table:
    rows = [
        {"_change_type": kind, "n": n, "__change_type": text, "x": x}
        for kind, (n, text, x) in given
    ]
    spelled = pa.schema([("n", pa.int32()), ("__change_type", pa.string()), ("x", pa.float64())])
    return changes(spelled, rows)


def a_count(
    mirrors: Mirrors, number: int, table: pa.Table, *, turned: bool = False
) -> CountedMerge:
    schema = pa.schema([*reversed(SCHEMA)]) if turned else SCHEMA
    part = own_part((mirrors.stage("images", table),), schema)
    return CountedMerge(a_target(number, schema), (part,))


def counted(mirrors: Mirrors) -> Counter[str]:
    """How often each row is there, told apart bit for bit."""
    version = mirrors.version(MIRROR)
    assert version is not None
    batches = mirrors.rows(MIRROR, SCHEMA.names, version)
    rows = pa.Table.from_batches(batches, schema=SCHEMA).to_pylist()
    return Counter(repr(tuple(row.values())) for row in rows)


def test_copies_are_counted(lake: Lake) -> None:
    """Random inserts, updates and deletes with NULLs and both zeros, then more of them whose
    columns are in another order, and deletes of rows that nobody read: a start in the middle of a
    table's life sees such. A repeated write changes nothing."""
    chance = Random(0)
    there: list[tuple[Any, ...]] = []
    for number in (1, 2):
        found: list[tuple[str, tuple[Any, ...]]] = []
        for _ in range(90):
            if there and chance.random() < 0.3:
                found.append(("delete", there.pop(chance.randrange(len(there)))))
            elif there and chance.random() < 0.3:
                found.append(("update_preimage", there.pop(chance.randrange(len(there)))))
                there.append(chance.choice(VALUES))
                found.append(("update_postimage", there[-1]))
            else:
                there.append(chance.choice(VALUES))
                found.append(("insert", there[-1]))
        if number == 2:
            gone = there.pop()
            copies = there.count(gone)
            there = [one for one in there if repr(one) != repr(gone)]
            found += [("delete", gone)] * (copies + 3) + [("delete", (2, "b", 0.0))]
        mirrors = lake.before if number == 1 else lake.mirrors
        write = a_count(mirrors, number, images(*found), turned=number == 2)
        commits = [mirrors.write(write) for _ in range(2)]
        assert commits[0] == commits[1]
        assert counted(lake.mirrors) == Counter(map(repr, there))


def test_an_exact_snapshot_is_counted_on(lake: Lake) -> None:
    """A replacement: the rows that were read, and what comes and goes behind."""
    rows = [(1, "a", 0.0), (1, "a", 0.0), (1, "a", -0.0), (None, None, None)]
    table = pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
    )
    own = tuple(ColumnOrigin(field.name, field.type) for field in SCHEMA)
    behind = images(("delete", rows[0]), ("delete", rows[3]), ("insert", rows[2]))
    read = (StagedFiles((lake.mirrors.stage("read", table),), own),)
    lake.mirrors.write(
        CountedReplace(a_target(1, SCHEMA), a_count(lake.mirrors, 1, behind).parts, read)
    )
    assert counted(lake.mirrors) == Counter(map(repr, [rows[0], rows[2], rows[2]]))
