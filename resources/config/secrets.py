"""References to secrets in lockstep.toml.

`env:NAME` stands for an environment variable, `file:PATH` for the content of a file
without its last line break; PATH is relative to lockstep.toml.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from lockstep.pipeline.values.errors import SecretMissing

_REFERENCE = re.compile(r"(?P<kind>env|file):(?P<target>.+)", re.DOTALL)
_SENSITIVE = re.compile(r"secret|password|passwd|token|key", re.IGNORECASE)
_SCHEME = re.compile(r"[\w+.-]+://")
"""The beginning of a URL, also of one that libpq does not know, such as SQLAlchemy's."""

_DSN_PASSWORD = re.compile(r"(?:^|\s)(?:ssl)?password\s*=", re.IGNORECASE)


def is_reference(text: str) -> bool:
    """Return whether the text is `env:NAME` or `file:PATH`."""
    return _REFERENCE.fullmatch(text) is not None


def is_sensitive(key: str) -> bool:
    """Return whether a key's name suggests that its value is a secret."""
    return _SENSITIVE.search(key) is not None


def has_password(dsn: str) -> bool:
    """Return whether a Postgres DSN, a URL or key=value pairs, contains a password."""
    if _SCHEME.match(dsn) is None:
        return _DSN_PASSWORD.search(dsn) is not None
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return True  # it cannot be parsed, so it may contain one
    passwords = {"password", "sslpassword"} & parse_qs(parts.query).keys()
    return parts.password is not None or bool(passwords)


def resolve(text: str, folder: Path) -> str:
    """Return the value of a reference, which is read at each call; return any other
    text unchanged. Raise `SecretMissing` if the variable is not set or the file cannot
    be read."""
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
    path = folder / target  # for the message, if the home folder is unknown
    try:
        path = folder / Path(target).expanduser()
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, RuntimeError, ValueError) as error:  # no home folder; no UTF-8; a NUL
        raise SecretMissing(
            f"The file {path} cannot be read.",
            hint=f"put the value into {path}, readable by this user",
        ) from error
