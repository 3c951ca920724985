"""Rows by their keys, as the lake has these: whatever is there is found, of every type that a table
may be cut by, with its extremes, on each server."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.snapshot.bounds import column_without_literal
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.snapshot.keys import FORMS
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
from tests.mysql.test_chunk_keys import anywhere, drawn, flavour, made, on_servers, stand

__all__ = ["anywhere", "flavour", "stand"]
"""Fixtures."""

EVERYTHING = read_condition("true")


@pytest.mark.parametrize(
    ("flavour", "group"),
    on_servers(numbers=NUMBERS, moments=(*MOMENTS, *BYTES), text=TEXTS),
    indirect=["flavour"],
)
def test_every_row_is_found_by_its_key(
    anywhere: Sliced, flavour: str, group: tuple[Case, ...]
) -> None:
    """All at once, and alone: each, but of text some, under some collations."""
    cases = tried(group, flavour)
    for one in drawn(cases) if group is TEXTS else cases:
        schema = made(anywhere, one, groups=1).schema()
        key = list(merge_key(schema))
        assert column_without_literal(schema, key) is None
        with anywhere.source.rows_where(schema, EVERYTHING) as found:
            rows = pa.Table.from_batches(found.rows.batches, found.rows.schema).select(key)
            whole = rows.combine_chunks().to_batches()[0]
            there = pa.Table.from_batches(found.by_keys(whole)).to_pylist()
            assert sorted(map(str, there)) == sorted(map(str, whole.to_pylist())), one
            for at in range(0, whole.num_rows, 4 if one in TEXTS else 1):
                asked = whole.slice(at, 1)
                alone = pa.Table.from_batches(found.by_keys(asked)).to_pylist()
                assert asked.to_pylist()[0] in alone, one


def test_every_type_of_a_key_is_asked_by() -> None:
    """But for those that no literal is known of."""
    asked = {one.type for one in (*NUMBERS, *MOMENTS, *BYTES, *TEXTS)}
    assert asked | {one.type for one in NAMED} == set(FORMS)


@pytest.mark.parametrize("flavour", ALL[1:], indirect=True)
def test_types_that_no_literal_is_known_of_are_not_asked_by(anywhere: Sliced, flavour: str) -> None:
    for one in (*NAMED, *UUIDS):
        if flavour in one.servers:
            schema = made(anywhere, one).schema()
            assert column_without_literal(schema, merge_key(schema)) == (
                "k" if one in NAMED else None
            )
