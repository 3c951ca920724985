"""Files of every kind, searched for secrets in all the ways that they could be spelled.

Belongs here: what a secret looks like in a file, and how files are opened. Does not: which files,
and where the secrets come from (`test_canary`).
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

_BYTES: Final = 8


@dataclass(frozen=True)
class Secrets:
    """`words` are in each secret text, whatever is around them. `numbers`: the first of a few
    thousand secret numbers, of which the lowest two bytes count up."""

    words: tuple[str, ...]
    numbers: int

    def spelled(self) -> dict[bytes, str]:
        """What to look for in bytes, with what it is."""
        found: dict[bytes, str] = {}
        for word in self.words:
            for one in {word, word.lower(), word.upper()}:
                found |= _text(one)
        digits = str(self.numbers)[:-5]
        found |= _text(digits)
        for order in ("little", "big"):
            whole = self.numbers.to_bytes(_BYTES, order)
            found[whole[2:] if order == "little" else whole[:-2]] = f"number, {order} endian"
        found |= _text(f"{self.numbers:x}"[:-4])
        return found


def _text(text: str) -> dict[bytes, str]:
    plain = text.encode()
    found = {plain: text}
    for encoding in ("utf-16-le", "utf-16-be"):
        found[text.encode(encoding)] = f"{text} in {encoding}"
    for digits in (plain.hex(), plain.hex().upper()):
        found[digits.encode()] = f"{text} in hexadecimal digits"
    for before in range(3):
        # Only the characters that do not depend on what is around it.
        whole = base64.b64encode(b"\0" * before + plain)
        first = -(-before * 8 // 6)
        last = (before + len(plain)) * 8 // 6
        found[whole[first:last]] = f"{text} in base64"
    return found


Seen = dict[Path, tuple[int, int]]
"""Files that were searched before, with their size and the moment of their last change."""


def secrets_in(folder: Path, secrets: Secrets, seen: Seen) -> list[str]:
    """Where one is: a file, and what was found in it. Files that are as they were when they were
    searched before are passed over."""
    spelled = secrets.spelled()
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        status = path.stat()
        if seen.get(path) != (status.st_size, status.st_mtime_ns):
            seen[path] = status.st_size, status.st_mtime_ns
            found += [f"{path.relative_to(folder)}: {what}" for what in _found(path, spelled)]
    return found


def _found(path: Path, spelled: dict[bytes, str]) -> Iterator[str]:
    try:
        contents = [*_contents(path)]
    except FileNotFoundError:  # a server at work removes what it needs no more
        return
    for content in contents:
        for one, what in spelled.items():
            at = content.find(one)
            if at >= 0:
                yield f"{what}: …{content[max(at - 60, 0) : at + 60]!r}…"


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
                yield _plain([statistics.min, statistics.max])
    yield _plain(file.read().to_pylist())


def _plain(value: Any) -> bytes:
    """Texts and numbers as they are; bytes as they are and, where they are an array of numbers, so
    too."""
    parts: list[bytes] = []

    def add(one: Any) -> None:
        match one:
            case dict():
                for key, inner in one.items():
                    add(key)
                    add(inner)
            case list() | tuple():
                for inner in one:
                    add(inner)
            case bytes():
                parts.append(one)
            case str():
                parts.append(one.encode())
            case _:
                parts.append(str(one).encode())

    add(value)
    return b"\n".join(parts)
