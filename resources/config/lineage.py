"""The shape of `[lineage]`: OpenLineage events of runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from resources.config.secrets import is_reference, is_sensitive, resolve
from resources.config.values import Section, Text

_AUTHORIZES: Final = re.compile(r"authorization|cookie", re.IGNORECASE)
_ABOUT_A_SECRET: Final = re.compile(r"(endpoint|path|fields?|buffer|type)$", re.IGNORECASE)
"""How names end of keys that tell where a secret is, or how it is got, and are none."""


class LineageSection(Section):
    """`transport`: the client's, key by key; empty: what the client finds by itself."""

    transport: dict[Text, Any] = Field(default_factory=dict)
    namespace: Text = "lockstep"

    @field_validator("transport")
    @classmethod
    def _usable(cls, transport: dict[str, Any]) -> dict[str, Any]:
        if transport and not isinstance(transport.get("type"), str):
            raise ValueError('transport needs a type: "http", "file" or another of the client\'s')
        for name, value in _texts(transport):
            if not is_reference(value) and _may_be_a_secret(name, value):
                raise ValueError(
                    f"a literal value of {name!r} is refused (it may be a secret); write env:NAME "
                    "or file:PATH"
                )
        return transport


def followed(transport: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """With what its references lead to; a file is one below `folder` unless it says otherwise.
    `SecretMissing` for a reference that leads nowhere."""
    found = {name: _followed(value, folder) for name, value in transport.items()}
    path = found.get("log_file_path")
    if isinstance(path, str) and "://" not in path:
        found["log_file_path"] = str(folder / Path(path).expanduser())
    return found


def _followed(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {name: _followed(one, folder) for name, one in value.items()}
    if isinstance(value, list):
        return [_followed(one, folder) for one in value]
    return resolve(value, folder) if isinstance(value, str) else value


def _texts(value: Any, name: str = "transport") -> Iterator[tuple[str, str]]:
    """All texts at any depth, each with the name of its key."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, name)
    elif isinstance(value, str):
        yield name, value


def _may_be_a_secret(name: str, value: str) -> bool:
    if "://" in value and urlsplit(value).password:
        return True
    named = is_sensitive(name) and not _ABOUT_A_SECRET.search(name)
    return named or _AUTHORIZES.search(name) is not None
