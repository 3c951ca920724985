"""Whether a server of Spark Connect is made for this, by what it says of itself. Pure.

Belongs here: its version, its log store, and settings that only its start can make. Does not:
asking it (`remote`), trying what it does (`trial`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeline.errors import ConfigurationError
from resources.lake.log_store import SETTINGS
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.server import SparkServer
from resources.lake.settings import EXTENSION, JOINED

OLDEST: Final = 4

_ANY: Final = "spark.delta.logStore.class"


def require_fit(
    server: SparkServer, version: str, there: Mapping[str, str], lake: LakePath
) -> None:
    """`ConfigurationError` for a Spark that is too old, or that writes the lake's logs by another
    store; `there` are a new session's settings."""
    if int(version.partition(".")[0]) < OLDEST:
        raise ConfigurationError(
            f"The Spark at {server} is {version}; Spark {OLDEST} or newer is needed",
            hint="use a newer one: see docs/spark.md",
        )
    if EXTENSION not in there.get("spark.sql.extensions", ""):
        raise ConfigurationError(
            f"The Spark at {server} has no Delta Lake",
            hint=f'start it with delta-spark and "spark.sql.extensions" = "{EXTENSION}": '
            "docs/spark.md",
        )
    scheme = "file"
    if isinstance(lake, ObjectPath):
        scheme = lake.bucket.url.partition(":")[0]
    wanted = f"spark.delta.logStore.{scheme}.impl"
    if _ANY in there or there.get(wanted) != SETTINGS.get(wanted):
        found = there.get(_ANY) or there.get(wanted) or "Delta's own store"
        raise ConfigurationError(
            f"The Spark at {server} would write the tables' logs with {found}, which does not stop "
            "a late run from committing",
            hint=f'start it with "{wanted}" = "{SETTINGS[wanted]}" and our jar: docs/spark.md',
        )


def missing(user: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str]:
    """The user's settings that a new session does not have by itself. A server that we start has
    more under some keys than the user gave (`settings`)."""
    return {
        name: value
        for name, value in user.items()
        if value != there.get(name) and not (name in JOINED and value in there.get(name, ""))
    }


def unlike(name: str, there: Mapping[str, str]) -> ConfigurationError:
    """The server has another value for what no session can set."""
    return ConfigurationError(
        f"{name} is set by whoever starts Spark's server, which has "
        f"{'another' if name in there else 'none'}",
        hint="start the server with it (`lockstep spark serve` does), or take it out of [spark] in "
        "lockstep.toml",
    )
