"""HMAC-SHA-256 of many short texts at once, compiled: a tenth of what one call for each costs.

Belongs here: RFC 2104 over FIPS 180-4, for texts that fit into one block of SHA-256. Does not:
which texts (`hashes`).

Lane by lane the same is computed, on arrays of as many words as there are lanes, so the compiler
makes it instructions over several words. A row of the state, or of the schedule, begins at a
multiple of `_LANES`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.binlog.arrays.compiled import kernel, part

SHORT: Final = 55
"""Bytes of the longest text that fits into one block, with its mark of the end and its length."""

_LANES: Final = 128
_BLOCK: Final = 64

_ROUNDS: Final = np.array(
    [
        *(0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4),
        *(0xAB1C5ED5, 0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE),
        *(0x9BDC06A7, 0xC19BF174, 0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F),
        *(0x4A7484AA, 0x5CB0A9DC, 0x76F988DA, 0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7),
        *(0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967, 0x27B70A85, 0x2E1B2138, 0x4D2C6DFC),
        *(0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85, 0xA2BFE8A1, 0xA81A664B),
        *(0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070, 0x19A4C116),
        *(0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3),
        *(0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7),
        0xC67178F2,
    ],
    np.uint32,
)
_INITIAL: Final = np.array(
    [
        *(0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A),
        *(0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19),
    ],
    np.uint32,
)
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


@kernel
def hexadecimal_hashes(
    inner: Bytes, outer: Bytes, data: Bytes, starts: Integers, hashes: Bytes
) -> None:
    """Write the HMAC of each text as 64 digits. Text n is `data[starts[n]:starts[n + 1]]`; what is
    written for one that is longer than `SHORT` means nothing. `inner`, `outer`: the key's blocks,
    which RFC 2104 calls K XOR ipad and K XOR opad."""
    words = np.zeros(64 * _LANES, np.uint32)
    state = np.empty(8 * _LANES, np.uint32)
    after_inner, after_outer = _after_key(inner, words, state), _after_key(outer, words, state)
    count = len(starts) - 1
    for first in range(0, count, _LANES):
        lanes = min(_LANES, count - first)
        for lane in range(lanes):
            start = starts[first + lane]
            _text(words, lane, data, start, min(starts[first + lane + 1] - start, SHORT))
        state[:] = after_inner
        _compress(words, state)
        for row in range(8):
            for lane in range(_LANES):
                words[row * _LANES + lane] = state[row * _LANES + lane]
                words[(row + 8) * _LANES + lane] = 0
        for lane in range(_LANES):
            words[8 * _LANES + lane] = 0x80000000
            words[15 * _LANES + lane] = (_BLOCK + 32) * 8
        state[:] = after_outer
        _compress(words, state)
        for lane in range(lanes):
            _digits(state, lane, hashes, (first + lane) * 64)


@part
def _after_key(block: Bytes, words: Words, state: Words) -> Words:
    """The state of each lane that has read the key's block."""
    for row in range(16):
        word = np.uint32(0)
        for place in range(4):
            word = np.uint32((word << np.uint32(8)) | np.uint32(block[4 * row + place]))
        for lane in range(_LANES):
            words[row * _LANES + lane] = word
    for row in range(8):
        for lane in range(_LANES):
            state[row * _LANES + lane] = _INITIAL[row]
    _compress(words, state)
    return state.copy()


@part
def _text(words: Words, lane: int, data: Bytes, start: int, length: int) -> None:
    """A lane's block: the text, a bit that ends it, and the bits there are with the key's block."""
    for row in range(15):
        word = np.uint32(0)
        for place in range(4 * row, 4 * row + 4):
            byte = np.uint32(0)
            if place < length:
                byte = np.uint32(data[start + place])
            elif place == length:
                byte = np.uint32(0x80)
            word = np.uint32((word << np.uint32(8)) | byte)
        words[row * _LANES + lane] = word
    words[15 * _LANES + lane] = np.uint32((_BLOCK + length) * 8)


@part
def _digits(state: Words, lane: int, hashes: Bytes, at: int) -> None:
    for row in range(8):
        word = state[row * _LANES + lane]
        for digit in range(8):
            hashes[at + row * 8 + digit] = _HEX[(word >> np.uint32(28 - 4 * digit)) & 15]


@part
def _rotated(word: np.uint32, bits: int) -> np.uint32:
    return np.uint32((word >> np.uint32(bits)) | (word << np.uint32(32 - bits)))


@part
def _compress(words: Words, state: Words) -> None:
    """FIPS 180-4, 6.2.2. The eight working variables stay where they are in memory: from round to
    round their names move on by one row instead."""
    before = state.copy()
    for row in range(16, 64):
        _schedule(words, row * _LANES)
    n = _LANES
    for row in range(0, 64, 8):
        _round(words, row, state, 0, n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n, 7 * n)
        _round(words, row + 1, state, 7 * n, 0, n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n)
        _round(words, row + 2, state, 6 * n, 7 * n, 0, n, 2 * n, 3 * n, 4 * n, 5 * n)
        _round(words, row + 3, state, 5 * n, 6 * n, 7 * n, 0, n, 2 * n, 3 * n, 4 * n)
        _round(words, row + 4, state, 4 * n, 5 * n, 6 * n, 7 * n, 0, n, 2 * n, 3 * n)
        _round(words, row + 5, state, 3 * n, 4 * n, 5 * n, 6 * n, 7 * n, 0, n, 2 * n)
        _round(words, row + 6, state, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n, 7 * n, 0, n)
        _round(words, row + 7, state, n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n, 7 * n, 0)
    for place in range(8 * _LANES):
        state[place] = np.uint32(state[place] + before[place])


@part
def _schedule(words: Words, at: int) -> None:
    for lane in range(at, at + _LANES):
        old, new = words[lane - 15 * _LANES], words[lane - 2 * _LANES]
        small = _rotated(old, 7) ^ _rotated(old, 18) ^ np.uint32(old >> np.uint32(3))
        great = _rotated(new, 17) ^ _rotated(new, 19) ^ np.uint32(new >> np.uint32(10))
        words[lane] = np.uint32(
            words[lane - 16 * _LANES] + small + words[lane - 7 * _LANES] + great
        )


@part
def _round(
    words: Words,
    row: int,
    s: Words,
    a: int,
    b: int,
    c: int,
    d: int,
    e: int,
    f: int,
    g: int,
    h: int,
) -> None:
    """One round; `a` to `h` are where the standard's variables of that name begin in the state."""
    constant, at = _ROUNDS[row], row * _LANES
    for lane in range(_LANES):
        x, y = s[a + lane], s[e + lane]
        great = _rotated(y, 6) ^ _rotated(y, 11) ^ _rotated(y, 25)
        chosen = s[g + lane] ^ (y & (s[f + lane] ^ s[g + lane]))
        first = np.uint32(s[h + lane] + great + chosen + constant + words[at + lane])
        small = _rotated(x, 2) ^ _rotated(x, 13) ^ _rotated(x, 22)
        most = (x & s[b + lane]) | (s[c + lane] & (x | s[b + lane]))
        s[d + lane] = np.uint32(s[d + lane] + first)
        s[h + lane] = np.uint32(first + small + most)
