"""The structure of lockstep.toml as pydantic models: its tables, their keys, and
allowed values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from lockstep.pipeline.catalog import DATABASE_PLACEHOLDER
from lockstep.pipeline.replay.partitions import Partitions
from lockstep.pipeline.upkeep.decide import UpkeepPolicy
from lockstep.pipeline.values.retention import DEFAULT_KEEP
from lockstep.pipeline.values.survey import is_loopback
from lockstep.resources.config.secrets import has_password, is_reference, is_sensitive, resolve
from lockstep.resources.config.sources import SourceSection
from lockstep.resources.config.values import (
    AddressReference,
    Cron,
    KeyMistake,
    SecretReference,
    Section,
    Text,
    duration_in_seconds,
    refuse_literal_secrets,
    size_in_bytes,
    unless_reference,
)
from lockstep.resources.lake.store.paths import LAKE_SCHEMES

_AUTHORIZING_NAME: Final = re.compile(r"authorization|cookie", re.IGNORECASE)
_HARMLESS_NAME_END: Final = re.compile(r"(endpoint|path|fields?|buffer|type)$", re.IGNORECASE)
"""Ends of key names such as `token_endpoint`, whose values say where to get a secret
but are not secret themselves."""


class LineageSection(Section):
    """`transport`: the OpenLineage client's transport, in the client's format; if it is
    empty, the client uses its own configuration. `namespace`: the namespace of jobs."""

    transport: dict[Text, Any] = Field(default_factory=dict)
    namespace: Text = "lockstep"

    @field_validator("transport")
    @classmethod
    def _check_transport(cls, transport: dict[str, Any]) -> dict[str, Any]:
        if transport and not isinstance(transport.get("type"), str):
            raise ValueError('transport needs a type: "http", "file" or another of the client\'s')
        for name, value in _named_texts(transport):
            if not is_reference(value) and _may_be_a_secret(name, value):
                raise ValueError(
                    f"a literal value of {name!r} is refused (it may be a secret); write env:NAME "
                    "or file:PATH"
                )
        return transport


def resolved_transport(transport: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the transport with its references resolved; a relative path of a log file
    begins at `folder`. Raise `SecretMissing` if a reference cannot be resolved."""
    resolved = {name: _resolved(value, folder) for name, value in transport.items()}
    path = resolved.get("log_file_path")
    if isinstance(path, str) and "://" not in path:
        resolved["log_file_path"] = str(folder / Path(path).expanduser())
    return resolved


def _resolved(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {name: _resolved(item, folder) for name, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, folder) for item in value]
    return resolve(value, folder) if isinstance(value, str) else value


def _named_texts(value: Any, name: str = "transport") -> Iterator[tuple[str, str]]:
    """Yield all texts at any depth, each after the name of its key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _named_texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _named_texts(item, name)
    elif isinstance(value, str):
        yield name, value


def _may_be_a_secret(name: str, value: str) -> bool:
    if "://" in value and urlsplit(value).password:
        return True
    if is_sensitive(name) and not _HARMLESS_NAME_END.search(name):
        return True
    return _AUTHORIZING_NAME.search(name) is not None


_DaysInSeconds = Annotated[int, Field(ge=86_400), BeforeValidator(duration_in_seconds)]
"""A duration of at least a day, in seconds."""

_OBJECT_STORE = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


class LakeSection(Section):
    """The folder or prefix of the Delta tables. `options`: its object store's options;
    `keep`: seconds for which each version of a mirror stays readable."""

    path: Text = "lake"
    options: Annotated[dict[str, Text], AfterValidator(refuse_literal_secrets)] = Field(
        default_factory=dict
    )
    keep: _DaysInSeconds = int(DEFAULT_KEEP.total_seconds())

    @field_validator("path")
    @classmethod
    def _require_known_store(cls, path: str) -> str:
        scheme = _OBJECT_STORE.match(path)
        if scheme is not None and scheme[1].lower() not in LAKE_SCHEMES:
            raise ValueError(
                f"{path!r} is in a store that Lockstep does not support; it supports "
                f"{', '.join(LAKE_SCHEMES)}"
            )
        return path


class LedgerSection(Section):
    """The Postgres with positions, runs and structure history; `dsn`: "embedded" or
    libpq's DSN."""

    dsn: Text = "embedded"

    @field_validator("dsn")
    @classmethod
    def _refuse_password(cls, dsn: str) -> str:
        if not is_reference(dsn) and has_password(dsn):
            raise ValueError("a DSN with a password in the file is refused; write env:NAME")
        return dsn


class NotifySection(Section):
    """`urls`: references to addresses in apprise's form."""

    urls: Annotated[tuple[AddressReference, ...], Field(min_length=1, strict=False)]


class PrivacySection(Section):
    """`key`: a reference to the key with which hash_columns hashes values; all sources
    and hosts that write to one lake need the same key. `replaces`: the fingerprint of
    an earlier key, which this one replaces."""

    key: SecretReference
    replaces: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = None


_UPKEEP_DEFAULTS = UpkeepPolicy()


class UpkeepSection(Section):
    """The schedule and the limits of upkeep, which compacts files of mirrors and
    deletes old changes. `UpkeepPolicy` describes the limits; here `file_size` is in
    bytes and times are in seconds. `dagster_runs`: how long Dagster's records of runs
    are kept."""

    schedule: Cron | None = None
    small_files: Annotated[int, Field(ge=2)] = _UPKEEP_DEFAULTS.small_files
    file_size: Annotated[int, Field(ge=1 << 20), BeforeValidator(size_in_bytes)] | None = None
    deleted_share: Annotated[float, Field(gt=0, le=1, strict=False)] = (
        _UPKEEP_DEFAULTS.deleted_share
    )
    keep_changes: _DaysInSeconds | None = None
    dagster_runs: _DaysInSeconds | None = None


class CatalogKind(StrEnum):
    UNITY = "unity"
    HIVE = "hive"
    SPARK = "spark"


_CATALOG_SCHEMES = {CatalogKind.UNITY: ("http", "https"), CatalogKind.HIVE: ("thrift",)}
_KEYS_OF_KIND = {
    CatalogKind.UNITY: ({"uri", "name"}, {"token"}),
    CatalogKind.HIVE: ({"uri"}, set[str]()),
    CatalogKind.SPARK: ({"name"}, set[str]()),
}
"""Kind → the keys that it requires, and the optional ones."""


class CatalogSection(Section):
    """The catalog in which the mirrors of all sources are registered."""

    kind: Annotated[CatalogKind, Field(strict=False)]
    uri: Text | None = None
    name: Text | None = None
    token: SecretReference | None = None
    schemas: Text = DATABASE_PLACEHOLDER

    @field_validator("schemas")
    @classmethod
    def _require_database(cls, schemas: str) -> str:
        if DATABASE_PLACEHOLDER not in schemas:
            raise ValueError(
                f"{schemas!r} has no {DATABASE_PLACEHOLDER} in it, so tables of two databases "
                "could get the same name"
            )
        return schemas

    @model_validator(mode="after")
    def _require_keys_of_kind(self) -> CatalogSection:
        required, optional = _KEYS_OF_KIND[self.kind]
        keys = {key for key in ("uri", "name", "token") if getattr(self, key) is not None}
        for key in sorted(required - keys):
            raise ValueError(f"kind = {str(self.kind)!r} needs {key}")
        for key in sorted(keys - required - optional):
            raise ValueError(f"kind = {str(self.kind)!r} has no {key}")
        return self

    @model_validator(mode="after")
    def _check_address(self) -> CatalogSection:
        if self.uri is not None and not is_reference(self.uri):
            self.check_uri(self.uri)
        return self

    def check_uri(self, uri: str) -> str:
        """Return the address. Raise ValueError if it is no address of this kind of
        catalog, or if the token would be sent unencrypted."""
        schemes = _CATALOG_SCHEMES[self.kind]
        parts = _address(uri, schemes)
        if parts is None or "@" in parts.netloc:
            raise ValueError(f"uri is not an address such as {schemes[0]}://catalog.example.com")
        if (
            self.token is not None
            and parts.scheme == "http"
            and not is_loopback(parts.hostname or "")
        ):
            raise ValueError("http:// would send the token unencrypted; write https://")
        return uri


_OWNER = re.compile(r"team:[\w.-]+|[^@\s]+@[^@\s]+\.[^@\s]+")


def _check_owner(owner: str) -> str:
    if not _OWNER.fullmatch(owner):
        raise ValueError(f"{owner!r} is neither an e-mail address nor team:NAME")
    return owner


def _address(text: str, schemes: Collection[str]) -> SplitResult | None:
    """Return the parts of a URL; None unless it has one of the schemes and a host, and
    its port, if it has one, is a number."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in schemes and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if is_address else None


def check_page_address(text: str) -> str:
    """Return the text if it is the address of Dagster's web server. Raise ValueError if
    it is no address, or contains an account."""
    parts = _address(text, ("http", "https"))
    if parts is None:
        raise ValueError("webserver is not an address such as http://127.0.0.1:3000")
    if "@" in parts.netloc:
        raise ValueError("webserver contains an account, which is refused")
    return text


Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+$")]
KeyPart = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_]+|\{source\})$")]
Location = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]+$")]


class DagsterSection(Section):
    """How the assets of all sources appear in Dagster: their keys, group, owners and
    tags."""

    location: Location = "lockstep"
    webserver: Annotated[Text, unless_reference(check_page_address)] | None = None
    key_prefix: Annotated[tuple[KeyPart, ...], Field(strict=False)] = ("{source}",)
    group: Word | None = None
    owners: Annotated[
        tuple[Annotated[Text, AfterValidator(_check_owner)], ...], Field(strict=False)
    ] = ()
    tags: dict[Text, str] = Field(default_factory=dict)
    partitions: Annotated[Partitions, Field(strict=False)] = Partitions.HOURLY


DAGSTER_ENDINGS: Final = (
    *("acknowledged", "captured", "checks", "merged", "mirrors"),
    *("replay", "replayed", "upkeep", "upkeep_op"),
)
"""What Dagster's jobs and ops add, after `_`, to the name of their source's job
(`assets/names.py`)."""

_RESERVED_PREFIXES = ("spark.delta.logStore.", "delta.logStore.", "spark.lockstep.")


def _flatten(table: Any, prefix: str = "") -> Any:
    """Return Spark's settings in nested TOML tables by their dotted names; TOML nests a
    dotted key without quotes. Spark writes booleans in lower case."""
    if not isinstance(table, dict):
        return table
    settings: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            settings |= _flatten(value, f"{name}.")
        elif isinstance(value, bool):
            settings[name] = "true" if value else "false"
        else:
            settings[name] = str(value) if isinstance(value, int | float) else value
    return settings


def _refuse_reserved_keys(spark: dict[str, str]) -> dict[str, str]:
    reserved = sorted(key for key in spark if key.startswith(_RESERVED_PREFIXES))
    if reserved:
        raise KeyMistake(
            reserved[0],
            f"{reserved[0]!r} cannot be set: Lockstep has a log store of its own, which keeps "
            "a run that lost its lock from committing late",
        )
    return spark


class ConfigFile(Section):
    """A whole lockstep.toml."""

    lake: LakeSection = LakeSection()
    ledger: LedgerSection = LedgerSection()
    dagster: DagsterSection = DagsterSection()
    upkeep: UpkeepSection = UpkeepSection()
    privacy: PrivacySection | None = None
    lineage: LineageSection | None = None
    notify: NotifySection | None = None
    catalog: CatalogSection | None = None
    spark: Annotated[
        dict[str, str],
        BeforeValidator(_flatten),
        AfterValidator(refuse_literal_secrets),
        AfterValidator(_refuse_reserved_keys),
    ] = Field(default_factory=dict)
    sources: Annotated[tuple[SourceSection, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _require_changes_for_replays(self) -> ConfigFile:
        keep = self.upkeep.keep_changes
        for source in self.sources:
            if keep is not None and source.replay is not None and source.replay.span > keep:
                raise ValueError(
                    f"{source.name} replays the last {source.replay.span / 3600:g} hours, but "
                    f"keep_changes keeps only {keep / 3600:g} hours; make it at least as long"
                )
        return self

    @model_validator(mode="after")
    def _require_different_keys(self) -> ConfigFile:
        if len(self.sources) > 1 and "{source}" not in self.dagster.key_prefix:
            raise ValueError(
                "key_prefix under [dagster] is the same for all sources, so tables of two sources "
                'could have the same key; add "{source}" to it'
            )
        return self

    @model_validator(mode="after")
    def _require_different_names(self) -> ConfigFile:
        names = [source.name for source in self.sources]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"two sources have the name {repeated[0]!r}; each needs its own")
        for name, ending in product(names, DAGSTER_ENDINGS):
            if (other := f"{name}_{ending}") in names:
                raise ValueError(
                    f"the sources {name!r} and {other!r} would share a name in Dagster, "
                    f"'lockstep_{other}'; rename one of them"
                )
        return self
