"""The section `[lineage]`: where OpenLineage events of runs are sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from lockstep.resources.config.secrets import is_reference, is_sensitive, resolve
from lockstep.resources.config.values import Section, Text

_AUTHORIZES: Final = re.compile(r"authorization|cookie", re.IGNORECASE)
_ABOUT_A_SECRET: Final = re.compile(r"(endpoint|path|fields?|buffer|type)$", re.IGNORECASE)
"""Ends of key names whose values say where or how to get a secret, but are none themselves."""


class LineageSection(Section):
    """`transport`: in the format of the OpenLineage client; if empty, the client looks for one."""

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


def resolved_transport(transport: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the transport with its references resolved, and a relative log file's path completed
    by `folder`. `SecretMissing` if a reference cannot be resolved."""
    resolved = {name: _resolved(value, folder) for name, value in transport.items()}
    path = resolved.get("log_file_path")
    if isinstance(path, str) and "://" not in path:
        resolved["log_file_path"] = str(folder / Path(path).expanduser())
    return resolved


def _resolved(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {name: _resolved(item, folder) for name, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, folder) for item in value]
    return resolve(value, folder) if isinstance(value, str) else value


def _texts(value: Any, name: str = "transport") -> Iterator[tuple[str, str]]:
    """Yield all texts at any depth, each with the name of its key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, name)
    elif isinstance(value, str):
        yield name, value


def _may_be_a_secret(name: str, value: str) -> bool:
    if "://" in value and urlsplit(value).password:
        return True
    if is_sensitive(name) and not _ABOUT_A_SECRET.search(name):
        return True
    return _AUTHORIZES.search(name) is not None
