"""A source as a run sees it: what it is called, captures, starts and ends at, its policies.

Not here: reading lockstep.toml (`resources.config`), the ports a run works through
(`pipeline.runs.context`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pipeline.bounds import Budget
from pipeline.changes.layout import lies_at
from pipeline.mirror_names import Into, MirrorNames
from pipeline.places import Place, Snapshot
from pipeline.policies import LakePolicies, Readers, StartPolicies, written
from pipeline.shape.hashes import PrivacyKey
from pipeline.shape.rules import NO_RULES, ShapeRules
from pipeline.shape.shaping import Shaping
from pipeline.snapshot.condition import Condition
from pipeline.snapshot.pace import LoadLimits, Pace
from pipeline.table import TableName
from pipeline.table_state import TableState
from pipeline.tables import NamePatterns, TablePatterns

if TYPE_CHECKING:
    from pipeline.ports.source import ServerFacts


@dataclass(frozen=True, slots=True)
class StandbyPlan:
    """A source's standby: its own start, and its UUID where that is known beforehand."""

    start: Place | None
    server_uuid: str | None = None

    def answers(self, facts: ServerFacts) -> bool:
        """Whether these are its facts: by its UUID, else by the address that answered."""
        if self.server_uuid is not None:
            return facts.server_uuid == self.server_uuid
        return facts.standby


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """How tables are read from the source. `seconds`: so long at the most in one run, before it
    goes on with the log; `connections`: so many at a time."""

    seconds: float = 600.0
    connections: int = 2
    pace: Pace = field(default_factory=Pace)
    limits: LoadLimits = field(default_factory=LoadLimits)


@dataclass(frozen=True, slots=True)
class PartOrder:
    """Rows of a table that are to be read from the source again: those that a condition holds for.
    `author` and `reason`: who says so, and why."""

    table: TableName
    condition: Condition
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Settings of the tables that match: `policies` by their names in `LakePolicies`, those that
    were given, and what their mirrors show. `match`: the patterns as they were written. `into`:
    what the mirrors are called, where that is not the tables' own name."""

    match: TablePatterns
    policies: Mapping[str, Any]
    shape: ShapeRules = NO_RULES
    into: Into | None = None


def given_to(table: TableName, blocks: Iterable[TableSettings]) -> dict[str, Any]:
    """The policies that blocks give a table; of several, the last counts for each."""
    given: dict[str, Any] = {}
    for block in blocks:
        if block.match.matches(table):
            given |= block.policies
    return given


def settings_in_words(
    tables: Iterable[TableName], blocks: Sequence[TableSettings]
) -> dict[TableName, str]:
    """What blocks come to for each of these tables that has one, as it would be written."""
    found = {table: given_to(table, blocks) for table in sorted(tables)} if blocks else {}
    return {table: written(given) for table, given in found.items() if given}


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source as configured, without what is needed to connect to it.

    `standby` is the server that may answer in its place. `until`: where this run ends, if
    not at the head. `prove_rows`: so many rows of each of some tables are compared after a run.
    `part`: what this run reads from the source again, besides. `passes`: tables of which a person
    says that statements in the log which change them change no captured table. `lake`: policies of
    every table of which `tables` says nothing else; a later one of those overrides an earlier one,
    policy by policy.
    """

    name: str
    patterns: TablePatterns
    start: Place | None
    budget: Budget = field(default_factory=Budget)
    policies: StartPolicies = field(default_factory=StartPolicies)
    lake: LakePolicies = field(default_factory=LakePolicies)
    standby: StandbyPlan | None = None
    until: Place | None = None
    prove_rows: int = 0
    snapshot: SnapshotPlan = field(default_factory=SnapshotPlan)
    part: PartOrder | None = None
    passes: NamePatterns = field(default_factory=NamePatterns)
    tables: tuple[TableSettings, ...] = ()

    @property
    def loads_new_tables(self) -> bool:
        """Whether tables that are older than what is read of the log are read from the source."""
        return isinstance(self.start, Snapshot)

    def policies_of(self, table: TableName) -> LakePolicies:
        """How the lake follows a table."""
        if not self.tables:
            return self.lake
        return replace(self.lake, **given_to(table, self.tables))

    @property
    def all_policies(self) -> Iterator[LakePolicies]:
        """Those that some table may have: of the source, and of each block by itself."""
        yield self.lake
        for settings in self.tables:
            yield replace(self.lake, **settings.policies)

    def read_by(self, readers: Readers) -> SourcePlan:
        """The same with mirrors for these readers, whatever is configured."""
        tables = tuple(
            replace(settings, policies={**settings.policies, "readers": readers})
            for settings in self.tables
        )
        return replace(self, lake=replace(self.lake, readers=readers), tables=tables)

    @property
    def shaped(self) -> bool:
        """Whether the lake may show a table otherwise than it is."""
        return any(settings.shape != NO_RULES for settings in self.tables)

    def shape_rules_of(self, table: TableName) -> ShapeRules | None:
        """What the settings say of a table's shape; None if they say nothing of it."""
        rules = NO_RULES
        for settings in self.tables:
            if settings.match.matches(table):
                rules |= settings.shape
        return None if rules == NO_RULES else rules

    def shaping(self, key: PrivacyKey | None) -> Shaping:
        """How the lake shows the source's tables, whose values are hashed with that key."""
        return Shaping(
            cache(self.shape_rules_of),
            key,
            hides=self.shaped,
            captured=self.patterns.matches,
        )

    @property
    def mirrors(self) -> MirrorNames:
        """What the mirrors are called."""
        rules = [(one.match, one.into) for one in self.tables if one.into is not None]
        return MirrorNames(self.name, tuple(rules))

    def mirror_name(self, table: TableName) -> TableName:
        """What the table's mirror is called."""
        return self.mirrors.of(table)

    def other_place(self, state: TableState) -> TableName | None:
        """The name that the mirror is to lie under, if it lies elsewhere."""
        name = self.mirrors.of(state.table)
        return None if lies_at(state.mirror, self.name, name) else name

    def start_at(self, facts: ServerFacts) -> Place | None:
        """The configured start of the server that answers."""
        if self.standby is not None and self.standby.answers(facts):
            return self.standby.start
        return self.start
