"""Rows of a mirror that are not what the changelog says, and files that say something else."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.replay.rows import RowComparison
from lockstep.pipeline.run.replay.segment_comparison import have_same_rows

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
