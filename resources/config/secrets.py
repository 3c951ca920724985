"""References to secrets in lockstep.toml, and a class that hides their values.

`env:NAME` stands for an environment variable, `file:PATH` for the content of a file
without its last line break; PATH is relative to lockstep.toml. `resolve` reads them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from lockstep.pipeline.values.errors import SecretMissing

_REFERENCE = re.compile(r"(?P<kind>env|file):(?P<target>.+)", re.DOTALL)
_SENSITIVE = re.compile(r"secret|password|passwd|token|key", re.IGNORECASE)
_DSN_PASSWORD = re.compile(r"(?:^|\s)(?:ssl)?password\s*=", re.IGNORECASE)


class Secret:
    """A value that repr, str, format and pickle do not show; only `reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        raise TypeError("a secret cannot be pickled")


def is_reference(text: str) -> bool:
    """Return whether the text is `env:NAME` or `file:PATH`."""
    return _REFERENCE.fullmatch(text) is not None


def is_sensitive(key: str) -> bool:
    """Return whether a key's name suggests that its value is a secret."""
    return _SENSITIVE.search(key) is not None


def has_password(dsn: str) -> bool:
    """Return whether a Postgres DSN, as a URL or as key=value pairs, contains a
    password."""
    if "://" not in dsn:
        return _DSN_PASSWORD.search(dsn) is not None
    try:
        parts = urlsplit(dsn)
        return parts.password is not None or bool(
            {"password", "sslpassword"} & parse_qs(parts.query).keys()
        )
    except ValueError:
        return True


def resolve(text: str, folder: Path) -> str:
    """Return the value of a reference, read at each call. Return a text that is no
    reference unchanged. Raise `SecretMissing` if the variable is not set or the file
    cannot be read."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return text
    target = match["target"]
    if match["kind"] == "env":
        value = os.environ.get(target)
        if value is None:
            raise SecretMissing(
                f"The environment variable {target} is not set.",
                hint=f"export {target}=…",
            )
        return value
    path = folder / Path(target).expanduser()
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise SecretMissing(
            f"The file {path} cannot be read.",
            hint=f"put the value into {path}, readable by this user",
        ) from error
