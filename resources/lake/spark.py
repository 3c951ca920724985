"""What the lake asks of a Spark, wherever it runs.

It is a Java process of this machine (`session`) or a server that is reached by Spark Connect
(`remote`). What is done in a session is the same code for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Spark(Protocol):
    """A Spark that is started, or connected to, by the first who needs it."""

    @property
    def java(self) -> bool:
        """Whether its Java can be spoken to from here: what PySpark has no words for is left out
        elsewhere (commits without a query, `direct`; uploads that nobody finished, `segments`)."""

    @property
    def client(self) -> UUID | None:
        """Who asks a server, in all sessions of this process; None where Spark ends with it."""

    def end_statements(self, client: UUID) -> None:
        """The server forgets the sessions of another process, with what it does for them.
        `LakeUnavailable` where it cannot be told."""

    def named(self) -> str:
        """Which one it is, for people. Waits for the start."""

    def require_ready(self) -> None:
        """`JavaMissing` or `SetupIncomplete` where a start would end in one."""

    def prepare(self, log_bytes: int = 0) -> None:
        """Begin to start, unless begun. Whatever goes wrong is told by `session`. `log_bytes`: as
        `Mirrors.prepare` has it."""

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """A new session, with configuration and views of its own. `settings` hold where the user
        gave no other. Waits for the start; `LockstepError` where there is none."""

    def idle(self, *, few: bool) -> list[SparkSession]:
        """Sessions that nobody uses, for few rows or for any number (`sessions`); any thread
        takes from the list and puts back. Waits for the start, as `session` does."""

    def requests(self) -> int | None:
        """What its client asked of the lake's object store since it started; None where that
        cannot be told: other machines ask, too. Starts nothing, and waits for nothing."""

    def stop(self) -> None:
        """Let go of it; nothing if never started."""
