"""Changes applied in memory: what a MERGE would leave."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.resources.lake.mirror.small import apply_changes

SCHEMA = pa.schema(
    [
        ("_row", pa.string()),
        ("id", pa.float64()),
        ("day", pa.date32()),
        ("price", pa.decimal128(20, 0)),
        ("vector", pa.list_(pa.float32())),
    ]
)
"""A column that a changelog spells otherwise among them."""
KEYS = st.tuples(
    st.sampled_from(["", "a", "A", "ł"]),
    st.sampled_from([0.0, -0.0, 1.5]),
    st.sampled_from([date(2026, 1, 1), date(1000, 1, 1)]),
)
VALUES = st.tuples(
    st.none() | st.integers(0, 10**19).map(Decimal),
    st.none() | st.lists(st.floats(width=32, allow_nan=False), max_size=2),
)
KINDS = st.sampled_from(["insert", "update_postimage", "delete"])

Key = tuple[str, float, date]


def _row(key: Key, value: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(SCHEMA.names, (*key, *value), strict=True))


def _as_dict(table: pa.Table) -> dict[Key, tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return {row[:3]: row[3:] for row in rows} if len(rows) == len({r[:3] for r in rows}) else {}


@given(
    st.dictionaries(KEYS, VALUES),
    st.dictionaries(KEYS, st.tuples(KINDS, VALUES)),
)
def test_the_last_word_on_each_key_is_there(
    before: dict[Key, tuple[Any, ...]], words: dict[Key, tuple[str, tuple[Any, ...]]]
) -> None:
    """Rows of keys that nobody speaks of stay; -0.0 is the key that 0.0 is."""
    rows = pa.Table.from_pylist([_row(*item) for item in before.items()], SCHEMA)
    images = [
        {
            "_change_type": kind,
            **{f"_{n}" if n == "_row" else n: v for n, v in _row(key, value).items()},
        }
        for key, (kind, value) in words.items()
    ]
    spelled = pa.schema(
        [("_change_type", pa.string()), SCHEMA.field(0).with_name("__row"), *list(SCHEMA)[1:]]
    )
    changes = pa.Table.from_pylist(images, spelled)
    expected = {key: value for key, value in before.items() if key not in words}
    expected |= {key: value for key, (kind, value) in words.items() if kind != "delete"}
    found = apply_changes(rows, changes, ("_row", "id", "day"))
    assert found.schema == SCHEMA
    assert found.num_rows == len(expected)
    assert _as_dict(found) == expected
