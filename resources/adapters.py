"""The adapters of one lockstep.toml: the classes that implement the ports. Each is
imported and opened only when it is first used, because Spark and PyMySQL take long to
import. Only one `Adapters` at a time may use Spark in a process, because pyspark has
only one Spark per process.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.pipeline.ports.catalog import Registry
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import Progress
from lockstep.pipeline.values.errors import LockstepError
from lockstep.resources.config import Settings
from lockstep.resources.config.model import CatalogKind

if TYPE_CHECKING:
    from lockstep.pipeline.ports.catalog import Catalog
    from lockstep.pipeline.ports.ledger import Consumers, Ledger
    from lockstep.pipeline.ports.mirrors import MirrorUpkeep
    from lockstep.pipeline.ports.source import SourceServer
    from lockstep.resources.lake.lake import Lake
    from lockstep.resources.postgres.ledger import PostgresLedger


class Adapters:
    """The adapters of one lockstep.toml, as a context manager that closes them.
    Thread-safe."""

    def __init__(self, settings: Settings, *, on_warning: Callable[[str], None]) -> None:
        self._settings = settings
        self._on_warning = on_warning
        self._lock = threading.Lock()
        self._ledger: PostgresLedger | None = None
        self._lake: Lake | None = None

    def __enter__(self) -> Adapters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm(self, sources: Sequence[str]) -> None:
        """Open the ledger in the background, and start Java if a run of one of these
        sources is expected to write mirrors. Errors are ignored here: the first real
        use raises them."""
        from lockstep.resources.lake.spark.session import define_environment_for

        # Before the thread starts: no other thread may read the environment meanwhile.
        with suppress(LockstepError):
            define_environment_for(self._settings.lake_path())

        def open_in_background() -> None:
            from lockstep.pipeline.run.expected_log import expected_log_bytes

            with suppress(LockstepError):
                ledger = self.ledger()
                for name in sources:
                    start = self._settings.source(name).plan().start
                    log_bytes = expected_log_bytes(ledger, name, self.server(name), start)
                    if log_bytes is not None:
                        self.lake().mirrors.prepare(log_bytes)
                        return

        threading.Thread(target=open_in_background, name="lockstep-warm", daemon=True).start()

    def ledger(self) -> Ledger:
        """Return the ledger, opened at the first call. If that fails, raise
        `LedgerUnavailable`, `LedgerNewer` or `ConfigurationError`."""
        return self._postgres_ledger()

    def consumers(self) -> Consumers:
        """Return the port for consumers, the named readers of changelogs."""
        return self._postgres_ledger().consumers

    def _postgres_ledger(self) -> PostgresLedger:
        with self._lock:
            if self._ledger is None:
                from lockstep.resources.postgres.ledger import open_ledger

                self._ledger = open_ledger(self._settings.ledger_dsn(), self._settings.state_folder)
            return self._ledger

    def close_ledger(self) -> None:
        """Close the ledger after its connection was lost; the next call of `ledger`
        opens it again."""
        with self._lock:
            ledger, self._ledger = self._ledger, None
        if ledger is not None:
            with suppress(LockstepError):
                ledger.close()

    def server(self, source: str) -> SourceServer:
        """Return the source's MySQL server, with its standby and replica. Secrets are
        read, but no connection is opened."""
        from lockstep.resources.mysql.connection import ConnectionSettings
        from lockstep.resources.mysql.server import MySqlServer

        settings = self._settings.source(source)
        primary = ConnectionSettings(
            host=settings.host(),
            port=settings.section.port,
            user=settings.user(),
            password=settings.password(),
            tls=settings.section.tls,
            tls_ca=settings.tls_ca(),
            connect_timeout=settings.section.connect_timeout,
            read_timeout=settings.section.read_timeout,
        )
        replica = None
        standby = None
        if (address := settings.replica_address()) is not None:
            replica = replace(primary, host=address[0], port=address[1])
        if (address := settings.standby_address()) is not None:
            standby = replace(primary, host=address[0], port=address[1])
        plan = settings.plan()
        shaping = plan.shaping(self._settings.privacy_key()) if plan.has_shapes else None
        return MySqlServer(primary, standby=standby, read_from=replica, shaping=shaping)

    def lake(self) -> Lake:
        """Return the lake's adapters. Spark is started only by operations that need it."""
        with self._lock:
            if self._lake is None:
                from lockstep.resources.lake.lake import Lake

                self._lake = Lake(
                    self._settings.lake_path(),
                    staging=self._settings.state_folder / "staging",
                    spark_conf=self._settings.spark_conf(),
                    on_warning=self._on_warning,
                    keep=self._settings.version_retention(),
                )
            return self._lake

    def registry(self) -> Registry | None:
        """Return the catalog in which mirrors are registered, or None if lockstep.toml
        has no [catalog]. No connection to it is opened."""
        section = self._settings.file.catalog
        if section is None:
            return None
        root = self._settings.lake_path().absolute()

        def locate(folder: str) -> str:
            path = root / folder if folder else root
            if section.kind is CatalogKind.UNITY:
                return path.as_uri()
            # Spark decodes no %20 in a location, and Hadoop finds its store for S3 by the
            # scheme s3a.
            return f"file://{path}" if isinstance(path, Path) else re.sub("^s3:", "s3a:", str(path))

        return Registry(self._catalog(section.kind), section.schemas, locate)

    def _catalog(self, kind: CatalogKind) -> Catalog:
        uri, name, token = self._settings.catalog_address()
        match kind:
            case CatalogKind.UNITY:
                from lockstep.resources.unity import UnityCatalog

                return UnityCatalog(uri, name, token)
            case CatalogKind.HIVE:
                from lockstep.resources.hive import HiveCatalog

                return HiveCatalog(uri)
            case CatalogKind.SPARK:
                return self.lake().catalog(name)

    def ports(self, source: str, progress: Progress) -> RunPorts:
        """Return everything that a run of the source needs."""
        server = self.server(source)
        lake = self.lake()
        plan = replace(self._settings.source(source).plan(), ignores_case=lake.ignores_case)
        key = self._settings.privacy_key()
        return RunPorts(
            source=plan,
            server=server,
            ledger=self.ledger(),
            segments=lake.segments,
            spool=lake.spool.with_privacy_key(key),
            changelog=lake.changelog,
            mirrors=lake.mirrors,
            claims=lake.claims,
            count_requests=lake.start_request_count(),
            progress=progress,
            clock=lambda: datetime.now(UTC),
            open_registry=self.registry,
            shaping=plan.shaping(key),
        )

    def upkeep(self) -> MirrorUpkeep:
        """Return the upkeep of the lake's mirrors."""
        return self.lake().upkeep

    def close(self) -> None:
        """Stop Spark and close the ledger. A second call does nothing."""
        with self._lock, ExitStack() as stack:
            if self._ledger is not None:
                stack.callback(self._ledger.close)
            if self._lake is not None:
                stack.callback(self._lake.close)
            self._ledger = self._lake = None
