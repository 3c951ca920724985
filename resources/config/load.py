"""Reads lockstep.toml, and reports all its mistakes at once, in sentences with their
lines."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from lockstep.pipeline.values.errors import ConfigurationError, LockstepError, NotYet
from lockstep.resources.config.model import (
    CatalogSection,
    ConfigFile,
    DagsterSection,
    LakeSection,
    LedgerSection,
    LineageSection,
    NotifySection,
    PrivacySection,
    UpkeepSection,
)
from lockstep.resources.config.settings import Settings
from lockstep.resources.config.sources import (
    BoundsSection,
    ReplaySection,
    SnapshotSection,
    SourceSection,
    StandbySection,
    TableSection,
    TriggerSection,
)
from lockstep.resources.config.values import KeyMistake, NotBuiltYet

KeyPath = tuple[str | int, ...]


def load_settings(path: Path) -> Settings:
    """Return the settings in a file. Raise `ConfigurationError` if it is missing,
    unreadable or has mistakes, which are all listed; raise `NotYet` if its only
    mistakes are planned values."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"There is no {path}.",
            hint="write one with `lockstep init`, or name another file with --config FILE",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read as UTF-8 text.", hint=f"check {path} and who may read it"
        ) from error
    return parse_settings(text, path.resolve())


def parse_settings(text: str, path: Path) -> Settings:
    """Return the settings in a text, as `load_settings` does. `path`: the file that has
    the text, or will have it."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        sentence = re.sub(r" \(at line (\d+), column (\d+)\)$", "", str(error))
        match = re.search(r"at line (\d+)", str(error))
        line = f"line {match[1]}" if match else "the end"
        raise ConfigurationError(
            f"{path.name}: {line}: not TOML: {sentence[:1].lower()}{sentence[1:]}.",
            hint="put texts in quotes and names of tables in [brackets]; see https://toml.io",
        ) from error
    try:
        return Settings(ConfigFile.model_validate(data), path)
    except ValidationError as error:
        # The validation error contains the file's values, so it must not become the
        # cause.
        problems = problems_in(error, key_lines(text))
    raise error_of(path.name, problems)


_SECTIONS: Mapping[str, type[BaseModel]] = {
    "lake": LakeSection,
    "ledger": LedgerSection,
    "dagster": DagsterSection,
    "upkeep": UpkeepSection,
    "privacy": PrivacySection,
    "lineage": LineageSection,
    "notify": NotifySection,
    "catalog": CatalogSection,
    "sources": SourceSection,
    "bounds": BoundsSection,
    "snapshot": SnapshotSection,
    "standby": StandbySection,
    "trigger": TriggerSection,
    "replay": ReplaySection,
    "table": TableSection,
}
"""The file's tables by the last parts of their names; those from `bounds` on belong to
a source."""

_SOURCE_SECTIONS = tuple(_SECTIONS)[tuple(_SECTIONS).index("bounds") :]

_PATTERN_RULES: Mapping[str, str] = {
    "name": "must be a lower-case name such as shop (a letter, then letters, digits or _, 32 at "
    "most)",
    "server_uuid": "must be what the server shows for SELECT @@server_uuid, in lower case, or "
    "server-id:<number> for MariaDB",
    "replaces": "must be the fingerprint of a key: 16 hexadecimal digits in lower case",
    "location": "must have only letters, digits and any of _ . : @ -",
    "key_prefix": 'must be a list of words of letters, digits and _, or "{source}"',
    "group": "must be a word of letters, digits and _",
}
"""Key → what its value must be, for keys with a pattern."""

_RANGE_RULES: Mapping[str, str] = {
    "keep": 'must be "1d" or longer',
    "keep_changes": 'must be "1d" or longer',
    "dagster_runs": 'must be "1d" or longer',
    "file_size": 'must be "1MiB" or larger',
    "small_files": "must be 2 or more",
    "deleted_share": "must be more than 0 and at most 1",
    "max_threads_running": "must be 1 or more",
    "connections": "must be a number from 1 to 64",
    "port": "must be a number from 1 to 65535",
}
"""Key → the values that it may have, for keys with a range."""

_EXPECTATIONS: Mapping[str, str] = {
    "string_type": "must be a text in quotes",
    "string_too_short": "must not be empty",
    "int_type": "must be a number without quotes",
    "int_parsing": "must be a number without quotes",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list in brackets",
    "too_short": "must not be empty",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "dict_type": "must be a table",
    "greater_than": "must be more than zero",
    "less_than": "must be a number of seconds below a hundred years",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
}
"""Type of a pydantic error → the end of the sentence about the key."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A mistake in lockstep.toml. `line`: counted from 1, None if no line has the key;
    `is_planned`: the value is planned for a later version."""

    line: int | None
    sentence: str
    is_planned: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {self.sentence}" if self.line else self.sentence


def problems_in(error: ValidationError, lines: Mapping[KeyPath, int]) -> list[Problem]:
    """Return the mistakes that pydantic found: first those with a line, in the order of
    the file, then those without."""
    details = error.errors(include_url=False)
    # If all members of a list are wrong, pydantic also reports the list as too short.
    problems = [
        _problem(detail, lines)
        for detail in details
        if not (detail["type"] == "too_short" and _has_inner_error(detail, details))
    ]
    return sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0))


def error_of(file: str, problems: Sequence[Problem]) -> LockstepError:
    """Return one error with all mistakes of a file."""
    sentences: Sequence[str] = ()
    if len(problems) == 1:
        message = f"{file}: {problems[0]}"
        message += "" if message.endswith("?") else "."
    else:
        message = f"{file} has {len(problems)} mistakes:"
        sentences = [*map(str, problems)]
    if all(problem.is_planned for problem in problems):
        hint = f"remove from {file} what is not built yet"
        return NotYet(message, hint=hint, listed=sentences)
    hint = f"correct {file}, then: `lockstep check`"
    return ConfigurationError(message, hint=hint, listed=sentences)


def _has_inner_error(detail: Any, details: Sequence[Any]) -> bool:
    """Return whether another of pydantic's errors is about a part of this error's
    value."""
    path = detail["loc"]
    return any(other is not detail and other["loc"][: len(path)] == path for other in details)


def _problem(detail: Any, lines: Mapping[KeyPath, int]) -> Problem:
    path: KeyPath = tuple(detail["loc"])
    line = line_of(lines, path)
    error_type = detail["type"]
    key = next((str(part) for part in reversed(path) if isinstance(part, str)), "the file")
    if error_type == "extra_forbidden":
        return _unknown_key(path, key, line)
    if error_type == "missing":
        return Problem(line, _missing_key(path, key))
    if error_type == "value_error":
        cause = detail["ctx"]["error"]
        if isinstance(cause, KeyMistake):
            # A key with dots may be written with or without quotes.
            paths = ((*path, cause.key), (*path, *cause.key.split(".")))
            line = next((lines[candidate] for candidate in paths if candidate in lines), line)
        return Problem(line, str(cause), isinstance(cause, NotBuiltYet))
    if error_type in ("literal_error", "enum"):
        return Problem(line, f"{key!r} must be {detail['ctx']['expected']}")
    if error_type == "string_pattern_mismatch":
        return Problem(line, f"{key!r} {_PATTERN_RULES[key]}")
    if error_type == "greater_than_equal" and detail["ctx"]["ge"] == 0:
        return Problem(line, f"{key!r} must not be less than zero")
    if error_type in ("greater_than_equal", "less_than_equal"):
        return Problem(line, f"{key!r} {_RANGE_RULES[key]}")
    return Problem(line, f"{key!r} {_EXPECTATIONS.get(error_type, detail['msg'])}")


def _missing_key(path: KeyPath, key: str) -> str:
    if path == ("sources",):
        return "there is no [[sources]] table"
    if path[0] != "sources":
        return f"{key!r} is missing"
    section = _section_of(path)
    return f"the source's {section} lacks {key!r}" if section else f"the source lacks {key!r}"


def _section_of(path: KeyPath) -> str | None:
    """Return the table within a source that the key is in; None if it is in the source
    itself."""
    return next((str(part) for part in path[1:-1] if part in _SECTIONS), None)


def _unknown_key(path: KeyPath, key: str, line: int | None) -> Problem:
    section_name = _section_of(path) or str(path[0])
    model = ConfigFile if len(path) == 1 else _SECTIONS.get(section_name, ConfigFile)
    headers = [
        _header_of(name) for name, section in _SECTIONS.items() if key in section.model_fields
    ]
    if headers == ["[[sources]]"] and _section_of(path) == "table":
        sentence = f"{key!r} applies to a source as a whole, not to some of its tables"
        return Problem(line, f"{sentence}; it belongs under {headers[0]}")
    if headers:
        return Problem(line, f"unknown key {key!r} here; it belongs under {' or '.join(headers)}")
    nearest = difflib.get_close_matches(key, model.model_fields, n=1, cutoff=0.0)
    return Problem(line, f"unknown key {key!r}; did you mean {nearest[0]!r}?")


def _header_of(section: str) -> str:
    if section == "sources":
        return "[[sources]]"
    if section == "table":
        return "[[sources.table]]"
    return f"[sources.{section}]" if section in _SOURCE_SECTIONS else f"[{section}]"


# -- the lines of keys -----------------------------------------------------------------

# `tomllib` returns values without their lines, so this scanner finds the lines of keys.
# It knows the part of TOML 1.0's grammar that keys need: headers, dotted and quoted
# keys, and what may contain an `=` that is no assignment: multi-line strings, arrays
# and comments. Keys of inline tables have their parent's line.

_KEY_PART = re.compile(
    r"""\s*(?:"(?P<basic>(?:[^"\\]|\\.)*)"|'(?P<literal>[^']*)'|(?P<bare>[\w-]+))\s*"""
)


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line, from 1, of each key path and header of a valid TOML text. Tables
    in arrays are numbered from 0: `("sources", 0, "name")`."""
    lines: dict[KeyPath, int] = {}
    newest_indexes: dict[KeyPath, int] = {}
    header: KeyPath = ()
    open_value = _OpenValue()
    for number, line in enumerate(text.split("\n"), 1):
        if open_value.scan_continuation(line):
            continue
        stripped = line.strip()
        if stripped.startswith("[["):
            array = _indexed_path(_split_key(stripped[2:])[0], newest_indexes)
            newest_indexes[array] = newest_indexes.get(array, -1) + 1
            header = (*array, newest_indexes[array])
            lines.setdefault(array, number)
            lines[header] = number
        elif stripped.startswith("["):
            header = _indexed_path(_split_key(stripped[1:])[0], newest_indexes)
            for length in range(1, len(header) + 1):
                lines.setdefault(header[:length], number)
        elif stripped and not stripped.startswith("#"):
            parts, rest = _split_key(stripped)
            for length in range(1, len(parts) + 1):
                lines.setdefault((*header, *parts[:length]), number)
            open_value.scan_value(rest.removeprefix("="))
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of the path, or of its nearest parent that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _split_key(text: str) -> tuple[tuple[str, ...], str]:
    """Return the parts of the dotted key at the beginning of the text, and the rest of
    the text."""
    parts: list[str] = []
    at = 0
    while match := _KEY_PART.match(text, at):
        basic, literal, bare = match.group("basic", "literal", "bare")
        if basic is not None:
            parts.append(re.sub(r"\\(.)", r"\1", basic))
        else:
            parts.append(bare if literal is None else literal)
        at = match.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(parts), text[at:]


def _indexed_path(parts: tuple[str, ...], newest_indexes: Mapping[KeyPath, int]) -> KeyPath:
    """Return the path of a header, whose key has these parts. After each array of
    tables, except at the end, it has the index of the array's newest table."""
    path: KeyPath = ()
    for depth, part in enumerate(parts, 1):
        path = (*path, part)
        if depth < len(parts) and path in newest_indexes:
            path = (*path, newest_indexes[path])
    return path


class _OpenValue:
    """Tracks whether a value that began on an earlier line continues."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""

    def scan_value(self, text: str) -> None:
        """Scan the rest of the line on which a value begins."""
        self._depth, self._quote = 0, ""
        self._scan(text)

    def scan_continuation(self, line: str) -> bool:
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
            # A multi-line string may end with quotes of its own before the closing ones.
            rest = text[at:].lstrip(self._quote[0])
            self._quote = ""
            return len(text) - len(rest)
        return at + 1
