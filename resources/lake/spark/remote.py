"""Spark at a Spark Connect server: the server's address (`remote` and `token` under
`[spark]`), and sessions there. This machine needs no Java for it.

A statement continues at the server if its client dies. That is safe, because every
commit is bound to the table version on which it was planned (`delta.pin`): the
statement makes the commit that the next run looks for, or it makes none. The next run
need not wait for the statement: session ids are derived from the client's id and a
number, so any process that knows the client's id can end the client's sessions.
"""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Thread
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from uuid import UUID, uuid4, uuid5

from lockstep.pipeline.values.errors import (
    ConfigurationError,
    LakeUnavailable,
    LockstepError,
    SetupIncomplete,
)
from lockstep.pipeline.values.retries import SPARK_ELSEWHERE
from lockstep.pipeline.values.survey import is_loopback
from lockstep.resources.lake.spark.java_errors import silence_pyspark
from lockstep.resources.lake.spark.log_store import LOG_STORE_SETTINGS
from lockstep.resources.lake.spark.settings import DELTA_EXTENSION, JOINED_KEYS, store_settings
from lockstep.resources.lake.spark.spark import FEW_ROWS_SETTINGS, BackgroundStart
from lockstep.resources.lake.spark.visible import require_visible
from lockstep.resources.lake.store.paths import LakePath, ObjectPath

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession


_DEFAULT_PORT: Final = 15002

_REMOTE_URL: Final = re.compile(
    r"sc://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?/?"
    r"(?P<more>(?:;[A-Za-z0-9_-]+=[^;]*)*)"
)
_USER_PARAMETER: Final = "user_id"
_DATABRICKS: Final = "databricks"
_REMOTE_HINT: Final = (
    "correct remote under [spark] in lockstep.toml, as in sc://spark.example.com:15002"
)


@dataclass(frozen=True, slots=True)
class SparkServer:
    """A Spark Connect server. `parameters`: further parameters of its URL, each after a
    `;`. `token`: the secret that it requires; None if it requires none."""

    host: str
    port: int
    parameters: str = ""
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"sc://{self.host}:{self.port}"

    @property
    def address(self) -> tuple[str, int]:
        return self.host.strip("[]"), self.port

    @property
    def is_loopback(self) -> bool:
        """True if its address is a loopback address, which is always this machine's."""
        return is_loopback(self.host)

    def url(self, session: UUID) -> str:
        """Return the URL with which PySpark opens a session, including the token.
        Without TLS, PySpark sends a token only to `localhost`. All sessions have the
        same user name, so that one account of a machine can end the sessions of
        another."""
        host = "localhost" if self.is_loopback and self.token is not None else self.host
        parameters = f"{self.parameters};session_id={session}"
        if f";{_USER_PARAMETER}=" not in parameters.lower():
            parameters = f"{parameters};{_USER_PARAMETER}=lockstep"
        if self.token is not None:
            parameters = f"{parameters};token={quote(self.token, '')}"
        return f"sc://{host}:{self.port}/{parameters}"


def configured_server(user_settings: Mapping[str, str]) -> SparkServer | None:
    """Return the server that the `[spark]` table names; None for a Spark of this
    machine."""
    remote, token = user_settings.get("remote"), user_settings.get("token")
    if remote is None:
        if token is not None:
            raise ConfigurationError(
                "[spark] has a token, but no remote",
                hint='add remote = "sc://127.0.0.1:15002" to [spark], or take token out',
            )
        return None
    match = _REMOTE_URL.fullmatch(remote)
    if match is None:
        # Parameters may hold a secret, so the message does not repeat the address.
        raise ConfigurationError(
            "remote under [spark] is no address of Spark Connect", hint=_REMOTE_HINT
        )
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
    if "spark.master" in user_settings:
        raise ConfigurationError(
            '[spark] has both remote and "spark.master"',
            hint='take "spark.master" out; set it where the server is started',
        )
    return SparkServer(match["host"], int(match["port"] or _DEFAULT_PORT), match["more"], token)


_PACKAGES: Final = ("google.rpc", "grpc", "grpc_status", "pandas", "zstandard")
"""Python packages that PySpark's client for Spark Connect imports."""

_TIMEOUT_SECONDS: Final = 10.0
"""Longest time in seconds to wait until a server accepts a connection or closes
sessions."""

_SESSIONS_TO_END: Final = 32
"""Number of sessions that are ended for a dead client. A client has two sessions for
each table that it writes at the same time, and some that it gave up after an error;
this is about twice their sum."""

_EVERY_SESSION: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.merge.materializeSource": "none",
}
"""Settings that writes need in every session. The number of tasks is up to the server."""

_HADOOP_PREFIX: Final = "spark.hadoop."


@dataclass(frozen=True, slots=True)
class Connection:
    """A server that accepts sessions. `version`: Spark's version. `defaults`: the
    settings of a new session. `sessions`: all sessions of this process.
    `idle_sessions`: its unused sessions, by whether they have the settings for few
    rows."""

    version: str
    defaults: Mapping[str, str]
    sessions: list[SparkSession]
    idle_sessions: Mapping[bool, list[SparkSession]]


class RemoteSpark:
    """`Spark` at a Spark Connect server. `user_settings`: the `[spark]` table. `lake`:
    where the tables are. `staging`: the folder from which Spark reads changes, which
    the server must see, too."""

    can_call_java = False

    def __init__(
        self,
        server: SparkServer,
        user_settings: Mapping[str, str],
        *,
        lake: LakePath,
        staging: Path,
    ) -> None:
        self._server = server
        self._user_settings = {
            key: value for key, value in user_settings.items() if key.startswith("spark.")
        }
        self._lake = lake
        self._staging = staging
        self._start = BackgroundStart(
            self._connect, lambda connection: _close_sessions(connection.sessions)
        )
        self.client_id = uuid4()
        self._session_numbers = count()

    def end_statements(self, client_id: UUID) -> None:
        """End a client's sessions. This needs no session of our own, which might have
        to wait: the client's statements may occupy all tasks."""
        self.require_ready()
        self._require_listening()
        _close_sessions([self._session_of(client_id, number) for number in range(_SESSIONS_TO_END)])

    def require_ready(self) -> None:
        for name in _PACKAGES:
            if not _is_installed(name):
                raise SetupIncomplete(
                    f"Spark Connect needs {name}, which is not installed",
                    hint="run `pip install 'lockstep[connect]'`",
                )

    def prepare(self, log_bytes: int = 0) -> None:
        self._start.begin()

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """Return a new session. Raise `LakeUnavailable` if the server does not answer,
        and `ConfigurationError` if it cannot be used."""
        connection = self._start.wait()
        session = self._session_of(self.client_id, next(self._session_numbers))
        connection.sessions.append(session)
        with self._session_errors():
            self._apply_settings(session, connection.defaults, settings)
        return session

    def idle_sessions(self, *, few_rows: bool) -> list[SparkSession]:
        return self._start.wait().idle_sessions[few_rows]

    def request_count(self) -> int | None:
        """Return None, because no client can count the requests of the server's
        executors."""
        return None

    def stop(self) -> None:
        """Close this process's sessions at the server."""
        self._start.end()

    def display_name(self) -> str:
        return f"Spark {self._start.wait().version} at {self._server}"

    def _connect(self) -> Connection:
        self.require_ready()
        self._require_listening()
        session = self._session_of(self.client_id, next(self._session_numbers))
        try:
            with self._session_errors():
                version, defaults = session.version, session.conf.getAll
                require_compatible(self._server, version, defaults, self._lake)
                _require_settable(
                    session, differing_settings(self._user_settings, defaults), defaults
                )
                # Most runs change few rows and need no other session.
                self._apply_settings(session, defaults, FEW_ROWS_SETTINGS)
            require_visible(session, self._lake, self._staging, f"The Spark at {self._server}")
        except BaseException:
            _close_sessions([session])
            raise
        return Connection(version, defaults, [session], {False: [], True: [session]})

    def _require_listening(self) -> None:
        """Raise `LakeUnavailable` if the server accepts no connection."""
        try:
            with socket.create_connection(self._server.address, _TIMEOUT_SECONDS):
                pass
        except (OSError, UnicodeError) as error:  # UnicodeError: no host has such a name
            raise LakeUnavailable(
                f"No Spark answers at {self._server}",
                hint="start it (`lockstep spark serve` on this machine), or correct remote under "
                "[spark]; then run again",
            ) from error

    def _session_of(self, client_id: UUID, number: int) -> SparkSession:
        """Return the session with this number of a client. No request is made yet."""
        from pyspark.sql import SparkSession

        identity = UUID(bytes=uuid5(client_id, str(number)).bytes, version=4)
        session = SparkSession.builder.remote(self._server.url(identity)).create()
        assert SPARK_ELSEWHERE.most_tries is not None
        _set_retries(session, SPARK_ELSEWHERE.most_tries - 1)
        return session

    def _apply_settings(
        self, session: SparkSession, defaults: Mapping[str, str], settings: Mapping[str, str]
    ) -> None:
        """Set our settings, the object store's and the user's, which override ours. A
        setting that is the server's default already is not set."""
        prefixed_settings = store_settings(self._lake)
        hadoop_settings = {
            name.removeprefix(_HADOOP_PREFIX): value for name, value in prefixed_settings.items()
        }
        session_settings = {**_EVERY_SESSION, **settings, **hadoop_settings, **self._user_settings}
        for name, value in differing_settings(session_settings, defaults).items():
            session.conf.set(name, value)

    @contextmanager
    def _session_errors(self) -> Iterator[None]:
        """Turn the server's errors inside the context, in which a session is opened,
        into our errors (`session_error`)."""
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            raise session_error(str(self._server), error) from error


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _require_settable(
    session: SparkSession, settings: Mapping[str, str], defaults: Mapping[str, str]
) -> None:
    """Raise `ConfigurationError` for a setting that can be set only when the server is
    started. The check sets all of the settings in `session`."""
    from pyspark.errors import PySparkException

    for name, value in settings.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            if (error.getCondition() or "").startswith("CANNOT_MODIFY_"):
                raise _fixed_setting_error(name, defaults) from error
            raise


def _close_sessions(sessions: Iterable[SparkSession]) -> None:
    """Close sessions at the server, which ends their statements. The server answers
    only after the statements have ended; we wait at most `_TIMEOUT_SECONDS` for
    that."""
    threads = [Thread(target=_close_session, args=(session,), daemon=True) for session in sessions]
    for thread in threads:
        thread.start()
    deadline = monotonic() + _TIMEOUT_SECONDS
    for thread in threads:
        thread.join(max(0, deadline - monotonic()))


def _close_session(session: SparkSession) -> None:
    """Close a session. `SparkSession.stop` is not used, because it locks all sessions
    while it waits. An error is ignored: a server that has ended has no sessions."""
    from pyspark.errors import PySparkException

    with suppress(PySparkException, OSError):
        _set_retries(session, 0)
        session.client.release_session()
    session.client.close()


def _set_retries(session: SparkSession, most_retries: int) -> None:
    """Set how often PySpark repeats a request. When it gives up, its warning is
    silenced, because it also raises an error."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
    silence_pyspark()
    longest_ms = int(1000 * SPARK_ELSEWHERE.pauses[-1])
    policy = DefaultPolicy(max_retries=most_retries, max_backoff=longest_ms)
    session.client.set_retry_policies([policy])


OLDEST_MAJOR: Final = 4
"""Oldest major version of Spark that can be used."""

_DEFAULT_STORE_SETTING: Final = "spark.delta.logStore.class"
"""The setting that names one log store for all schemes of URLs."""


def require_compatible(
    server: SparkServer, version: str, defaults: Mapping[str, str], lake: LakePath
) -> None:
    """Raise `ConfigurationError` if the server's Spark is too old, has no Delta, or
    would write the lake's Delta logs with a log store other than ours. `defaults` are a
    new session's settings."""
    if int(version.partition(".")[0]) < OLDEST_MAJOR:
        raise ConfigurationError(
            f"The Spark at {server} is {version}; Spark {OLDEST_MAJOR} or newer is needed",
            hint="use a newer one: see docs/deploy.md#where-spark-runs",
        )
    if DELTA_EXTENSION not in defaults.get("spark.sql.extensions", ""):
        raise ConfigurationError(
            f"The Spark at {server} has no Delta Lake",
            hint=f'start it with delta-spark and "spark.sql.extensions" = "{DELTA_EXTENSION}": '
            "docs/deploy.md#where-spark-runs",
        )
    scheme = "file"
    if isinstance(lake, ObjectPath):
        scheme = lake.bucket.url.partition(":")[0]
    store_setting = f"spark.delta.logStore.{scheme}.impl"
    store = defaults.get(_DEFAULT_STORE_SETTING) or defaults.get(store_setting)
    if _DEFAULT_STORE_SETTING in defaults or store != LOG_STORE_SETTINGS.get(store_setting):
        store = store or "Delta's own store"
        raise ConfigurationError(
            f"The Spark at {server} would write the tables' logs with {store}, which does not stop "
            "a late run from committing",
            hint=f'start it with "{store_setting}" = "{LOG_STORE_SETTINGS[store_setting]}" and our '
            "jar: docs/deploy.md#where-spark-runs",
        )


def differing_settings(settings: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a new session does not have by default. For a key in
    `JOINED_KEYS`, the default need only contain the value: a server that we started has
    our value followed by the user's."""
    return {
        name: value
        for name, value in settings.items()
        if value != defaults.get(name)
        and not (name in JOINED_KEYS and value in defaults.get(name, ""))
    }


def _fixed_setting_error(name: str, defaults: Mapping[str, str]) -> ConfigurationError:
    """Return the error for a setting that differs at the server and that no session can
    change."""
    return ConfigurationError(
        f"{name} is set when Spark's server is started, and this one has "
        f"{'another value' if name in defaults else 'none'}",
        hint="start the server with it (`lockstep spark serve` does), or take it out of [spark] in "
        "lockstep.toml",
    )


_DETAILS: Final = re.compile(r'details = "(.*?)"\n')
"""Matches the details in the text of a gRPC error."""
_LONGEST_REASON: Final = 300


def session_error(server: str, error: PySparkException) -> LockstepError:
    """Return our error for a server's error: `ConfigurationError` if trying again
    cannot help, otherwise `LakeUnavailable`."""
    status = getattr(error, "getGrpcStatusCode", lambda: None)()
    if getattr(status, "name", "") in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return ConfigurationError(
            f"The Spark at {server} does not accept this token",
            hint="set token under [spark] to the one with which the server was started",
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ConfigurationError(
            f"The Spark at {server} has a certificate that this machine does not trust",
            hint="set GRPC_DEFAULT_SSL_ROOTS_FILE_PATH to a file with the certificate of its "
            "issuer, or correct remote under [spark]",
        )
    details = _DETAILS.search(str(error))
    reason = error.getCondition() or (
        details[1][:_LONGEST_REASON] if details else type(error).__name__
    )
    return LakeUnavailable(
        f"The Spark at {server} gave no session: {reason}",
        hint="check that it runs and serves Spark Connect, then run again",
    )
