"""What the rules are given: what a run knows anyway, and what `check` asks besides.

Values only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pipeline.grants import Grant, read_grants
from pipeline.keeping import KEEP, Retention
from pipeline.mirror_names import MirrorNames
from pipeline.policies import LakePolicies
from pipeline.ports.source import ListedTable, ServerFacts
from pipeline.schema.history import SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.shape.shaping import Shaping
from pipeline.source_plan import SnapshotPlan, TableSettings
from pipeline.survey import Survey, SurveyedTable
from pipeline.table import TableName, TableStructure
from pipeline.table_state import Extent, TableCondition, TableState
from pipeline.tables import NamePatterns, TablePatterns


@dataclass(frozen=True, slots=True)
class Known:
    """What every run knows before it reads: the server's facts, its tables, the ledger's
    states. `known` are tables of the ledger, `quarantined` those of them that are quarantined.
    `account`: as CURRENT_USER() gives it; None where it was not asked."""

    flavour: str
    version: str
    settings: Mapping[str, str]
    tables: Sequence[ListedTable]
    patterns: TablePatterns
    known: Collection[TableName] = ()
    quarantined: Collection[TableName] = ()
    account: str | None = None

    @classmethod
    def of(
        cls,
        server: ServerFacts | Survey,
        tables: Sequence[ListedTable],
        patterns: TablePatterns,
        states: Mapping[TableName, TableState],
    ) -> Known:
        going = (TableCondition.ACTIVE, TableCondition.LOADING)
        quarantined = {table for table, state in states.items() if state.condition not in going}
        return cls(
            server.flavour,
            server.version,
            server.settings,
            tables,
            patterns,
            set(states),
            quarantined,
            server.account if isinstance(server, Survey) else None,
        )


@dataclass(frozen=True, slots=True)
class KeptMirror:
    """A mirror, its absolute path, and how long it keeps its versions."""

    table: TableName
    path: str
    retention: Retention


def _by_default(_: TableName) -> LakePolicies:
    return LakePolicies()


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """What `check` sees. `pause` is the longest time between two scheduled runs; None without a
    schedule. `partial`: tables that the lake can have but a part of. `mirrors`: those there are,
    whose versions are promised for `keep`. `reading`: how tables are read from the source.
    `passes`: tables whose statements are passed on a person's word. `policies_of`: how the lake
    follows a table; `settings`: the blocks for some of them. `known`: tables of the ledger.
    `names`: what mirrors are called. `shaping`: what is to be shown of tables; `schemas`: of the
    captured ones that are not shown as they are; `shaped`: the newest versions of those that the
    lake does not show as they are."""

    survey: Survey
    patterns: TablePatterns
    pause: timedelta | None = None
    partial: Sequence[Extent] = ()
    mirrors: Sequence[KeptMirror] = ()
    keep: timedelta = KEEP
    reading: SnapshotPlan = field(default_factory=SnapshotPlan)
    passes: NamePatterns = field(default_factory=NamePatterns)
    policies_of: Callable[[TableName], LakePolicies] = _by_default
    settings: Sequence[TableSettings] = ()
    known: Collection[TableName] = ()
    names: MirrorNames = field(default_factory=lambda: MirrorNames(""))
    all_structures: Sequence[TableStructure] = ()
    shaping: Shaping = field(default_factory=Shaping)
    schemas: Sequence[TableSchema] = ()
    shaped: Sequence[SchemaVersion] = ()

    @property
    def tables(self) -> list[SurveyedTable]:
        """The captured ones."""
        return [table for table in self.survey.tables if self.patterns.matches(table.name)]

    @property
    def structures(self) -> list[TableStructure]:
        """Those of the captured tables."""
        return [one for one in self.all_structures if self.patterns.matches(one.name)]

    @property
    def grants(self) -> tuple[Grant, ...] | None:
        """What the account may do; None where it could not be asked."""
        unasked = "grants" in self.survey.unanswered
        return None if unasked else read_grants(self.survey.grants)

    @property
    def mariadb(self) -> bool:
        return self.survey.flavour == "mariadb"

    def setting(self, *names: str) -> str | None:
        """The first of these global variables that the server has, spelled as it says it."""
        settings = self.survey.settings
        return next((settings[name] for name in names if name in settings), None)
