"""The shape of lockstep.toml, as pydantic models; what each key may hold.

Belongs here: keys, types, defaults and rules of one value. Does not: places in the
file, wording of mistakes for people (`resources.config.problems`), reading anything.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from pipeline.keeping import KEEP
from pipeline.places import OfRun, Place, parse_place
from pipeline.policies import (
    Deletes,
    DroppedColumns,
    DroppedTables,
    ForeignKeys,
    LakePolicies,
    OnPositionLost,
    OnRewrite,
    OnSourceChanged,
    Readers,
    Renames,
    StartPolicies,
)
from pipeline.snapshot.pace import LoadLimits
from pipeline.source_plan import SnapshotPlan
from pipeline.upkeep.facts import UpkeepPolicy
from resources.config.dagster import DagsterSection
from resources.config.part import Section, Text
from resources.config.secrets import has_password, is_reference, is_sensitive

NOT_YET_SOURCE_KEYS = frozenset(
    {
        "table",
        "time",
        "undecodable",
        "zero_dates",
    }
)
"""Keys of a source that the design names and this version does not build."""

_NOT_YET_POLICIES = {
    "follow": "tables that a foreign key changed unseen are quarantined, or read again",
}
"""Policies that this version refuses, with what it does instead."""

_OBJECT_STORE = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_SCHEMES = ("s3", "gs", "abfss")


class NotBuiltYet(ValueError):
    """A value that the design names and this version refuses."""


class AboutKey(ValueError):
    """A mistake of a whole table for which one key of it stands."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def start_place(text: str) -> Place:
    """Where a source starts; ValueError names the forms there are."""
    place = parse_place(text)
    if isinstance(place, OfRun):
        raise ValueError(  # noqa: TRY004
            f"{text!r} names a run, which no source can start with; `lockstep start-at {text} "
            "--source NAME --reason …` starts after it, once"
        )
    return place


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def table_pattern(text: str) -> str:
    if not is_reference(text) and not all(text.partition(".")):
        raise ValueError(f"{text!r} is not a pattern such as shop.* (database.table)")
    return text


def _start(text: str) -> str:
    if not is_reference(text):
        start_place(text)
    return text


def _reference(text: str) -> str:
    if not is_reference(text):
        raise ValueError("a password in the file is refused; write env:NAME or file:PATH")
    return text


Pattern = Annotated[Text, AfterValidator(table_pattern)]


_DURATION = re.compile(r"(?P<number>\d+)\s*(?P<unit>s|m|h|d)?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration_in_seconds(value: object) -> object:
    """`"90s"`, `"5m"` or a number of seconds → seconds; ValueError for any other text."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a duration such as 60s or 5m")
    return int(match["number"]) * _SECONDS[match["unit"]]


def without_literal_secrets(options: dict[str, str]) -> dict[str, str]:
    """The same; `AboutKey` for a value of which its name says that it may be a secret."""
    literal = sorted(k for k, v in options.items() if is_sensitive(k) and not is_reference(v))
    if literal:
        raise AboutKey(
            literal[0],
            f"a literal value of {literal[0]!r} is refused (its name suggests a secret); write "
            "env:NAME or file:PATH",
        )
    return options


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


_SIZE = re.compile(r"(?P<number>\d+)\s*(?P<unit>B|KiB|MiB|GiB|TiB)?")
_UNITS = {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size_in_bytes(value: object) -> object:
    """`"4GiB"` or a number of bytes → bytes; ValueError for any other text."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a size such as 512MiB or 4GiB")
    return int(match["number"]) * _UNITS[match["unit"]]


def cron_expression(text: str) -> str:
    """Five fields; ValueError for any other text."""
    from croniter import croniter  # only files with a schedule pay for this import

    if len(text.split()) != 5 or not croniter.is_valid(text):
        raise ValueError(f"{text!r} is not a cron expression such as */10 * * * *")
    return text


class BoundsSection(Section):
    """Budgets of one run; each cuts between transactions."""

    max_bytes: Annotated[int, Field(gt=0), BeforeValidator(size_in_bytes)] | None = None
    max_transactions: Annotated[int, Field(gt=0)] | None = None
    max_seconds: Annotated[float, Field(gt=0, strict=False)] | None = None


_SNAPSHOT, _LIMITS = SnapshotPlan(), LoadLimits()
_ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>\d{1,5}))?")


def host_and_port(text: str) -> tuple[str, int]:
    """`"db2"`, `"db2:3307"`, `"[::1]:3307"` → host and port; ValueError for any other text."""
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"] or 3306) if found else 0
    if found is None or not 1 <= port <= 65_535:
        raise ValueError(f"{text!r} is not a host, or a host and a port such as db2:3306")
    return found["host"].strip("[]"), port


def _host_and_port(text: str) -> str:
    if not is_reference(text):
        host_and_port(text)
    return text


class TriggerSection(Section):
    """What lets Dagster start a run between two of the schedule: so much log, or so old."""

    bytes: Annotated[int, Field(gt=0), BeforeValidator(size_in_bytes)] | None = None
    seconds: (
        Annotated[float, Field(gt=0, strict=False), BeforeValidator(duration_in_seconds)] | None
    ) = None

    @model_validator(mode="after")
    def _something(self) -> TriggerSection:
        if self.bytes is None and self.seconds is None:
            raise ValueError("trigger has neither bytes nor seconds")
        return self


class ReplaySection(Section):
    """What of the past is read once more by the clock: the last `span` of it."""

    schedule: Text
    span: Annotated[float, Field(gt=0, strict=False), BeforeValidator(duration_in_seconds)] = 21_600

    @field_validator("schedule")
    @classmethod
    def _cron(cls, schedule: str) -> str:
        return cron_expression(schedule)


_UPKEEP = UpkeepPolicy()


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


class SnapshotSection(Section):
    """How tables are read from the source."""

    max_seconds: Annotated[
        float, Field(gt=0, strict=False), BeforeValidator(duration_in_seconds)
    ] = _SNAPSHOT.seconds
    connections: Annotated[int, Field(ge=1, le=64)] = _SNAPSHOT.connections
    chunk_seconds: Annotated[float, Field(gt=0, strict=False)] = _SNAPSHOT.pace.seconds
    max_threads_running: Annotated[int, Field(ge=1)] | None = _LIMITS.threads_running
    max_replica_lag: (
        Annotated[float, Field(gt=0, strict=False), BeforeValidator(duration_in_seconds)] | None
    ) = _LIMITS.replica_lag
    read_from: Annotated[Text, AfterValidator(_host_and_port)] | None = None


Uuid = Annotated[
    str, StringConstraints(pattern=r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|server-id:\d+)$")
]


class StandbySection(Section):
    """The server that may answer in a source's place, with the same account."""

    host: Text
    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    start: Annotated[Text, AfterValidator(_start)] | None = None
    server_uuid: Uuid | None = None


_START, _LAKE = StartPolicies(), LakePolicies()
_BY_WORD = Field(strict=False)
"""A policy is written as one of its words."""


class SourceSection(Section):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    host: Text
    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    user: Text
    password: Annotated[Text, AfterValidator(_reference)]
    tls: Literal["verify", "required", "off"] = "verify"
    tls_ca: Text | None = None
    tls_force: bool = False
    tables: Annotated[tuple[Pattern, ...], Field(min_length=1, strict=False)]
    exclude: Annotated[tuple[Pattern, ...], Field(strict=False)] = ()
    start: Annotated[Text, AfterValidator(_start)] | None = None
    schedule: Text | None = None
    connect_timeout: Annotated[float, Field(gt=0, strict=False)] = 10.0
    read_timeout: Annotated[float, Field(gt=0, strict=False)] = 60.0
    bounds: BoundsSection = BoundsSection()
    trigger: TriggerSection | None = None
    replay: ReplaySection | None = None
    snapshot: SnapshotSection = SnapshotSection()
    standby: StandbySection | None = None
    on_position_lost: Annotated[OnPositionLost, _BY_WORD] = _START.on_position_lost
    on_source_changed: Annotated[OnSourceChanged, _BY_WORD] = _START.on_source_changed
    on_rewrite: Annotated[OnRewrite, _BY_WORD] = _LAKE.on_rewrite
    dropped_columns: Annotated[DroppedColumns, _BY_WORD] = _LAKE.dropped_columns
    dropped_tables: Annotated[DroppedTables, _BY_WORD] = _LAKE.dropped_tables
    renames: Annotated[Renames, _BY_WORD] = _LAKE.renames
    foreign_keys: Annotated[ForeignKeys, _BY_WORD] = _LAKE.foreign_keys
    deletes: Annotated[Deletes, _BY_WORD] = _LAKE.deletes
    readers: Annotated[Readers, _BY_WORD] = _LAKE.readers
    updated_columns: bool = _LAKE.updated_columns
    prove_rows: Annotated[int, Field(ge=0)] = 0
    fallback_interval: Annotated[int, Field(ge=0), BeforeValidator(duration_in_seconds)] = int(
        _START.fallback_interval.total_seconds()
    )

    @field_validator("foreign_keys", mode="before")
    @classmethod
    def _built(cls, policy: object) -> object:
        if isinstance(policy, str) and policy in _NOT_YET_POLICIES:
            raise NotBuiltYet(f"{policy!r} is not built yet; {_NOT_YET_POLICIES[policy]}")
        return policy

    @field_validator("schedule")
    @classmethod
    def _cron(cls, schedule: str | None) -> str | None:
        return None if schedule is None else cron_expression(schedule)

    @model_validator(mode="after")
    def _plain_text_stays_at_home(self) -> SourceSection:
        if self.tls == "off" and not self.tls_force and not is_reference(self.host):
            refuse_plain_text(self.host)
            if self.standby is not None and not is_reference(self.standby.host):
                refuse_plain_text(self.standby.host)
            if (replica := self.snapshot.read_from) is not None and not is_reference(replica):
                refuse_plain_text(host_and_port(replica)[0])
        return self


def refuse_plain_text(host: str) -> None:
    """ValueError unless `host` is this machine."""
    if not is_loopback(host):
        raise AboutKey(
            "tls",
            f'tls = "off" would send passwords and rows to {host} in the clear; use '
            '"verify" or "required", or add tls_force = true',
        )


_OF_THE_LOG_STORE = ("spark.delta.logStore.", "delta.logStore.", "spark.lockstep.")


class File(Section):
    lake: LakeSection = LakeSection()
    ledger: LedgerSection = LedgerSection()
    dagster: DagsterSection = DagsterSection()
    upkeep: UpkeepSection = UpkeepSection()
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
