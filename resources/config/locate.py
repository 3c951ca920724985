"""Finds the lines of keys in a TOML text, because `tomllib` returns values without
their lines.

The scanner follows TOML 1.0's grammar as far as keys need it: headers, dotted and
quoted keys, and the places where an `=` may be no assignment: multi-line strings,
arrays and comments. Keys of inline tables have their parent's line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KeyPath = tuple[str | int, ...]

_KEY_PART = re.compile(
    r"""\s*(?:"(?P<basic>(?:[^"\\]|\\.)*)"|'(?P<literal>[^']*)'|(?P<bare>[\w-]+))\s*"""
)


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line, from 1, of each key path and header of a valid TOML text. Tables
    in arrays are numbered from 0: `("sources", 0, "name")`."""
    lines: dict[KeyPath, int] = {}
    arrays: dict[KeyPath, int] = {}
    header: KeyPath = ()
    open_value = _OpenValue()
    for number, line in enumerate(text.splitlines(), 1):
        if open_value.goes_on(line):
            continue
        stripped = line.strip()
        if stripped.startswith("[["):
            array = _indexed(_parts(stripped[2:])[0], arrays)
            arrays[array] = arrays.get(array, -1) + 1
            header = (*array, arrays[array])
            lines.setdefault(array, number)
            lines[header] = number
        elif stripped.startswith("["):
            header = _indexed(_parts(stripped[1:])[0], arrays)
            for length in range(1, len(header) + 1):
                lines.setdefault(header[:length], number)
        elif stripped and not stripped.startswith("#"):
            keys, rest = _parts(stripped)
            for length in range(1, len(keys) + 1):
                lines.setdefault((*header, *keys[:length]), number)
            open_value.begins(rest.removeprefix("="))
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of the path, or of its nearest parent that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _parts(text: str) -> tuple[tuple[str, ...], str]:
    """Return the parts of the dotted key at the beginning of the text, and the rest of
    the text."""
    keys: list[str] = []
    at = 0
    while match := _KEY_PART.match(text, at):
        basic = match["basic"]
        keys.append(
            re.sub(r"\\(.)", r"\1", basic)
            if basic is not None
            else match["literal"]
            if match["literal"] is not None
            else match["bare"]
        )
        at = match.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(keys), text[at:]


def _indexed(keys: tuple[str, ...], arrays: Mapping[KeyPath, int]) -> KeyPath:
    """Return the path of a header's keys. After each array of tables, except at the
    end, it has the number of the array's newest table."""
    path: KeyPath = ()
    for place, key in enumerate(keys, 1):
        path = (*path, key)
        if place < len(keys) and path in arrays:
            path = (*path, arrays[path])
    return path


class _OpenValue:
    """Tracks whether a value that began on an earlier line continues."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""

    def begins(self, text: str) -> None:
        """Scan the rest of the line on which a value begins."""
        self._depth, self._quote = 0, ""
        self._scan(text)

    def goes_on(self, line: str) -> bool:
        """Scan the line if the value is still open, and return whether it was."""
        if not self._depth and not self._quote:
            return False
        self._scan(line)
        return True

    def _scan(self, text: str) -> None:
        at = 0
        while at < len(text):
            if self._quote:
                at = self._inside_string(text, at)
            elif text[at] == "#":
                return
            elif text[at] in "\"'":
                triple = text[at] * 3
                self._quote = triple if text.startswith(triple, at) else text[at]
                at += len(self._quote)
            else:
                self._depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(text[at], 0)
                at += 1

    def _inside_string(self, text: str, at: int) -> int:
        if text[at] == "\\" and self._quote[0] == '"':
            return at + 2
        if text.startswith(self._quote, at):
            at += len(self._quote)
            self._quote = ""
            return at
        return at + 1
