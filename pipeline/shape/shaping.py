"""What the settings of a source come to for each of its tables: the shape of a structure, what the
history keeps of it, and whether a table shows what its settings say.

Whoever records a structure asks `Shaping.recorded`: the structure that the history keeps has no
values of columns that are hidden, and beside it stands what the lake shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from pipeline.errors import ConfigurationError, Remedy, TableError
from pipeline.schema.evolving.effects import Changed, Created, Dropped, Effect, Renamed
from pipeline.schema.fills import fill_of
from pipeline.schema.history import REDACTED_TEXT, SchemaStatement, SchemaVersion, ShownAs
from pipeline.schema.logged import FollowedStatement, LoggedStatement, recorded_statement
from pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    KeyPart,
    KeySchema,
    LiteralDefault,
    TableSchema,
    WrittenDefault,
)
from pipeline.schema.rows import key_columns, row_structure, schema_of
from pipeline.schema.treatments import (
    ROWS_BY,
    Fate,
    Hash,
    Mask,
    Treatment,
    hides_values,
    shape_in_words,
    treatment_words,
)
from pipeline.schema.types import arrow_type
from pipeline.shape.condition import Condition
from pipeline.shape.hashes import PrivacyKey
from pipeline.shape.redaction import redacted as redacted_text
from pipeline.shape.rules import ShapeRules
from pipeline.shape.shape import Shape, Shaper, is_possible, matches, shape_faults, shape_of
from pipeline.shape.strictness import (
    ShapeChange,
    shape_change,
    shows_no_more,
    stricter,
    stricter_shape,
)
from pipeline.table import Column, TableName, TableStructure
from pipeline.tables import is_helper

REDACTED: Final = "***"
"""What stands in a structure for a value of a hidden column."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """`rules_of`: what the settings say of a table, None for one that is shown as it is. `key`:
    what values are hashed with, None where the settings name none. `hides`: whether any table of
    the source has rules; `captured`: whether a table is followed."""

    rules_of: Callable[[TableName], ShapeRules | None] = lambda _: None
    key: PrivacyKey | None = None
    hides: bool = False
    captured: Callable[[TableName], bool] = lambda _: True

    def shape(self, schema: TableSchema) -> Shape | None:
        """What the rules come to for a structure; TableError for what cannot be done."""
        rules = self.rules_of(schema.name)
        if rules is None:
            return None
        for error in _computed(rules, schema):
            raise error
        structure = row_structure(schema)
        keys, virtual = key_columns(schema), _virtual(schema)
        shape = shape_of(rules, _declared(schema, structure), keys=keys, virtual=virtual)
        return None if shape.shows_all else _of_images(shape, structure)

    def faults(self, schema: TableSchema) -> Iterator[TableError]:
        """Yield everything in the settings of a table that cannot be done for a structure."""
        rules = self.rules_of(schema.name)
        if rules is None:
            return
        declared = _declared(schema, row_structure(schema))
        keys, virtual = key_columns(schema), _virtual(schema)
        yield from shape_faults(rules, declared, keys=keys, virtual=virtual)
        yield from _computed(rules, schema)
        if rules.hash_columns and self.key is None:
            yield _no_key()

    def in_words(self, schema: TableSchema) -> str:
        """What the lake is to show of a structure, in one line; empty if that is all of it.
        TableError for what cannot be done."""
        shape = self.shape(schema)
        if shape is None:
            return ""
        names, count = shape.source.names, len(schema.columns)
        rows = None if shape.condition is None else shape.condition.text
        return shape_in_words(names[:count], shape.treatments[:count], rows)

    def hidden(self, schema: TableSchema) -> frozenset[str]:
        """Names, in lower case, of the columns of which the rules hide values, whatever else is
        wrong with them."""
        rules = self.rules_of(schema.name)
        return frozenset() if rules is None else hidden_by(rules, row_structure(schema))

    def treated(self, schema: TableSchema) -> Mapping[str, str]:
        """The columns of a structure that are not shown as they are or that decide which rows are
        taken, in lower case, each with what becomes of it in words."""
        try:
            shape = self.shape(schema)
        except TableError:  # whoever records the structure says so
            return {}
        if shape is None:
            return {}
        found = {
            name.lower(): treatment_words(treatment)
            for name, treatment in zip(shape.source.names, shape.treatments, strict=True)
            if treatment is not Fate.SHOWN
        }
        for name in () if shape.condition is None else shape.condition.columns:
            found[name.lower()] = f"{found.get(name.lower(), '')} {ROWS_BY}".strip()
        return found

    def hides_column(self, table: TableName, name: str) -> bool:
        """Whether the rules of a table hide values of a column of that name."""
        rules = self.rules_of(table)
        column = Column(name, "text", True)
        return rules is not None and bool(hidden_by(rules, TableStructure(table, (column,), ())))

    def redacted(self, schema: TableSchema) -> TableSchema:
        """A structure without the values of the columns that its rules hide."""
        return redacted(schema, self.hidden(schema))

    def recorded(
        self,
        schema: TableSchema,
        before: SchemaVersion | None = None,
        columns_from: Sequence[str | None] | None = None,
    ) -> tuple[TableSchema, ShownAs | None]:
        """See `schema.tracker.Shapes`."""
        shape = self.shape(schema)
        origins = {c.name.lower(): c.name.lower() for c in schema.columns}
        if columns_from is not None:
            names = (column.name.lower() for column in schema.columns)
            origins = {n: o.lower() for n, o in zip(names, columns_from, strict=True) if o}
        if before is not None and not self.captured(schema.name):
            shape = self._as_strict(shape, schema, before, origins)
        shown_as = self._shown_as(schema, shape)
        if before is not None and self.captured(schema.name):
            more = shows_more(before, shown_as, schema, origins)
            if more is not None:
                raise TableError(more, hint=consent_hint(schema.name), remedy=Remedy.CONSENT)
        hidden = {*self.hidden(schema)}
        if before is not None:
            then = hidden_of(before)
            hidden |= {name for name, origin in origins.items() if origin in then}
        return redacted(schema, hidden), shown_as

    def _as_strict(
        self,
        shape: Shape | None,
        schema: TableSchema,
        before: SchemaVersion,
        origins: Mapping[str, str],
    ) -> Shape | None:
        """The shape of a table that is not captured, which shows no more than the version whose
        rows or columns it has: its next name may be one that is captured."""
        then = before.shown_as
        if then is None or before.schema is None:
            return shape
        names = (column.name.lower() for column in before.schema.columns)
        had = dict(zip(names, then.treatments, strict=True))
        shape = shape or _whole(schema)
        keys = key_columns(schema)
        treatments = list(shape.treatments)
        for index, column in enumerate(shape.source.columns[: len(schema.columns)]):
            fate = had.get(origins.get(column.name.lower(), ""), Fate.SHOWN)
            fate = stricter(treatments[index], fate)
            possible = is_possible(column, fate, is_key=column.name in keys)
            treatments[index] = fate if possible else Fate.LEFT_OUT
        condition = shape.condition if then.rows is None else _condition(then.rows)
        shape = replace(shape, treatments=tuple(treatments), condition=condition)
        return None if shape.shows_all else shape

    def _shown_as(self, schema: TableSchema, shape: Shape | None) -> ShownAs | None:
        if shape is None:
            return None
        if shape.hashes and self.key is None:
            raise _no_key()
        return ShownAs(
            shape.treatments[: len(schema.columns)],
            None if shape.condition is None else shape.condition.text,
            self.key.fingerprint if self.key is not None and shape.hashes else None,
            self._shown(schema, shape),
        )

    def statement(
        self, logged: LoggedStatement, followed: FollowedStatement, tables: Collection[TableName]
    ) -> SchemaStatement:
        """Without the values in its text if it names a table of which values are hidden, or a
        helper of an online schema change, which may be the copy of one."""
        if not self.hides or not any(is_helper(one) or self.rules_of(one) for one in tables):
            return recorded_statement(logged, followed)
        text = redacted_text(logged.text, logged.context)
        whole = recorded_statement(replace(logged, text=text), self._without_values(followed))
        if whole.text == logged.text:
            return whole
        return replace(whole, context={**whole.context, REDACTED_TEXT: True})

    def _without_values(self, followed: FollowedStatement) -> FollowedStatement:
        why = followed.not_understood
        if why is not None:
            why = replace(why, reason="it is not understood, and its text has hidden values")
        effects = tuple(map(self._effect, followed.effects))
        return replace(followed, effects=effects, not_understood=why)

    def _effect(self, effect: Effect) -> Effect:
        """An effect with structures as the history keeps them; helpers of online schema changes
        have no rules of their own, and lose all values."""
        match effect:
            case Changed(table, before, after, columns_from):
                return Changed(table, self._bare(before), self._bare(after), columns_from)
            case Created(table, after):
                return Created(table, self._bare(after))
            case Renamed(_, _, after) if after is not None:
                return replace(effect, after=self._bare(after))
            case Dropped(table, before) if before is not None:
                return Dropped(table, self._bare(before))
            case _:
                return effect

    def _bare(self, schema: TableSchema) -> TableSchema:
        return redacted(schema, {column.name.lower() for column in schema.columns})

    def fingerprint(self, schema: TableSchema) -> str | None:
        """That of how a structure is shown now, as `SchemaVersion.shape`. TableError as
        `recorded`."""
        shown_as = self._shown_as(schema, self.shape(schema))
        return None if shown_as is None else shown_as.fingerprint

    def shaper(self, version: SchemaVersion) -> Shaper | None:
        """The function from rows of a version to what is shown of them; None: they are shown as
        they are. `ConfigurationError` where they are hashed with another key than the settings
        have, and TableError where that key is replaced: two keys never hash for one version."""
        if version.shown_as is None or version.schema is None:
            return None
        self.require_key(version)
        if version.shown_as.key not in (None, self.key and self.key.fingerprint):
            raise TableError(
                "its values were hashed with the key that is replaced",
                hint=f"`lockstep reload {version.table} --reason …` reads all of it",
                remedy=Remedy.RESNAPSHOT,
            )
        return Shaper(_shape_of_version(version.schema, version.shown_as), self.key)

    def require_key(self, version: SchemaVersion) -> None:
        """`ConfigurationError` unless the settings have the key that a version is hashed with, or
        say that theirs replaces it."""
        shown_as = version.shown_as
        have = None if self.key is None else self.key.fingerprint
        if shown_as is None or shown_as.key is None or shown_as.key == have:
            return
        if self.key is not None and shown_as.key == self.key.replaces:
            return
        raise ConfigurationError(
            f"columns of {version.table} are hashed with the key {shown_as.key}, and the settings "
            + ("have none" if have is None else f"have the key {have}"),
            hint="give the key with that fingerprint under [privacy] in lockstep.toml; or replace "
            f'it on purpose: replaces = "{shown_as.key}" there has every table with hashes read '
            "again",
        )

    def changed(self, version: SchemaVersion) -> str | None:
        """What of a version is to be shown otherwise, in a few words; None if it is shown as the
        settings say. TableError for settings that cannot be followed."""
        if version.schema is None:
            return None
        shape = self.shape(version.schema)
        before = version.shown_as
        if shape is None and before is None:
            return None
        count = len(version.schema.columns)
        now = (Fate.SHOWN,) * count if shape is None else shape.treatments[:count]
        then = (Fate.SHOWN,) * count if before is None else before.treatments
        names = [column.name for column in version.schema.columns]
        others = [name for name, a, b in zip(names, then, now, strict=True) if a != b]
        if others:
            return f"other settings hold for {', '.join(others)}"
        rows = None if shape is None or shape.condition is None else shape.condition.text
        if rows != (None if before is None else before.rows):
            return "another condition decides which rows are taken"
        hashed = any(isinstance(treatment, Hash) for treatment in now)
        key = None if self.key is None else self.key.fingerprint
        if hashed and before is not None and before.key != key:
            return "another key makes its hashes"
        return None

    def change(self, version: SchemaVersion) -> ShapeChange:
        """What the settings change of what is shown of a version; TableError as `changed`."""
        if version.schema is None:
            return ShapeChange()
        before, after = self._shapes_of(version, version.schema)
        key = None if version.shown_as is None else version.shown_as.key
        other = key is not None and self.key is not None and key != self.key.fingerprint
        return shape_change(before, after, key_replaced=other)

    def _shapes_of(self, version: SchemaVersion, schema: TableSchema) -> tuple[Shape, Shape]:
        """How a version is shown, and how the settings would show it."""
        then, whole = version.shown_as, _whole(schema)
        before = whole if then is None else _shape_of_version(schema, then)
        return before, self.shape(schema) or whole

    def cleared(self, version: SchemaVersion, columns: Collection[str]) -> SchemaVersion:
        """A version of before without the values that the settings hide now, or that stand in
        these columns: it shows no more than it did, and no more than the settings say."""
        if version.schema is None:
            return version
        names = {name.lower() for name in columns}
        hidden = self.hidden(version.schema) | hidden_of(version) | names
        schema, shown_as = redacted(version.schema, hidden), version.shown_as
        try:
            shape = stricter_shape(*self._shapes_of(replace(version, schema=schema), schema))
            condition = None if shape.condition is None else shape.condition.text
            key = None if shown_as is None else shown_as.key
            if key is None and self.key is not None and shape.hashes:
                key = self.key.fingerprint
            if not shape.shows_all:
                treatments = shape.treatments[: len(schema.columns)]
                shown_as = ShownAs(treatments, condition, key, self._shown(schema, shape))
        except TableError:
            if shown_as is not None:
                shown_as = replace(shown_as, schema=redacted(shown_as.schema, hidden))
        return replace(version, schema=schema, shown_as=shown_as)

    def _shown(self, schema: TableSchema, shape: Shape) -> TableSchema:
        """The structure that the lake shows."""
        defaults = _shaped_defaults(schema, shape, self.key)
        columns = tuple(
            column if treatment is Fate.SHOWN else _shown_column(column, now, default)
            for (column, treatment, now), default in zip(
                _visible(schema, shape), defaults, strict=True
            )
        )
        names = {column.name.lower() for column in columns}
        unique = {
            now.name.lower()
            for now, treatment in zip(shape.source.columns, shape.treatments, strict=True)
            if is_possible(now, treatment, is_key=True)
        }
        keys = (
            _shown_key(key, unique if key.kind in ("primary", "unique") else names)
            for key in schema.keys
            if not key.hashed
        )
        return replace(
            schema,
            columns=columns,
            keys=tuple(key for key in keys if key is not None),
            foreign_keys=(),
            hidden=(),
        )


def hidden_by(rules: ShapeRules, structure: TableStructure) -> frozenset[str]:
    """Names, in lower case, of the columns that rules name to be left out, hashed or masked."""

    def hides(name: str) -> bool:
        patterns = (
            *(rules.exclude_columns or ()),
            *(rules.hash_columns or {}),
            *(rules.mask_columns or {}),
        )
        included = rules.include_columns
        return matches(patterns, name) or (included is not None and not matches(included, name))

    return frozenset(name.lower() for name in structure.names if hides(name))


def _computed(rules: ShapeRules, schema: TableSchema) -> Iterator[TableError]:
    """Yield what is wrong with columns that are shown and whose values the server makes of hidden
    ones. An expression that the history keeps without its values was judged when it was read."""
    hidden = hidden_by(rules, row_structure(schema))
    for column in schema.columns if hidden else ():
        default = column.default
        text = default.text if isinstance(default, ExpressionDefault) else column.generated
        if text is None or column.name.lower() in hidden:
            continue
        for name in sorted(hidden):
            # As a word of a literal, too: in doubt nothing is shown.
            spelled = re.escape(name.replace("`", "``"))
            if not re.search(rf"(?<![\w$]){spelled}(?![\w$])", text, re.IGNORECASE):
                continue
            yield TableError(
                f"column {column.name!r} is computed from {name!r}, which is hidden, and would "
                "show it",
                hint=f"add {column.name!r} to exclude_columns or hash_columns of this table",
            )


def hidden_columns(schema: TableSchema, treatments: tuple[Treatment, ...]) -> frozenset[str]:
    """Names, in lower case, of the columns of which not every value is shown."""
    return frozenset(
        column.name.lower()
        for column, treatment in zip(schema.columns, treatments, strict=True)
        if hides_values(treatment)
    )


def hidden_of(version: SchemaVersion) -> frozenset[str]:
    """The same of a version of the history."""
    if version.schema is None or version.shown_as is None:
        return frozenset()
    return hidden_columns(version.schema, version.shown_as.treatments)


def redacted(schema: TableSchema, hidden: Set[str]) -> TableSchema:
    """A structure without the values of hidden columns: defaults, members of ENUM and SET, and
    expressions that name them. The count of members stays, which the log's decoder needs."""
    if not hidden:
        return schema
    columns = tuple(_redacted_column(column, hidden) for column in schema.columns)
    keys = tuple(replace(key, parts=tuple(map(_redacted_part, key.parts))) for key in schema.keys)
    return replace(schema, columns=columns, keys=keys)


def _redacted_column(column: ColumnSchema, hidden: Set[str]) -> ColumnSchema:
    generated = column.generated
    if generated is not None and any(name in generated.lower() for name in hidden):
        column = replace(column, generated=REDACTED)
    if column.name.lower() not in hidden:
        return column
    return replace(
        column,
        members=redacted_members(column.members),
        default=None if column.default is None else WrittenDefault(REDACTED),
    )


def redacted_members(members: Sequence[str]) -> tuple[str, ...]:
    """As many, of which no two are the same."""
    return tuple(f"{REDACTED}{number}" for number, _ in enumerate(members, 1))


def _redacted_part(part: KeyPart) -> KeyPart:
    return part if part.expression is None else replace(part, expression=REDACTED)


def consent_hint(table: TableName) -> str:
    """The cure for a table that may show more than it did."""
    return (
        f"give {table} a shape under [[sources.table]] that shows no more, then `lockstep resume "
        f"{table} --reason …`; to resume it without such a shape is your consent to show it, which "
        "is recorded with its reason"
    )


def shows_more(
    before: SchemaVersion,
    after: ShownAs | None,
    schema: TableSchema,
    origins: Mapping[str, str],
) -> str | None:
    """Why a table with that structure, whose rows or columns are those of `before`, would show
    more of them; None if it shows no more. `origins`: for its columns the names they had."""
    then = before.shown_as
    if then is None or before.schema is None:
        return None
    names = (column.name.lower() for column in before.schema.columns)
    hidden = dict(zip(names, then.treatments, strict=True))
    now = (Fate.SHOWN,) * len(schema.columns) if after is None else after.treatments
    for column, treatment in zip(schema.columns, now, strict=True):
        origin = origins.get(column.name.lower())
        if origin is None or shows_no_more(treatment, hidden.get(origin, Fate.SHOWN)):
            continue
        return (
            f"its column {column.name!r} shows more than the settings of {before.table} show of "
            f"{origin!r}, whose values it has"
        )
    if then.rows is not None and (after is None or after.rows != then.rows):
        return f"the settings of {before.table} leave rows out, and its own take them"
    return None


# -- shapes of structures ----------------------------------------------------------------------


def _declared(schema: TableSchema, structure: TableStructure) -> TableStructure:
    """Without columns that MariaDB adds for itself."""
    return replace(structure, columns=structure.columns[: len(schema.columns)])


def _virtual(schema: TableSchema) -> frozenset[str]:
    columns = schema.columns
    return frozenset(c.name for c in columns if c.generated is not None and not c.stored)


def _no_key() -> TableError:
    return TableError(
        "its settings hash columns, and there is no key to do it with",
        hint='set key = "env:…" under [privacy] in lockstep.toml',
    )


# -- shapes of versions --------------------------------------------------------------------------


def _of_images(shape: Shape, structure: TableStructure) -> Shape:
    """The shape of row images, which may end with columns that MariaDB adds for itself: they
    hold hashes of the table's values, and are left out."""
    more = len(structure.columns) - len(shape.treatments)
    return replace(shape, source=structure, treatments=(*shape.treatments, *[Fate.LEFT_OUT] * more))


def _whole(schema: TableSchema) -> Shape:
    """The shape of a table that is shown as it is."""
    structure = row_structure(schema)
    return _of_images(Shape(structure, (Fate.SHOWN,) * len(schema.columns)), structure)


def _shape_of_version(schema: TableSchema, shown_as: ShownAs) -> Shape:
    condition = None if shown_as.rows is None else _condition(shown_as.rows)
    structure = row_structure(schema)
    return _of_images(Shape(structure, shown_as.treatments, condition), structure)


def _condition(text: str) -> Condition:
    # With sqlglot, which takes a fifth of a second, only where there is a condition.
    from pipeline.shape.condition_text import read_condition

    return read_condition(text)


def _visible(schema: TableSchema, shape: Shape) -> Iterator[tuple[ColumnSchema, Treatment, Column]]:
    """The columns that are shown in some form, each with its treatment and as it is shown."""
    shown = iter(shape.structure.columns)
    for column, treatment in zip(schema.columns, shape.treatments, strict=False):
        if treatment is not Fate.LEFT_OUT:
            yield column, treatment, next(shown)


def _shaped_defaults(
    schema: TableSchema, shape: Shape, key: PrivacyKey | None
) -> Iterator[pa.Scalar | None]:
    """What each visible column's default is shown as; None where only the server knows it, or
    where it cannot be shown."""
    for column, read, treatment in zip(
        schema.columns, shape.source.columns, shape.treatments, strict=False
    ):
        if treatment is Fate.LEFT_OUT:
            continue
        kind = arrow_type(read)
        if treatment == Mask("null"):
            yield pa.scalar(None, kind)
            continue
        fill = fill_of(column, kind, None)
        if fill is None:
            yield None
            continue
        alone = Shape(replace(shape.source, columns=(read,), primary_key=()), (treatment,))
        rows = pa.RecordBatch.from_arrays([pa.array([fill.as_py()], kind)], names=[read.name])
        try:
            yield Shaper(alone, key).rows(rows).column(0)[0]
        except TableError:  # the type that it is shown as does not hold it: '' is no UUID
            yield None


def _shown_column(column: ColumnSchema, now: Column, default: pa.Scalar | None) -> ColumnSchema:
    """A column as the lake has it instead."""
    shown = schema_of(TableStructure(TableName("", ""), (now,), ())).columns[0]
    if default is None:
        return replace(shown, default=WrittenDefault(REDACTED))
    value = default.as_py()
    if value is None:
        return replace(shown, default=None, nullable=True)
    text = f"b'{int(value)}'" if isinstance(value, bool) else str(value)
    return replace(shown, default=LiteralDefault(text))


def _shown_key(key: KeySchema, names: Set[str]) -> KeySchema | None:
    """A key of which every column is among these."""
    parts = [part.column for part in key.parts]
    shown = all(column is not None and column.lower() in names for column in parts)
    return key if shown else None
