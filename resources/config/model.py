"""The shape of lockstep.toml, as pydantic models; what each key may hold."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from pipeline.catalog.plan import DATABASE
from pipeline.keeping import KEEP
from pipeline.replay.partitions import Partitions
from pipeline.survey import is_loopback
from pipeline.upkeep.decide import UpkeepPolicy
from resources.config.lineage import LineageSection
from resources.config.secrets import has_password, is_reference
from resources.config.sources import SourceSection
from resources.config.values import (
    AboutKey,
    Section,
    Text,
    cron_expression,
    duration_in_seconds,
    secret_reference,
    size_in_bytes,
    without_literal_secrets,
)

_OBJECT_STORE = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_SCHEMES = ("s3", "gs", "abfss")


class LakeSection(Section):
    path: Text = "lake"
    options: dict[str, Text] = Field(default_factory=dict)
    keep: Annotated[int, Field(ge=86_400), BeforeValidator(duration_in_seconds)] = int(
        KEEP.total_seconds()
    )

    @field_validator("path")
    @classmethod
    def _a_known_store(cls, path: str) -> str:
        scheme = _OBJECT_STORE.match(path)
        if scheme is not None and scheme[1].lower() not in _SCHEMES:
            raise ValueError(f"{path!r} is in no store that Lockstep knows: {', '.join(_SCHEMES)}")
        return path

    @field_validator("options")
    @classmethod
    def _no_literal_secrets(cls, options: dict[str, str]) -> dict[str, str]:
        return without_literal_secrets(options)


class LedgerSection(Section):
    dsn: Text = "embedded"

    @field_validator("dsn")
    @classmethod
    def _without_password(cls, dsn: str) -> str:
        if not is_reference(dsn) and has_password(dsn):
            raise ValueError("a DSN with a password in the file is refused; write env:NAME")
        return dsn


_UPKEEP = UpkeepPolicy()


class NotifySection(Section):
    """`urls`: addresses of apprise's, each by reference."""

    urls: Annotated[
        tuple[Annotated[Text, AfterValidator(address_reference)], ...],
        Field(min_length=1, strict=False),
    ]


class PrivacySection(Section):
    """`key`: what hash_columns hashes values with, by reference; all sources and all hosts that
    write to one lake have the same. `replaces`: the fingerprint of the key that it replaces."""

    key: Annotated[str, AfterValidator(secret_reference)]
    replaces: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = None


class UpkeepSection(Section):
    """When mirrors' files are made fewer, and from where on; how long changes are kept."""

    schedule: Text | None = None
    small_files: Annotated[int, Field(ge=2)] = _UPKEEP.small_files
    file_size: Annotated[int, Field(ge=1 << 20), BeforeValidator(size_in_bytes)] | None = None
    deleted_share: Annotated[float, Field(gt=0, le=1, strict=False)] = _UPKEEP.deleted_share
    keep_changes: Annotated[int, Field(ge=86_400), BeforeValidator(duration_in_seconds)] | None = (
        None
    )
    dagster_runs: Annotated[int, Field(ge=86_400), BeforeValidator(duration_in_seconds)] | None = (
        None
    )

    @field_validator("schedule")
    @classmethod
    def _cron(cls, schedule: str | None) -> str | None:
        return None if schedule is None else cron_expression(schedule)


class CatalogKind(StrEnum):
    """What answers there."""

    UNITY = "unity"
    HIVE = "hive"
    SPARK = "spark"


_CATALOG_SCHEMES = {CatalogKind.UNITY: ("http", "https"), CatalogKind.HIVE: ("thrift",)}
_KEYS = {
    CatalogKind.UNITY: ({"uri", "name"}, {"token"}),
    CatalogKind.HIVE: ({"uri"}, set[str]()),
    CatalogKind.SPARK: ({"name"}, set[str]()),
}
"""The keys that a kind must have, and may have."""


class CatalogSection(Section):
    """One catalog for all sources."""

    kind: Annotated[CatalogKind, Field(strict=False)]
    uri: Text | None = None
    name: Text | None = None
    token: Annotated[str, AfterValidator(secret_reference)] | None = None
    schemas: Text = DATABASE

    @field_validator("schemas")
    @classmethod
    def _by_database(cls, schemas: str) -> str:
        if DATABASE not in schemas:
            raise ValueError(
                f"{schemas!r} has no {DATABASE} in it: tables of two databases may have one name"
            )
        return schemas

    @model_validator(mode="after")
    def _keys_of_the_kind(self) -> CatalogSection:
        must, may = _KEYS[self.kind]
        given = {key for key in ("uri", "name", "token") if getattr(self, key) is not None}
        for key in sorted(must - given):
            raise ValueError(f"kind = {str(self.kind)!r} needs {key}")
        for key in sorted(given - must - may):
            raise ValueError(f"kind = {str(self.kind)!r} has no {key}")
        return self

    @model_validator(mode="after")
    def _an_address(self) -> CatalogSection:
        if self.uri is not None and not is_reference(self.uri):
            self.address(self.uri)
        return self

    def address(self, uri: str) -> str:
        """The same; ValueError where this kind has no such address, or it would see the token."""
        schemes, found = _CATALOG_SCHEMES[self.kind], urlsplit(uri)
        if found.scheme not in schemes or not found.hostname or found.username:
            raise ValueError(f"uri is not an address such as {schemes[0]}://catalog.example.com")
        if self.token is not None and found.scheme == "http" and not is_loopback(found.hostname):
            raise ValueError("http:// would send the token in the clear; write https://")
        return uri


_OWNER = re.compile(r"team:[\w.-]+|[^@\s]+@[^@\s]+\.[^@\s]+")

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+$")]
KeyPart = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_]+|\{source\})$")]
Location = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]+$")]


class DagsterSection(Section):
    """The same for all sources."""

    location: Location = "lockstep"
    webserver: Text | None = None
    key_prefix: Annotated[tuple[KeyPart, ...], Field(strict=False)] = ("{source}",)
    group: Word | None = None
    owners: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    tags: dict[Text, str] = Field(default_factory=dict)
    partitions: Annotated[Partitions, Field(strict=False)] = Partitions.HOURLY

    @field_validator("webserver")
    @classmethod
    def _an_address(cls, address: str | None) -> str | None:
        if address is None or is_reference(address):
            return address
        return page_address(address)

    @field_validator("owners")
    @classmethod
    def _people_or_teams(cls, owners: tuple[str, ...]) -> tuple[str, ...]:
        for owner in owners:
            if not _OWNER.fullmatch(owner):
                raise ValueError(f"{owner!r} is neither an e-mail address nor team:NAME")
        return owners


def page_address(text: str) -> str:
    """The address of Dagster's page; ValueError for what is none, or holds a password."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not an address such as http://127.0.0.1:3000")
    if parts.username or parts.password:
        raise ValueError("an address with an account in it is refused")
    return text


_OF_THE_LOG_STORE = ("spark.delta.logStore.", "delta.logStore.", "spark.lockstep.")


class File(Section):
    lake: LakeSection = LakeSection()
    ledger: LedgerSection = LedgerSection()
    dagster: DagsterSection = DagsterSection()
    upkeep: UpkeepSection = UpkeepSection()
    privacy: PrivacySection | None = None
    lineage: LineageSection | None = None
    notify: NotifySection | None = None
    catalog: CatalogSection | None = None
    spark: dict[str, str] = Field(default_factory=dict)
    sources: Annotated[tuple[SourceSection, ...], Field(min_length=1, strict=False)]

    @field_validator("spark", mode="before")
    @classmethod
    def _flat(cls, spark: Any) -> Any:
        return dict(_flattened(spark)) if isinstance(spark, dict) else spark

    @field_validator("spark")
    @classmethod
    def _no_literal_secrets(cls, spark: dict[str, str]) -> dict[str, str]:
        return without_literal_secrets(spark)

    @field_validator("spark")
    @classmethod
    def _own_log_store(cls, spark: dict[str, str]) -> dict[str, str]:
        taken = sorted(key for key in spark if key.startswith(_OF_THE_LOG_STORE))
        if taken:
            raise AboutKey(
                taken[0],
                f"{taken[0]!r} cannot be set: Lockstep writes the tables' logs by a store of its "
                "own, which keeps a run that was taken over from committing late",
            )
        return spark

    @model_validator(mode="after")
    def _replays_have_changes(self) -> File:
        keep = self.upkeep.keep_changes
        for source in self.sources:
            if keep is not None and source.replay is not None and source.replay.span > keep:
                raise ValueError(
                    f"{source.name} replays the last {source.replay.span / 3600:g} hours, and "
                    f"keep_changes keeps {keep / 3600:g} hours; give it at least as long"
                )
        return self

    @model_validator(mode="after")
    def _keys_differ(self) -> File:
        if len(self.sources) > 1 and "{source}" not in self.dagster.key_prefix:
            raise ValueError(
                'key_prefix under [dagster] is the same for all sources; with "{source}" in it, '
                "tables of two sources cannot have one key"
            )
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> File:
        names = [source.name for source in self.sources]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"two sources are called {doubled[0]!r}; a name is given once")
        return self


def _flattened(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """`spark.master` written with and without quotes means the same; scalars as Spark
    writes them."""
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict):
            pairs.extend(_flattened(value, name))
        elif isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, int | float):
            pairs.append((name, str(value)))
        else:
            pairs.append((name, value))
    return pairs


def address_reference(text: str) -> str:
    if not is_reference(text):
        raise ValueError(
            "an address in the file is refused, because it holds a token or a password; write "
            "env:NAME or file:PATH"
        )
    return text
