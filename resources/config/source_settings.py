"""One source's settings, as the other rooms use them: validated, references not yet followed.

Methods that follow a reference may raise `SecretMissing`, and `ConfigurationError` when what it led
to is not allowed; attributes never do. Does not belong here: the keys (`sources`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pipeline.bounds import Budget
from pipeline.errors import ConfigurationError
from pipeline.places import Place
from pipeline.policies import LakePolicies, StartPolicies
from pipeline.snapshot.pace import LoadLimits, Pace
from pipeline.source_plan import SnapshotPlan, SourcePlan, StandbyPlan
from pipeline.tables import NamePatterns, TablePatterns
from resources.config.secrets import Secret, resolve
from resources.config.sources import SourceSection, TriggerSection
from resources.config.values import host_and_port, refuse_plain_text, start_place, table_pattern


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

    @property
    def trigger(self) -> TriggerSection | None:
        """How much log behind the cursor starts a run, if that is to start one."""
        return self.part.trigger

    @property
    def port(self) -> int:
        return self.part.port

    @property
    def tls(self) -> str:
        return self.part.tls

    @property
    def connect_timeout(self) -> float:
        return self.part.connect_timeout

    @property
    def read_timeout(self) -> float:
        return self.part.read_timeout

    def host(self) -> str:
        return self._allowed(resolve(self.part.host, self.folder))

    def _allowed(self, host: str) -> str:
        if self.tls == "off" and not self.part.tls_force:
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
        try:
            host, port = host_and_port(resolve(text, self.folder))
        except ValueError as error:
            raise ConfigurationError(
                f"Source {self.name!r}: read_from: {error}.", hint=f"correct what {text} holds"
            ) from error
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
            budget=Budget(
                max_bytes=self.part.bounds.max_bytes,
                max_transactions=self.part.bounds.max_transactions,
                max_seconds=self.part.bounds.max_seconds,
            ),
            policies=StartPolicies(
                on_position_lost=self.part.on_position_lost,
                on_source_changed=self.part.on_source_changed,
                fallback_interval=timedelta(seconds=self.part.fallback_interval),
            ),
            lake=LakePolicies(
                on_rewrite=self.part.on_rewrite,
                dropped_columns=self.part.dropped_columns,
                dropped_tables=self.part.dropped_tables,
                renames=self.part.renames,
                foreign_keys=self.part.foreign_keys,
                deletes=self.part.deletes,
                readers=self.part.readers,
                updated_columns=self.part.updated_columns,
            ),
            standby=None
            if standby is None
            else StandbyPlan(self._place(standby.start), standby.server_uuid),
            until=until,
            snapshot=self._snapshot(),
            prove_rows=self.part.prove_rows,
            passes=NamePatterns(tuple(map(self._pattern, self.part.passed_statements))),
        )

    def _snapshot(self) -> SnapshotPlan:
        part = self.part.snapshot
        limits = LoadLimits(
            threads_running=part.max_threads_running, replica_lag=part.max_replica_lag
        )
        pace = Pace(seconds=part.chunk_seconds)
        return SnapshotPlan(part.max_seconds, part.connections, pace, limits)

    def _pattern(self, text: str) -> str:
        try:
            return table_pattern(resolve(text, self.folder))
        except ValueError as error:
            raise ConfigurationError(
                f"Source {self.name!r}: {error}.", hint=f"correct what {text} holds"
            ) from error

    def _place(self, start: str | None) -> Place | None:
        if start is None:
            return None
        try:
            return start_place(resolve(start, self.folder))
        except ValueError as error:
            raise ConfigurationError(
                f"Source {self.name!r}: {error}.", hint=f"correct what {start} holds"
            ) from error
