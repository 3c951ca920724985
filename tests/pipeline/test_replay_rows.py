"""Rows of a mirror that are not what the changelog says, and sets of files held against each other,
row by row, however they are cut."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.replay.rows import RowComparison, content_difference, have_same_rows

MOMENTS = [datetime(2026, 11, 1, hour, tzinfo=UTC) for hour in (6, 7)]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "small": (pa.int8(), [0, -1]),
    "wide": (pa.int64(), [0, 1 << 40]),
    "real": (pa.float64(), [0.0, 1.5]),
    "text": (pa.string(), ["", "0", "x"]),
    "bytes": (pa.binary(), [b"", b"\0"]),
    "exact": (pa.decimal128(38, 2), [Decimal("0.00"), Decimal("-1.10")]),
    "words": (pa.list_(pa.string()), [[], [""], ["a", "b"], ["ab"]]),
    "vector": (pa.list_(pa.float32()), [[0.0], [0.5, 1.0]]),
    "at": (pa.timestamp("us", tz="UTC"), MOMENTS),
    "local": (pa.timestamp("us"), [one.replace(tzinfo=None) for one in MOMENTS]),
    "day": (pa.date32(), [one.date() for one in MOMENTS[:1]]),
}
KEY = pa.schema([("k", pa.int32()), ("l", pa.string())])
COLUMNS = pa.schema([*KEY, *((name, kind) for name, (kind, _) in VALUES.items())])
KEYS = st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"]))


def _rows(draw: st.DrawFn) -> dict[tuple[int, str], dict[str, Any]]:
    found = {}
    for key in draw(st.lists(KEYS, unique=True, max_size=6)):
        values = {n: draw(st.sampled_from([None, *some])) for n, (_, some) in VALUES.items()}
        found[key] = {"k": key[0], "l": key[1], **values}
    return found


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[Any, dict[str, Any]]]:
    """Folded changes, and a mirror that has most of them as they are."""
    mirror = _rows(draw)
    changes = []
    for key, row in {**_rows(draw), **mirror}.items():
        kind = draw(st.sampled_from(["update_postimage", "insert", "delete", None]))
        moment = draw(st.sampled_from(MOMENTS))
        if kind is not None:
            changes.append({"_change_type": kind, "_committed_at": moment, **row})
        if key in mirror and draw(st.booleans()):
            name = draw(st.sampled_from(sorted(VALUES)))
            mirror[key] = {**row, name: draw(st.sampled_from([None, *VALUES[name][1]]))}
        if key in mirror:
            mirror[key][DELETED_AT.name] = draw(st.sampled_from([None, moment]))
    return changes, mirror


@given(told=sides(), soft=st.booleans(), cut=st.integers(1, 3))
def test_what_the_mirror_shows_otherwise(told: tuple[Any, Any], soft: bool, cut: int) -> None:
    """By every column of every type, NULL apart from any value, however the rows are cut."""
    changes, mirror = told
    shown = list(mirror.values())
    kinds = pa.schema([*COLUMNS, *([DELETED_AT] if soft else [])])
    pieces = [
        pa.Table.from_pylist(shown[at : at + cut], schema=kinds) for at in range(0, len(shown), cut)
    ]
    marks = [("_change_type", pa.string()), ("_committed_at", pa.timestamp("us", tz="UTC"))]
    table = pa.Table.from_pylist(changes, schema=pa.schema([*marks, *COLUMNS]))
    found = RowComparison(KEY.names, COLUMNS.names, soft).wrong_flags(table, pieces)
    assert found.tolist() == [_wrong(change, mirror, soft) for change in changes]


def _wrong(change: dict[str, Any], mirror: dict[Any, dict[str, Any]], soft: bool) -> bool:
    there = mirror.get((change["k"], change["l"]))
    gone = change["_change_type"] == "delete"
    if there is None or (gone and not soft):
        return (there is None) is (soft or not gone)
    same = all(there[name] == change[name] for name in COLUMNS.names)
    marked = change["_committed_at"] if gone else None
    return not same or (soft and there[DELETED_AT.name] != marked)


@given(
    values=st.lists(st.sampled_from([None, 0, 1]), max_size=12),
    cuts=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    other=st.integers(0, 20),
)
def test_rows_are_the_same_however_they_are_cut(
    values: list[int | None], cuts: tuple[int, int], other: int
) -> None:
    """Another value, one more and one less are not."""
    ones, others = (_pieces(values, cut) for cut in cuts)
    assert have_same_rows(ones, others)
    assert not have_same_rows(ones, _pieces([*values, 0], cuts[1]))
    if other < len(values):
        wrong = [*values[:other], 7, *values[other + 1 :]]
        assert not have_same_rows(_pieces(wrong, cuts[0]), others)
    if values:
        assert not have_same_rows(ones, _pieces(values, cuts[1], "w"))


def _pieces(values: list[int | None], cut: int, name: str = "v") -> list[pa.Table]:
    whole = pa.table({name: pa.array(values, pa.int64())})
    return [whole.slice(at, cut) for at in range(0, len(values) + 1, cut)]


SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("data", pa.binary()),
        pa.field("names", pa.list_(pa.string())),
    ]
)
WORDS = st.none() | st.sampled_from(["", "a", "b"])
ROW = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(0, 2),
        "text": WORDS,
        "data": st.none() | st.sampled_from([b"", b"\x00", b"a"]),
        "names": st.none() | st.lists(WORDS, max_size=2),
    }
)


def cut(data: st.DataObject, rows: list[dict[str, Any]]) -> list[pa.Table]:
    ends = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    pairs = zip([0, *ends], [*ends, len(rows)], strict=True)
    return [pa.Table.from_pylist(rows[begin:end], schema=SCHEMA) for begin, end in pairs]


@given(st.data())
def test_what_differs_is_told(data: st.DataObject) -> None:
    """As many rows and in the columns that comparing them one by one finds; some are given."""
    ours = data.draw(st.lists(ROW, max_size=12))
    theirs = [data.draw(st.just(row) | ROW) for row in ours]
    most = data.draw(st.integers(0, 4))
    one, other = cut(data, ours), cut(data, theirs)
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    columns = {name for a, b in pairs for name in a if a[name] != b[name]}
    found = content_difference(one, other, most=most)
    assert (found.row_count, set(found.columns)) == (len(pairs), columns)
    assert list(found.examples) == pairs[:most]
    assert have_same_rows(one, other) is (not pairs)


def test_other_columns_and_fewer_rows() -> None:
    """A column that one has not, or of another type, differs in each row; rows too many too."""
    rows = pa.table({"n": [1, 2], "v": ["a", "b"]})
    other = pa.table({"n": pa.array([1, 2], pa.int32()), "w": ["a", "b"]})
    assert content_difference([rows], [other], most=0).columns == ("n", "v", "w")
    assert content_difference([rows], [rows.slice(0, 1)], most=5).row_count == 1
    assert not have_same_rows([rows], [rows.slice(0, 1)])
    assert not have_same_rows([rows], [other])
