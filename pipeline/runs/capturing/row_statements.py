"""Statements that stand in the log instead of the rows they changed.

Belongs here: which captured tables one of them reaches at its place, by the structures that hold
there, and how many were passed. Does not: its text (`pipeline.schema.statements.row_changes`), what
it reaches (`pipeline.schema.reach`), what becomes of the tables (`table_changes`).

A verdict depends on the statement's names and on the history alone: a heartbeat's is found once,
until a structure changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pipeline.errors import UnsupportedStatement
from pipeline.runs.cures import release_hint
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.model import ServerSchema
from pipeline.schema.reach import Passed, Unknown, Verdict, reached
from pipeline.schema.shown import first_words
from pipeline.schema.statements.row_changes import RowChange, read_created, read_row_change
from pipeline.schema.tracker import SchemaTracker
from pipeline.source_plan import SourcePlan
from pipeline.table import TableName

_WORDS = 5


class RowStatements:
    """The statements of one reading; `passed`: how many changed each table and no captured one."""

    def __init__(self, structures: SchemaTracker, source: SourcePlan) -> None:
        self._structures = structures
        self._source = source
        self._schema: ServerSchema | None = None
        self._verdicts: dict[RowChange, Verdict] = {}
        self.passed: Counter[str] = Counter()

    def judge(self, logged: LoggedStatement) -> Verdict:
        """What a statement does that stands for rows."""
        change = read_row_change(logged.text, logged.context)
        verdict = Unknown(change) if isinstance(change, str) else self._reached(change)
        if isinstance(verdict, Passed) and not isinstance(change, str):
            word = any(self._source.passes.matches(written.table) for written in change.writes)
            names = ", ".join(str(written.table) for written in change.writes) or "no table"
            self.passed[f"{names} (passed_statements)" if word else names] += 1
        return verdict

    def judge_created(self, logged: LoggedStatement) -> Verdict:
        """What the query of a CREATE TABLE … SELECT does beside making the table, where the log has
        it: a session in statement format has no rows of what its functions changed."""
        change = read_created(logged.text, logged.context)
        if change is None:
            return Passed()
        return Unknown(change) if isinstance(change, str) else self._reached(change)

    def _reached(self, change: RowChange) -> Verdict:
        schema = self._structures.whole()
        if schema is not self._schema:
            self._schema, self._verdicts = schema, {}
        if change not in self._verdicts:
            captured, trusted = self._source.patterns.matches, self._source.passes.matches
            self._verdicts[change] = reached(change, schema, captured, trusted)
        return self._verdicts[change]

    def lines(self) -> Iterator[str]:
        """What was passed, for a person."""
        for names, count in sorted(self.passed.items()):
            many = "1 statement was" if count == 1 else f"{count:,} statements were"
            yield (
                f"{many} logged instead of rows and passed: {names} "
                "is all they change, and is not captured"
            )


def why_reached(why: str, logged: LoggedStatement) -> str:
    """Why a captured table is quarantined that a statement reaches."""
    return (
        f"a statement was logged instead of its rows, {first_words(logged.text, _WORDS)}, and "
        f"may have changed it ({why})"
    )


def reached_hint(table: TableName) -> str:
    return f"{release_hint(table)}; and have its session log rows (binlog_format=ROW)"


def cannot_be_told(logged: LoggedStatement, unknown: Unknown) -> UnsupportedStatement:
    """The error for a statement that may change any table."""
    hint = (
        "it was not recorded; have its session log rows (binlog_format=ROW). If such statements "
        "change no captured table"
    )
    if unknown.target is not None and unknown.target.database:
        hint += f', pass them for good: `passed_statements = ["{unknown.target}"]`'
    return UnsupportedStatement(
        f"a transaction holds a statement instead of rows, at {logged.begin}, and it cannot be "
        f"told which tables it changes: {first_words(logged.text, _WORDS)}: {unknown.reason}",
        hint=hint,
        at=str(logged.begin),
    )
