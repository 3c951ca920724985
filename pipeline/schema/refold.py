"""Every recorded statement followed once more, and held against the versions it made then.

Not here: reading it, and asking the server (`pipeline.runs.comparing.verify_schema`).

What no statement made (read from the server, told by a table map, carried on from an
older place, given by a person) is taken as it is recorded. A table is told once: what
follows from a wrong version is wrong too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from pipeline.position import Coordinates
from pipeline.schema.compare import aligned, differences
from pipeline.schema.context import ServerDialect, StatementContext
from pipeline.schema.history import (
    REDACTED_TEXT,
    DatabaseVersion,
    Knowledge,
    SchemaStatement,
    SchemaVersion,
)
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.model_json import schema_fingerprint
from pipeline.schema.tracker import HeldStructures, SchemaTracker
from pipeline.table import TableName

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """What a live batch recorded. `databases`: those there were where it began, None where
    it went on behind the batch before; `whole`: it began with all tables that the server
    had, and with no others."""

    batch: int
    statements: tuple[SchemaStatement, ...]
    versions: tuple[SchemaVersion, ...]
    databases: tuple[DatabaseVersion, ...] | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two accounts that should be one. `position`: the place they are of; `version`: the recorded
    one; `table` None: about the statement there, whatever tables it concerns."""

    json_keys: ClassVar = ("table", "version", "position", "differences")

    position: Coordinates
    differences: tuple[str, ...]
    table: TableName | None = None
    version: int | None = None


def refold(
    batches: Iterable[RecordedBatch], *, lower_case_table_names: int
) -> Iterator[Disagreement]:
    """What comes out otherwise than it is recorded, in the order of the log. `batches`: in
    the order they were read."""
    ever, tables = defaultdict[TableName, list[SchemaVersion]](list), set[TableName]()
    known = HeldStructures(ever=ever.__getitem__)
    for recorded in batches:
        if recorded.databases is not None:
            known.schemas = recorded.databases
        if recorded.whole:
            known.tables.clear()
        for disagreement in _batch(recorded, known, lower_case_table_names):
            if disagreement.table is None or disagreement.table not in tables:
                yield disagreement
            if disagreement.table is not None:
                tables.add(disagreement.table)
        for version in recorded.versions:
            known.tables[version.table] = version
            ever[version.table].append(version)


def _batch(recorded: RecordedBatch, known: HeldStructures, folding: int) -> Iterator[Disagreement]:
    made: dict[int, dict[TableName, SchemaVersion]] = {}
    versions: list[SchemaVersion] = []
    for version in recorded.versions:
        if version.statement is None:
            versions.append(version)
        else:
            made.setdefault(version.statement, {})[version.table] = version
    first = recorded.statements[0].end if recorded.statements else None
    known.tables.update({one.table: one for one in versions if first is None or one.since < first})
    if first is None:
        return
    versions = [one for one in versions if one.since >= first and one.schema is not None]
    tracker = SchemaTracker(known, lower_case_table_names=folding)
    for statement in recorded.statements:
        while versions and versions[0].since < statement.end:
            _adopt(tracker, versions.pop(0))
        if statement.context.get(REDACTED_TEXT):
            # Its text has no values: what it made is taken as it is recorded.
            for version in made.get(statement.id, {}).values():
                tracker.resume(version)
            continue
        yield from _statement(tracker, statement, made.get(statement.id, {}))
    newest = (*known.schemas, *tracker.history.databases)
    known.schemas = tuple({database.name: database for database in newest}.values())


def _adopt(tracker: SchemaTracker, version: SchemaVersion) -> None:
    if version.schema is not None:
        tracker.adopt(version.schema, version.since)


def _statement(
    tracker: SchemaTracker, statement: SchemaStatement, made: Mapping[TableName, SchemaVersion]
) -> Iterator[Disagreement]:
    unknown = {table for table in made if _is_unknown(tracker.version(table))}
    before = tracker.history
    tracker.take(logged_statement(statement))
    after = tracker.history
    yield from _outcome(statement, after.statements[len(before.statements) :])
    folded = {version.table: version for version in after.versions[len(before.versions) :]}
    for table in sorted({*folded, *made}):
        ours, theirs = folded.get(table), made.get(table)
        given = theirs is not None and theirs.knowledge is Knowledge.KNOWN
        if given and (_is_unknown(ours) or (ours is None and table in unknown)):
            assert theirs is not None
            _adopt(tracker, theirs)  # read from the server, and known from here on
            continue
        sentences = tuple(_differing(theirs, ours))
        if sentences:
            number = None if theirs is None else theirs.version
            yield Disagreement(statement.end, sentences, table, number)


def _is_unknown(version: SchemaVersion | None) -> bool:
    return version is not None and version.knowledge is Knowledge.UNKNOWN


def _outcome(
    statement: SchemaStatement, folded: Sequence[SchemaStatement]
) -> Iterator[Disagreement]:
    again = folded[0].outcome if folded else "of no effect"
    if again != statement.outcome:
        told = f"the statement is recorded as {statement.outcome}; followed again it is {again}"
        yield Disagreement(statement.end, (told,))


def _differing(recorded: SchemaVersion | None, folded: SchemaVersion | None) -> Iterator[str]:
    if recorded is None:
        yield "the statement changes it, and no version says so"
    elif folded is None:
        yield "a version is recorded, and the statement does not change it"
    elif recorded.schema is None or folded.schema is None:
        if recorded.knowledge is not folded.knowledge:
            yield f"it is recorded as {recorded.knowledge}, and comes out {folded.knowledge}"
    else:
        again = aligned(folded.schema, recorded.schema)
        if schema_fingerprint(recorded.schema) != schema_fingerprint(again):
            parts = differences(recorded.schema, again)
            yield from parts or ("a part that is not shown",)
        if recorded.columns_from != folded.columns_from:
            yield f"columns come from: {_origin(recorded)}, {_origin(folded)}"


def _origin(version: SchemaVersion) -> str:
    if version.columns_from is None:
        return "nowhere"
    return "(" + " ".join(name or "new" for name in version.columns_from) + ")"


def logged_statement(statement: SchemaStatement) -> LoggedStatement:
    moment = statement.committed_at or _NEVER
    return LoggedStatement(
        text=statement.text,
        context=read_stored_context(statement.context),
        begin=statement.begin,
        end=statement.end,
        gtid=statement.gtid,
        committed_at=moment,
        executed_at=moment,
    )


def read_stored_context(stored: Mapping[str, Any]) -> StatementContext:
    """A `SchemaStatement.context` as the value it was; keys of other versions are passed."""
    names = {one.name for one in fields(StatementContext)} - {"facts"}
    told = {one.name for one in fields(ServerDialect)}
    facts = {name: value for name, value in stored.get("facts", {}).items() if name in told}
    given = {name: value for name, value in stored.items() if name in names}
    return StatementContext(facts=ServerDialect(**facts), **given)
