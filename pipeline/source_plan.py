"""The settings of a source (the tables of one MySQL server): its name, tables, start,
end and policies.

Not here: reading them from lockstep.toml (`resources.config`), and the ports that a run
uses (`pipeline.run.context`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from lockstep.pipeline.mirror.layout import is_folder_of
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import NO_RULES, ShapeRules
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.snapshot.condition import RowCondition
from lockstep.pipeline.snapshot.pace import LoadLimits, Pace
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.values.mirror_names import MirrorNames, MirrorNameTemplate
from lockstep.pipeline.values.places import Place, Snapshot
from lockstep.pipeline.values.policies import LakePolicies, Readers, StartPolicies, to_toml
from lockstep.pipeline.values.table import StatementPatterns, TableName, TablePatterns

if TYPE_CHECKING:
    from lockstep.pipeline.ports.source import ServerFacts


@dataclass(frozen=True, slots=True)
class StandbyPlan:
    """The standby: a server that may answer instead of the source's usual one. `start`:
    where the source's very first run starts if the standby answers. `server_uuid`:
    None if it is not configured."""

    start: Place | Snapshot | None
    server_uuid: str | None = None

    def answers(self, facts: ServerFacts) -> bool:
        """Return whether these are facts about the standby. This is decided by its
        UUID, or by the address that answered if no UUID is configured."""
        if self.server_uuid is not None:
            return facts.server_uuid == self.server_uuid
        return facts.is_standby


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """Limits for reading tables from the source. `max_seconds`: the longest time of
    reading in one run. `connections`: the number of connections that read at the same
    time. `pace`: sizes of chunks. `limits`: the server's load at which reading
    waits."""

    max_seconds: float = 600.0
    connections: int = 2
    pace: Pace = field(default_factory=Pace)
    limits: LoadLimits = field(default_factory=LoadLimits)


@dataclass(frozen=True, slots=True)
class RereadRows:
    """A person's order to read the rows of a table again that match a condition.
    `author`, `reason`: who ordered it, and why."""

    table: TableName
    condition: RowCondition
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class TableSettings:
    """A block of settings for the tables that match.

    - `policies`: the policies that the block sets, by their names in `LakePolicies`.
    - `shape`: the columns, rows and values that the mirrors (Delta tables with the
      current rows) show.
    - `into`: the names of the mirrors; None for the names of the tables.
    """

    match: TablePatterns
    policies: Mapping[str, Any]
    shape: ShapeRules = NO_RULES
    into: MirrorNameTemplate | None = None

    @property
    def label(self) -> str:
        """The block's first two lines as one; the second line tells blocks apart."""
        return f"[[sources.table]] match = {json.dumps(self.match.include)}"


def policies_given_to(table: TableName, blocks: Iterable[TableSettings]) -> dict[str, Any]:
    """Return the policies that blocks of settings give a table. A later block overrides
    an earlier one."""
    given: dict[str, Any] = {}
    for block in blocks:
        if block.match.matches(table):
            given |= block.policies
    return given


def settings_in_words(
    tables: Iterable[TableName], blocks: Sequence[TableSettings]
) -> dict[TableName, str]:
    """Return the policies that blocks of settings give these tables, as text in the
    form of lockstep.toml. Tables without any are left out."""
    policies = {table: policies_given_to(table, blocks) for table in sorted(tables)}
    return {table: to_toml(given) for table, given in policies.items() if given}


def mirror_names_of(source: str, table_settings: Iterable[TableSettings]) -> MirrorNames:
    """Return the rules that name a source's mirrors."""
    rules = ((block.match, block.into) for block in table_settings if block.into is not None)
    return MirrorNames(source, tuple(rules))


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The settings of a source, without those of the connection.

    - `patterns`: the tables that are captured.
    - `start`: where the first run starts; None if it is not configured.
    - `budget`: limits of a run. `until`: where this run ends; None for the log's
      present end.
    - `start_policies`: how a run starts if the log does not simply continue.
    - `lake_policies`: policies of all tables, which the blocks in `table_settings`
      override.
    - `standby`: a server that may answer instead of the usual one.
    - `sample_rows`: number of rows that each run compares with the source at its end.
    - `snapshot`: limits for reading tables. `reread_rows`: rows that this run reads
      again.
    - `allowed_statements`: a person declares that logged statements on these tables
      change no captured table.
    - `ignores_case`: as in `MirrorNames`.
    """

    name: str
    patterns: TablePatterns
    start: Place | Snapshot | None
    budget: Budget = field(default_factory=Budget)
    start_policies: StartPolicies = field(default_factory=StartPolicies)
    lake_policies: LakePolicies = field(default_factory=LakePolicies)
    standby: StandbyPlan | None = None
    until: Place | None = None
    sample_rows: int = 0
    snapshot: SnapshotPlan = field(default_factory=SnapshotPlan)
    reread_rows: RereadRows | None = None
    allowed_statements: StatementPatterns = field(default_factory=StatementPatterns)
    table_settings: tuple[TableSettings, ...] = ()
    ignores_case: Callable[[], bool] = field(default=lambda: False, compare=False)

    @property
    def loads_new_tables(self) -> bool:
        """True if a table's rows that are older than the first captured place of the
        log are read from the source."""
        return isinstance(self.start, Snapshot)

    def policies_of(self, table: TableName) -> LakePolicies:
        return replace(self.lake_policies, **policies_given_to(table, self.table_settings))

    def for_readers(self, readers: Readers) -> SourcePlan:
        """Return the settings with mirrors for these readers, instead of the configured
        ones."""
        tables = tuple(
            replace(settings, policies={**settings.policies, "readers": readers})
            for settings in self.table_settings
        )
        lake_policies = replace(self.lake_policies, readers=readers)
        return replace(self, lake_policies=lake_policies, table_settings=tables)

    @property
    def has_shapes(self) -> bool:
        """True if the settings hide or change columns, rows or values of some table."""
        return any(settings.shape != NO_RULES for settings in self.table_settings)

    def shape_rules_of(self, table: TableName) -> ShapeRules | None:
        """Return the settings that hide or change columns, rows or values of a table;
        None if there are none."""
        rules = NO_RULES
        for settings in self.table_settings:
            if settings.match.matches(table):
                rules |= settings.shape
        return None if rules == NO_RULES else rules

    def shaping(self, key: PrivacyKey | None) -> Shaping:
        """Return the `Shaping` that applies these settings. `key`: the key for hashing
        values."""
        return Shaping(
            cache(self.shape_rules_of),
            key,
            has_rules=self.has_shapes,
            is_captured=self.patterns.matches,
        )

    @property
    def mirror_names(self) -> MirrorNames:
        names = mirror_names_of(self.name, self.table_settings)
        return replace(names, ignores_case=self.ignores_case)

    def mirror_name(self, table: TableName) -> TableName:
        return self.mirror_names.of(table)

    def new_mirror_name(self, state: TableState) -> TableName | None:
        """Return the configured name of a table's mirror if the mirror has another
        name, so that it has to move; otherwise None."""
        name = self.mirror_name(state.table)
        return None if is_folder_of(state.mirror, self.name, name) else name

    def start_at(self, facts: ServerFacts) -> Place | Snapshot | None:
        """Return the configured start on the server that answers."""
        if self.standby is not None and self.standby.answers(facts):
            return self.standby.start
        return self.start
