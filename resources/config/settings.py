"""The validated settings of one source, and of a whole lockstep.toml.

Methods may resolve references: they raise `SecretMissing` if that fails, and
`ConfigurationError` if the value is not allowed. Reading a property or a field resolves
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.snapshot.pace import LoadLimits, Pace
from lockstep.pipeline.source_plan import (
    SnapshotPlan,
    SourcePlan,
    StandbyPlan,
    TableSettings,
    mirror_names_of,
)
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.upkeep.decide import UpkeepPolicy
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.mirror_names import MirrorNames, MirrorNameTemplate
from lockstep.pipeline.values.places import Place, Snapshot
from lockstep.pipeline.values.policies import LakePolicies, StartPolicies
from lockstep.pipeline.values.table import StatementPatterns, TablePatterns
from lockstep.resources.config.model import ConfigFile, check_page_address, resolved_transport
from lockstep.resources.config.secrets import resolve
from lockstep.resources.config.sources import SourceSection
from lockstep.resources.config.values import (
    check_table_pattern,
    host_and_port,
    parse_configured_start,
    refuse_plaintext,
)
from lockstep.resources.lake.spark.settings import has_local_tasks
from lockstep.resources.lake.store.paths import LakePath, lake_path

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One [[sources]] table of lockstep.toml. `section`: its keys; `folder`: the folder
    of that file; relative paths begin there."""

    section: SourceSection
    folder: Path

    @property
    def name(self) -> str:
        return self.section.name

    @property
    def schedule(self) -> str | None:
        """A cron expression of five fields."""
        return self.section.schedule

    def host(self) -> str:
        return self._check_host(resolve(self.section.host, self.folder))

    def _check_host(self, host: str) -> str:
        """Return the host. Raise `ConfigurationError` if passwords would be sent to
        another machine without TLS."""
        if self.section.tls == "off" and not self.section.tls_force:
            try:
                refuse_plaintext(host)
            except ValueError as error:
                raise ConfigurationError(
                    f"{error}.", hint=f"correct tls of source {self.name!r} in lockstep.toml"
                ) from error
        return host

    def user(self) -> str:
        return resolve(self.section.user, self.folder)

    def password(self) -> str:
        return resolve(self.section.password, self.folder)

    def tls_ca(self) -> str | None:
        """Return the CA file's absolute path, if one is configured."""
        if self.section.tls_ca is None:
            return None
        return str(self.folder / Path(resolve(self.section.tls_ca, self.folder)).expanduser())

    def standby_address(self) -> tuple[str, int] | None:
        """Return host and port of the standby, if one is configured."""
        section = self.section.standby
        if section is None:
            return None
        return self._check_host(resolve(section.host, self.folder)), section.port

    def replica_address(self) -> tuple[str, int] | None:
        """Return host and port of the replica that tables are read from, if one is
        configured."""
        text = self.section.snapshot.read_from
        if text is None:
            return None
        host, port = self._parse_reference(host_and_port, text, ": read_from")
        return self._check_host(host), port

    def plan(self) -> SourcePlan:
        """Return what the steps of a run need to know about the source."""
        standby = self.section.standby
        return SourcePlan(
            name=self.name,
            patterns=TablePatterns(
                include=tuple(self._pattern(text) for text in self.section.tables),
                exclude=tuple(self._pattern(text) for text in self.section.exclude),
            ),
            start=self._place(self.section.start),
            budget=Budget(**self.section.bounds.model_dump()),
            start_policies=StartPolicies(
                on_position_lost=self.section.on_position_lost,
                on_source_changed=self.section.on_source_changed,
                fallback_interval=timedelta(seconds=self.section.fallback_interval),
            ),
            lake_policies=LakePolicies(
                **{
                    field.name: getattr(self.section, field.name)
                    for field in fields(LakePolicies)
                    if field.name in SourceSection.model_fields
                }
            ),
            standby=None
            if standby is None
            else StandbyPlan(self._place(standby.start), standby.server_uuid),
            snapshot=self._snapshot_plan(),
            sample_rows=self.section.prove_rows,
            allowed_statements=StatementPatterns(
                tuple(map(self._pattern, self.section.passed_statements))
            ),
            table_settings=self._table_settings(),
        )

    def mirror_names(self) -> MirrorNames:
        """Return the rules that name the source's mirrors (the Delta tables with the
        current rows). Only references in patterns are resolved."""
        return mirror_names_of(self.name, self._table_settings())

    def _table_settings(self) -> tuple[TableSettings, ...]:
        return tuple(
            TableSettings(
                TablePatterns(tuple(map(self._pattern, section.match))),
                section.policies,
                section.shape_rules,
                None if section.into is None else MirrorNameTemplate.parse(section.into),
            )
            for section in self.section.table
        )

    def _snapshot_plan(self) -> SnapshotPlan:
        section = self.section.snapshot
        limits = LoadLimits(
            threads_running=section.max_threads_running, replica_lag=section.max_replica_lag
        )
        pace = Pace(seconds=section.chunk_seconds)
        return SnapshotPlan(section.max_seconds, section.connections, pace, limits)

    def _pattern(self, text: str) -> str:
        return self._parse_reference(check_table_pattern, text)

    def _place(self, start: str | None) -> Place | Snapshot | None:
        return None if start is None else self._parse_reference(parse_configured_start, start)

    def _parse_reference(self, parse: Callable[[str], Value], text: str, suffix: str = "") -> Value:
        return parse_reference(parse, text, self.folder, f"Source {self.name!r}{suffix}")


def parse_reference(parse: Callable[[str], Value], text: str, folder: Path, subject: str) -> Value:
    """Resolve a text that is a reference, and return its parsed value. If `parse`
    raises ValueError, raise `ConfigurationError`; its message begins with `subject`."""
    try:
        return parse(resolve(text, folder))
    except ValueError as error:
        raise ConfigurationError(
            f"{subject}: {error}.", hint=f"correct the value of {text}"
        ) from error


SHORTEST_KEY_BYTES: Final = 16
"""Smallest allowed number of bytes of a privacy key: a shorter key can be guessed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A lockstep.toml. `file`: its keys; `path`: its absolute path."""

    file: ConfigFile
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
        """Return the source of that name. Raise `ConfigurationError` if lockstep.toml
        has none."""
        for source in self.sources:
            if source.name == name:
                return source
        names = ", ".join(source.name for source in self.sources)
        raise ConfigurationError(
            f"{self.path.name} has no source {name!r}.", hint=f"choose one of: {names}"
        )

    def lake_path(self) -> LakePath:
        """Return the lake's folder, or its prefix in an object store, without accessing
        it."""
        section = self.file.lake
        options = {name: resolve(value, self.folder) for name, value in section.options.items()}
        try:
            return lake_path(resolve(section.path, self.folder), self.folder, options)
        except ValueError as error:
            raise ConfigurationError(
                f"lake: {error}.", hint="correct path and options under [lake]"
            ) from error

    def version_retention(self) -> timedelta:
        """Return how long each version of a mirror stays readable."""
        return timedelta(seconds=self.file.lake.keep)

    def upkeep_policy(self, *, purge: bool = False) -> UpkeepPolicy:
        """Return the policy by which upkeep compacts a mirror's files and deletes old
        changes. `purge`: also rewrite every file that still contains deleted rows."""
        section = self.file.upkeep
        keep = None if section.keep_changes is None else timedelta(seconds=section.keep_changes)
        return UpkeepPolicy(
            small_files=section.small_files,
            file_bytes=section.file_size,
            deleted_share=section.deleted_share,
            purge=purge,
            keep_changes=keep,
        )

    def privacy_key(self) -> PrivacyKey | None:
        """Return the key with which `hash_columns` hashes values; None without
        [privacy]."""
        section = self.file.privacy
        if section is None:
            return None
        secret = resolve(section.key, self.folder)
        if len(secret.encode()) < SHORTEST_KEY_BYTES:
            raise ConfigurationError(
                f"the key under [privacy] has fewer than {SHORTEST_KEY_BYTES} bytes",
                hint="make one with `openssl rand -base64 32`",
            )
        return PrivacyKey(secret.encode(), replaces=section.replaces)

    def ledger_dsn(self) -> str:
        """Return `embedded`, or a Postgres DSN, which may contain a password."""
        return resolve(self.file.ledger.dsn, self.folder)

    def webserver(self) -> str | None:
        """Return the address of Dagster's web server, if it is configured."""
        address = self.file.dagster.webserver
        if address is None:
            return None
        return parse_reference(check_page_address, address, self.folder, "dagster")

    def lineage_transport(self) -> dict[str, Any]:
        """Return the transport for the OpenLineage client; it is empty if the client is
        to use its own configuration."""
        section = self.file.lineage
        return {} if section is None else resolved_transport(section.transport, self.folder)

    @property
    def notify_references(self) -> tuple[str, ...]:
        """References to the addresses that are notified of failed runs and stopped
        tables; none by default."""
        return () if self.file.notify is None else self.file.notify.urls

    def notify_url(self, reference: str) -> str:
        return resolve(reference, self.folder)

    def spark_conf(self) -> dict[str, str]:
        return {key: resolve(value, self.folder) for key, value in self.file.spark.items()}

    def catalog_address(self) -> tuple[str, str, str]:
        """Return the catalog's address, name and token; '' for those that are not
        configured."""
        section = self.file.catalog
        if section is None:
            return "", "", ""
        uri = (
            parse_reference(section.check_uri, section.uri, self.folder, "catalog")
            if section.uri
            else ""
        )
        name, token = (resolve(value or "", self.folder) for value in (section.name, section.token))
        return uri, name, token

    @property
    def has_spark_server(self) -> bool:
        """True if Spark is a Spark Connect server, which needs no Java on this host."""
        return "remote" in self.file.spark

    @property
    def has_spark_cluster(self) -> bool:
        """True if Spark's driver runs on this host and its executors elsewhere."""
        return not has_local_tasks(self.file.spark)
