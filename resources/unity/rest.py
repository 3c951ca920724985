"""Requests to a Unity Catalog, and its answers.

Belongs here: HTTP, the token, what an answer that is none means. Does not: what is asked
(`catalog`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlencode

from pipeline.errors import CatalogRefused, CatalogUnavailable, ConfigurationError

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

    def get(self, path: str, **asked: str) -> Mapping[str, Any] | None:
        """The object; None where there is none."""
        query = f"?{urlencode(asked)}" if asked else ""
        return self._answer("GET", f"{path}{query}", None)

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
