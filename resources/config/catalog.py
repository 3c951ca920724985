"""The shape of `[catalog]`: where mirrors are registered.

Belongs here: keys and rules of one value, and which keys each kind has. Does not: the catalogs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from pipeline.catalog.plan import DATABASE
from resources.config.part import Section, Text
from resources.config.secrets import is_reference
from resources.config.values import is_loopback, secret_reference


class CatalogKind(StrEnum):
    """What answers there."""

    UNITY = "unity"
    HIVE = "hive"
    SPARK = "spark"


_SCHEMES = {CatalogKind.UNITY: ("http", "https"), CatalogKind.HIVE: ("thrift",)}
_KEYS = {
    CatalogKind.UNITY: ({"uri", "name"}, {"token"}),
    CatalogKind.HIVE: ({"uri"}, set[str]()),
    CatalogKind.SPARK: ({"name"}, set[str]()),
}
"""The keys that a kind must have, and may have."""


class CatalogSection(Section):
    """One catalog for all sources."""

    kind: Annotated[CatalogKind, Field(strict=False)]
    uri: Text | None = None
    name: Text | None = None
    token: Annotated[str, AfterValidator(secret_reference)] | None = None
    schemas: Text = DATABASE

    @field_validator("schemas")
    @classmethod
    def _by_database(cls, schemas: str) -> str:
        if DATABASE not in schemas:
            raise ValueError(
                f"{schemas!r} has no {DATABASE} in it: tables of two databases may have one name"
            )
        return schemas

    @model_validator(mode="after")
    def _keys_of_the_kind(self) -> CatalogSection:
        must, may = _KEYS[self.kind]
        given = {key for key in ("uri", "name", "token") if getattr(self, key) is not None}
        for key in sorted(must - given):
            raise ValueError(f"kind = {str(self.kind)!r} needs {key}")
        for key in sorted(given - must - may):
            raise ValueError(f"kind = {str(self.kind)!r} has no {key}")
        return self

    @model_validator(mode="after")
    def _an_address(self) -> CatalogSection:
        if self.uri is not None and not is_reference(self.uri):
            self.address(self.uri)
        return self

    def address(self, uri: str) -> str:
        """The same; ValueError where this kind has no such address, or it would see the token."""
        schemes, found = _SCHEMES[self.kind], urlsplit(uri)
        if found.scheme not in schemes or not found.hostname or found.username:
            raise ValueError(f"uri is not an address such as {schemes[0]}://catalog.example.com")
        if self.token is not None and found.scheme == "http" and not is_loopback(found.hostname):
            raise ValueError("http:// would send the token in the clear; write https://")
        return uri
