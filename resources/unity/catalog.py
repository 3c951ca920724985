"""A Unity Catalog: `pipeline.ports.catalog`.

Belongs here: what an entry is there, its names of types, and requests with the token. Does not:
what is to be in an entry, which type a column has (`pipeline.schema.types`).

Its interface makes, shows and deletes tables, and changes none: an entry that is to say something
else, or to have another name, is deleted and made anew, and is a table with another id for it.
Grants to the table itself go with the old one; grants to its schema or catalog stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlsplit

from pipeline.catalog.values import CONTENT_MARK, SOURCE_MARK, Entry, EntryColumn, EntryName, Found
from pipeline.errors import CatalogRefused, CatalogUnavailable, ConfigurationError

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

    def put(self, entry: Entry, known: EntryName | None) -> None:
        if known is not None:
            self.drop(known)
        schema = entry.name.schema
        if self._rest.get(f"/schemas/{quote(f'{self._catalog}.{schema}', safe='')}") is None:
            self._rest.post("/schemas", {"name": schema, "catalog_name": self._catalog})
        told = {
            "name": entry.name.table,
            "catalog_name": self._catalog,
            "schema_name": schema,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "columns": [column(one, number) for number, one in enumerate(entry.columns)],
            "storage_location": entry.location,
            "comment": entry.comment,
            "properties": entry.marks,
        }
        self._rest.post("/tables", told)

    def drop(self, name: EntryName) -> None:
        self._rest.delete(f"/tables/{self._full(name)}")

    def _full(self, name: EntryName) -> str:
        return quote(f"{self._catalog}.{name}", safe="")


_SECONDS: Final = 20
_VERSION: Final = "/api/2.1/unity-catalog"
_NONE: Final = 404
_TOKEN_REFUSED: Final = (401, 403)
_REFUSED: Final = 400


@dataclass(frozen=True, slots=True)
class Rest:
    """`address` without a path asks a server of the open source; `token` '' for none."""

    address: SplitResult
    token: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.address.netloc

    def get(self, path: str) -> Mapping[str, Any] | None:
        """The object; None where there is none."""
        return self._answer("GET", path, None)

    def post(self, path: str, told: Mapping[str, Any]) -> None:
        if self._answer("POST", path, told) is None:
            raise self._says("there is nothing to make it in")

    def delete(self, path: str) -> None:
        """None there is no error."""
        self._answer("DELETE", path, None)

    def _answer(
        self, method: str, path: str, told: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        status, body = self._request(method, path, told)
        if status == _NONE:
            return None
        if status in _TOKEN_REFUSED:
            raise ConfigurationError(
                f"The Unity Catalog at {self} does not let this token do that ({status})",
                hint="give its principal USE CATALOG, USE SCHEMA, CREATE SCHEMA and CREATE TABLE, "
                "or another token under [catalog]",
            )
        found = _object(body)
        if status >= _REFUSED:
            raise self._says(str(found.get("message") or f"answer {status}")[:200])
        return found

    def _request(self, method: str, path: str, told: Mapping[str, Any] | None) -> tuple[int, bytes]:
        kind = HTTPSConnection if self.address.scheme == "https" else HTTPConnection
        connection = kind(self.address.netloc, timeout=_SECONDS)
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if told is not None:
            headers["Content-Type"] = "application/json"
        body = None if told is None else json.dumps(told)
        try:
            connection.request(method, f"{self.address.path}{_VERSION}{path}", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise CatalogUnavailable(
                f"No Unity Catalog answers at {self}",
                hint="start it, or correct uri under [catalog]; the next run goes on",
            ) from error
        finally:
            connection.close()

    def _says(self, told: str) -> CatalogRefused:
        return CatalogRefused(
            f"The Unity Catalog at {self} refuses: {' '.join(told.split())}",
            hint="see its log; `lockstep catalog --yes` tries again",
        )


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


_JSON: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""Types that Spark's JSON calls otherwise than its SQL does; the catalog calls them as the JSON, in
capitals, but for INT."""

_SAME: Final = frozenset(
    {"float", "double", "boolean", "date", "string", "binary", "timestamp", "timestamp_ntz"}
)
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY: Final = re.compile(r"array<(.+)>")


def column(one: EntryColumn, position: int) -> dict[str, Any]:
    """A column as the catalog's interface takes it; all are nullable, as in the mirror."""
    metadata = {"comment": one.comment} if one.comment else {}
    field = {"name": one.name, "type": _json(one.type), "nullable": True, "metadata": metadata}
    found: dict[str, Any] = {
        "name": one.name,
        "type_text": one.type,
        "type_json": json.dumps(field),
        "type_name": _name(one.type),
        "position": position,
        "nullable": True,
        "comment": one.comment,
    }
    decimal = _DECIMAL.fullmatch(one.type)
    if decimal is not None:
        found |= {"type_precision": int(decimal[1]), "type_scale": int(decimal[2])}
    return found


def _name(kind: str) -> str:
    if _DECIMAL.fullmatch(kind):
        return "DECIMAL"
    if _ARRAY.fullmatch(kind):
        return "ARRAY"
    return "INT" if kind == "int" else str(_json(kind)).upper()


def _json(kind: str) -> Any:
    """What no table of MySQL has, in a mirror that somebody else made, is shown as a string."""
    array = _ARRAY.fullmatch(kind)
    if array is not None:
        return {"type": "array", "elementType": _json(array[1]), "containsNull": True}
    return kind if _DECIMAL.fullmatch(kind) or kind in _SAME else _JSON.get(kind, "string")
