"""The shape of `[dagster]`: how Lockstep appears in Dagster.

Belongs here: keys and rules of one value. Does not: what is made of them (`assets`).
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, field_validator

from pipeline.replay.partitions import Partitions
from resources.config.part import Section, Text
from resources.config.secrets import is_reference

_OWNER = re.compile(r"team:[\w.-]+|[^@\s]+@[^@\s]+\.[^@\s]+")

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+$")]
KeyPart = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_]+|\{source\})$")]
Location = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]+$")]


class DagsterSection(Section):
    """The same for all sources."""

    location: Location = "lockstep"
    webserver: Text | None = None
    key_prefix: Annotated[tuple[KeyPart, ...], Field(strict=False)] = ("{source}",)
    group: Word | None = None
    owners: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    tags: dict[Text, str] = Field(default_factory=dict)
    partitions: Annotated[Partitions, Field(strict=False)] = Partitions.HOURLY

    @field_validator("webserver")
    @classmethod
    def _an_address(cls, address: str | None) -> str | None:
        if address is None or is_reference(address):
            return address
        return page_address(address)

    @field_validator("owners")
    @classmethod
    def _people_or_teams(cls, owners: tuple[str, ...]) -> tuple[str, ...]:
        for owner in owners:
            if not _OWNER.fullmatch(owner):
                raise ValueError(f"{owner!r} is neither an e-mail address nor team:NAME")
        return owners


def page_address(text: str) -> str:
    """The address of Dagster's page; ValueError for what is none, or holds a password."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not an address such as http://127.0.0.1:3000")
    if parts.username or parts.password:
        raise ValueError("an address with an account in it is refused")
    return text
