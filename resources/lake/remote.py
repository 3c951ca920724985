"""A Spark elsewhere: sessions of a server that is reached by Spark Connect.

Needs no Java here. Each session is one of its own at the server: Connect copies none. A statement
whose client died goes on there; its commit is bound to the version that it was planned for, like
any other (`pin`), so that it is the one that the next run looks for, or none. So that it is not
waited for, sessions have numbers that follow from the client's: who knows that ends them.
"""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Thread
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4, uuid5

from pipeline.errors import ConfigurationError, LakeUnavailable, LockstepError, SetupIncomplete
from pipeline.retries import SPARK_ELSEWHERE
from resources.lake.java_errors import leave_telling_to_us
from resources.lake.log_store import SETTINGS
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.s3a import store_settings
from resources.lake.server import SparkServer
from resources.lake.settings import EXTENSION, JOINED
from resources.lake.spark import FOR_FEW
from resources.lake.starting import Starting
from resources.lake.visible import require_visible

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession


_NEEDED: Final = ("google.rpc", "grpc", "grpc_status", "pandas", "zstandard")
_PATIENCE: Final = 10.0
"""Seconds until a server takes a connection, or has let go of sessions."""

_SESSIONS: Final = 32
"""How many of a dead client's are ended: two for each table that is written at once, some that saw
an error, and as many again."""

_EVERY_SESSION: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.merge.materializeSource": "none",
}
"""What writing mirrors stands on; how many tasks there are is the server's to say."""

_HADOOP: Final = "spark.hadoop."


@dataclass(frozen=True, slots=True)
class Connected:
    """A server that takes sessions: its version, what a session is set to by itself, all sessions
    of this process, and those that nobody uses."""

    version: str
    there: Mapping[str, str]
    opened: list[SparkSession]
    idle: Mapping[bool, list[SparkSession]]


class RemoteSpark:
    """`Spark` at a server.

    `user` is the `[spark]` table; `lake` where mirrors are, `staging` the folder of this machine
    that Spark reads changes from.
    """

    java = False

    def __init__(
        self, server: SparkServer, user: Mapping[str, str], *, lake: LakePath, staging: Path
    ) -> None:
        self._server = server
        self._user = {key: value for key, value in user.items() if key.startswith("spark.")}
        self._lake = lake
        self._staging = staging
        self._start = Starting(self._connect, lambda connected: _released(connected.opened))
        self._client = uuid4()
        self._numbers = count()

    @property
    def client(self) -> UUID:
        return self._client

    def end_statements(self, client: UUID) -> None:
        """Before anything that takes a task: what they do may have all of them."""
        self.require_ready()
        self._knock()
        _released([self._joined(client, number) for number in range(_SESSIONS)])

    def require_ready(self) -> None:
        for name in _NEEDED:
            if not _installed(name):
                raise SetupIncomplete(
                    f"Spark Connect needs {name}, which is not installed",
                    hint="pip install 'lockstep[connect]', with the version that is installed here",
                )

    def prepare(self, log_bytes: int = 0) -> None:
        self._start.begin()

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """Waits for the first one. `LakeUnavailable` for a server that does not answer,
        `ConfigurationError` for one that is not made for this.
        """
        connected = self._start.wait()
        session = self._joined(self._client, next(self._numbers))
        connected.opened.append(session)
        with self._refused():
            self._set(session, connected.there, settings)
        return session

    def idle(self, *, few: bool) -> list[SparkSession]:
        return self._start.wait().idle[few]

    def requests(self) -> int | None:
        """A server's executors ask, and it tells no client how often."""
        return None

    def stop(self) -> None:
        """Let the server forget this process' sessions."""
        self._start.end()

    def named(self) -> str:
        return f"Spark {self._start.wait().version} at {self._server}"

    def _connect(self) -> Connected:
        self.require_ready()
        self._knock()
        session = self._joined(self._client, next(self._numbers))
        try:
            with self._refused():
                version, there = session.version, session.conf.getAll
                require_fit(self._server, version, there, self._lake)
                _require_settable(session, missing(self._user, there), there)
                # Most runs change few rows, and need no other.
                self._set(session, there, FOR_FEW)
            require_visible(session, self._lake, self._staging, f"The Spark at {self._server}")
        except BaseException:
            _released([session])
            raise
        return Connected(version, there, [session], {False: [], True: [session]})

    def _knock(self) -> None:
        try:
            with socket.create_connection(self._server.address, _PATIENCE):
                pass
        except OSError as error:
            raise LakeUnavailable(
                f"No Spark answers at {self._server}",
                hint="start it (`lockstep spark serve`, where it is one of this machine), or "
                "correct remote under [spark]; then run again",
            ) from error

    def _joined(self, client: UUID, number: int) -> SparkSession:
        """A client's session by its number; nothing is asked of the server yet."""
        from pyspark.sql import SparkSession

        found = UUID(bytes=uuid5(client, str(number)).bytes, version=4)
        session = SparkSession.builder.remote(self._server.url(found)).create()
        assert SPARK_ELSEWHERE.most is not None
        _try_again(session, SPARK_ELSEWHERE.most - 1)
        return session

    def _set(
        self, session: SparkSession, there: Mapping[str, str], settings: Mapping[str, str]
    ) -> None:
        """What a session is not set to by itself: the user's word before ours, and the lake's
        object store as Hadoop spells it."""
        store = store_settings(self._lake) if isinstance(self._lake, ObjectPath) else {}
        hadoops = {name.removeprefix(_HADOOP): value for name, value in store.items()}
        wanted = {**_EVERY_SESSION, **settings, **hadoops, **self._user}
        for name, value in missing(wanted, there).items():
            session.conf.set(name, value)

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """What a server says to a session that is being opened."""
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            raise refusal(str(self._server), error) from error


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _require_settable(
    session: SparkSession, settings: Mapping[str, str], there: Mapping[str, str]
) -> None:
    """The user's settings are a session's own; one that is the server's must be as told."""
    from pyspark.errors import PySparkException

    for name, value in settings.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            if (error.getCondition() or "").startswith("CANNOT_MODIFY_"):
                raise unlike(name, there) from error
            raise


def _released(sessions: Iterable[SparkSession]) -> None:
    """The server forgets them, and ends what runs there, which it answers once that has ended: it
    is not waited for any longer than for a connection."""
    threads = [Thread(target=_release, args=(session,), daemon=True) for session in sessions]
    for thread in threads:
        thread.start()
    until = monotonic() + _PATIENCE
    for thread in threads:
        thread.join(max(0, until - monotonic()))


def _release(session: SparkSession) -> None:
    """Not by `stop`, which holds a lock of all sessions meanwhile."""
    from pyspark.errors import PySparkException

    # A server that is gone has forgotten it.
    with suppress(PySparkException, OSError):
        _try_again(session, 0)
        session.client.release_session()
    session.client.close()


def _try_again(session: SparkSession, times: int) -> None:
    """How often PySpark sends a request again; it tells a terminal when it gives up, where an error
    tells us."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
    leave_telling_to_us()
    longest = int(1000 * SPARK_ELSEWHERE.pauses[-1])
    policy = DefaultPolicy(max_retries=times, max_backoff=longest)
    session.client.set_retry_policies([policy])


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
            hint="use a newer one: see docs/deploy.md#where-spark-runs",
        )
    if EXTENSION not in there.get("spark.sql.extensions", ""):
        raise ConfigurationError(
            f"The Spark at {server} has no Delta Lake",
            hint=f'start it with delta-spark and "spark.sql.extensions" = "{EXTENSION}": '
            "docs/deploy.md#where-spark-runs",
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
            hint=f'start it with "{wanted}" = "{SETTINGS[wanted]}" and our jar: '
            "docs/deploy.md#where-spark-runs",
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


_DETAILS: Final = re.compile(r'details = "(.*?)"\n')
"""Of an RPC error as gRPC prints it."""
_LONGEST: Final = 300


def refusal(server: str, error: PySparkException) -> LockstepError:
    """`ConfigurationError` where another try ends no better, else `LakeUnavailable`."""
    status = getattr(error, "getGrpcStatusCode", lambda: None)()
    if getattr(status, "name", "") in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return ConfigurationError(
            f"The Spark at {server} does not take this token",
            hint="correct token under [spark]: it is what the server was started with",
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ConfigurationError(
            f"The Spark at {server} shows a certificate that this machine does not trust",
            hint="set GRPC_DEFAULT_SSL_ROOTS_FILE_PATH to a file with the certificate of whoever "
            "signed it, or correct remote under [spark]",
        )
    details = _DETAILS.search(str(error))
    said = error.getCondition() or (details[1][:_LONGEST] if details else type(error).__name__)
    return LakeUnavailable(
        f"The Spark at {server} gave no session: {said}",
        hint="check that it runs and serves Spark Connect, then run again",
    )
