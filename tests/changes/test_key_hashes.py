"""Equal keys have equal numbers, and rows that moved are followed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.fold import KeyChains, key_hashes

KINDS = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.decimal128(20, 0): st.integers(-(2**64), 2**64).map(Decimal),
    pa.bool_(): st.booleans(),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1.5]),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=40),
    pa.date32(): st.dates(date(1000, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime(1000, 1, 1)),
}


@st.composite
def keys(draw: Any) -> pa.Table:
    """Some values come more than once, among them NULL."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    values = [draw(st.lists(KINDS[kind], min_size=1, max_size=4)) for kind in kinds]
    count = draw(st.integers(0, 20))
    columns = [
        pa.array(
            draw(st.lists(st.sampled_from([None, *some]), min_size=count, max_size=count)), kind
        )
        for some, kind in zip(values, kinds, strict=True)
    ]
    return pa.table(columns, names=[str(at) for at in range(len(kinds))])


@given(keys(), st.integers(0, 20))
def test_a_key_s_number_is_the_same_wherever_it_stands(table: pa.Table, cut: int) -> None:
    """In any piece; keys that differ have numbers that differ, as a rule. 0.0 is -0.0."""
    whole = key_hashes(table)
    pieces = [key_hashes(table.slice(0, cut)), key_hashes(table.slice(cut))]
    assert np.array_equal(whole, np.concatenate(pieces))
    rows = [tuple(row.values()) for row in table.to_pylist()]
    told = dict(zip(rows, whole, strict=True))
    assert all(told[row] == number for row, number in zip(rows, whole, strict=True))


def test_numbers_spread() -> None:
    """Neighbours, and texts that begin alike, go to different buckets."""
    for table in (
        pa.table({"id": pa.array(range(10_000), pa.int64())}),
        pa.table({"id": [f"customer-{number:08}" for number in range(10_000)]}),
    ):
        numbers = key_hashes(table)
        assert len(set(numbers)) == 10_000
        counts = np.bincount((numbers % np.uint64(16)).astype(np.int64), minlength=16)
        assert counts.min() > 500


def test_long_texts_are_hashed_in_windows() -> None:
    """The number does not depend on what stands beside."""
    texts = ["x" * size for size in (0, 1, 700_000, 700_001, 2_000_000, 1)]
    together = key_hashes(pa.table({"id": texts}))
    alone = [key_hashes(pa.table({"id": [text]}))[0] for text in texts]
    assert list(together) == alone
    assert len(set(alone)) == 5


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.integers(0, 24),
    st.randoms(use_true_random=False),
)
def test_keys_of_one_chain_have_one_root(
    moves: list[tuple[int, int]], cut: int, random: Any
) -> None:
    """Whatever the pieces in which the images come; keys that no row moved between have their
    own."""
    images = [
        {"_change_type": kind, "_sequence": 2 * at + half, "id": keys[half]}
        for at, keys in enumerate(moves)
        for half, kind in enumerate(("update_preimage", "update_postimage"))
    ]
    random.shuffle(images)
    schema = pa.schema(
        [("_change_type", pa.string()), ("_sequence", pa.int64()), ("id", pa.int64())]
    )
    chains = KeyChains()
    for piece in (images[:cut], images[cut:]):
        table = pa.Table.from_pylist(piece, schema)
        chains.add(table, key_hashes(table.select(["id"])))
    roots = list(chains.roots(key_hashes(pa.table({"id": pa.array(range(10), pa.int64())}))))
    groups = {key: {key} for key in range(10)}
    for one, other in moves:
        both = groups[one] | groups[other]
        groups.update(dict.fromkeys(both, both))
    expected = [[other in groups[key] for other in range(10)] for key in range(10)]
    assert [[root == other for other in roots] for root in roots] == expected
