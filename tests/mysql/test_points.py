"""Rows by their keys, as the lake has these: whatever is there is found, of every type that a table
may be cut by, with its extremes, on each server."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.schema.row_keys import merge_key
from pipeline.snapshot.condition import read_condition
from pipeline.snapshot.keys import FORMS
from pipeline.snapshot.points import unaskable
from tests.mysql.chunk_key_cases import (
    ALL,
    BYTES,
    MOMENTS,
    NAMED,
    NUMBERS,
    TEXTS,
    UUIDS,
    Case,
    tried,
)
from tests.mysql.chunked import Sliced
from tests.mysql.test_chunk_keys import flavour, made, on_servers, place, stand

__all__ = ["flavour", "place", "stand"]
"""Fixtures."""

EVERYTHING = read_condition("true")


@pytest.mark.parametrize(
    ("flavour", "group"),
    on_servers(numbers=NUMBERS, moments=(*MOMENTS, *BYTES), text=TEXTS),
    indirect=["flavour"],
)
def test_every_row_is_found_by_its_key(
    place: Sliced, flavour: str, group: tuple[Case, ...]
) -> None:
    """All at once, and each alone."""
    assert {one.type for one in (*NUMBERS, *MOMENTS, *BYTES, *TEXTS)} | {
        "inet4",
        "inet6",
        "uuid",
    } == set(FORMS)
    for one in tried(group, flavour):
        schema = made(place, one).schema()
        key = list(merge_key(schema))
        assert unaskable(schema, key) is None
        with place.source.rows_where(schema, EVERYTHING) as found:
            rows = pa.Table.from_batches(found.rows.batches, found.rows.schema).select(key)
            whole = rows.combine_chunks().to_batches()[0]
            there = pa.Table.from_batches(found.by_keys(whole)).to_pylist()
            assert sorted(map(str, there)) == sorted(map(str, whole.to_pylist())), one
            for at in range(0, whole.num_rows, 3):
                asked = whole.slice(at, 1)
                alone = pa.Table.from_batches(found.by_keys(asked)).to_pylist()
                assert asked.to_pylist()[0] in alone, one


@pytest.mark.parametrize("flavour", ALL[1:], indirect=True)
def test_types_that_no_literal_is_known_of_are_not_asked_by(place: Sliced, flavour: str) -> None:
    for one in (*NAMED, *UUIDS):
        if flavour in one.servers:
            schema = made(place, one).schema()
            assert unaskable(schema, merge_key(schema)) == ("k" if one in NAMED else None)
