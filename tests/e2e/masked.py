"""What of an answer is the same in every recording of its history.

Belongs here: names in place of whatever differs from one recording to the next. Does not: the
history (`recorded`), and what is compared (`test_answers`).

A place in the log keeps its meaning: it is called by the statements before it. A UUID keeps its
identity within its answer. Moments, durations and sizes lose their value; that a size is 0 is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

_UUID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_PLACE: Final = re.compile(r"\b([A-Za-z][\w-]*\.\d{6})[:-](\d+)\b")
_FILE: Final = re.compile(r"\b[A-Za-z][\w-]*\.\d{6}\b")
_GTIDS: Final = re.compile(r"<server>(?::\d+(?:-\d+)?)+(?:,\s*<server>(?::\d+(?:-\d+)?)+)*")
_MOMENT: Final = re.compile(
    r"\b(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00| UTC)?|\b\d{8}T\d{6}Z"
)
_GAUGE: Final = re.compile(r"^(lockstep_\w*(?:seconds|bytes)\w*(?:\{.*\})?) (?!0\.0$).*$", re.M)
_OTHERS: Final = (
    (re.compile(r"\bJava \d+, \S+"), "Java <version>"),
    (re.compile(r"\btime zone \w+;"), "time zone <zone>;"),
    (re.compile(r"\bin \d+(\.\d+)? s\b"), "in <seconds>"),
)
_MASKED: Final = ("seconds", "bytes")
_HIDDEN: Final = ("java", "compiled", "port", "estimated_rows")
"""Keys of an answer whose value is this machine's, or an estimate."""


@dataclass
class Marks:
    """Names of what differs: texts of this recording, places in the log, sets of GTIDs."""

    texts: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    gtids: dict[str, str] = field(default_factory=dict)

    def hide(self, text: str, name: str) -> None:
        """Have the name in place of the text."""
        self.texts[text] = name

    def note(self, place: str, gtids: str, name: str) -> None:
        """Name the end of the log, as it is now: FILE:OFFSET and all executed GTIDs."""
        executed = re.sub(r"\s", "", gtids)
        self.places.setdefault(place, f"<after {name}>")
        self.gtids.setdefault(executed, f"<gtids after {name}>")
        source, _, last = executed.rpartition(":")
        self.gtids.setdefault(f"{source}:{last.rpartition('-')[2]}", f"<last gtid of {name}>")

    def masked(self, answer: Any) -> Any:
        """The answer with names; texts of several lines are lists of lines."""
        seen: dict[str, str] = {}
        return self._value(answer, lambda found: seen.setdefault(found, f"<uuid {len(seen) + 1}>"))

    def _value(self, value: Any, named: Callable[[str], str]) -> Any:
        match value:
            case dict():
                return {
                    self._text(key, named): self._entry(key, entry, named)
                    for key, entry in self._placed(value).items()
                }
            case list():
                return [self._value(entry, named) for entry in value]
            case str():
                lines = self._text(value, named).splitlines()
                return lines if len(lines) > 1 else "".join(lines)
            case _:
                return value

    def _placed(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """A position says its offset by the name of its place. How many rows a table has at the
        source, InnoDB estimates."""
        if {"rows", "engine"} <= value.keys():
            return {**value, "rows": "<estimate>"}
        if {"file", "offset"} <= value.keys():
            return {**value, "offset": self._place(f"{value['file']}:{value['offset']}")}
        return value

    def _entry(self, key: str, value: Any, named: Callable[[str], str]) -> Any:
        if key in _HIDDEN:
            return f"<{key}>"
        for name in _MASKED:
            if name in key:
                return _sizes(value, f"<{name}>", zero=name == "bytes")
        return self._value(value, named)

    def _place(self, found: str) -> str:
        return self.places.get(found, "<place>")

    def _text(self, text: str, named: Callable[[str], str]) -> str:
        for gtids in sorted(self.gtids, key=len, reverse=True):
            text = re.sub(rf"{re.escape(gtids)}(?![\d:-])", self.gtids[gtids], text)
        for hidden in sorted(self.texts, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(hidden)}(?!\w)", self.texts[hidden], text)
        text = _GTIDS.sub("<gtids>", text)
        text = _MOMENT.sub(_moment, text)
        text = _PLACE.sub(lambda match: self._place(f"{match[1]}:{match[2]}"), text)
        text = _FILE.sub("<file>", text)
        text = _GAUGE.sub(r"\1 <number>", text)
        for pattern, name in _OTHERS:
            text = pattern.sub(name, text)
        return _UUID.sub(lambda match: named(match[0]), text)


def _sizes(value: Any, name: str, *, zero: bool) -> Any:
    """Numbers by their name; 0 is kept where a `zero` is one each time."""
    if isinstance(value, dict):
        return {key: _sizes(entry, name, zero=zero) for key, entry in value.items()}
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return name if is_number and (value or not zero) else value


def _moment(match: re.Match[str]) -> str:
    """Of now; a row's value is of another day."""
    if match[1] is None:
        return "<time>"
    try:
        day = date.fromisoformat(match[1])
    except ValueError:
        return match[0]
    return "<time>" if abs(datetime.now(UTC).date() - day) < timedelta(days=3) else match[0]
