"""The compiled reader of MySQL's binary JSON against the one in plain Python."""

from __future__ import annotations

import ctypes
import mmap
import random
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.binlog.values.json import json_array
from lockstep.pipeline.values.errors import DamagedEvent, TableError
from tests.pipeline.json_made import Json, Opaque, made
from tests.pipeline.json_reference import document_text

_KINDS = st.sampled_from([7, 10, 11, 12, 246, 252, 253, 255])
_MOMENTS = st.builds(
    lambda kind, days, clock, micros: Opaque(
        kind, struct.pack("<q", (days << 17 | clock) << 24 | micros)
    ),
    st.sampled_from([7, 10, 11, 12]),
    st.integers(0, 9999 * 13 * 32),
    st.integers(0, (1 << 17) - 1),
    st.integers(0, 999_999),
)
_OPAQUE = _MOMENTS | st.builds(Opaque, _KINDS, st.binary(max_size=100))
_INTEGERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.integers(-70000, 70000)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_DECIMALS = st.builds(lambda n, k: n / 10**k, st.integers(-(10**9), 10**9), st.integers(0, 20))
_TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
_SCALARS = st.none() | st.booleans() | _INTEGERS | _FLOATS | _DECIMALS | _TEXT | _OPAQUE
DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    _SCALARS,
    lambda values: st.lists(values, max_size=9) | st.dictionaries(_TEXT, values, max_size=9),
    max_leaves=30,
)

_ANY_TIME = settings(deadline=None)
"""The first example may wait for a compiler."""


def outcome(document: bytes) -> str | type[Exception]:
    """What the compiled code should make of a document."""
    try:
        return document_text(document).decode()
    except UnicodeDecodeError:
        return TableError
    except DamagedEvent:
        return DamagedEvent


def compiled(document: bytes) -> str | type[Exception]:
    """What it does make of it, the document lying at the very end of readable memory."""
    try:
        text: str = json_array(_at_the_end(document), *_places([document]))[0].as_py()
    except (DamagedEvent, TableError) as error:
        return type(error)
    return text


def _places(documents: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    length = np.array([len(document) for document in documents], np.int64)
    return np.cumsum(length) - length, length


def _at_the_end(document: bytes) -> npt.NDArray[np.uint8]:
    """The bytes, with a page behind them that ends the process when it is read."""
    pages = -(-max(len(document), 1) // mmap.PAGESIZE)
    area = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    memory = np.frombuffer(area, np.uint8)
    guard = memory.ctypes.data + pages * mmap.PAGESIZE
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(guard), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    begin = pages * mmap.PAGESIZE - len(document)
    memory[begin : begin + len(document)] = np.frombuffer(document, np.uint8)
    memory.flags.writeable = False
    return memory[begin : begin + len(document)]


@_ANY_TIME
@given(DOCUMENTS, st.booleans())
def test_the_compiled_reader_agrees_with_the_reference(value: Json, large: bool) -> None:
    """Any document, in the small and in the large form, has one text."""
    document = made(value, large=large)
    assert outcome(document) == compiled(document)


@_ANY_TIME
@given(DOCUMENTS, st.booleans(), st.randoms(use_true_random=False))
def test_damage_is_text_or_a_typed_error(value: Json, large: bool, chance: random.Random) -> None:
    """Flipped and missing bytes end as the reference says: in text, or in a typed error."""
    whole = made(value, large=large)
    for _ in range(5):
        document = bytearray(whole)
        for _ in range(chance.randint(0, 3)):
            document[chance.randrange(len(document))] = chance.choice(
                [0, 1, 255, chance.randrange(256)]
            )
        cut = bytes(document[: chance.randint(1, len(document))])
        assert outcome(bytes(document)) == compiled(bytes(document))
        assert outcome(cut) == compiled(cut)


@_ANY_TIME
@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1))
def test_doubles_are_the_shortest_that_read_back(patterns: list[int]) -> None:
    """Any 64 bits, also those next to powers of two and ten, have the digits of repr."""
    near = [struct.unpack("<Q", struct.pack("<d", x))[0] for x in (2.0**-1022, 1e22, 1e23, 5e-324)]
    for bits in [*patterns, *(n + step for n in near for step in (-1, 0, 1))]:
        document = b"\x0b" + struct.pack("<Q", bits)
        assert outcome(document) == compiled(document)


@pytest.mark.parametrize(
    "document",
    [
        b"\x03",
        b"\x04",
        b"\x04\x03",
        b"\x05\x01",
        b"\x0a" + b"\x01" * 7,
        b"\x0b" + struct.pack("<d", float("inf")),
        b"\x0b" + struct.pack("<d", float("nan")),
        b"\x0c\x04abc",
        b"\x0c\xff\xff\xff\xff\x0fabc",
        b"\x0c\x80",
        b"\x0c\x81\x80\x80\x80\x80\x00a",
        b"\x0d\x00\x00",
        b"\x0f",
        b"\x0f\xf6\x00",
        made(Opaque(246, b"\x03\x02\x81")),
        made(Opaque(246, b"\x03\x02\x81\x32\x00")),
        made(Opaque(246, b"\x03\x02\x8a\x32")),
        made(Opaque(246, b"\x03\x02\x81\x64")),
        made(Opaque(246, b"\x03\x04\x81\x32")),
        made(Opaque(246, b"\x00\x00\x80")),
        made(Opaque(12, b"\x00" * 7)),
        made(Opaque(12, struct.pack("<q", -1))),
        made(Opaque(12, struct.pack("<q", 24 << 36))),
        made(Opaque(11, struct.pack("<q", 839 << 36))),
        made(Opaque(11, struct.pack("<q", -(1 << 63)))),
        made(Opaque(11, struct.pack("<q", 60 << 24))),
        made(Opaque(11, struct.pack("<q", 1_000_000))),
        b"\x02\x01\x00\x06\x00\x04\x00",
        b"\x02\x01\x00\x08\x00\x04\x00\x00",
        b"\x02\x01\x00\x09\x00\x0c\x06\x00\x01a",
        b"\x02\x01\x00\x09\x00\x0c\x0a\x00\x01a",
        b"\x00\x01\x00\x0c\x00\x0a\x00\x01\x00\x04\x00\x00a",
        b"\x00\x01\x00\x0c\x00\x0b\x00\x02\x00\x04\x00\x00a",
    ],
)
def test_damage(document: bytes) -> None:
    """What says that it is longer, elsewhere or of another kind than it can be is refused."""
    assert (DamagedEvent, DamagedEvent) == (compiled(document), outcome(document))


def test_the_deepest_document() -> None:
    """A hundred arrays within one another are read, one more is damage."""
    value: Json = []
    for _ in range(99):
        value = [value]
    deepest, deeper = made(value), made([value])
    assert ("[" * 100 + "]" * 100, DamagedEvent) == (compiled(deepest), compiled(deeper))
    assert (outcome(deepest), outcome(deeper)) == (compiled(deepest), compiled(deeper))


def test_a_small_document_does_not_make_endless_text() -> None:
    """Many entries that lead to one large value are damage, found in bounded memory."""
    text = b"\xff\xff\x01" + b"x" * 0x7FFF
    entries, head = 10_000, 4
    at = head + 3 * entries
    document = b"\x02" + struct.pack("<HH", entries, at + len(text))
    document += struct.pack("<BH", 12, at) * entries + text
    before = pa.total_allocated_bytes()
    assert DamagedEvent is compiled(document) is outcome(document)
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize(("length", "expected"), [(42, str), (43, DamagedEvent)])
def test_how_much_text_is_too_much(length: int, expected: type) -> None:
    """Eight times the document and 64 bytes: what only overlapping values exceed."""
    text = bytes([length]) + b"x" * length
    document = b"\x02" + struct.pack("<HH", 20, 64 + len(text))
    document += struct.pack("<BH", 12, 64) * 20 + text
    found = compiled(document)
    assert outcome(document) == found
    assert expected is (found if isinstance(found, type) else type(found))


def test_many_documents_and_nulls() -> None:
    """Offsets, NULLs, empty documents and a buffer that has to grow several times."""
    values: list[Json] = ["\x01" * 5000, None, 7, Opaque(252, b"x" * 3000), {"a": "\n" * 999}] * 20
    documents = [made(value) for value in values]
    at, length = _places([*documents, b""])
    length[3::7] = -1
    data = np.frombuffer(b"".join(documents), np.uint8)
    expected = [
        None if size < 0 else document_text(data[begin : begin + size].tobytes()).decode()
        for begin, size in zip(at.tolist(), length.tolist(), strict=True)
    ]
    assert expected == json_array(data, at, length).to_pylist()


def test_no_documents() -> None:
    """No rows give an empty array, rows of NULL one without text."""
    nothing, none = np.frombuffer(b"\0", np.uint8)[1:], np.zeros(0, np.int64)
    assert json_array(nothing, none, none).to_pylist() == []
    assert json_array(nothing, np.zeros(9, np.int64), np.full(9, -1)).to_pylist() == [None] * 9


def test_damage_names_the_value() -> None:
    """The message counts values from 0, and a document outside the data is damage too."""
    data = np.frombuffer(b"\x04\x00\x04\x03", np.uint8)
    with pytest.raises(DamagedEvent, match="value 1 of a JSON column is not a valid document"):
        json_array(data, np.array([0, 2]), np.array([2, 2]))
    for at, length in ((-1, 2), (3, 2), (4, 1), (1 << 62, 1 << 62)):
        with pytest.raises(DamagedEvent, match="value 0 of a JSON column is not a valid document"):
            json_array(data, np.array([at]), np.array([length]))
