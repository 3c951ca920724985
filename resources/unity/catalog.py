"""A Unity Catalog: `pipeline.ports.catalog`.

Belongs here: what an entry is there. Does not: requests (`rest`), types (`types`), what is to be in
an entry.

Its interface makes, shows and deletes tables, and changes none: an entry that is to say something
else, or to have another name, is deleted and made anew, and is a table with another id for it.
Grants to the table itself go with the old one; grants to its schema or catalog stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pipeline.catalog.values import CONTENT_MARK, SOURCE_MARK, Entry, EntryName, Found
from pipeline.errors import ConfigurationError
from resources.unity.rest import Rest
from resources.unity.types import column

_NAME: Final = re.compile(r"[a-z0-9_@-]{1,255}")


class UnityCatalog:
    """`catalog` is its name at the server of `uri`; `locate` gives the URL of a path of the
    lake."""

    marks = True
    columns = True

    def __init__(self, uri: str, catalog: str, token: str, locate: Callable[[str], str]) -> None:
        self._rest = Rest(urlsplit(uri.rstrip("/")), token)
        self._catalog = catalog
        self._locate = locate
        self.identity = f"Catalog {catalog} of the Unity Catalog at {self._rest}"

    def location(self, mirror: str) -> str:
        return self._locate(mirror)

    def refuses(self, name: EntryName) -> str | None:
        if _NAME.fullmatch(name.schema) and _NAME.fullmatch(name.table):
            return None
        return "a Unity Catalog takes names of letters from a to z, digits, _, - and @ alone"

    def require_ready(self) -> str:
        if self._rest.get(f"/catalogs/{quote(self._catalog, safe='')}") is None:
            raise ConfigurationError(
                f"The Unity Catalog at {self._rest} has no catalog {self._catalog}",
                hint="make it there, or correct name under [catalog]",
            )
        return f"{self.identity} answers"

    def find(self, name: EntryName) -> Found | None:
        found = self._rest.get(f"/tables/{self._full(name)}")
        if found is None:
            return None
        told: dict[str, Any] = found.get("properties") or {}
        return Found(
            found.get("storage_location") or None, told.get(SOURCE_MARK), told.get(CONTENT_MARK)
        )

    def create(self, entry: Entry) -> None:
        self._require_schema(entry.name.schema)
        told = {
            "name": entry.name.table,
            "catalog_name": self._catalog,
            "schema_name": entry.name.schema,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "columns": [column(one, number) for number, one in enumerate(entry.columns)],
            "storage_location": entry.location,
            "comment": entry.comment,
            "properties": entry.marks,
        }
        self._rest.post("/tables", told)

    def change(self, entry: Entry) -> None:
        self.rename(entry.name, entry)

    def rename(self, name: EntryName, entry: Entry) -> None:
        self.drop(name)
        self.create(entry)

    def drop(self, name: EntryName) -> None:
        self._rest.delete(f"/tables/{self._full(name)}")

    def _require_schema(self, schema: str) -> None:
        named = f"{quote(self._catalog, safe='')}.{quote(schema, safe='')}"
        if self._rest.get(f"/schemas/{named}") is None:
            self._rest.post("/schemas", {"name": schema, "catalog_name": self._catalog})

    def _full(self, name: EntryName) -> str:
        return quote(f"{self._catalog}.{name}", safe="")
