"""The rooms put together: from settings to the ports that a run works through.

Belongs here: which adapter stands behind which port, when each is opened, and that all
are closed. Does not: any rule. Nothing is opened before it is asked for; one `Adapters` per
process and configuration, because there is one Spark per process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pipeline.errors import LockstepError
from pipeline.ports.catalog import Registry
from pipeline.runs.context import Progress, Workplace
from resources.config import Settings
from resources.config.model import CatalogKind

if TYPE_CHECKING:
    from pipeline.ports.catalog import Catalog
    from pipeline.ports.consumers import Consumers
    from pipeline.ports.ledger import Ledger
    from pipeline.ports.source import SourceServer
    from pipeline.ports.upkeep import MirrorUpkeep
    from resources.lake.room import LakeRoom
    from resources.postgres.ledger import PostgresLedger


class Adapters:
    """The adapters of one lockstep.toml. To be used with `with`; safe from threads."""

    def __init__(self, settings: Settings, *, on_warning: Callable[[str], None]) -> None:
        self._settings = settings
        self._on_warning = on_warning
        self._lock = threading.Lock()
        self._ledger: PostgresLedger | None = None
        self._lake: LakeRoom | None = None

    def __enter__(self) -> Adapters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm(self, sources: Sequence[str]) -> None:
        """Begin to open the ledger in the background, and Java where runs of these sources will
        write to mirrors, if a caller has other things to do first; whatever goes wrong is told
        to whoever asks for it."""
        from resources.lake.session import settle_for

        with suppress(LockstepError):
            settle_for(self._settings.lake_path())

        def open_quietly() -> None:
            from pipeline.runs.expect import expected_log

            with suppress(LockstepError):
                ledger = self.ledger()
                for name in sources:
                    start = self._settings.source(name).plan().start
                    expected = expected_log(ledger, name, self.server(name), start)
                    if expected is not None:
                        self.lake().mirrors.prepare(expected)
                        return

        threading.Thread(target=open_quietly, name="lockstep-warm", daemon=True).start()

    def ledger(self) -> Ledger:
        """The books, opened at the first call. `LedgerUnavailable`, `LedgerNewer`, or
        `ConfigurationError` when it cannot be."""
        return self._opened_ledger()

    def consumers(self) -> Consumers:
        """The changelog's consumers, whose books are the ledger's."""
        return self._opened_ledger().consumers

    def _opened_ledger(self) -> PostgresLedger:
        with self._lock:
            if self._ledger is None:
                from resources.postgres.ledger import open_ledger

                self._ledger = open_ledger(self._settings.ledger_dsn(), self._settings.state_folder)
            return self._ledger

    def reopen_ledger(self) -> None:
        """Forget a ledger whose connection is lost; the next call opens another."""
        with self._lock:
            ledger, self._ledger = self._ledger, None
        if ledger is not None:
            with suppress(LockstepError):
                ledger.close()

    def server(self, source: str) -> SourceServer:
        """The source's MySQL, and its standby if it has one. Follows the secrets'
        references, connects to nothing."""
        from resources.mysql.connection import ConnectionSettings
        from resources.mysql.server import MySqlServer

        chosen = self._settings.source(source)
        primary = ConnectionSettings(
            host=chosen.host(),
            port=chosen.part.port,
            user=chosen.user(),
            password=chosen.password().reveal(),
            tls=chosen.part.tls,
            tls_ca=chosen.tls_ca(),
            connect_timeout=chosen.part.connect_timeout,
            read_timeout=chosen.part.read_timeout,
        )
        at = chosen.read_from()
        replica = None if at is None else replace(primary, host=at[0], port=at[1])
        at = chosen.standby()
        standby = None if at is None else replace(primary, host=at[0], port=at[1])
        plan = chosen.plan()
        if not plan.shaped:
            return MySqlServer(primary, standby=standby, read_from=replica)
        from resources.mysql.shaped import ShapedServer

        shaping = plan.shaping(self._settings.privacy_key())
        return ShapedServer(primary, standby=standby, read_from=replica, shaping=shaping)

    def lake(self) -> LakeRoom:
        """The lake's adapters; Spark is started by what needs it, not here."""
        with self._lock:
            if self._lake is None:
                from resources.lake.room import open_lake

                self._lake = open_lake(
                    self._settings.lake_path(),
                    staging=self._settings.state_folder / "staging",
                    spark_conf=self._settings.spark_conf(),
                    on_warning=self._on_warning,
                    keep=self._settings.keep(),
                )
            return self._lake

    def upkeep(self) -> MirrorUpkeep:
        """The files of the lake's mirrors."""
        return self.lake().upkeep

    def registry(self) -> Registry | None:
        """Where mirrors are registered; None where they are not. Asks nobody."""
        part = self._settings.file.catalog
        if part is None:
            return None
        lake = self._settings.lake_path()
        root = lake.absolute()

        def locate(mirror: str) -> str:
            return (root / mirror if mirror else root).as_uri()

        return Registry(self._catalog(part.kind, locate), part.schemas)

    def _catalog(self, kind: CatalogKind, locate: Callable[[str], str]) -> Catalog:
        uri, name, token = self._settings.catalog_address()
        match kind:
            case CatalogKind.UNITY:
                from resources.unity.catalog import UnityCatalog

                return UnityCatalog(uri, name, token, locate)
            case CatalogKind.HIVE:
                from resources.hive.catalog import HiveCatalog

                return HiveCatalog(uri, locate)
            case CatalogKind.SPARK:
                return self.lake().catalog(name, locate)

    def workplace(self, source: str, progress: Progress) -> Workplace:
        """Everything one source's run works through."""
        plan = self._settings.source(source).plan()
        server = self.server(source)
        lake, key = self.lake(), self._settings.privacy_key()
        return Workplace(
            source=plan,
            server=server,
            ledger=self.ledger(),
            segments=lake.segments,
            spool=lake.spool.wrapped_by(key),
            changelog=lake.changelog,
            mirrors=lake.mirrors,
            claims=lake.claims,
            requests=lake.requests_since_now(),
            progress=progress,
            clock=lambda: datetime.now(UTC),
            registry=self.registry,
            shaping=plan.shaping(key),
        )

    def close(self) -> None:
        """Stop Spark, let go of the ledger. Repeating it changes nothing."""
        with self._lock, ExitStack() as stack:
            if self._ledger is not None:
                stack.callback(self._ledger.close)
            if self._lake is not None:
                stack.callback(self._lake.close)
            self._ledger = self._lake = None
