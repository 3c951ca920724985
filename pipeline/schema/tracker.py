"""The structures of one source, followed along one reading of its log.

Belongs here: statement → what changed, and the versions that the ledger is to record. Does not:
where the first structures come from (`pipeline.runs.capturing.initial_schemas`), how a version is
numbered (`versions`), what a change means for a lake (`consequences`), storing anything.

Tables are asked for one by one until the first statement that changes something; then all
of them are, once. So a run without such a statement pays for the tables it has rows of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.position import Coordinates
from pipeline.schema.code import (
    after_effects,
    after_unknown,
    may_change_code,
    renamed_views,
    with_code,
)
from pipeline.schema.evolve import evolve, forget
from pipeline.schema.history import (
    DatabaseVersion,
    History,
    Knowledge,
    SchemaStatement,
    SchemaVersion,
    VersionOrigin,
)
from pipeline.schema.logged import (
    FollowedStatement,
    LoggedStatement,
    origins,
    reasons,
    recorded_statement,
)
from pipeline.schema.model import ServerSchema, TableSchema
from pipeline.schema.rows import schema_of
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood, RenameTables
from pipeline.schema.statements.kinds import kind_of
from pipeline.schema.statements.read import read_change
from pipeline.schema.versions import (
    ColumnsFrom,
    Generation,
    KnownStructures,
    Recorded,
    Versions,
    same_names,
    told_by_log,
)
from pipeline.table import TableName, TableStructure


@dataclass(frozen=True, slots=True)
class Later:
    """What the server was found to have, for a table whose statements before `since` begin
    at a structure that nobody knows; the last of them ends there."""

    since: Coordinates
    schema: TableSchema


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
        self._versions = Versions(known, generation, recorded)
        self._folding = lower_case_table_names
        self._later = dict(later or {})
        self._schema: ServerSchema | None = None
        self._statements: list[SchemaStatement] = []
        self._databases: list[DatabaseVersion] = []

    @property
    def history(self) -> History:
        """What was learnt so far."""
        return History(tuple(self._statements), tuple(self._versions.made), tuple(self._databases))

    @property
    def statements(self) -> int:
        """How many statements that history has."""
        return len(self._statements)

    def version(self, table: TableName) -> SchemaVersion | None:
        """The table's structure at this place of the log; None where nothing was ever
        known of it."""
        return self._versions.current(table)

    def last_known(self, table: TableName) -> TableSchema | None:
        """The table's structure at this place, or before it, where it is not known here."""
        return self._versions.last_known(table)

    def known_from(self, table: TableName) -> Coordinates | None:
        """Where a structure that is unknown here is known again."""
        later = self._later.get(table)
        return later.since if later else None

    def told_by_log(self, table: TableName) -> bool:
        """Whether what is known of the table comes from the log's own account of it, which
        tells no defaults."""
        return told_by_log(self._versions.ever(table))

    def referring(self) -> Sequence[TableSchema]:
        """Tables with foreign keys, at this place of the log."""
        if self._schema is not None:
            return [table for table in self._schema.tables.values() if table.foreign_keys]
        versions = self._versions.with_current(self._known.referring())
        schemas = (version.schema for version in versions.values())
        return [schema for schema in schemas if schema is not None and schema.foreign_keys]

    def fold(self, table: TableName) -> TableName:
        """The name as the server compares it."""
        return ServerSchema(lower_case_table_names=self._folding).fold(table)

    def whole(self) -> ServerSchema:
        """All structures at this place of the log."""
        if self._schema is None:
            schema = ServerSchema(lower_case_table_names=self._folding)
            for database in self._known.databases():
                if database.schema is not None:
                    schema = schema.with_database(database.schema)
            versions = self._versions.all_current()
            tables = {n: v.schema for n, v in versions.items() if v.schema is not None}
            unknown = {n for n, v in versions.items() if v.knowledge is Knowledge.UNKNOWN}
            self._schema = ServerSchema(
                schema.databases,
                {schema.fold(name): table for name, table in tables.items()},
                frozenset(schema.fold(name) for name in unknown),
                self._folding,
            )
        return self._schema

    # -- from elsewhere ----------------------------------------------------------------

    def told_by_map(self, structure: TableStructure, at: Coordinates) -> SchemaVersion:
        """The log itself says how the table is built."""
        schema = schema_of(structure)
        if self._schema is not None:
            self._schema = self._schema.with_table(schema)
        return self._versions.record(structure.name, schema, at, VersionOrigin.TABLE_MAP)

    def begin_with(
        self, versions: Iterable[SchemaVersion], databases: Iterable[DatabaseVersion]
    ) -> None:
        """What was found at the beginning, to be recorded with this reading. A table that
        was known before goes on with its rows; which column is which only the names tell."""
        for version in versions:
            columns_from = None
            if version.schema is not None:
                before = self._versions.last_known_at_beginning(version.table)
                columns_from = same_names(before, version.schema)
            self._versions.record(
                version.table,
                version.schema,
                version.since,
                version.origin,
                columns_from=columns_from,
                reason=version.reason,
            )
        self._databases += databases

    def carry(self, table: TableName, version: SchemaVersion | None, at: Coordinates) -> None:
        """An older version holds again from there on; None: the table is not there, or
        nobody knew of it."""
        schema = None if version is None else version.schema
        reason = None if version is None else version.reason
        self._versions.record(table, schema, at, VersionOrigin.CARRIED, reason=reason)

    def adopt(self, schema: TableSchema, at: Coordinates) -> SchemaVersion:
        """What the server was found to have at a place."""
        self._schema = self.whole().with_table(schema)
        return self._versions.record(schema.name, schema, at, VersionOrigin.BASELINE)

    def take_word(
        self, schema: TableSchema, at: Coordinates, columns_from: ColumnsFrom | None
    ) -> SchemaVersion:
        """What a person says the table has from a place on, and which of its columns is which
        of before; None where it does not go on with its rows. Where hidden columns stand no
        CREATE TABLE tells."""
        schema = replace(schema, hidden=())
        self._schema = self.whole().with_table(schema)
        return self._versions.record(
            schema.name, schema, at, VersionOrigin.PERSON, columns_from=columns_from
        )

    def resume(self, version: SchemaVersion) -> None:
        """The version that holds for a table from here on, recorded by another reading."""
        whole = self.whole()
        if version.schema is not None:
            self._schema = whole.with_table(version.schema)
        self._versions.hold(version)

    # -- statements --------------------------------------------------------------------

    def take(self, logged: LoggedStatement) -> FollowedStatement:
        """Follow a statement."""
        read = read_change(logged.text, logged.context)
        if isinstance(read, Irrelevant):
            self._take_code(logged)
            return FollowedStatement()
        before = self.whole()
        if isinstance(read, NotUnderstood):
            after = after_unknown(forget(before, read.may_touch or ()), read.may_touch or ())
            followed = FollowedStatement(not_understood=read, kind=kind_of(read))
        else:
            done = evolve(before, read, logged.context)
            after = after_effects(done.schema, done.effects)
            pairs = [pair for one in read if isinstance(one, RenameTables) for pair in one.pairs]
            after = renamed_views(after, pairs)
            followed = FollowedStatement(done.effects, kind=kind_of(read[0]))
        self._statements.append(recorded_statement(logged, followed))
        self._schema = self._caught_up(after, logged.end)
        number = len(self._statements) - 1
        self._note_tables(before, self._schema, followed, logged.end, number)
        self._note_databases(before, self._schema, logged.end, number)
        return followed

    def _take_code(self, logged: LoggedStatement) -> None:
        """Follow a statement that changes triggers or views, and no structure."""
        if not may_change_code(logged.text):
            return
        before = self.whole()
        self._schema = with_code(before, logged.text, logged.context)
        self._note_databases(before, self._schema, logged.end, None)

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
        followed: FollowedStatement,
        at: Coordinates,
        statement: int,
    ) -> None:
        why = dict(reasons(followed))
        columns = dict(origins(followed.effects))
        for key in sorted({*before.tables, *after.tables, *before.unknown, *after.unknown}):
            old, new = before.tables.get(key), after.tables.get(key)
            was_unknown, is_unknown = key in before.unknown, key in after.unknown
            if new is old and was_unknown == is_unknown:
                continue
            if is_unknown and was_unknown:
                continue
            either = new or old
            origin = columns.get(key)
            if new is not None and old is not None and key not in columns:
                origin = tuple(column.name for column in new.columns)
            self._versions.record(
                key if either is None else either.name,
                new,
                at,
                VersionOrigin.STATEMENT,
                columns_from=origin if new is not None and old is not None else None,
                statement=statement,
                reason=why.get(key, "not followed") if is_unknown else None,
            )

    def _note_databases(
        self, before: ServerSchema, after: ServerSchema, at: Coordinates, statement: int | None
    ) -> None:
        for key in sorted({*before.databases, *after.databases}):
            old, new = before.databases.get(key), after.databases.get(key)
            if new != old:
                name = new.name if new is not None else key
                self._databases.append(DatabaseVersion(name, at, new, statement))
