"""The structures of one source, followed along one reading of its log.

Not here: where the first structures come from (`pipeline.runs.capturing.initial_schemas`), what a
change means for a lake (`consequences`).

Tables are asked for one by one until the first statement that changes something; then all
of them are, once. So a run without such a statement pays for the tables it has rows of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pipeline.errors import TableError
from pipeline.position import Coordinates
from pipeline.schema.code import (
    after_effects,
    after_unknown,
    may_change_code,
    renamed_views,
    with_code,
)
from pipeline.schema.evolve import evolve, forget
from pipeline.schema.evolving.effects import Renamed
from pipeline.schema.history import (
    DatabaseVersion,
    History,
    Knowledge,
    SchemaStatement,
    SchemaVersion,
    ShownAs,
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
from pipeline.schema.statements.changes import (
    CreateLike,
    Irrelevant,
    NotUnderstood,
    RenameTables,
    SchemaChange,
    needed_by,
    touched_by,
)
from pipeline.schema.statements.read import read_change
from pipeline.table import TableName, TableStructure


@dataclass(frozen=True, slots=True)
class Later:
    """What the server was found to have, for a table whose statements before `since` begin
    at a structure that nobody knows; the last of them ends there."""

    since: Coordinates
    schema: TableSchema


ColumnsFrom = tuple[str | None, ...]
"""For each column the name it had before, None for a new one."""

Origin = tuple[SchemaVersion, ColumnsFrom | None]
"""The version whose rows or columns a table has, and which of its columns is which of them; None
where names tell."""


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


@dataclass(slots=True)
class HeldStructures:
    """`KnownStructures` at hand. `tables`: the newest version of each; `ever`: all of one."""

    tables: dict[TableName, SchemaVersion] = field(default_factory=dict)
    schemas: Sequence[DatabaseVersion] = ()
    ever: Callable[[TableName], Sequence[SchemaVersion]] = lambda _: ()
    numbers: Mapping[TableName, int] = field(default_factory=dict)

    def one(self, table: TableName) -> SchemaVersion | None:
        return self.tables.get(table)

    def all(self) -> Sequence[SchemaVersion]:
        return [one for one in self.tables.values() if one.knowledge is not Knowledge.DROPPED]

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return self.ever(table)

    def referring(self) -> Sequence[SchemaVersion]:
        return [one for one in self.all() if one.schema is not None and one.schema.foreign_keys]

    def databases(self) -> Sequence[DatabaseVersion]:
        return self.schemas

    def last_number(self, table: TableName) -> int:
        return self.numbers.get(table, 0)


Generation = Callable[
    [Sequence[SchemaVersion], TableSchema | None, ShownAs | None, TableSchema | None], int
]
"""Which of a changelog's generations the rows of a new version go to, by the versions there
were: what the lake shows, how, and of which structure."""


Recorded = Callable[
    [TableName, Coordinates, TableSchema | None, str | None, ColumnsFrom | None],
    SchemaVersion | None,
]
"""The version that an earlier reading of the same place recorded of a table, if it says the
same: this schema, or for None that it is dropped, or unknown for this reason. Columns of before
are given where a person said which they are."""


class Shapes(Protocol):
    """What the settings say of how the lake shows tables (`pipeline.shape.shaping`)."""

    def recorded(
        self,
        schema: TableSchema,
        before: SchemaVersion | None = None,
        columns_from: ColumnsFrom | None = None,
    ) -> tuple[TableSchema, ShownAs | None]:
        """The structure as the history keeps it, and how it is shown. `before`: the version whose
        rows or columns it has; `columns_from`: for each column the name it had there, None where
        names tell. TableError where it cannot be shown as the settings say."""

    def statement(
        self, logged: LoggedStatement, followed: FollowedStatement, tables: Collection[TableName]
    ) -> SchemaStatement:
        """A statement that names these tables, as the history keeps it."""


class AsTheyAre:
    """The `Shapes` of settings that say nothing: every table is shown as it is."""

    def recorded(
        self,
        schema: TableSchema,
        before: SchemaVersion | None = None,
        columns_from: ColumnsFrom | None = None,
    ) -> tuple[TableSchema, ShownAs | None]:
        return schema, None

    def statement(
        self, logged: LoggedStatement, followed: FollowedStatement, tables: Collection[TableName]
    ) -> SchemaStatement:
        return recorded_statement(logged, followed)


class SchemaTracker:
    """`known`: the structures at the beginning; `later`: those that are known only from a
    place on; `recorded`: what is known already of places further on, and stays as it is;
    `shapes`: how the lake shows tables."""

    def __init__(
        self,
        known: KnownStructures,
        *,
        lower_case_table_names: int = 0,
        generation: Generation | None = None,
        later: Mapping[TableName, Later] | None = None,
        recorded: Recorded | None = None,
        shapes: Shapes | None = None,
    ) -> None:
        self._known = known
        self._shapes = shapes or AsTheyAre()
        self._generation = generation
        self._recorded = recorded
        self._folding = lower_case_table_names
        self._later = dict(later or {})
        self._schema: ServerSchema | None = None
        self._current: dict[TableName, SchemaVersion | None] = {}
        self._made: dict[TableName, list[SchemaVersion]] = {}
        self._before: dict[TableName, TableSchema] = {}
        self._not_shown: dict[TableName, TableError] = {}
        self._versions: list[SchemaVersion] = []
        self._statements: list[SchemaStatement] = []
        self._databases: list[DatabaseVersion] = []

    @property
    def history(self) -> History:
        return History(tuple(self._statements), tuple(self._versions), tuple(self._databases))

    @property
    def statements(self) -> int:
        return len(self._statements)

    def version(self, table: TableName) -> SchemaVersion | None:
        """The table's structure at this place of the log; None where nothing was ever
        known of it."""
        if table not in self._current:
            self._current[table] = self._known.one(table)
        return self._current[table]

    def last_known(self, table: TableName) -> TableSchema | None:
        """The table's structure at this place, or before it, where it is not known here."""
        version = self.version(table)
        known = None if version is None else version.schema
        return known or self._before.get(table)

    def known_from(self, table: TableName) -> Coordinates | None:
        """Where a structure that is unknown here is known again."""
        later = self._later.get(table)
        return later.since if later else None

    def not_shown(self, table: TableName) -> TableError | None:
        """Why the table's structure at this place cannot be shown as the settings say, if this
        reading came upon it; None if it can."""
        return self._not_shown.get(table)

    def told_by_log(self, table: TableName) -> bool:
        """Whether what is known of the table comes from the log's own account of it, which
        tells no defaults."""
        told = False
        for version in self._ever(table):
            if version.origin is VersionOrigin.TABLE_MAP:
                told = True
            elif version.origin in (VersionOrigin.BASELINE, VersionOrigin.PERSON) or (
                version.origin is VersionOrigin.STATEMENT and version.columns_from is None
            ):
                told = False
        return told

    def _ever(self, table: TableName) -> list[SchemaVersion]:
        return [*self._known.versions(table), *self._made.get(table, ())]

    def referring(self) -> Sequence[TableSchema]:
        if self._schema is not None:
            return [table for table in self._schema.tables.values() if table.foreign_keys]
        versions = self._with_current(self._known.referring())
        schemas = (version.schema for version in versions.values())
        return [schema for schema in schemas if schema is not None and schema.foreign_keys]

    def fold(self, table: TableName) -> TableName:
        return ServerSchema(lower_case_table_names=self._folding).fold(table)

    def whole(self) -> ServerSchema:
        if self._schema is None:
            schema = ServerSchema(lower_case_table_names=self._folding)
            for database in self._known.databases():
                if database.schema is not None:
                    schema = schema.with_database(database.schema)
            versions = self._with_current(self._known.all())
            self._current.update(versions)
            tables = {n: v.schema for n, v in versions.items() if v.schema is not None}
            unknown = {n for n, v in versions.items() if v.knowledge is Knowledge.UNKNOWN}
            self._schema = ServerSchema(
                schema.databases,
                {schema.fold(name): table for name, table in tables.items()},
                frozenset(schema.fold(name) for name in unknown),
                self._folding,
            )
        return self._schema

    def _with_current(self, known: Iterable[SchemaVersion]) -> dict[TableName, SchemaVersion]:
        """What was known of some tables at the beginning, as it is here, and every table that
        was asked for since."""
        versions = {version.table: version for version in known}
        current = self._current.items()
        return versions | {name: version for name, version in current if version is not None}

    # -- from elsewhere ----------------------------------------------------------------

    def told_by_map(self, structure: TableStructure, at: Coordinates) -> SchemaVersion:
        """The log itself says how the table is built."""
        schema = schema_of(structure)
        if self._schema is not None:
            self._schema = self._schema.with_table(schema)
        return self._record(structure.name, schema, at, VersionOrigin.TABLE_MAP)

    def begin_with(
        self, versions: Iterable[SchemaVersion], databases: Iterable[DatabaseVersion]
    ) -> None:
        """What was found at the beginning, to be recorded with this reading. A table that
        was known before goes on with its rows; which column is which only the names tell."""
        for version in versions:
            columns_from = None
            if version.schema is not None:
                columns_from = self._same_names(version.table, version.schema)
            self._record(
                version.table,
                version.schema,
                version.since,
                version.origin,
                columns_from=columns_from,
                reason=version.reason,
            )
        self._databases += databases

    def _same_names(self, table: TableName, after: TableSchema) -> ColumnsFrom | None:
        """Which column is which by their names; None if no structure of the table was known when
        the reading began."""
        if not self._known.last_number(table):
            return None
        known = (version.schema for version in reversed(self._known.versions(table)))
        before = next((schema for schema in known if schema is not None), None)
        if before is None:
            return None
        columns = (before.column(column.name) for column in after.columns)
        return tuple(None if column is None else column.name for column in columns)

    def carry(self, table: TableName, version: SchemaVersion | None, at: Coordinates) -> None:
        """An older version holds again from there on; None: the table is not there, or
        nobody knew of it."""
        schema = None if version is None else version.schema
        reason = None if version is None else version.reason
        self._record(table, schema, at, VersionOrigin.CARRIED, reason=reason, carried=version)

    def adopt(self, schema: TableSchema, at: Coordinates) -> SchemaVersion:
        """What the server was found to have at a place."""
        self._schema = self.whole().with_table(schema)
        return self._record(schema.name, schema, at, VersionOrigin.BASELINE)

    def take_word(
        self, schema: TableSchema, at: Coordinates, columns_from: ColumnsFrom | None
    ) -> SchemaVersion:
        """What a person says the table has from a place on, and which of its columns is which
        of before; None where it does not go on with its rows. Where hidden columns stand no
        CREATE TABLE tells."""
        schema = replace(schema, hidden=())
        self._schema = self.whole().with_table(schema)
        ever = reversed(self._ever(schema.name))
        before = next((version for version in ever if version.schema is not None), None)
        goes_on = before is not None and columns_from is not None
        return self._record(
            schema.name,
            schema,
            at,
            VersionOrigin.PERSON,
            columns_from=columns_from,
            # A column that gets a name which the settings do not hide stays hidden.
            shaped_like=(before, columns_from) if before is not None and goes_on else None,
        )

    def resume(self, version: SchemaVersion) -> None:
        """The version that holds for a table from here on, recorded by another reading."""
        whole = self.whole()
        if version.schema is not None:
            self._schema = whole.with_table(version.schema)
        elif version.knowledge is Knowledge.DROPPED:
            self._schema = whole.without_table(version.table)
        self._current[version.table] = version

    def _record(
        self,
        table: TableName,
        schema: TableSchema | None,
        since: Coordinates,
        origin: VersionOrigin,
        *,
        columns_from: ColumnsFrom | None = None,
        statement: int | None = None,
        reason: str | None = None,
        shaped_like: Origin | None = None,
        carried: SchemaVersion | None = None,
    ) -> SchemaVersion:
        """From here on the table is known so, or for None dropped, or unknown for a reason; it is
        unknown, too, if it cannot be shown as the settings say. `shaped_like`: of which it may
        show no more than that does; `carried`: the version that holds again, in its own shape."""
        old = self._current.get(table)
        if old is not None and old.schema is not None:
            self._before[table] = old.schema
        word = columns_from if origin is VersionOrigin.PERSON else None
        told = self._recorded and self._recorded(table, since, schema, reason, word)
        if told:
            self._current[table] = told
            return told
        self._not_shown.pop(table, None)
        shown_as = None if carried is None else carried.shown_as
        if schema is not None and carried is None:
            try:
                before, names = shaped_like or (None, columns_from)
                schema, shown_as = self._shapes.recorded(schema, before, names)
            except TableError as error:
                schema, columns_from, reason = None, None, error.reason
                self._not_shown[table] = error
        knowledge = Knowledge.KNOWN if schema is not None else Knowledge.DROPPED
        if reason is not None:
            knowledge = Knowledge.UNKNOWN
        made = self._made.setdefault(table, [])
        number = made[-1].version if made else self._known.last_number(table)
        generation = 1
        if number and self._generation is not None:
            shown = schema if shown_as is None else shown_as.schema
            generation = self._generation(self._ever(table), shown, shown_as, schema)
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
            shown_as=shown_as,
        )
        self._versions.append(version)
        made.append(version)
        self._current[table] = version
        return version

    # -- statements --------------------------------------------------------------------

    def take(self, logged: LoggedStatement) -> FollowedStatement:
        read = read_change(logged.text, logged.context)
        if isinstance(read, Irrelevant):
            self._take_code(logged)
            return FollowedStatement()
        before, touched = self.whole(), set[TableName]()
        like: dict[TableName, Origin] = {}
        if isinstance(read, NotUnderstood):
            touched.update(read.may_touch or before.tables)
            after = after_unknown(forget(before, read.may_touch or ()), read.may_touch or ())
            followed = FollowedStatement(not_understood=read, kind=read.kind)
        else:
            done = evolve(before, read, logged.context)
            after = after_effects(done.schema, done.effects)
            pairs = [pair for one in read if isinstance(one, RenameTables) for pair in one.pairs]
            after = renamed_views(after, pairs)
            followed = FollowedStatement(done.effects, kind=read[0].kind)
            touched.update(touched_by(read, ()), needed_by(read))
            like = self._origins_of(read, followed, before)
        # Settings speak of tables by the names that structures have, which a statement may spell
        # otherwise.
        spelled = (schema.table(name) for schema in (before, after) for name in touched)
        touched |= {*map(self.fold, touched), *(one.name for one in spelled if one is not None)}
        self._statements.append(self._shapes.statement(logged, followed, touched))
        self._schema = self._caught_up(after, logged.end)
        number = len(self._statements) - 1
        self._note_tables(before, self._schema, followed, logged.end, number, like)
        self._note_databases(before, self._schema, logged.end, number)
        # What hides its values is known of the version before alone: the next change could not
        # be held against it.
        self._schema = forget(self._schema, [*self._not_shown])
        return followed

    def _origins_of(
        self, changes: Sequence[SchemaChange], followed: FollowedStatement, before: ServerSchema
    ) -> dict[TableName, Origin]:
        """Whose rows or columns a table has from here on under its name, by that name as
        structures are keyed: those of the name that it had, or of the table that it is like."""
        names: dict[TableName, tuple[TableName, ColumnsFrom | None]] = {}
        for effect in followed.effects:
            if isinstance(effect, Renamed):
                had, _ = names.pop(self.fold(effect.table), (effect.table, None))
                names[self.fold(effect.to)] = had, effect.columns_from or None
        for change in changes:
            if isinstance(change, CreateLike):
                names[self.fold(change.table)] = change.like, None
        found: dict[TableName, Origin] = {}
        for name, (had, columns_from) in names.items():
            table = before.table(had)
            version = None if table is None else self.version(table.name)
            if version is not None:
                found[name] = version, columns_from
        return found

    def _take_code(self, logged: LoggedStatement) -> None:
        if not may_change_code(logged.text):
            return
        before = self.whole()
        self._schema = with_code(before, logged.text, logged.context)
        self._note_databases(before, self._schema, logged.end, None)

    def _caught_up(self, schema: ServerSchema, end: Coordinates) -> ServerSchema:
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
        like: Mapping[TableName, Origin],
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
            columns_from = origin if new is not None and old is not None else None
            own = None if old is None else self.version(old.name)
            self._record(
                key if either is None else either.name,
                new,
                at,
                VersionOrigin.STATEMENT,
                columns_from=columns_from,
                statement=statement,
                reason=why.get(key, "not followed") if is_unknown else None,
                shaped_like=like.get(key) or (None if own is None else (own, columns_from)),
            )

    def _note_databases(
        self, before: ServerSchema, after: ServerSchema, at: Coordinates, statement: int | None
    ) -> None:
        for key in sorted({*before.databases, *after.databases}):
            old, new = before.databases.get(key), after.databases.get(key)
            if new != old:
                name = new.name if new is not None else key
                self._databases.append(DatabaseVersion(name, at, new, statement))
