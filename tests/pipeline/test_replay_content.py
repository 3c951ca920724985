"""Two sets of files held against each other, row by row, however they are cut."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.run.replay.segment_comparison import content_difference, have_same_rows

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
