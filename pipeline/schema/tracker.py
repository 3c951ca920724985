"""The structures of one source's tables while a run reads the source's log.

`pipeline.run.dump.initial_schemas` finds the structures at the beginning. They are
loaded table by table until the first statement that changes a structure; that statement
loads all of them. So a run without such a statement only loads the tables whose rows it
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from lockstep.pipeline.schema.code import (
    after_code_statement,
    after_unknown_statement,
    may_change_code,
    with_moved_triggers,
    with_renamed_views,
)
from lockstep.pipeline.schema.effects import (
    FollowedStatement,
    LoggedStatement,
    Renamed,
    former_column_names,
    recorded_statement,
    unknown_structures,
)
from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.history import (
    BatchHistory,
    DatabaseVersion,
    Knowledge,
    SchemaStatement,
    SchemaVersion,
    ShownAs,
    VersionOrigin,
)
from lockstep.pipeline.schema.model import (
    LOGS_LOWER_CASE,
    ColumnSchema,
    ServerSchema,
    TableSchema,
)
from lockstep.pipeline.schema.rows import schema_of
from lockstep.pipeline.schema.statements.changes import (
    CreateLike,
    Irrelevant,
    NotUnderstood,
    RenameTables,
    SchemaChange,
    required_tables,
    restructured_tables,
)
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TableStructure


@dataclass(frozen=True, slots=True)
class LaterStructure:
    """A structure that was read from the server. It holds from `since` on, the end of
    the last statement that changed the table; before that, the table's structure is
    unknown."""

    since: Coordinates
    schema: TableSchema


ColumnsFrom = tuple[str | None, ...]
"""The former name of each column, None for a new column."""

Predecessor = tuple[SchemaVersion, ColumnsFrom | None]
"""The version from which a table has its rows or columns, and the columns' names in
that version; None if they kept their names."""


class InitialStructures(Protocol):
    """The structures that are known at the position where the run begins to read the
    log."""

    def newest(self, table: TableName) -> SchemaVersion | None:
        """Return the newest version of a table; None if it has none."""

    def all_newest(self) -> Sequence[SchemaVersion]:
        """Return the newest version of every table that is not dropped."""

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        """Return all versions of a table, in the order of their positions."""

    def with_foreign_keys(self) -> Sequence[SchemaVersion]:
        """Return the versions in `all_newest` that have foreign keys."""

    def databases(self) -> Sequence[DatabaseVersion]:
        """Return the newest version of every database."""

    def last_number(self, table: TableName) -> int:
        """Return the highest number of a version of the table; 0 if it has none."""


@dataclass(slots=True)
class StructuresInMemory:
    """`InitialStructures` in memory. `tables`: the newest version of each table;
    `database_versions`: the newest version of each database; `versions_of`: returns all
    versions of a table; `last_numbers`: the highest number of a version of each
    table."""

    tables: dict[TableName, SchemaVersion] = field(default_factory=dict)
    database_versions: Sequence[DatabaseVersion] = ()
    versions_of: Callable[[TableName], Sequence[SchemaVersion]] = lambda _: ()
    last_numbers: Mapping[TableName, int] = field(default_factory=dict)

    def newest(self, table: TableName) -> SchemaVersion | None:
        return self.tables.get(table)

    def all_newest(self) -> Sequence[SchemaVersion]:
        versions = self.tables.values()
        return [version for version in versions if version.knowledge is not Knowledge.DROPPED]

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return self.versions_of(table)

    def with_foreign_keys(self) -> Sequence[SchemaVersion]:
        return [
            version
            for version in self.all_newest()
            if version.schema is not None and version.schema.foreign_keys
        ]

    def databases(self) -> Sequence[DatabaseVersion]:
        return self.database_versions

    def last_number(self, table: TableName) -> int:
        return self.last_numbers.get(table, 0)


class Generations(Protocol):
    """The generations of one table's changelog (the Delta table with every change),
    which has a part for each; given the table's versions so far."""

    def add(self, version: SchemaVersion) -> None:
        """Add the table's next version."""

    def choose(self, source_schema: TableSchema | None, shown_as: ShownAs | None) -> int:
        """Return the generation of a new version: the number of the changelog's part
        that gets its rows. Arguments: its schema, and how the lake shows it."""
        ...


GenerationsOf = Callable[[Sequence[SchemaVersion]], Generations]


FindRecorded = Callable[
    [TableName, Coordinates, TableSchema | None, str | None, ColumnsFrom | None],
    SchemaVersion | None,
]
"""Returns the version that an earlier run recorded for a table at a position, if it is
the same as the new one. Arguments: the table, the position, the new schema, the reason
if the schema is unknown (a table with neither is dropped), and the columns' former
names if a person gave them."""


class HistoryShaping(Protocol):
    """Applies the settings that hide columns and rows from the lake
    (`pipeline.shape.shaping`)."""

    def for_history(
        self,
        schema: TableSchema,
        before: SchemaVersion | None = None,
        columns_from: ColumnsFrom | None = None,
        *,
        may_be_renamed: bool = False,
    ) -> tuple[TableSchema, ShownAs | None]:
        """Return the structure as the history stores it, and how the lake shows the
        table. `before`: the version from which the table has its rows or columns;
        `columns_from`: the columns' names in that version, None if they kept their
        names; `may_be_renamed`: statements that were not read may have renamed columns.
        Raise TableError if the settings cannot be applied to the structure."""

    def statement_record(
        self, logged: LoggedStatement, followed: FollowedStatement, tables: Collection[TableName]
    ) -> SchemaStatement:
        """Return the history's record of a statement. `tables`: the tables that it
        names."""


class SchemaTracker:
    """The structures at the current position of the log, and the history of the
    versions so far. `follow` moves the position to the end of the next statement.

    `initial`: the structures at the beginning. `later_structures`: structures that are
    known only from some position on. `find_recorded`: finds versions that an earlier
    run recorded, which are kept. `shaping`: applies the settings; None if the lake
    shows every table as it is.
    """

    def __init__(
        self,
        initial: InitialStructures,
        *,
        lower_case_table_names: int = 0,
        generations_of: GenerationsOf | None = None,
        later_structures: Mapping[TableName, LaterStructure] | None = None,
        find_recorded: FindRecorded | None = None,
        shaping: HistoryShaping | None = None,
    ) -> None:
        self._initial = initial
        self._shaping = shaping
        self._generations_of = generations_of
        self._find_recorded = find_recorded
        self._lower_case_table_names = lower_case_table_names
        self._later_structures = dict(later_structures or {})
        self._loaded_schema: ServerSchema | None = None
        self._current: dict[TableName, SchemaVersion | None] = {}
        self._new_versions: dict[TableName, list[SchemaVersion]] = {}
        self._generations: dict[TableName, Generations] = {}
        self._last_schemas: dict[TableName, TableSchema] = {}
        self._shape_errors: dict[TableName, TableError] = {}
        self._versions: list[SchemaVersion] = []
        self._statements: list[SchemaStatement] = []
        self._databases: list[DatabaseVersion] = []
        self._shaped_versions: Sequence[SchemaVersion] = ()

    @property
    def history(self) -> BatchHistory:
        """The statements and versions that this run has recorded so far."""
        return BatchHistory(tuple(self._statements), tuple(self._versions), tuple(self._databases))

    @property
    def statement_count(self) -> int:
        """Number of statements that this run has recorded so far."""
        return len(self._statements)

    def version(self, table: TableName) -> SchemaVersion | None:
        """Return the table's version at the current position; None if there is no
        record of the table."""
        if table not in self._current:
            self._current[table] = self._initial.newest(table)
        return self._current[table]

    def last_known_schema(self, table: TableName) -> TableSchema | None:
        """Return the table's schema at the current position; if it is unknown there,
        the last known schema."""
        version = self.version(table)
        schema = None if version is None else version.schema
        return schema or self._last_schemas.get(table)

    def next_known_position(self, table: TableName) -> Coordinates | None:
        """Return the position, after the current one, from which a table's structure is
        known; None if there is no such position."""
        later = self._later_structures.get(table)
        return later.since if later else None

    def shape_error(self, table: TableName) -> TableError | None:
        """Return why the settings cannot be applied to the table's structure at the
        current position, if this run has recorded that; else None."""
        return self._shape_errors.get(table)

    def is_from_table_map(self, table: TableName) -> bool:
        """Return whether the table's structure comes from a TABLE_MAP event, which has
        no defaults."""
        from_map = False
        for version in self._all_versions(table):
            if version.origin is VersionOrigin.TABLE_MAP:
                from_map = True
            elif version.origin in (VersionOrigin.BASELINE, VersionOrigin.PERSON) or (
                version.origin is VersionOrigin.STATEMENT and version.columns_from is None
            ):
                from_map = False
        return from_map

    def _all_versions(self, table: TableName) -> list[SchemaVersion]:
        return [*self._initial.versions(table), *self._new_versions.get(table, ())]

    @property
    def logs_lower_case(self) -> bool:
        """True if the log has rows under names in lower case, while the names of their
        tables may have capital letters."""
        return self._lower_case_table_names == LOGS_LOWER_CASE

    def tables_with_foreign_keys(self) -> Sequence[TableSchema]:
        """Return the tables with foreign keys at the current position."""
        if self._loaded_schema is not None:
            return [table for table in self._loaded_schema.tables.values() if table.foreign_keys]
        versions = self._current_versions(self._initial.with_foreign_keys())
        schemas = (version.schema for version in versions.values())
        return [schema for schema in schemas if schema is not None and schema.foreign_keys]

    def fold_case(self, table: TableName) -> TableName:
        """Return a table's name in lower case if the server ignores case."""
        return ServerSchema(lower_case_table_names=self._lower_case_table_names).fold_case(table)

    def server_schema(self) -> ServerSchema:
        """Return the schema of the whole server at the current position."""
        if self._loaded_schema is None:
            schema = ServerSchema(lower_case_table_names=self._lower_case_table_names)
            for database in self._initial.databases():
                if database.schema is not None:
                    schema = schema.with_database(database.schema)
            versions = self._current_versions(self._initial.all_newest())
            self._current.update(versions)
            tables = {n: v.schema for n, v in versions.items() if v.schema is not None}
            unknown = {n for n, v in versions.items() if v.knowledge is Knowledge.UNKNOWN}
            self._loaded_schema = ServerSchema(
                schema.databases,
                {schema.fold_case(name): table for name, table in tables.items()},
                frozenset(schema.fold_case(name) for name in unknown),
                self._lower_case_table_names,
            )
        return self._loaded_schema

    def _current_versions(
        self, initial_versions: Iterable[SchemaVersion]
    ) -> dict[TableName, SchemaVersion]:
        """Return the current version of each table; for a table that is not loaded yet,
        this is its version in `initial_versions`."""
        versions = {version.table: version for version in initial_versions}
        current = self._current.items()
        return versions | {name: version for name, version in current if version is not None}

    # -- versions that no statement makes ----------------------------------------------

    def record_table_map(self, structure: TableStructure, at: Coordinates) -> SchemaVersion:
        """Record a structure that a TABLE_MAP event describes."""
        schema = schema_of(structure)
        version = self._record(structure.name, schema, at, VersionOrigin.TABLE_MAP)
        if self._loaded_schema is not None:
            self._load(self._loaded_schema.with_table(schema))
        return version

    def record_initial_versions(
        self,
        versions: Iterable[SchemaVersion],
        databases: Iterable[DatabaseVersion],
        shaped_versions: Sequence[SchemaVersion] = (),
    ) -> None:
        """Record the structures that the run read at its first position. A table that
        was known before keeps its rows, and its columns are matched by their names.
        `shaped_versions`: the last known versions of tables that the lake does not show
        as they are. A table that may be one of them under another name
        (`_may_be_renamed`) may have that one's rows, so the lake shows no more of it than
        of that one. A version without a schema is of a table whose columns were never
        known."""
        self._shaped_versions = _without_alike(shaped_versions)
        for version in versions:
            predecessor = None
            if version.schema is not None:
                predecessor = self._possible_predecessor(version.schema)
            before, columns_from = predecessor or (None, None)
            self._record(
                version.table,
                version.schema,
                version.since,
                version.origin,
                columns_from=columns_from if before and before.table == version.table else None,
                reason=version.reason,
                predecessor=predecessor,
                may_be_renamed=True,
            )
        self._databases += databases

    def _possible_predecessor(self, after: TableSchema) -> Predecessor | None:
        """Return the version from which a table may have its rows where the run begins,
        with its columns matched by their names: its own last known version, or that of
        another table which may have got this name. If several come into question,
        prefer one that the lake shows more strictly than the settings show this
        table."""
        predecessors = list[Predecessor]()
        own_schema = None
        was_dropped = False
        if self._initial.last_number(after.name):
            for own in reversed(self._initial.versions(after.name)):
                was_dropped |= own.knowledge is Knowledge.DROPPED
                if own.schema is not None:
                    predecessors.append((own, _names_before(own.schema, after)))
                    own_schema = None if was_dropped else own.schema
                    break
        predecessors += (
            (other, None if other.schema is None else _names_before(other.schema, after))
            for other in self._shaped_versions
            if other.table != after.name and _may_be_renamed(other.schema, after, own_schema)
        )
        shows_more = partial(self._shows_more, after)
        return next(filter(shows_more, predecessors), next(iter(predecessors), None))

    def _shows_more(self, after: TableSchema, predecessor: Predecessor) -> bool:
        """Return whether the settings show more of a table than of its predecessor."""
        if self._shaping is not None:
            try:
                self._shaping.for_history(after, *predecessor, may_be_renamed=True)
            except TableError:
                return True
        return False

    def record_carried_version(
        self, table: TableName, version: SchemaVersion | None, at: Coordinates
    ) -> None:
        """Record that an older version holds again from the position `at` on.
        `version`: None to record that the table is dropped."""
        schema = None if version is None else version.schema
        reason = None if version is None else version.reason
        self._record(
            table, schema, at, VersionOrigin.CARRIED, reason=reason, carried_version=version
        )

    def record_server_schema(self, schema: TableSchema, at: Coordinates) -> SchemaVersion:
        """Record the structure that the server had at a position."""
        after = self.server_schema().with_table(schema)
        version = self._record(schema.name, schema, at, VersionOrigin.BASELINE)
        self._load(after)
        return version

    def record_persons_schema(
        self, schema: TableSchema, at: Coordinates, columns_from: ColumnsFrom | None
    ) -> SchemaVersion:
        """Record the structure that a person gave for a table from a position on.
        `columns_from`: the former names of its columns; None if the table does not keep
        its rows."""
        # A CREATE TABLE does not show the columns in which MySQL stores expressions of
        # keys.
        schema = replace(schema, expression_columns=())
        after = self.server_schema().with_table(schema)
        versions = reversed(self._all_versions(schema.name))
        before = next((version for version in versions if version.schema is not None), None)
        version = self._record(
            schema.name,
            schema,
            at,
            VersionOrigin.PERSON,
            columns_from=columns_from,
            # A column that the settings hide stays hidden, even if they do not hide its
            # new name.
            predecessor=(before, columns_from) if before and columns_from is not None else None,
        )
        self._load(after)
        return version

    def continue_with(self, version: SchemaVersion) -> None:
        """Continue with a version that was recorded before, without recording it
        again."""
        schema = self.server_schema()
        if version.schema is not None:
            self._loaded_schema = schema.with_table(version.schema)
        elif version.knowledge is Knowledge.DROPPED:
            self._loaded_schema = schema.without_table(version.table)
        else:
            self._loaded_schema = schema.with_unknown_tables(version.table)
        self._current[version.table] = version

    def _load(self, schema: ServerSchema) -> None:
        """Set the schema at the current position, but forget the structure of a table
        to which the settings cannot be applied. Only an earlier version of the table
        says which values are hidden, so no later statement may make it known again."""
        self._loaded_schema = schema.with_unknown_tables(*self._shape_errors)

    def _record(
        self,
        table: TableName,
        schema: TableSchema | None,
        since: Coordinates,
        origin: VersionOrigin,
        *,
        columns_from: ColumnsFrom | None = None,
        statement_number: int | None = None,
        reason: str | None = None,
        predecessor: Predecessor | None = None,
        may_be_renamed: bool = False,
        carried_version: SchemaVersion | None = None,
    ) -> SchemaVersion:
        """Record a version. With a schema it is known; without one it is unknown if a
        reason is given, else dropped. It is also unknown if the settings cannot be
        applied. `predecessor`: the lake may not show more of the table than it shows of
        that version.
        `may_be_renamed`: statements that were not read may have renamed columns since.
        `carried_version`: the version that holds again, which the lake shows as
        before."""
        old = self._current.get(table)
        if old is not None and old.schema is not None:
            self._last_schemas[table] = old.schema
        if self._find_recorded is not None:
            persons_columns = columns_from if origin is VersionOrigin.PERSON else None
            recorded = self._find_recorded(table, since, schema, reason, persons_columns)
            if recorded is not None:
                self._current[table] = recorded
                return recorded
        self._shape_errors.pop(table, None)
        shown_as = None if carried_version is None else carried_version.shown_as
        if schema is not None and carried_version is None and self._shaping is not None:
            try:
                before, former_names = predecessor or (None, columns_from)
                schema, shown_as = self._shaping.for_history(
                    schema, before, former_names, may_be_renamed=may_be_renamed
                )
            except TableError as error:
                schema, columns_from, reason = None, None, error.reason
                self._shape_errors[table] = error
        knowledge = Knowledge.KNOWN if schema is not None else Knowledge.DROPPED
        if reason is not None:
            knowledge = Knowledge.UNKNOWN
        new_versions = self._new_versions.setdefault(table, [])
        number = new_versions[-1].version if new_versions else self._initial.last_number(table)
        generation = 1
        if number and self._generations_of is not None:
            # The versions are read from the ledger once, not once for each statement.
            if table not in self._generations:
                self._generations[table] = self._generations_of(self._all_versions(table))
            generation = self._generations[table].choose(schema, shown_as)
        version = SchemaVersion(
            table,
            number + 1,
            since,
            knowledge,
            origin,
            schema=schema,
            columns_from=columns_from,
            statement_number=statement_number,
            reason=reason,
            generation=generation,
            shown_as=shown_as,
        )
        self._versions.append(version)
        new_versions.append(version)
        if table in self._generations:
            self._generations[table].add(version)
        self._current[table] = version
        return version

    # -- statements --------------------------------------------------------------------

    def follow(self, logged: LoggedStatement) -> FollowedStatement:
        """Move to the end of a statement, and record the versions that the statement
        makes."""
        parsed = read_change(logged.text, logged.context)
        if isinstance(parsed, Irrelevant):
            self._follow_code_statement(logged)
            return FollowedStatement()
        before = self.server_schema()
        names: set[TableName] = set()
        predecessors: dict[TableName, Predecessor] = {}
        if isinstance(parsed, NotUnderstood):
            tables = parsed.possible_tables or ()
            names.update(tables or before.tables)
            after = after_unknown_statement(before.with_unknown_tables(*tables), tables)
            followed = FollowedStatement(not_understood=parsed, kind=parsed.kind)
        else:
            evolved = evolve(before, parsed, logged.context)
            after = with_moved_triggers(evolved.schema, evolved.effects)
            for change in parsed:
                if isinstance(change, RenameTables):
                    after = with_renamed_views(after, change.pairs)
            followed = FollowedStatement(evolved.effects, kind=parsed[0].kind)
            names.update(restructured_tables(parsed, ()), required_tables(parsed))
            predecessors = self._predecessors_of(parsed, followed, before)
        # A statement may spell a table's name in another case than the settings do.
        schemas = (schema.table(name) for schema in (before, after) for name in names)
        names |= {*map(self.fold_case, names), *(t.name for t in schemas if t is not None)}
        statement = recorded_statement(logged, followed)
        if self._shaping is not None:
            statement = self._shaping.statement_record(logged, followed, names)
        self._statements.append(statement)
        after, later_keys = self._with_later_structures(after, logged.end)
        statement_number = len(self._statements) - 1
        self._record_tables(
            before, after, followed, logged.end, statement_number, predecessors, later_keys
        )
        self._record_databases(before, after, logged.end, statement_number)
        self._load(after)
        return followed

    def _predecessors_of(
        self, changes: Sequence[SchemaChange], followed: FollowedStatement, before: ServerSchema
    ) -> dict[TableName, Predecessor]:
        """Return the predecessor of each table that the statement renames, or creates
        LIKE another, by the table's name after the statement, with its case folded."""
        former_tables: dict[TableName, tuple[TableName, ColumnsFrom | None]] = {}
        for effect in followed.effects:
            if isinstance(effect, Renamed):
                former, _ = former_tables.pop(self.fold_case(effect.table), (effect.table, None))
                former_tables[self.fold_case(effect.to)] = former, effect.columns_from or None
        for change in changes:
            if isinstance(change, CreateLike):
                former_tables[self.fold_case(change.table)] = change.like, None
        predecessors: dict[TableName, Predecessor] = {}
        for name, (former, columns_from) in former_tables.items():
            table = before.table(former)
            version = None if table is None else self.version(table.name)
            if version is not None:
                predecessors[name] = version, columns_from
        return predecessors

    def _follow_code_statement(self, logged: LoggedStatement) -> None:
        """Follow a statement that may only change triggers or views."""
        if not may_change_code(logged.text):
            return
        before = self.server_schema()
        self._loaded_schema = after_code_statement(before, logged.text, logged.context)
        self._record_databases(before, self._loaded_schema, logged.end, None)

    def _with_later_structures(
        self, schema: ServerSchema, end: Coordinates
    ) -> tuple[ServerSchema, set[TableName]]:
        """Return the schema with the later structures that are known at the position
        `end`, and the keys of their tables."""
        keys = set[TableName]()
        for name in [name for name, later in self._later_structures.items() if later.since <= end]:
            later = self._later_structures.pop(name)
            if schema.table(name) is None:
                schema = schema.with_table(later.schema)
                keys.add(schema.fold_case(name))
        return schema, keys

    def _record_tables(
        self,
        before: ServerSchema,
        after: ServerSchema,
        followed: FollowedStatement,
        at: Coordinates,
        statement_number: int,
        predecessors: Mapping[TableName, Predecessor],
        later_keys: Collection[TableName],
    ) -> None:
        """Record a version of each table whose structure the statement changed or made
        unknown. `predecessors`: those of renamed tables and of tables created LIKE
        another. `later_keys`: keys of the tables whose structure, unknown before, is
        now known from the server."""
        reasons = {self.fold_case(name): reason for name, reason in unknown_structures(followed)}
        without_defaults = {
            key
            for key, (version, _) in predecessors.items()
            if self.is_from_table_map(version.table)
        }
        former_columns = {
            self.fold_case(name): names for name, names in former_column_names(followed.effects)
        }
        for key in sorted(_changed_tables(before, after)):
            old, new = before.tables.get(key), after.tables.get(key)
            is_unknown = key in after.unknown_tables
            if is_unknown and key in before.unknown_tables:
                continue
            columns_from: ColumnsFrom | None = None
            if new is not None and old is not None:
                columns_from = former_columns.get(key, new.names)
            version = None if old is None else self.version(old.name)
            predecessor = predecessors.get(key)
            if predecessor is None and version is not None:
                predecessor = version, columns_from
            if predecessor is None and new is not None and key in later_keys:
                predecessor = self._possible_predecessor(new)
            table = new or old
            self._record(
                key if table is None else table.name,
                new,
                at,
                # A renamed table and a copy of a table lack the defaults, too.
                VersionOrigin.TABLE_MAP if key in without_defaults else VersionOrigin.STATEMENT,
                columns_from=columns_from,
                statement_number=statement_number,
                reason=reasons.get(key, "not followed") if is_unknown else None,
                predecessor=predecessor,
                may_be_renamed=key in later_keys,
            )

    def _record_databases(
        self,
        before: ServerSchema,
        after: ServerSchema,
        at: Coordinates,
        statement_number: int | None,
    ) -> None:
        for key in sorted({*before.databases, *after.databases}):
            old, new = before.databases.get(key), after.databases.get(key)
            if new != old:
                name = new.name if new is not None else key
                self._databases.append(DatabaseVersion(name, at, new, statement_number))


def _changed_tables(before: ServerSchema, after: ServerSchema) -> set[TableName]:
    """Return the keys of the tables that are not the same in both schemas. A server may
    have thousands of tables, and a log as many statements, so only these are sorted."""
    changed = {key for key, new in after.tables.items() if before.tables.get(key) is not new}
    changed.update(key for key in before.tables if key not in after.tables)
    return changed | (before.unknown_tables ^ after.unknown_tables)


def _names_before(before: TableSchema, after: TableSchema) -> ColumnsFrom:
    """Return the columns of `after`, matched by their names with those of `before`."""
    by_folded_name = {name.lower(): name for name in before.names}
    return tuple(by_folded_name.get(name.lower()) for name in after.names)


def _may_be_renamed(
    other: TableSchema | None, after: TableSchema, before: TableSchema | None
) -> bool:
    """Return whether a table with the structure `after` may be another one that got its
    name. `other`: the last known structure of that one, None if it was never known.
    `before`: the last known structure under this name; None if there is none, or if its
    table was dropped.

    The table has at least half of the other's columns, and each column that it kept is
    also a column of the other. If those of the other were never known, it lacks a
    column from before."""
    names = {name.lower() for name in after.names}
    names_before = set[str]() if before is None else {name.lower() for name in before.names}
    if other is None:
        return before is None or not names_before <= names
    other_names = {name.lower() for name in other.names}
    has_half = len(names & other_names) >= len(other_names) / 2
    return has_half and names & names_before <= other_names


def _without_alike(versions: Iterable[SchemaVersion]) -> list[SchemaVersion]:
    """Return the versions without those that have the columns of an earlier one and are
    shown in the same way. A server can have the same tables in a thousand databases."""
    by_kind: dict[TableName | tuple[tuple[ColumnSchema, ...], str], SchemaVersion] = {}
    for version in versions:
        if version.schema is None or version.shown_as is None:
            by_kind[version.table] = version
        else:
            kind = version.schema.columns, version.shown_as.fingerprint
            by_kind.setdefault(kind, version)
    return list(by_kind.values())
