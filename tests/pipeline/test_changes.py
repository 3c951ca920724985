"""Folding, layout, plans and comparison are pure and exact."""

from __future__ import annotations

import itertools
from datetime import date
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.fold import bounds_literals, key_bounds
from lockstep.pipeline.mirror.layout import (
    application_id,
    changelog_names,
    changelog_path,
    mirror_path,
    new_table,
    path_part,
    rebuilt_path,
    snapshot_path,
)
from lockstep.pipeline.mirror.mapping import last_changes
from lockstep.pipeline.mirror.strategy import only_inserts
from lockstep.pipeline.schema.types import (
    READER_COLUMNS,
    arrow_schema,
    comparable_name,
    escape_name,
    is_refused,
    mirror_name,
    source_name,
    unescape_name,
)
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import Column, TableName, TableStructure

IMAGES = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["insert", "delete", "update_preimage", "update_postimage"]),
    ),
    max_size=30,
)


@given(IMAGES, st.randoms())
def test_the_last_image_of_a_key_wins(images: list[tuple[int, str]], random: Random) -> None:
    """Whatever the order of rows in the files, `_sequence` decides."""
    gone = ("delete", "update_preimage")
    expected = {key: "delete" if kind in gone else kind for key, kind in images}
    rows = [{"k": k, "_change_type": c, "_sequence": n} for n, (k, c) in enumerate(images, 1)]
    random.shuffle(rows)
    schema = pa.schema(
        [("k", pa.int32()), ("_change_type", pa.string()), ("_sequence", pa.int64())]
    )
    outcomes = last_changes(pa.Table.from_pylist(rows, schema), ["k"]).to_pylist()
    assert {row["k"]: row["_change_type"] for row in outcomes} == expected
    assert len(outcomes) == len(expected)


@given(st.text(max_size=20), st.text(max_size=20))
def test_different_names_never_share_a_folder(a: str, b: str) -> None:
    """Path parts are safe and tell all names apart."""
    assert (path_part(a) == path_part(b)) == (a == b)
    assert set(path_part(a)) <= set(path_part("=")) | set("0123456789ABCDEF") | {
        c for c in a if c.isascii()
    }


WORST = (
    *("_delta_log", "_change_data", "_delta_index", "_changes", "_snapshots", "=5Fdelta_log"),
    *("..", ".", "t", "t@2", "t.2", "a" * 64, "A" * 64, "\u4e2d" * 64, "\u4e2d" * 63 + "a"),
)
NAMES = st.sampled_from(WORST) | st.text(
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="\0"),
    min_size=1,
    max_size=64,
).filter(lambda name: not name.endswith(" "))
"""What MySQL allows as the name of a database or a table: BMP, no NUL, no space at the end."""

TABLES = st.builds(TableName, NAMES, NAMES)


@given(TABLES, TABLES, st.integers(1, 10**9), st.integers(1, 10**9))
def test_no_table_has_a_path_that_cannot_be_or_is_anothers(
    one: TableName, other: TableName, generation: int, successor: int
) -> None:
    """Whatever MySQL calls it: each part is a file's name on Linux, none is a folder of Delta's or
    of ours, and all paths of two tables differ."""
    paths = [
        {
            mirror_path("shop", table),
            mirror_path("shop", table, generation + 1, successor),
            changelog_path("shop", table),
            changelog_path("shop", table, generation + 1),
            snapshot_path("shop", table),
            rebuilt_path("shop", table, "binlog.000012-4567"),
        }
        for table in (one, other)
    ]
    assert [len(own) for own in paths] == [6, 6]
    assert (paths[0] & paths[1] == set()) == (one != other)
    for path in paths[0]:
        source, *parts, last = path.split("/")
        assert all(0 < len(part.encode()) <= 255 for part in (*parts, last))
        assert {source, *parts[:-1]} <= {"shop", "_changes"}
        assert parts[-1] == "_snapshots" or not parts[-1].startswith("_")
        assert last not in ("_delta_log", "_change_data", "_delta_index", ".", "..")


def test_no_table_has_the_application_id_of_another() -> None:
    """With points, and what stands for them, in its names."""
    parts = ["a", "b", ".", "%2E", "%25", "/"]
    names = ["".join(one) for size in (1, 2, 3) for one in itertools.product(parts, repeat=size)]
    tables = [TableName(database, name) for database in names for name in names[:40]]
    ids = {application_id("s", new_table("s", table), "mirror") for table in tables}
    assert len(ids) == len(set(tables))


@given(TABLES)
def test_a_path_stays_as_long_as_a_file_may_be_called_so(table: TableName) -> None:
    """Only what never worked has another path than it had."""
    plain = path_part(table.name)
    whole = "".join(
        c if c.isascii() and (c.isalnum() or c in "_-") else _escaped(c) for c in table.name
    )
    assert (plain == whole) == (len(whole) <= 255)


def _escaped(character: str) -> str:
    return "".join(f"={byte:02X}" for byte in character.encode())


COLUMN_NAMES = st.lists(
    st.text(st.sampled_from(" ,;{}()\n\t=%2cC5Fab_\u00df\u1e9e"), min_size=1, max_size=6)
    | st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1)
    | st.sampled_from(
        ["_tmp_metadata_row_index", "%5ftmp_metadata_row_index", "%255Ftmp_metadata_row_index"]
    )
)


@given(COLUMN_NAMES)
def test_a_changelog_has_each_column_under_a_name_that_delta_takes(names: list[str]) -> None:
    """Names that differ for Delta and Spark differ there too, and give back what they were."""
    columns = list({comparable_name(name): name for name in names}.values())
    spelled = list(map(escape_name, columns))
    assert list(map(unescape_name, spelled)) == columns
    assert [source_name(mirror_name(name)) for name in columns] == columns
    for names in (changelog_names(columns), list(map(mirror_name, columns))):
        assert len(set(map(comparable_name, names))) == len(columns)
        assert READER_COLUMNS.isdisjoint(map(comparable_name, names))
    assert not any(map(is_refused, changelog_names(columns)))


@pytest.mark.parametrize(
    "names",
    ["\u00df\u1e9e", "\u03c3\u03c2", "s\u017f", "I\u0131", "\u00b5\u03bc", "k\u212a", "i\u0130"],
)
def test_names_that_are_one_to_spark_set_the_table_aside(names: str) -> None:
    """MySQL tells them apart."""
    columns = tuple(Column(name, "int") for name in names)
    with pytest.raises(TableError, match="have the same name for Delta and Spark"):
        arrow_schema(TableStructure(TableName("shop", "t"), columns, ()))


def test_a_column_named_like_a_mark_is_renamed() -> None:
    """In whatever case, and past names that are taken."""
    assert changelog_names(["id", "_BATCH", "__BATCH"]) == ["id", "___BATCH", "__BATCH"]


def test_only_inserts_are_appended() -> None:
    """One update or delete anywhere means a merge."""
    assert only_inserts([RowCounts(3), RowCounts(1)])
    assert not only_inserts([RowCounts(3), RowCounts(1, 0, 1)])


def test_bounds_are_literals_of_ordered_types() -> None:
    """Text and floats have none: their order is not the same everywhere."""
    keys = pa.table(
        {
            "i": pa.array([3, 1]),
            "d": pa.array([Decimal("1.50"), Decimal("-2.00")]),
            "t": pa.array([date(2024, 2, 29), date(2023, 1, 1)]),
            "s": pa.array(["b", "a"]),
        }
    )
    bounds = key_bounds(keys, {"i": "i", "d": "d", "t": "T", "s": "s"})
    mirror = keys.schema.set(2, keys.schema.field("t").with_name("T"))
    assert bounds_literals(bounds, mirror) == (
        ("i", "1", "3"),
        ("d", "-2.00BD", "1.50BD"),
        ("T", "DATE'2023-01-01'", "DATE'2024-02-29'"),
    )


STRUCTURE = TableStructure(
    TableName("shop", "t"),
    (Column("id", "int"), Column("v", "varchar", charset="utf8mb4")),
    ("id",),
)


def rows(*values: tuple[int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "v": v} for i, v in values], arrow_schema(STRUCTURE))


def test_zeros_of_both_signs_are_one_key() -> None:
    """A key changed from 0.0 to -0.0 is one row, with the last image's sign."""
    images = pa.table(
        {
            "k": pa.array([0.0, -0.0, 1.0]),
            "_sequence": [1, 2, 3],
            "_change_type": ["update_preimage", "update_postimage", "insert"],
        }
    )
    assert str(last_changes(images, ["k"]).to_pydict()["k"]) == "[-0.0, 1.0]"


def test_a_fingerprint_tells_structures_apart() -> None:
    other = TableStructure(STRUCTURE.name, STRUCTURE.columns[::-1], STRUCTURE.primary_key)
    assert STRUCTURE.fingerprint != other.fingerprint
