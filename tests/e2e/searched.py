"""Files of every kind, searched for words in all the ways that they could be spelled.

Belongs here: what a word looks like in a file, and how files are opened. Does not: which files,
and where the words come from (`test_canary`).
"""

from __future__ import annotations

import base64
import gzip
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_BYTES: Final = 8
_EMPTY: Final = bytes(64)
"""What pages of databases have most of."""


@dataclass(frozen=True)
class Secrets:
    """`words` are in each secret text, whatever is around them. `numbers`: the first of a few
    thousand secret numbers, of which the lowest two bytes count up."""

    words: tuple[str, ...]
    numbers: int

    def spelled(self) -> dict[bytes, str]:
        """What to look for in bytes, with what it is."""
        found = spelled(*self.words)
        digits = str(self.numbers)[:-5]
        found |= _text(digits)
        for order in ("little", "big"):
            whole = self.numbers.to_bytes(_BYTES, order)
            found[whole[2:] if order == "little" else whole[:-2]] = f"number, {order} endian"
        found |= _text(f"{self.numbers:x}"[:-4])
        return found


def spelled(*words: str) -> dict[bytes, str]:
    """What to look for in bytes, with what it is."""
    found: dict[bytes, str] = {}
    for word in words:
        for one in {word, word.lower(), word.upper()}:
            found |= _text(one)
    return found


def _text(text: str) -> dict[bytes, str]:
    plain = text.encode()
    found = {plain: text}
    # Without its last byte it is in both orders of bytes.
    found[text.encode("utf-16-le")[:-1]] = f"{text} in UTF-16"
    for digits in (plain.hex(), plain.hex().upper()):
        found[digits.encode()] = f"{text} in hexadecimal digits"
    for before in range(3):
        # Only the characters that do not depend on what is around it.
        whole = base64.b64encode(b"\0" * before + plain)
        first = -(-before * 8 // 6)
        last = (before + len(plain)) * 8 // 6
        found[whole[first:last]] = f"{text} in base64"
    return found


class Kept:
    """Files as they are at several moments, for one search at the end: each under the moment's
    name, also those that are removed later. It is a link: of a file that is written to in its
    place, what it has at the end is searched."""

    def __init__(self, folder: Path, begun: Path) -> None:
        """What a folder has when it is `begun` is not searched unless it changes."""
        self.folder = folder
        self._known = {path.stat().st_ino: _state(path) for path in begun.rglob("*")}

    def keep(self, moment: str, folder: Path) -> None:
        """All of a folder that is new or changed."""
        for path in folder.rglob("*"):
            try:
                state, number = _state(path), path.stat().st_ino
                if path.is_symlink() or not path.is_file() or self._known.get(number) == state:
                    continue
                there = self.folder / moment / path.relative_to(folder)
                there.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, there)
            except FileNotFoundError:  # a server at work removes what it needs no more
                continue
            self._known[number] = state

    def add(self, moment: str, name: str, content: bytes) -> None:
        """A file that is not in a folder."""
        there = self.folder / moment / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(content)


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class Place:
    """A file in which a word is, below the folder that was searched."""

    file: str
    word: str
    around: bytes

    def __str__(self) -> str:
        return f"{self.file}: {self.word}: …{self.around!r}…"


def search(folder: Path, *sought: Mapping[bytes, str]) -> list[list[Place]]:
    """Of each of several sets of words, the places where one of them is. A file is read once."""
    found: list[list[Place]] = [[] for _ in sought]
    of = {
        one: (places, what)
        for places, words in zip(found, sought, strict=True)
        for one, what in words.items()
    }
    pattern = re.compile(b"|".join(map(re.escape, of)))
    read = set[int]()
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.stat().st_ino in read:
            continue
        read.add(path.stat().st_ino)
        for content in _contents(path):
            told = set[bytes]()
            content = content.replace(_EMPTY, b"")
            for match in pattern.finditer(content):
                if match[0] not in told:
                    told.add(match[0])
                    places, what = of[match[0]]
                    around = content[max(match.start() - 60, 0) : match.end() + 60]
                    places.append(Place(str(path.relative_to(folder)), what, around))
    return found


def _contents(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield data
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    if data[:4] == b"PAR1" and data[-4:] == b"PAR1":
        yield from _parquet(path)


def _parquet(path: Path) -> Iterator[bytes]:
    """Rows, statistics and metadata, which dictionaries and compression hide."""
    file = pq.ParquetFile(path)
    yield repr(file.metadata.metadata).encode()
    for group in range(file.metadata.num_row_groups):
        for column in range(file.metadata.num_columns):
            statistics = file.metadata.row_group(group).column(column).statistics
            if statistics is not None and statistics.has_min_max:
                yield from map(_plain, (statistics.min, statistics.max))
    for column in file.read().columns:
        yield from _values(column.combine_chunks())


def _plain(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _values(array: pa.Array | pa.ChunkedArray) -> Iterator[bytes]:
    """All that is in a column, one value behind the other: texts and bytes as they are, everything
    else as text."""
    if isinstance(array, pa.ChunkedArray):
        for chunk in array.chunks:
            yield from _values(chunk)
    elif pa.types.is_struct(array.type):
        for part in array.flatten():
            yield from _values(part)
    elif pa.types.is_map(array.type):
        yield from _values(array.keys)
        yield from _values(array.items)
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        yield from _values(array.values)
    else:
        text = _as_text(array)
        buffer = text.buffers()[-1]
        if buffer is not None:
            yield buffer.to_pybytes()


def _as_text(array: pa.Array) -> pa.Array:
    kind = array.type
    if any(test(kind) for test in _TEXTS):
        return array
    return pc.cast(array, pa.string())


_TEXTS: Final[Iterable[Any]] = (
    *(pa.types.is_string, pa.types.is_large_string),
    *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
)
