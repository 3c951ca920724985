"""The structures of one source, followed along one reading of its log.

Belongs here: statement → what changed, and the versions that the ledger is to record.
Does not: where the first structures come from (`pipeline.runs.structures`), what a change
means for a lake (`consequences`), storing anything.

Tables are asked for one by one until the first statement that changes something; then all
of them are, once. So a run without such a statement pays for the tables it has rows of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Protocol

from pipeline.position import Coordinates
from pipeline.schema.context import StatementContext
from pipeline.schema.evolve import evolve, forget
from pipeline.schema.evolving.effects import (
    Changed,
    DatabaseEffect,
    Effect,
    NotFollowed,
    Renamed,
    UnknownTable,
)
from pipeline.schema.history import (
    DatabaseVersion,
    History,
    Knowledge,
    Origin,
    SchemaStatement,
    SchemaVersion,
)
from pipeline.schema.model import ServerSchema, TableSchema
from pipeline.schema.rows import schema_of
from pipeline.schema.sentences import sentence
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.table import TableName, TableStructure


class KnownStructures(Protocol):
    """What was known where the reading begins."""

    def one(self, table: TableName) -> SchemaVersion | None: ...

    def all(self) -> Sequence[SchemaVersion]:
        """Every table's, those that are dropped left out."""

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        """All versions it ever had, in the order of their places."""

    def referring(self) -> Sequence[SchemaVersion]:
        """Those of `all` that have foreign keys."""

    def databases(self) -> Sequence[DatabaseVersion]: ...

    def last_number(self, table: TableName) -> int:
        """The highest number that any version of the table ever had; 0 for none."""


Generation = Callable[[Sequence[SchemaVersion], TableSchema | None], int]
"""Which of a changelog's generations the rows of a new version go to, by the versions there
were."""


Recorded = Callable[[TableName, Coordinates, TableSchema | None, str | None], SchemaVersion | None]
"""The version that an earlier reading of the same place recorded of a table, if it says the
same: this schema, or for None that it is dropped, or unknown for this reason."""


@dataclass(frozen=True, slots=True)
class Later:
    """What the server was found to have, for a table whose statements before `since` begin
    at a structure that nobody knows; the last of them ends there."""

    since: Coordinates
    schema: TableSchema


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement as the log has it; `text` decoded with its client's character set.
    `executed_at`: when its session began it, what NOW() was to it. `server_id`: of the server
    that ran it first."""

    text: str
    context: StatementContext
    begin: Coordinates
    end: Coordinates
    gtid: str
    committed_at: datetime
    executed_at: datetime
    server_id: int = 0


@dataclass(frozen=True, slots=True)
class Followed:
    """What a statement did. `not_understood`: nothing is known of what it did, to the
    tables it names, or to any (`may_touch` None)."""

    effects: tuple[Effect, ...] = ()
    not_understood: NotUnderstood | None = None


class SchemaTracker:
    """`known`: the structures at the beginning; `later`: those that are known only from a
    place on; `recorded`: what is known already of places further on, and stays as it is."""

    def __init__(
        self,
        known: KnownStructures,
        *,
        lower_case_table_names: int = 0,
        generation: Generation | None = None,
        later: Mapping[TableName, Later] | None = None,
        recorded: Recorded | None = None,
    ) -> None:
        self._known = known
        self._recorded = recorded
        self._folding = lower_case_table_names
        self._generation = generation
        self._later = dict(later or {})
        self._schema: ServerSchema | None = None
        self._current: dict[TableName, SchemaVersion | None] = {}
        self._numbers: dict[TableName, int] = {}
        self._added: dict[TableName, list[SchemaVersion]] = {}
        self._statements: list[SchemaStatement] = []
        self._versions: list[SchemaVersion] = []
        self._databases: list[DatabaseVersion] = []
        self._before: dict[TableName, TableSchema] = {}

    @property
    def history(self) -> History:
        """What was learnt so far."""
        return History(tuple(self._statements), tuple(self._versions), tuple(self._databases))

    @property
    def statements(self) -> int:
        """How many statements that history has."""
        return len(self._statements)

    def version(self, table: TableName) -> SchemaVersion | None:
        """The table's structure at this place of the log; None where nothing was ever
        known of it."""
        if table not in self._current:
            self._current[table] = self._known.one(table)
        return self._current[table]

    def known_from(self, table: TableName) -> Coordinates | None:
        """Where a structure that is unknown here is known again."""
        later = self._later.get(table)
        return later.since if later else None

    def told_by_map(self, structure: TableStructure, at: Coordinates) -> SchemaVersion:
        """The log itself says how the table is built."""
        schema = schema_of(structure)
        if self._schema is not None:
            self._schema = self._schema.with_table(schema)
        return self._record(structure.name, schema, at, Origin.TABLE_MAP)

    def told_by_log(self, table: TableName) -> bool:
        """Whether what is known of the table comes from the log's own account of it, which
        tells no defaults."""
        told = False
        for one in [*self._known.versions(table), *self._added.get(table, ())]:
            if one.origin is Origin.TABLE_MAP:
                told = True
            elif one.origin in (Origin.BASELINE, Origin.PERSON) or (
                one.origin is Origin.STATEMENT and one.columns_from is None
            ):
                told = False
        return told

    def begin_with(
        self, versions: Iterable[SchemaVersion], databases: Iterable[DatabaseVersion]
    ) -> None:
        """What was found at the beginning, to be recorded with this reading. A table that
        was known before goes on with its rows; which column is which only the names tell."""
        for one in versions:
            self._record(
                one.table,
                one.schema,
                one.since,
                one.origin,
                columns_from=self._by_name(one),
                reason=one.reason,
            )
        self._databases += databases

    def _by_name(self, version: SchemaVersion) -> tuple[str | None, ...] | None:
        before = None
        if version.schema is not None and self._known.last_number(version.table):
            known = [one for one in self._known.versions(version.table) if one.schema is not None]
            before = known[-1].schema if known else None
        if version.schema is None or before is None:
            return None
        return _same_names(before, version.schema)

    def carry(self, table: TableName, version: SchemaVersion | None, at: Coordinates) -> None:
        """An older version holds again from there on; None: the table is not there, or
        nobody knew of it."""
        schema = None if version is None else version.schema
        reason = None if version is None else version.reason
        self._record(table, schema, at, Origin.CARRIED, reason=reason)

    def adopt(self, schema: TableSchema, at: Coordinates) -> SchemaVersion:
        """What the server was found to have at a place."""
        self._schema = self._whole().with_table(schema)
        return self._record(schema.name, schema, at, Origin.BASELINE)

    def take_word(self, schema: TableSchema, at: Coordinates) -> SchemaVersion:
        """What a person says the table has from a place on. It goes on with its rows; which
        column is which only the names tell."""
        before = self.last_known(schema.name)
        self._schema = self._whole().with_table(schema)
        columns_from = None if before is None else _same_names(before, schema)
        return self._record(schema.name, schema, at, Origin.PERSON, columns_from=columns_from)

    def resume(self, version: SchemaVersion) -> None:
        """The version that holds for a table from here on, recorded by another reading."""
        whole = self._whole()
        if version.schema is not None:
            self._schema = whole.with_table(version.schema)
        self._current[version.table] = version

    def last_known(self, table: TableName) -> TableSchema | None:
        """The table's structure at this place, or before it, where it is not known here."""
        version = self.version(table)
        if version is not None and version.schema is not None:
            return version.schema
        return self._before.get(table)

    # -- statements -----------------------------------------------------------------

    def take(self, logged: LoggedStatement) -> Followed:
        """Follow a statement."""
        read = read_change(logged.text, logged.context)
        if isinstance(read, Irrelevant):
            return Followed()
        before = self._whole()
        if isinstance(read, NotUnderstood):
            after = forget(before, read.may_touch or ())
            followed = Followed(not_understood=read)
        else:
            done = evolve(before, read, logged.context)
            after = done.schema
            followed = Followed(done.effects)
        self._statements.append(_statement(logged, followed))
        self._schema = self._caught_up(after, logged.end)
        number = len(self._statements) - 1
        self._note_tables(before, self._schema, followed, logged.end, number)
        self._note_databases(before, self._schema, logged.end, number)
        return followed

    def referring(self) -> Sequence[TableSchema]:
        """Tables with foreign keys, at this place of the log."""
        if self._schema is not None:
            return [table for table in self._schema.tables.values() if table.foreign_keys]
        found: dict[TableName, SchemaVersion | None] = {
            version.table: version for version in self._known.referring()
        }
        schemas = (one.schema for one in {**found, **self._current}.values() if one is not None)
        return [schema for schema in schemas if schema is not None and schema.foreign_keys]

    def fold(self, table: TableName) -> TableName:
        """The name as the server compares it."""
        return ServerSchema(lower_case_table_names=self._folding).fold(table)

    def whole(self) -> ServerSchema:
        """All structures at this place of the log."""
        return self._whole()

    def _whole(self) -> ServerSchema:
        if self._schema is None:
            schema = ServerSchema(lower_case_table_names=self._folding)
            for database in self._known.databases():
                if database.schema is not None:
                    schema = schema.with_database(database.schema)
            found = {version.table: version for version in self._known.all()}
            found.update({name: one for name, one in self._current.items() if one is not None})
            tables = {n: v.schema for n, v in found.items() if v.schema is not None}
            unknown = {n for n, v in found.items() if v.knowledge is Knowledge.UNKNOWN}
            self._current.update(found)
            self._schema = ServerSchema(
                schema.databases,
                {schema.fold(name): table for name, table in tables.items()},
                frozenset(schema.fold(name) for name in unknown),
                self._folding,
            )
        return self._schema

    def _caught_up(self, schema: ServerSchema, end: Coordinates) -> ServerSchema:
        """With the tables that are known from here on."""
        for name in [name for name, later in self._later.items() if later.since <= end]:
            later = self._later.pop(name)
            if schema.table(name) is None:
                schema = schema.with_table(later.schema)
        return schema

    def _note_tables(
        self,
        before: ServerSchema,
        after: ServerSchema,
        followed: Followed,
        at: Coordinates,
        statement: int,
    ) -> None:
        reasons = dict(_reasons(followed))
        columns = dict(_columns(followed.effects))
        for key in sorted({*before.tables, *after.tables, *before.unknown, *after.unknown}):
            old, new = before.tables.get(key), after.tables.get(key)
            was_unknown, is_unknown = key in before.unknown, key in after.unknown
            if new is old and was_unknown == is_unknown:
                continue
            if is_unknown and was_unknown:
                continue
            either = new or old
            name = key if either is None else either.name
            origin = columns.get(key)
            if new is not None and old is not None and key not in columns:
                origin = tuple(column.name for column in new.columns)
            self._record(
                name,
                new,
                at,
                Origin.STATEMENT,
                columns_from=origin if new is not None and old is not None else None,
                statement=statement,
                reason=reasons.get(key, "not followed") if is_unknown else None,
            )

    def _record(
        self,
        table: TableName,
        schema: TableSchema | None,
        since: Coordinates,
        origin: Origin,
        *,
        columns_from: tuple[str | None, ...] | None = None,
        statement: int | None = None,
        reason: str | None = None,
    ) -> SchemaVersion:
        old = self._current.get(table)
        if old is not None and old.schema is not None:
            self._before[table] = old.schema
        told = self._recorded and self._recorded(table, since, schema, reason)
        if told:
            self._current[table] = told
            return told
        knowledge = Knowledge.KNOWN if schema is not None else Knowledge.DROPPED
        if reason is not None:
            knowledge = Knowledge.UNKNOWN
        number = self._numbers.get(table) or self._known.last_number(table)
        self._numbers[table] = number + 1
        generation = 1
        if number and self._generation is not None:
            before = [*self._known.versions(table), *self._added.get(table, ())]
            generation = self._generation(before, schema)
        version = SchemaVersion(
            table,
            number + 1,
            since,
            knowledge,
            origin,
            schema=schema,
            columns_from=columns_from,
            statement=statement,
            reason=reason,
            generation=generation,
        )
        self._versions.append(version)
        self._added.setdefault(table, []).append(version)
        self._current[table] = version
        return version

    def _note_databases(
        self, before: ServerSchema, after: ServerSchema, at: Coordinates, statement: int
    ) -> None:
        for key in sorted({*before.databases, *after.databases}):
            old, new = before.databases.get(key), after.databases.get(key)
            if new != old:
                name = new.name if new is not None else key
                self._databases.append(DatabaseVersion(name, at, new, statement))


def _same_names(before: TableSchema, schema: TableSchema) -> tuple[str | None, ...]:
    found = (before.column(column.name) for column in schema.columns)
    return tuple(None if column is None else column.name for column in found)


def _statement(logged: LoggedStatement, followed: Followed) -> SchemaStatement:
    outcome = "followed"
    if followed.not_understood is not None:
        outcome = "not understood"
    elif any(isinstance(one, NotFollowed | UnknownTable) for one in followed.effects):
        outcome = "partly"
    sentences = tuple(map(sentence, followed.effects))
    if followed.not_understood is not None:
        sentences = (followed.not_understood.reason,)
    return SchemaStatement(
        begin=logged.begin,
        end=logged.end,
        gtid=logged.gtid,
        committed_at=logged.committed_at,
        database=logged.context.database,
        text=logged.text,
        outcome=outcome,
        effects=sentences,
        context={**asdict(logged.context), "executed_at": logged.executed_at.isoformat()},
    )


def _reasons(followed: Followed) -> Iterator[tuple[TableName, str]]:
    """Why structures are unknown now; keyed as the statement names the tables."""
    if followed.not_understood is not None:
        for table in followed.not_understood.may_touch or ():
            yield table, followed.not_understood.reason
    for effect in followed.effects:
        match effect:
            case NotFollowed(table, reason):
                yield table, reason
            case UnknownTable(table, statement):
                yield table, f"{statement} on a table that was not known"
            case DatabaseEffect() | Changed() | Renamed():
                pass
            case _:
                pass


def _columns(
    effects: Sequence[Effect],
) -> Iterator[tuple[TableName, tuple[str | None, ...] | None]]:
    """Where the columns of a changed table come from; None for one whose rows were another
    table's before."""
    for effect in effects:
        match effect:
            case Changed(table, _, _, columns_from):
                yield table, columns_from
            case Renamed(_, to):
                yield to, None
            case _:
                pass
