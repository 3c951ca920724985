"""The address of a Spark Connect server: `remote` and `token` under `[spark]`. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote
from uuid import UUID

from lockstep.pipeline.values.errors import ConfigurationError

KEYS: Final = ("remote", "token")
"""Keys of `[spark]` that are not Spark's."""

DEFAULT_PORT: Final = 15002

_URL: Final = re.compile(
    r"sc://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?/?"
    r"(?P<more>(?:;[A-Za-z0-9_-]+=[^;]*)*)"
)
_USER: Final = "user_id"
_DATABRICKS: Final = "databricks"
_HINT: Final = "correct remote under [spark] in lockstep.toml, as in sc://spark.example.com:15002"


@dataclass(frozen=True, slots=True)
class SparkServer:
    """A Spark Connect server. `more` are parameters of its URL, each after a `;`."""

    host: str
    port: int
    more: str = ""
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"sc://{self.host}:{self.port}"

    @property
    def address(self) -> tuple[str, int]:
        return self.host.strip("[]"), self.port

    @property
    def here(self) -> bool:
        """True if its address is a loopback address, which is always this machine's."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def url(self, session: UUID) -> str:
        """Return PySpark's URL of one session, including the token. Without TLS, PySpark sends a
        token to `localhost` only. All sessions have the same user, so that one account can end
        another one's."""
        host = "localhost" if self.here and self.token is not None else self.host
        more = f"{self.more};session_id={session}"
        if f";{_USER}=" not in more.lower():
            more = f"{more};{_USER}=lockstep"
        if self.token is not None:
            more = f"{more};token={quote(self.token, '')}"
        return f"sc://{host}:{self.port}/{more}"


def server_of(user: Mapping[str, str]) -> SparkServer | None:
    """Return the server that the `[spark]` table names; None for a Spark of this machine."""
    remote, token = user.get("remote"), user.get("token")
    if remote is None:
        if token is not None:
            raise ConfigurationError(
                "[spark] has a token, but no remote that it is for",
                hint='add remote = "sc://127.0.0.1:15002" to [spark], or take token out',
            )
        return None
    match = _URL.fullmatch(remote)
    if match is None:
        # Its parameters may hold a secret, so the message does not repeat it.
        raise ConfigurationError("remote under [spark] is no address of Spark Connect", hint=_HINT)
    if ";session_id=" in match["more"].lower():
        raise ConfigurationError(
            "remote under [spark] names a session, and each write needs one of its own",
            hint="take session_id out of remote under [spark]",
        )
    if ";token=" in match["more"].lower():
        raise ConfigurationError(
            "remote under [spark] holds a token",
            hint='write it by reference instead: token = "env:SPARK_TOKEN" under [spark]',
        )
    if _DATABRICKS in match["host"].lower():
        raise ConfigurationError(
            f"{match['host']} is Databricks, whose Delta does not accept our log store, so a late "
            "run could commit there",
            hint="take remote out of [spark] to run Spark on this machine, or use a Spark server "
            "of your own: docs/deploy.md#where-spark-runs",
        )
    if "spark.master" in user:
        raise ConfigurationError(
            '[spark] has both remote and "spark.master"',
            hint='take "spark.master" out; set it where the server is started',
        )
    return SparkServer(match["host"], int(match["port"] or DEFAULT_PORT), match["more"], token)
