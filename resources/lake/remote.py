"""A Spark elsewhere: sessions of a server that is reached by Spark Connect.

Belongs here: which server, who may use it, what each of its sessions is set to, and that it writes
logs by our store. Does not: proving what it does with them (`trial`), starting one (`serving`).

Needs no Java here. Each session is one of its own at the server: Connect copies none. A statement
whose client died goes on there; its commit is bound to the version that it was planned for, like
any other (`pin`), so that it is the one that the next run looks for, or none.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pipeline.errors import ConfigurationError, LakeUnavailable, SetupIncomplete
from resources.lake.log_store import SETTINGS
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.s3a import store_settings
from resources.lake.server import Server
from resources.lake.starting import Starting
from resources.lake.visible import require_visible

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

OLDEST: Final = 4

_NEEDED: Final = ("google.rpc", "grpc", "grpc_status", "pandas", "zstandard")
_PATIENCE: Final = 10.0
"""Seconds until a server takes a connection."""

_TRIES: Final = 6
"""How often PySpark sends a request again that met no server: for half a minute, all in all."""

_LONGEST: Final = 15_000
"""Milliseconds between two of them."""

_EVERY_SESSION: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.merge.materializeSource": "none",
}
"""What writing mirrors stands on; how many tasks there are is the server's to say."""

_ANY: Final = "spark.delta.logStore.class"
_HADOOP: Final = "spark.hadoop."


@dataclass(frozen=True, slots=True)
class Connected:
    """A server that takes sessions: all of this process, and those that nobody uses."""

    opened: list[SparkSession]
    idle: Mapping[bool, list[SparkSession]] = field(default_factory=lambda: {False: [], True: []})


class RemoteSpark:
    """`Spark` at a server.

    `user` is the `[spark]` table; `lake` where mirrors are, `staging` the folder of this machine
    that Spark reads changes from.
    """

    java = False

    def __init__(
        self, server: Server, user: Mapping[str, str], *, lake: LakePath, staging: Path
    ) -> None:
        self._server = server
        self._user = {key: value for key, value in user.items() if key.startswith("spark.")}
        self._lake = lake
        self._staging = staging
        self._start = Starting(self._connect)

    def require_ready(self) -> None:
        for name in _NEEDED:
            if not _installed(name):
                raise SetupIncomplete(
                    f"Spark Connect needs {name}, which is not installed",
                    hint="pip install 'lockstep[connect]', with the version that is installed here",
                )

    def prepare(self) -> None:
        self._start.begin()

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """Waits for the first one. `LakeUnavailable` for a server that does not answer,
        `ConfigurationError` for one that is not made for this.
        """
        connected = self._start.wait()
        session = self._opened(dict(settings))
        connected.opened.append(session)
        return session

    def idle(self, *, few: bool) -> list[SparkSession]:
        return self._start.wait().idle[few]

    def stop(self) -> None:
        """Let the server forget this process' sessions."""
        self._start.end(_released)

    def named(self) -> str:
        return f"Spark {self._start.wait().opened[0].version} at {self._server}"

    def _connect(self) -> Connected:
        self.require_ready()
        self._knock()
        session = self._opened({})
        connected = Connected([session], {False: [session], True: []})
        try:
            self._require_fit(session)
            require_visible(session, self._lake, self._staging, f"The Spark at {self._server}")
        except BaseException:
            _released(connected)
            raise
        return connected

    def _knock(self) -> None:
        try:
            with socket.create_connection((self._server.host, self._server.port), _PATIENCE):
                pass
        except OSError as error:
            raise LakeUnavailable(
                f"No Spark answers at {self._server}",
                hint="start it (`lockstep spark serve`, where it is one of this machine), or "
                "correct remote under [spark]; then run again",
            ) from error

    def _opened(self, settings: dict[str, str]) -> SparkSession:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        session = SparkSession.builder.remote(self._server.url()).create()
        try:
            _try_again(session, _TRIES)
            for name, value in (_EVERY_SESSION | settings | self._store()).items():
                if name not in self._user:
                    session.conf.set(name, value)
            for name, value in self._user.items():
                _set(session, name, value)
        except BaseException as error:
            _released(Connected([session]))
            if isinstance(error, PySparkException):
                raise self._refused(error) from error
            raise
        return session

    def _store(self) -> dict[str, str]:
        """A session's own settings for the lake's object store, as Hadoop spells them."""
        told = store_settings(self._lake) if isinstance(self._lake, ObjectPath) else {}
        return {name.removeprefix(_HADOOP): value for name, value in told.items()}

    def _require_fit(self, session: SparkSession) -> None:
        from pyspark.errors import PySparkException

        try:
            version = session.version
            stores = {name: session.conf.get(name, None) for name in (_ANY, *SETTINGS)}
        except PySparkException as error:
            raise self._refused(error) from error
        if int(version.partition(".")[0]) < OLDEST:
            raise ConfigurationError(
                f"The Spark at {self._server} is {version}; Spark {OLDEST} or newer is needed",
                hint="use a newer one: see docs/spark.md",
            )
        scheme = "file"
        if isinstance(self._lake, ObjectPath):
            scheme = self._lake.bucket.url.partition(":")[0]
        wanted = f"spark.delta.logStore.{scheme}.impl"
        if stores[_ANY] is not None or stores.get(wanted) != SETTINGS.get(wanted):
            found = stores[_ANY] or stores.get(wanted) or "Delta's own store"
            raise ConfigurationError(
                f"The Spark at {self._server} would write the tables' logs with {found}, which "
                "does not stop a late run from committing",
                hint=f'start it with "{wanted}" = "{SETTINGS[wanted]}" and our jar: docs/spark.md',
            )

    def _refused(self, error: PySparkException) -> LakeUnavailable | ConfigurationError:
        """What a server says to a session that is being opened."""
        status = getattr(error, "getGrpcStatusCode", lambda: None)()
        if getattr(status, "name", "") in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            return ConfigurationError(
                f"The Spark at {self._server} does not take this token",
                hint="correct token under [spark]: it is what the server was started with",
            )
        said = error.getCondition() or type(error).__name__
        return LakeUnavailable(
            f"The Spark at {self._server} gave no session: {said}",
            hint="see whether it runs and takes Spark Connect, then run again",
        )


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _set(session: SparkSession, name: str, value: str) -> None:
    """The user's setting; one that a session cannot have is the server's, and must be as told."""
    from pyspark.errors import PySparkException

    try:
        session.conf.set(name, value)
    except PySparkException as error:
        if not (error.getCondition() or "").startswith("CANNOT_MODIFY_"):
            raise
        found = session.conf.get(name, None)
        if found is None or value not in found:
            raise ConfigurationError(
                f"{name} is set by whoever starts Spark's server, which has "
                f"{'none' if found is None else 'another'}",
                hint="start the server with it (`lockstep spark serve` does), or take it out of "
                "[spark] in lockstep.toml",
            ) from error


def _released(connected: Connected) -> None:
    from pyspark.errors import PySparkException

    for session in connected.opened:
        # A server that is gone has forgotten them.
        with suppress(PySparkException, OSError):
            _try_again(session, 0)
            session.stop()


def _try_again(session: SparkSession, times: int) -> None:
    """How often PySpark sends a request again; it tells a terminal when it gives up, where an error
    tells us."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
    policy = DefaultPolicy(max_retries=times, max_backoff=_LONGEST)
    session.client.set_retry_policies([policy])
