"""The keys of a source in lockstep.toml, and of its sections."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from lockstep.pipeline.schema.treatments import Conversion, Hash, Mask, read_mask
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.snapshot.pace import LoadLimits
from lockstep.pipeline.source_plan import SnapshotPlan
from lockstep.pipeline.values.policies import (
    MOST_CLUSTERING_COLUMNS,
    Deletes,
    DroppedColumns,
    DroppedTables,
    ForeignKeys,
    LakePolicies,
    OnPositionLost,
    OnRewrite,
    OnSourceChanged,
    Readers,
    StartPolicies,
    Truncates,
)
from lockstep.resources.config.secrets import is_reference
from lockstep.resources.config.values import (
    Cron,
    HostAndPort,
    MirrorName,
    NotBuiltYet,
    Pattern,
    Port,
    Seconds,
    SecretReference,
    Section,
    ServerUuid,
    StartText,
    Text,
    as_list,
    duration_in_seconds,
    host_and_port,
    refuse_plaintext,
    size_in_bytes,
)


class BoundsSection(Section):
    """Limits of one run, which ends after the transaction that reaches one of them."""

    max_bytes: Annotated[int, Field(gt=0), BeforeValidator(size_in_bytes)] | None = None
    max_transactions: Annotated[int, Field(gt=0)] | None = None
    max_seconds: Seconds | None = None


class TriggerSection(Section):
    """The bytes of unread binlog, or their age in seconds, at which Dagster starts a
    run besides the scheduled ones."""

    bytes: Annotated[int, Field(gt=0), BeforeValidator(size_in_bytes)] | None = None
    seconds: Seconds | None = None

    @model_validator(mode="after")
    def _require_limit(self) -> TriggerSection:
        if self.bytes is None and self.seconds is None:
            raise ValueError("trigger has neither bytes nor seconds")
        return self


class ReplaySection(Section):
    """The schedule on which Dagster replays the last `span` seconds: it reads that part
    of the log again, and corrects the lake."""

    schedule: Cron
    span: Seconds = 21_600


_SNAPSHOT_DEFAULTS, _LIMIT_DEFAULTS = SnapshotPlan(), LoadLimits()


class SnapshotSection(Section):
    """The limits of reading whole tables, and the server from which they are read.
    `max_seconds`: longest time that one run reads tables; `connections`: number of
    sessions that read at the same time; `chunk_seconds`: how long reading a chunk (a
    range of keys) should take; `max_threads_running`, `max_replica_lag` (in seconds):
    reading waits while the server exceeds them."""

    max_seconds: Seconds = _SNAPSHOT_DEFAULTS.max_seconds
    connections: Annotated[int, Field(ge=1, le=64)] = _SNAPSHOT_DEFAULTS.connections
    chunk_seconds: Seconds = _SNAPSHOT_DEFAULTS.pace.seconds
    max_threads_running: Annotated[int, Field(ge=1)] | None = _LIMIT_DEFAULTS.threads_running
    max_replica_lag: Seconds | None = _LIMIT_DEFAULTS.replica_lag
    read_from: HostAndPort | None = None


class StandbySection(Section):
    """The standby: a server that is used if the source's server cannot be reached. It
    accepts the same account. `start`: where its log is first read; `server_uuid`:
    identifies the standby, instead of its address."""

    host: Text
    port: Port = 3306
    start: StartText | None = None
    server_uuid: ServerUuid | None = None


_START_DEFAULTS, _LAKE_DEFAULTS = StartPolicies(), LakePolicies()
_BY_WORD = Field(strict=False)
"""Accepts a string in place of an enum's member, although validation is strict."""


def _refuse_follow(policy: object) -> object:
    if policy == "follow":
        raise NotBuiltYet('"follow" is not built yet; write "quarantine" or "resnapshot"')
    return policy


ColumnPatterns = Annotated[
    tuple[Text, ...], BeforeValidator(as_list), Field(min_length=1, strict=False)
]
"""Shell patterns of column names; a single one may be written without a list."""


def _hashes_by_column(value: object) -> object:
    """For a list of names, return a TOML table with the hash `exact` for each name;
    return a TOML table unchanged."""
    names = as_list(value)
    return dict.fromkeys(names, Hash.EXACT) if isinstance(names, list) else value


def _parse_mask(value: object) -> object:
    return read_mask(value) if isinstance(value, str) else value


_Stamp = Literal["_committed_at", "_sequence", "_gtid"]


def _refuse_repeated(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse repeated names. MySQL's column names are case-insensitive."""
    repeated = [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
    if repeated:
        raise ValueError(f"{repeated[0]!r} is listed twice")
    return names


class TableSection(Section):
    """Settings of the tables whose names match; they override the source's settings.

    - `types`: the type that the lake gives a column, if it is not MySQL's.
    - `rows`: a SQL condition; the lake has only the rows that satisfy it.
    - `into`: the name of the mirror.
    - `stamps`: the columns about a row's last change that the mirror gets.
    - `keep_clear`: a reason. If it is given, values that were captured in plaintext
      stay in the lake when these settings begin to hide them.
    """

    match: Annotated[
        tuple[Pattern, ...], BeforeValidator(as_list), Field(min_length=1, strict=False)
    ]
    on_rewrite: Annotated[OnRewrite, _BY_WORD] | None = None
    dropped_columns: Annotated[DroppedColumns, _BY_WORD] | None = None
    dropped_tables: Annotated[DroppedTables, _BY_WORD] | None = None
    foreign_keys: Annotated[ForeignKeys, _BY_WORD, BeforeValidator(_refuse_follow)] | None = None
    deletes: Annotated[Deletes, _BY_WORD] | None = None
    truncates: Annotated[Truncates, _BY_WORD] | None = None
    readers: Annotated[Readers, _BY_WORD] | None = None
    updated_columns: bool | None = None
    include_columns: ColumnPatterns | None = None
    exclude_columns: ColumnPatterns | None = None
    hash_columns: (
        Annotated[
            dict[Text, Annotated[Hash, _BY_WORD]],
            BeforeValidator(_hashes_by_column),
            Field(min_length=1),
        ]
        | None
    ) = None
    mask_columns: (
        Annotated[dict[Text, Annotated[Mask, BeforeValidator(_parse_mask)]], Field(min_length=1)]
        | None
    ) = None
    types: Annotated[dict[Text, Annotated[Conversion, _BY_WORD]], Field(min_length=1)] | None = None
    rows: Text | None = None
    into: MirrorName | None = None
    stamps: (
        Annotated[tuple[_Stamp, ...], AfterValidator(_refuse_repeated), Field(strict=False)] | None
    ) = None
    cluster_by: (
        Annotated[
            tuple[Text, ...],
            AfterValidator(_refuse_repeated),
            Field(max_length=MOST_CLUSTERING_COLUMNS, strict=False),
        ]
        | None
    ) = None
    keep_clear: Text | None = None

    @model_validator(mode="after")
    def _require_setting(self) -> TableSection:
        if not self.model_dump(exclude={"match"}, exclude_none=True):
            raise ValueError("the block has only match; add a setting for these tables")
        return self

    @property
    def policies(self) -> dict[str, Any]:
        """The policies that this section sets, by their names."""
        names = {field.name for field in fields(LakePolicies)}
        return self.model_dump(include=names, exclude_none=True)

    @property
    def shape_rules(self) -> ShapeRules:
        """The rules for columns and rows of these tables: which are left out, hashed,
        masked or converted."""
        return ShapeRules(**{field.name: getattr(self, field.name) for field in fields(ShapeRules)})

    @field_validator("rows")
    @classmethod
    def _check_condition(cls, rows: str | None) -> str | None:
        if rows is not None:
            # Importing sqlglot takes a fifth of a second, so it is imported only for a
            # condition.
            from lockstep.pipeline.shape.condition import read_condition

            read_condition(rows)
        return rows


class SourceSection(Section):
    """A MySQL server, the tables that are captured from it, and the policies for them.
    Timeouts and `fallback_interval` are in seconds. `prove_rows`: number of rows, of a
    few tables chosen at random, that each run compares with MySQL. `passed_statements`:
    a statement that MySQL logs instead of rows is passed over if it changes only these
    tables, because the user asserts that no captured table changes with them.
    `tls_force`: permits `tls = "off"` for another machine."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    host: Text
    port: Port = 3306
    user: Text
    password: SecretReference
    tls: Literal["verify", "required", "off"] = "verify"
    tls_ca: Text | None = None
    tls_force: bool = False
    tables: Annotated[tuple[Pattern, ...], Field(min_length=1, strict=False)]
    exclude: Annotated[tuple[Pattern, ...], Field(strict=False)] = ()
    passed_statements: Annotated[tuple[Pattern, ...], Field(strict=False)] = ()
    start: StartText | None = None
    schedule: Cron | None = None
    connect_timeout: Seconds = 10.0
    read_timeout: Seconds = 60.0
    bounds: BoundsSection = BoundsSection()
    trigger: TriggerSection | None = None
    replay: ReplaySection | None = None
    snapshot: SnapshotSection = SnapshotSection()
    standby: StandbySection | None = None
    table: Annotated[tuple[TableSection, ...], Field(strict=False)] = ()
    on_position_lost: Annotated[OnPositionLost, _BY_WORD] = _START_DEFAULTS.on_position_lost
    on_source_changed: Annotated[OnSourceChanged, _BY_WORD] = _START_DEFAULTS.on_source_changed
    on_rewrite: Annotated[OnRewrite, _BY_WORD] = _LAKE_DEFAULTS.on_rewrite
    dropped_columns: Annotated[DroppedColumns, _BY_WORD] = _LAKE_DEFAULTS.dropped_columns
    dropped_tables: Annotated[DroppedTables, _BY_WORD] = _LAKE_DEFAULTS.dropped_tables
    foreign_keys: Annotated[ForeignKeys, _BY_WORD, BeforeValidator(_refuse_follow)] = (
        _LAKE_DEFAULTS.foreign_keys
    )
    deletes: Annotated[Deletes, _BY_WORD] = _LAKE_DEFAULTS.deletes
    truncates: Annotated[Truncates, _BY_WORD] = _LAKE_DEFAULTS.truncates
    readers: Annotated[Readers, _BY_WORD] = _LAKE_DEFAULTS.readers
    updated_columns: bool = _LAKE_DEFAULTS.updated_columns
    prove_rows: Annotated[int, Field(ge=0)] = 0
    fallback_interval: Annotated[int, Field(ge=0), BeforeValidator(duration_in_seconds)] = int(
        _START_DEFAULTS.fallback_interval.total_seconds()
    )

    @model_validator(mode="after")
    def _check_tls(self) -> SourceSection:
        if self.tls != "off" or self.tls_force:
            return self
        hosts = [self.host]
        if self.standby is not None:
            hosts.append(self.standby.host)
        replica = self.snapshot.read_from
        if replica is not None and not is_reference(replica):
            hosts.append(host_and_port(replica)[0])
        for host in hosts:
            if not is_reference(host):
                refuse_plaintext(host)
        return self
