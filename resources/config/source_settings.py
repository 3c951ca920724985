"""One source's settings, as the other rooms use them: validated, references not yet followed.

Methods that follow a reference may raise `SecretMissing`, and `ConfigurationError` when what it led
to is not allowed; attributes never do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from pipeline.bounds import Budget
from pipeline.errors import ConfigurationError
from pipeline.mirror_names import Into, MirrorNames
from pipeline.places import Place
from pipeline.policies import LakePolicies, StartPolicies
from pipeline.snapshot.pace import LoadLimits, Pace
from pipeline.source_plan import SnapshotPlan, SourcePlan, StandbyPlan, TableSettings
from pipeline.tables import NamePatterns, TablePatterns
from resources.config.secrets import Secret, resolve
from resources.config.sources import SourceSection
from resources.config.values import host_and_port, refuse_plain_text, start_place, table_pattern

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One [[sources]] table. `folder` holds the file; relative paths start there."""

    part: SourceSection
    folder: Path

    @property
    def name(self) -> str:
        return self.part.name

    @property
    def schedule(self) -> str | None:
        """A cron expression of five fields."""
        return self.part.schedule

    def host(self) -> str:
        return self._allowed(resolve(self.part.host, self.folder))

    def _allowed(self, host: str) -> str:
        if self.part.tls == "off" and not self.part.tls_force:
            try:
                refuse_plain_text(host)
            except ValueError as error:
                raise ConfigurationError(
                    f"{error}.", hint=f"correct tls of source {self.name!r} in lockstep.toml"
                ) from error
        return host

    def user(self) -> str:
        return resolve(self.part.user, self.folder)

    def password(self) -> Secret:
        return Secret(resolve(self.part.password, self.folder))

    def tls_ca(self) -> str | None:
        """The CA file's absolute path, if one is configured."""
        if self.part.tls_ca is None:
            return None
        return str(self.folder / Path(resolve(self.part.tls_ca, self.folder)).expanduser())

    def standby(self) -> tuple[str, int] | None:
        """Host and port of the standby, if one is configured."""
        part = self.part.standby
        if part is None:
            return None
        return self._allowed(resolve(part.host, self.folder)), part.port

    def read_from(self) -> tuple[str, int] | None:
        """Host and port of the replica that tables are read from, if one is configured."""
        text = self.part.snapshot.read_from
        if text is None:
            return None
        host, port = self._followed_to(host_and_port, text, ": read_from")
        return self._allowed(host), port

    def plan(self, *, until: Place | None = None) -> SourcePlan:
        """What the steps of a run need to know of the source."""
        standby = self.part.standby
        return SourcePlan(
            name=self.name,
            patterns=TablePatterns(
                include=tuple(self._pattern(text) for text in self.part.tables),
                exclude=tuple(self._pattern(text) for text in self.part.exclude),
            ),
            start=self._place(self.part.start),
            budget=Budget(**self.part.bounds.model_dump()),
            policies=StartPolicies(
                on_position_lost=self.part.on_position_lost,
                on_source_changed=self.part.on_source_changed,
                fallback_interval=timedelta(seconds=self.part.fallback_interval),
            ),
            lake=LakePolicies(
                **{
                    field.name: getattr(self.part, field.name)
                    for field in fields(LakePolicies)
                    if field.name in SourceSection.model_fields
                }
            ),
            standby=None
            if standby is None
            else StandbyPlan(self._place(standby.start), standby.server_uuid),
            until=until,
            snapshot=self._snapshot(),
            prove_rows=self.part.prove_rows,
            passes=NamePatterns(tuple(map(self._pattern, self.part.passed_statements))),
            tables=tuple(
                TableSettings(
                    TablePatterns(tuple(map(self._pattern, part.match))),
                    part.policies,
                    part.shape,
                    None if part.into is None else Into.parse(part.into),
                )
                for part in self.part.table
            ),
        )

    def mirrors(self) -> MirrorNames:
        """What the mirrors are called; no other reference is followed than those in patterns."""
        rules = [
            (TablePatterns(tuple(map(self._pattern, part.match))), Into.parse(part.into))
            for part in self.part.table
            if part.into is not None
        ]
        return MirrorNames(self.name, tuple(rules))

    def _snapshot(self) -> SnapshotPlan:
        part = self.part.snapshot
        limits = LoadLimits(
            threads_running=part.max_threads_running, replica_lag=part.max_replica_lag
        )
        pace = Pace(seconds=part.chunk_seconds)
        return SnapshotPlan(part.max_seconds, part.connections, pace, limits)

    def _pattern(self, text: str) -> str:
        return self._followed_to(table_pattern, text)

    def _place(self, start: str | None) -> Place | None:
        return None if start is None else self._followed_to(start_place, start)

    def _followed_to(self, read: Callable[[str], Value], text: str, key: str = "") -> Value:
        return followed_to(read, text, self.folder, f"Source {self.name!r}{key}")


def followed_to(read: Callable[[str], Value], text: str, folder: Path, about: str) -> Value:
    """What a text, or what its reference leads to, is read as; `ConfigurationError` where `read`
    does not take it."""
    try:
        return read(resolve(text, folder))
    except ValueError as error:
        raise ConfigurationError(f"{about}: {error}.", hint=f"correct what {text} holds") from error
