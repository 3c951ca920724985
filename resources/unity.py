"""The port `Catalog` (`pipeline.ports.catalog`) for a Unity Catalog, over its REST
interface.

The interface creates, shows and deletes tables but cannot change one. So an entry that
needs other content or another name is deleted and created again, and Unity Catalog
gives it a new id. Grants on the deleted table are lost; grants on its schema or catalog
stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlsplit

from lockstep.pipeline.catalog import (
    CONTENT_MARK,
    SOURCE_MARK,
    CatalogEntry,
    EntryColumn,
    EntryName,
    WantedEntry,
)
from lockstep.pipeline.values.errors import CatalogRefused, CatalogUnavailable, ConfigurationError

_NAME: Final = re.compile(r"[a-z0-9_@-]{1,255}")


class UnityCatalog:
    """The port `Catalog`, which describes each method, for the catalog named `catalog`
    at the server of `uri`."""

    has_marks = True
    has_columns = True

    def __init__(self, uri: str, catalog: str, token: str) -> None:
        self._rest = RestClient(urlsplit(uri.rstrip("/")), token)
        self._catalog = catalog
        self.identity = f"Catalog {catalog} of the Unity Catalog at {self._rest}"

    def reason_refused(self, name: EntryName) -> str | None:
        if _NAME.fullmatch(name.schema) and _NAME.fullmatch(name.table):
            return None
        return "a name in a Unity Catalog consists of the letters a to z, digits, _, - and @"

    def probe(self) -> str:
        if self._rest.get(f"/catalogs/{quote(self._catalog, safe='')}") is None:
            raise ConfigurationError(
                f"The Unity Catalog at {self._rest} has no catalog {self._catalog}",
                hint="create it there, or correct name under [catalog]",
            )
        return f"{self.identity} answers"

    def find(self, name: EntryName) -> CatalogEntry | None:
        table = self._rest.get(f"/tables/{self._full_name(name)}")
        if table is None:
            return None
        properties: dict[str, Any] = table.get("properties") or {}
        return CatalogEntry(
            table.get("storage_location") or None,
            properties.get(SOURCE_MARK),
            properties.get(CONTENT_MARK),
        )

    def put(self, entry: WantedEntry, replaced_name: EntryName | None) -> None:
        if replaced_name is not None:
            self.drop(replaced_name)
        schema = entry.name.schema
        if self._rest.get(f"/schemas/{quote(f'{self._catalog}.{schema}', safe='')}") is None:
            self._rest.post("/schemas", {"name": schema, "catalog_name": self._catalog})
        table = {
            "name": entry.name.table,
            "catalog_name": self._catalog,
            "schema_name": schema,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "columns": [column_json(column, index) for index, column in enumerate(entry.columns)],
            "storage_location": entry.location,
            "comment": entry.comment,
            "properties": entry.marks,
        }
        self._rest.post("/tables", table)

    def drop(self, name: EntryName) -> None:
        self._rest.delete(f"/tables/{self._full_name(name)}")

    def _full_name(self, name: EntryName) -> str:
        return quote(f"{self._catalog}.{name}", safe="")


_TIMEOUT_SECONDS: Final = 20
"""Timeout of a request, in seconds."""

_API: Final = "/api/2.1/unity-catalog"
_NOT_FOUND_STATUS: Final = 404
_UNAUTHORIZED_STATUS: Final = 401
_FORBIDDEN_STATUS: Final = 403
_BUSY_STATUSES: Final = (429, 502, 503, 504)
"""Statuses of a server, or of a proxy before it, that serves no request for the
moment."""
_SUCCESS_STATUSES: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class RestClient:
    """Requests to the server at `address`, with a bearer token unless `token` is empty."""

    address: SplitResult
    token: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.address.netloc

    def get(self, path: str) -> Mapping[str, Any] | None:
        """Return the object at the path; None if it does not exist."""
        return self._answer_or_none("GET", path, None)

    def post(self, path: str, content: Mapping[str, Any]) -> None:
        """Create an object. Raise `CatalogRefused` if its parent does not exist."""
        if self._answer_or_none("POST", path, content) is None:
            raise self._refusal("its catalog or schema does not exist")

    def delete(self, path: str) -> None:
        """Delete an object; a missing one is no error."""
        self._answer_or_none("DELETE", path, None)

    def _answer_or_none(
        self, method: str, path: str, content: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        status, body = self._request(method, path, content)
        if status == _NOT_FOUND_STATUS:
            return None
        if status in (_UNAUTHORIZED_STATUS, _FORBIDDEN_STATUS):
            # A principal can have the privileges for some schemas only.
            is_of_entry = status == _FORBIDDEN_STATUS and not path.startswith("/catalogs/")
            raise (CatalogRefused if is_of_entry else ConfigurationError)(
                f"The Unity Catalog at {self} does not allow this token to do that ({status})",
                hint="give its principal USE CATALOG, USE SCHEMA, CREATE SCHEMA and CREATE TABLE, "
                "or another token under [catalog]",
            )
        if status in _BUSY_STATUSES:
            raise CatalogUnavailable(
                f"The Unity Catalog at {self} does not answer now ({status})",
                hint="see its log; the next run tries again",
            )
        answer = _json_object(body)
        if status not in _SUCCESS_STATUSES:
            raise self._refusal(str(answer.get("message") or f"answer {status}")[:200])
        return answer

    def _request(
        self, method: str, path: str, content: Mapping[str, Any] | None
    ) -> tuple[int, bytes]:
        """Return the status and the body of the server's answer."""
        connection_class = HTTPSConnection if self.address.scheme == "https" else HTTPConnection
        connection = connection_class(self.address.netloc, timeout=_TIMEOUT_SECONDS)
        headers = {"Accept": "application/json"}
        if self.token:
            if not (self.token.isascii() and self.token.isprintable()):
                raise ConfigurationError(
                    "The token under [catalog] has a character that no request can have, such as "
                    "a newline",
                    hint="write it without that character",
                )
            headers["Authorization"] = f"Bearer {self.token}"
        if content is not None:
            headers["Content-Type"] = "application/json"
        body = None if content is None else json.dumps(content)
        try:
            connection.request(method, f"{self.address.path}{_API}{path}", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise CatalogUnavailable(
                f"No Unity Catalog answers at {self}",
                hint="start it, or correct uri under [catalog]; the next run tries again",
            ) from error
        finally:
            connection.close()

    def _refusal(self, message: str) -> CatalogRefused:
        return CatalogRefused(
            f"The Unity Catalog at {self} refuses: {' '.join(message.split())}",
            hint="see its log; `lockstep catalog --yes` tries again",
        )


def _json_object(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in an answer's body; an empty dict if the body has none."""
    try:
        answer = json.loads(body or b"{}")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


_JSON_TYPES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""Type names of Spark SQL → those of Spark's JSON, where they differ. Unity Catalog
takes the latter in upper case, except for INT."""

_COMMON_TYPES: Final = frozenset(
    {"float", "double", "boolean", "date", "string", "binary", "timestamp", "timestamp_ntz"}
)
"""Type names that Spark SQL and Spark's JSON have in common."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY: Final = re.compile(r"array<(.+)>")


def column_json(column: EntryColumn, position: int) -> dict[str, Any]:
    """Return a column in the form of the REST interface; all are nullable, as in the
    mirror."""
    metadata = {"comment": column.comment} if column.comment else {}
    json_type = _json_type(column.type)
    spark_field = {"name": column.name, "type": json_type, "nullable": True, "metadata": metadata}
    content: dict[str, Any] = {
        "name": column.name,
        "type_text": column.type,
        "type_json": json.dumps(spark_field),
        "type_name": _type_name(column.type),
        "position": position,
        "nullable": True,
        "comment": column.comment,
    }
    decimal = _DECIMAL.fullmatch(column.type)
    if decimal is not None:
        content |= {"type_precision": int(decimal[1]), "type_scale": int(decimal[2])}
    return content


def _type_name(sql_type: str) -> str:
    if _DECIMAL.fullmatch(sql_type):
        return "DECIMAL"
    if _ARRAY.fullmatch(sql_type):
        return "ARRAY"
    return "INT" if sql_type == "int" else str(_json_type(sql_type)).upper()


def _json_type(sql_type: str) -> str | dict[str, Any]:
    """Return a type of Spark SQL in the form of Spark's JSON. A mirror that somebody
    else created can have types that no MySQL column has; these are registered as
    strings."""
    array = _ARRAY.fullmatch(sql_type)
    if array is not None:
        return {"type": "array", "elementType": _json_type(array[1]), "containsNull": True}
    if _DECIMAL.fullmatch(sql_type) or sql_type in _COMMON_TYPES:
        return sql_type
    return _JSON_TYPES.get(sql_type, "string")
