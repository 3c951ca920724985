"""The validated settings of a whole lockstep.toml.

Methods may resolve references: they raise `SecretMissing` if that fails, and `ConfigurationError`
if the value is not allowed. Attributes never do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.upkeep.decide import UpkeepPolicy
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.config.lineage import resolved_transport
from lockstep.resources.config.model import File, page_address
from lockstep.resources.config.secrets import is_sensitive, resolve
from lockstep.resources.config.source_settings import SourceSettings, parse_reference
from lockstep.resources.lake.spark.settings import is_local
from lockstep.resources.lake.store.paths import LakePath, lake_path

SHORTEST_KEY: Final = 16
"""Smallest allowed number of bytes of a key: a shorter one can be guessed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A lockstep.toml; `path`: its absolute path."""

    file: File
    path: Path

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def state_folder(self) -> Path:
        """The folder of Lockstep's own files: `.lockstep` beside lockstep.toml."""
        return self.folder / ".lockstep"

    @property
    def sources(self) -> tuple[SourceSettings, ...]:
        return tuple(SourceSettings(section, self.folder) for section in self.file.sources)

    def source(self, name: str) -> SourceSettings:
        """Return the source of that name; `ConfigurationError` if there is none."""
        for source in self.sources:
            if source.name == name:
                return source
        names = ", ".join(source.name for source in self.sources)
        raise ConfigurationError(
            f"{self.path.name} has no source {name!r}.", hint=f"choose one of: {names}"
        )

    def lake_path(self) -> LakePath:
        """Return the lake's folder, or its prefix in an object store, without accessing it."""
        section = self.file.lake
        options = {name: resolve(value, self.folder) for name, value in section.options.items()}
        try:
            return lake_path(resolve(section.path, self.folder), self.folder, options)
        except ValueError as error:
            raise ConfigurationError(
                f"lake: {error}.", hint="correct path and options under [lake]"
            ) from error

    def keep(self) -> timedelta:
        """Return how long each version of a mirror stays readable."""
        return timedelta(seconds=self.file.lake.keep)

    def upkeep(self, *, purge: bool = False) -> UpkeepPolicy:
        """Return the policy of upkeep. `purge`: rewrite every file that still has deleted rows."""
        section = self.file.upkeep
        keep = None if section.keep_changes is None else timedelta(seconds=section.keep_changes)
        return UpkeepPolicy(
            section.small_files, section.file_size, section.deleted_share, purge, keep
        )

    def privacy_key(self) -> PrivacyKey | None:
        """Return the key that values are hashed with; None without [privacy]."""
        section = self.file.privacy
        if section is None:
            return None
        secret = resolve(section.key, self.folder)
        if len(secret.encode()) < SHORTEST_KEY:
            raise ConfigurationError(
                f"the key under [privacy] has fewer than {SHORTEST_KEY} bytes",
                hint="make one with `openssl rand -base64 32`",
            )
        return PrivacyKey(secret.encode(), replaces=section.replaces)

    def ledger_dsn(self) -> str:
        """Return `embedded`, or a Postgres DSN, which may contain a password."""
        return resolve(self.file.ledger.dsn, self.folder)

    def webserver(self) -> str | None:
        """Return the address of Dagster's page, if it is configured."""
        address = self.file.dagster.webserver
        if address is None:
            return None
        return parse_reference(page_address, address, self.folder, "dagster.webserver")

    def lineage_transport(self) -> dict[str, Any]:
        """Return the transport for the OpenLineage client; empty if the client's own
        configuration names it."""
        section = self.file.lineage
        return {} if section is None else resolved_transport(section.transport, self.folder)

    @property
    def notify(self) -> tuple[str, ...]:
        """References to the addresses that are notified of troubles; none by default."""
        return () if self.file.notify is None else self.file.notify.urls

    def notify_url(self, reference: str) -> str:
        return resolve(reference, self.folder)

    def spark_conf(self) -> dict[str, str]:
        return {key: resolve(value, self.folder) for key, value in self.file.spark.items()}

    def catalog_address(self) -> tuple[str, str, str]:
        """Return the catalog's address, name and token; '' for those that are not configured."""
        section = self.file.catalog
        if section is None:
            return "", "", ""
        uri = (
            parse_reference(section.address, section.uri, self.folder, "catalog")
            if section.uri
            else ""
        )
        name, token = (resolve(value or "", self.folder) for value in (section.name, section.token))
        return uri, name, token

    @property
    def spark_server(self) -> bool:
        """True if Spark is a Spark Connect server, which needs no Java on this host."""
        return "remote" in self.file.spark

    @property
    def spark_cluster(self) -> bool:
        """True if Spark's driver runs on this host and its executors elsewhere."""
        return not is_local(self.file.spark)

    def sensitive_spark_keys(self) -> frozenset[str]:
        return frozenset(key for key in self.file.spark if is_sensitive(key))
