"""Settings as the other rooms use them: validated, references not yet followed.

Methods that follow a reference may raise `SecretMissing`, and `ConfigurationError`
when what it led to is not allowed; attributes never do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pipeline.errors import ConfigurationError
from pipeline.shape.hashes import PrivacyKey
from pipeline.upkeep.decide import UpkeepPolicy
from resources.config.lineage import followed
from resources.config.model import File, page_address
from resources.config.secrets import is_sensitive, resolve
from resources.config.source_settings import SourceSettings, followed_to
from resources.lake.paths import LakePath, lake_path
from resources.lake.settings import is_local

SHORTEST_KEY: Final = 16
"""Bytes of a key that nobody guesses."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole lockstep.toml; `path` is the file, absolute."""

    file: File
    path: Path

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def state_folder(self) -> Path:
        """Where Lockstep keeps what it makes for itself: `.lockstep` beside the file."""
        return self.folder / ".lockstep"

    @property
    def sources(self) -> tuple[SourceSettings, ...]:
        return tuple(SourceSettings(part, self.folder) for part in self.file.sources)

    def source(self, name: str) -> SourceSettings:
        """The source of that name; `ConfigurationError` names those there are."""
        for source in self.sources:
            if source.name == name:
                return source
        known = ", ".join(source.name for source in self.sources)
        raise ConfigurationError(
            f"{self.path.name} has no source {name!r}.", hint=f"choose one of: {known}"
        )

    def lake_path(self) -> LakePath:
        """Where the lake is: a folder, or a prefix of an object store, which is asked nothing."""
        part = self.file.lake
        options = {name: resolve(value, self.folder) for name, value in part.options.items()}
        try:
            return lake_path(resolve(part.path, self.folder), self.folder, options)
        except ValueError as error:
            raise ConfigurationError(
                f"lake: {error}.", hint="correct path and options under [lake]"
            ) from error

    def keep(self) -> timedelta:
        """How long each version of a mirror stays readable."""
        return timedelta(seconds=self.file.lake.keep)

    def upkeep(self, *, purge: bool = False) -> UpkeepPolicy:
        """What upkeep does; `purge`: deleted rows go from all files, however few they are."""
        part = self.file.upkeep
        keep = None if part.keep_changes is None else timedelta(seconds=part.keep_changes)
        return UpkeepPolicy(part.small_files, part.file_size, part.deleted_share, purge, keep)

    def privacy_key(self) -> PrivacyKey | None:
        """What values are hashed with; None if the settings name no key. `SecretMissing`."""
        part = self.file.privacy
        if part is None:
            return None
        secret = resolve(part.key, self.folder)
        if len(secret.encode()) < SHORTEST_KEY:
            raise ConfigurationError(
                f"the key under [privacy] has fewer than {SHORTEST_KEY} bytes",
                hint="make one with `openssl rand -base64 32`",
            )
        return PrivacyKey(secret.encode(), replaces=part.replaces)

    def ledger_dsn(self) -> str:
        """`embedded`, or a Postgres DSN that may hold a password."""
        return resolve(self.file.ledger.dsn, self.folder)

    def webserver(self) -> str | None:
        """The address of Dagster's page, if it was told."""
        address = self.file.dagster.webserver
        if address is None:
            return None
        return followed_to(page_address, address, self.folder, "dagster.webserver")

    def lineage_transport(self) -> dict[str, Any]:
        """As the official client takes it; empty for what the client finds by itself."""
        return followed(self.file.lineage.transport, self.folder) if self.file.lineage else {}

    @property
    def notify(self) -> tuple[str, ...]:
        """References to the addresses that are told what needs a person; none by default."""
        return () if self.file.notify is None else self.file.notify.urls

    def notify_url(self, reference: str) -> str:
        """The address that one of them leads to."""
        return resolve(reference, self.folder)

    def spark_conf(self) -> dict[str, str]:
        return {key: resolve(value, self.folder) for key, value in self.file.spark.items()}

    def catalog_address(self) -> tuple[str, str, str]:
        """Address, own name and token of the catalog; '' for what it does not have."""
        part = self.file.catalog
        if part is None:
            return "", "", ""
        uri = followed_to(part.address, part.uri, self.folder, "catalog") if part.uri else ""
        name, token = (resolve(value or "", self.folder) for value in (part.name, part.token))
        return uri, name, token

    @property
    def spark_server(self) -> bool:
        """Whether Spark is a server of Spark Connect, which needs no Java here."""
        return "remote" in self.file.spark

    @property
    def spark_cluster(self) -> bool:
        """Whether a Java of this machine has executors elsewhere."""
        return not is_local(self.file.spark)

    def sensitive_spark_keys(self) -> frozenset[str]:
        return frozenset(key for key in self.file.spark if is_sensitive(key))
