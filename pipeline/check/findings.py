"""The parts of a check: evidence (facts about a source), rules, their verdicts, and
findings.

A rule judges evidence and yields verdicts; a verdict becomes a finding, which people
read. A mirror is the Delta table with the current rows of a source table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar, Generic, Literal, TypeVar

from lockstep.pipeline.model.table_state import Extent, StoppedTable, TableCondition, TableState
from lockstep.pipeline.ports.source import ListedTable, ServerFacts
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.retention import DEFAULT_KEEP, Retention
from lockstep.pipeline.values.survey import Grant, Survey, SurveyedTable, read_grants
from lockstep.pipeline.values.table import TableName, TablePatterns, TableStructure


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The facts that every run has before it reads. `variables`: the server's global
    variables. `tables`: its tables. `ledger_tables`: tables in the ledger (Lockstep's
    database); `stopped_tables`: those of them that the patterns match and that do not
    follow the source. `account`: the value of CURRENT_USER(), or None if the server was
    not asked for it."""

    flavour: str
    version: str
    variables: Mapping[str, str]
    tables: Sequence[ListedTable]
    patterns: TablePatterns
    ledger_tables: Collection[TableName] = ()
    stopped_tables: Collection[TableName] = ()
    account: str | None = None

    @classmethod
    def of(
        cls,
        server: ServerFacts | Survey,
        tables: Sequence[ListedTable],
        patterns: TablePatterns,
        states: Mapping[TableName, TableState],
    ) -> RunEvidence:
        """Return the evidence from the server's answers and the ledger's table states."""
        stopped = {
            table
            for table, state in states.items()
            if state.condition is not TableCondition.FOLLOWING and patterns.matches(table)
        }
        return cls(
            flavour=server.flavour,
            version=server.version,
            variables=server.settings,
            tables=tables,
            patterns=patterns,
            ledger_tables=set(states),
            stopped_tables=stopped,
            account=server.account if isinstance(server, Survey) else None,
        )

    def variable(self, name: str) -> str | None:
        """Return a global variable's value; None if the server does not have it."""
        return self.variables.get(name)


@dataclass(frozen=True, slots=True)
class MirrorEvidence:
    """An existing mirror. `path`: absolute; `retention`: how long its properties keep
    old versions; `reason_unreadable`: why its newest version cannot be read, or None if
    all its files exist; `reason_changelog_unreadable`: the same for its changelogs."""

    table: TableName
    path: str
    retention: Retention
    reason_unreadable: str | None = None
    reason_changelog_unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """All facts that `lockstep check` has about a source.

    - `longest_pause`: the longest time between two scheduled runs; None without a
      schedule.
    - `extents`: tables of which the lake may have only a part.
    - `mirrors`: the existing ones; `keep_versions`: how long their versions are to stay
      readable.
    - `ledger_tables`: tables in the ledger.
    - `shaping`: the settings that hide or change columns and rows; `schemas_to_shape`:
      the structures of the captured tables to which such settings apply;
      `shaped_versions`: the newest versions of the tables that the lake already shows
      with something hidden or changed.
    - `recorded_columns`: the columns of all recorded versions of each table, with names
      in lower case.
    - `invisible_tables`: captured tables that the account cannot see.
    """

    survey: Survey
    plan: SourcePlan
    longest_pause: timedelta | None = None
    extents: Sequence[Extent] = ()
    mirrors: Sequence[MirrorEvidence] = ()
    keep_versions: timedelta = DEFAULT_KEEP
    ledger_tables: Collection[TableName] = ()
    all_structures: Sequence[TableStructure] = ()
    shaping: Shaping = field(default_factory=Shaping)
    schemas_to_shape: Sequence[TableSchema] = ()
    shaped_versions: Sequence[SchemaVersion] = ()
    recorded_columns: Mapping[TableName, Collection[str]] = field(default_factory=dict)
    invisible_tables: Sequence[StoppedTable] = ()

    @property
    def tables(self) -> list[SurveyedTable]:
        """The captured tables."""
        return [table for table in self.survey.tables if self.plan.patterns.matches(table.name)]

    @property
    def structures(self) -> list[TableStructure]:
        """The structures of captured tables."""
        matches = self.plan.patterns.matches
        return [structure for structure in self.all_structures if matches(structure.name)]

    @property
    def grants(self) -> tuple[Grant, ...] | None:
        """The account's privileges; None if they could not be read."""
        is_unanswered = "grants" in self.survey.unanswered_fields
        return None if is_unanswered else read_grants(self.survey.grants)

    @property
    def is_mariadb(self) -> bool:
        return self.survey.flavour == "mariadb"

    def variable(self, *names: str) -> str | None:
        """Return the value of the first of these global variables that the server has."""
        variables = self.survey.settings
        return next((variables[name] for name in names if name in variables), None)


Level = Literal["ok", "warning", "refusal"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `subject`: a setting, a table or the server. `hint`: the
    cure. `error`: the error with which a run refuses to read; None if the run reads all
    the same, or stops only at an event that has the fault. `topic`: the group of the
    line."""

    json_keys: ClassVar = ("level", "subject", "sentence", "hint")

    level: Level
    subject: str
    sentence: str
    hint: str | None = None
    error: LockstepError | None = None
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Fine:
    """The verdict that there is nothing to do. `subject`: the table under which the
    report lists the verdict; None if it lists it under the rule's name and topic."""

    sentence: str
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """The verdict that a person should correct something. Fields that are None are
    taken from the rule; a `subject` that is None becomes the rule's name."""

    sentence: str
    subject: str | None = None
    cure: str | None = None
    level: Level | None = None


RuleVerdict = Fine | Fault
Evidence = TypeVar("Evidence")
Evidence_contra = TypeVar("Evidence_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class CheckRule(Generic[Evidence_contra]):
    """A pure function from evidence to verdicts, with its entry in the documentation.

    `name`: the subject of its findings. `judged_facts`: in words. `level`: the level of
    its faults. `consequence`: what a fault leads to. `cure`: what to type or do.
    `judge`: the function, which yields no verdict if the rule does not apply. `error`:
    the class that a run raises for a refusal.
    """

    name: str
    judged_facts: str
    level: Level
    consequence: str
    cure: str
    judge: Callable[[Evidence_contra], Iterable[RuleVerdict]]
    error: type[LockstepError] | None = None
    topic: str = ""


def with_topic(topic: str, *rules: CheckRule[Evidence]) -> tuple[CheckRule[Evidence], ...]:
    return tuple(replace(rule, topic=topic) for rule in rules)


def findings_of(rules: Iterable[CheckRule[Evidence]], evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings of all rules, in the rules' order."""
    for rule in rules:
        for verdict in rule.judge(evidence):
            yield _finding(rule, verdict)


def _finding(rule: CheckRule[Evidence], verdict: RuleVerdict) -> Finding:
    if isinstance(verdict, Fine):
        subject, topic = verdict.subject or rule.name, verdict.subject or rule.topic
        return Finding("ok", subject, verdict.sentence, topic=topic)
    level, hint = verdict.level or rule.level, verdict.cure or rule.cure
    error = None
    if level == "refusal" and rule.error is not None:
        error = rule.error(verdict.sentence, hint=hint)
    return Finding(level, verdict.subject or rule.name, verdict.sentence, hint, error, rule.topic)
