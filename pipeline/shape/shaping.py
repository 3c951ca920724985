"""The settings of all tables of a source, applied to structures.

They decide how the lake shows a structure (its shape: a treatment for each column, and
a condition on rows) and what the history stores of it. Every structure is recorded as
`Shaping.for_history` returns it: without the values of hidden columns (left out, hashed
or masked), and with how the lake shows the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from lockstep.pipeline.schema.effects import (
    Changed,
    Created,
    Dropped,
    Effect,
    FollowedStatement,
    LoggedStatement,
    Renamed,
    recorded_statement,
)
from lockstep.pipeline.schema.fills import fill_of
from lockstep.pipeline.schema.history import (
    REDACTED_TEXT,
    USED_BY_CONDITION,
    Mask,
    SchemaStatement,
    SchemaVersion,
    ShownAs,
    Treatment,
    Visibility,
    shape_in_words,
    treatment_to_text,
)
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    KeyPart,
    TableSchema,
    ValueDefault,
    WrittenDefault,
)
from lockstep.pipeline.schema.rows import key_columns, row_structure, schema_of
from lockstep.pipeline.schema.types import arrow_type
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.redaction import redacted as redacted_text
from lockstep.pipeline.shape.shape import (
    Shape,
    ShapeChange,
    ShapeRules,
    condition_columns,
    is_possible,
    matches,
    shape_change,
    shape_faults,
    shape_of,
    shows_no_more,
    stricter,
    stricter_shape,
)
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.values.errors import ConfigurationError, Need, StoppedBy, TableError
from lockstep.pipeline.values.table import Column, TableName, TableStructure, is_helper

_REDACTED: Final = "***"
"""Replaces the values of hidden columns in a structure."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """The settings of all tables of a source. `rules_of`: returns the rules of a table,
    None if the lake shows it as it is. `key`: the key with which values are hashed,
    None if the settings have none. `hides`: whether any table of the source has rules.
    `captured`: returns whether a table is captured."""

    rules_of: Callable[[TableName], ShapeRules | None] = lambda _: None
    key: PrivacyKey | None = None
    hides: bool = False
    captured: Callable[[TableName], bool] = lambda _: True

    @property
    def _fingerprint(self) -> str | None:
        return None if self.key is None else self.key.fingerprint

    def shape(self, schema: TableSchema) -> Shape | None:
        """Return the shape of a structure; None if the lake shows it as it is. Raise
        TableError if the rules cannot be applied."""
        rules = self.rules_of(schema.name)
        if rules is None:
            return None
        for error in _revealing_columns(rules, schema):
            raise error
        structure = row_structure(schema)
        keys, virtual = key_columns(schema), _virtual(schema)
        shape = shape_of(rules, _declared(schema, structure), keys=keys, virtual=virtual)
        return None if shape.shows_all else _of_images(shape, structure)

    def faults(self, schema: TableSchema) -> Iterator[TableError]:
        """Yield an error for each reason for which the rules cannot be applied to a
        structure."""
        rules = self.rules_of(schema.name)
        if rules is None:
            return
        declared = _declared(schema, row_structure(schema))
        keys, virtual = key_columns(schema), _virtual(schema)
        yield from shape_faults(rules, declared, keys=keys, virtual=virtual)
        yield from _revealing_columns(rules, schema)
        if rules.hash_columns and self.key is None:
            yield _no_key()

    def in_words(self, schema: TableSchema) -> str:
        """Return the shape of a structure in one line; empty if the lake shows it as it
        is. Raise TableError if the rules cannot be applied."""
        shape = self.shape(schema)
        if shape is None:
            return ""
        names, count = shape.source.names, len(schema.columns)
        return shape_in_words(names[:count], shape.treatments[:count], shape.rows)

    def hidden(self, schema: TableSchema) -> frozenset[str]:
        """Return the names, in lower case, of the columns whose values the rules hide,
        even if the rules cannot be applied."""
        rules = self.rules_of(schema.name)
        return frozenset() if rules is None else _hidden_by(rules, row_structure(schema).names)

    def treated(self, schema: TableSchema) -> Mapping[str, str]:
        """Return each column of a structure that has a treatment, or that the condition
        on rows uses, by its name in lower case, with its treatment in words. Return
        none if the rules cannot be applied."""
        try:
            shape = self.shape(schema)
        except TableError:  # `for_history` raises this error too, and its caller reports it.
            return {}
        if shape is None:
            return {}
        words = {
            name.lower(): treatment_to_text(treatment)
            for name, treatment in zip(shape.source.names, shape.treatments, strict=True)
            if treatment is not Visibility.SHOWN
        }
        for name in condition_columns(shape.rows):
            words[name.lower()] = f"{words.get(name.lower(), '')} {USED_BY_CONDITION}".strip()
        return words

    def hides_column(self, table: TableName, name: str) -> bool:
        """Return whether the rules of a table hide the values of a column with that
        name."""
        rules = self.rules_of(table)
        return rules is not None and bool(_hidden_by(rules, (name,)))

    def redacted(self, schema: TableSchema) -> TableSchema:
        """Return a structure without the values of the columns that its rules hide."""
        return redacted(schema, self.hidden(schema))

    def for_history(
        self,
        schema: TableSchema,
        before: SchemaVersion | None = None,
        columns_from: Sequence[str | None] | None = None,
    ) -> tuple[TableSchema, ShownAs | None]:
        """Return the structure as the history stores it, and how the lake shows it; the
        arguments are those of `schema.tracker.Shapes`. Raise TableError if a captured
        table would show more than `before`: this needs a person's consent. A table that
        is not captured is shown as strictly as `before` instead."""
        shape = self.shape(schema)
        origins = {name.lower(): name.lower() for name in schema.names}
        if columns_from is not None:
            pairs = zip(schema.names, columns_from, strict=True)
            origins = {name.lower(): origin.lower() for name, origin in pairs if origin}
        if before is not None and not self.captured(schema.name):
            shape = self._as_strict(shape, schema, before, origins)
        shown_as = self._shown_as(schema, shape)
        if before is not None and self.captured(schema.name):
            why = _shows_more(before, shown_as, schema, origins)
            if why is not None:
                raise TableError(why, hint=consent_hint(schema.name), need=Need.CONSENT)
        hidden = {*self.hidden(schema)}
        if before is not None:
            hidden_before = before.hidden_columns
            hidden |= {name for name, origin in origins.items() if origin in hidden_before}
        return redacted(schema, hidden), shown_as

    def _as_strict(
        self,
        shape: Shape | None,
        schema: TableSchema,
        before: SchemaVersion,
        origins: Mapping[str, str],
    ) -> Shape | None:
        """Return the shape of a table that is not captured. It shows no more than the
        version from which the table has its rows or columns, since the table may later
        get a captured name."""
        shown_before = before.shown_as
        if shown_before is None or before.schema is None:
            return shape
        treatments_before = before.treatments
        shape = shape or _whole(schema)
        keys = key_columns(schema)
        treatments = list(shape.treatments)
        for index, column in enumerate(shape.source.columns[: len(schema.columns)]):
            origin = origins.get(column.name.lower(), "")
            treatment = stricter(treatments[index], treatments_before.get(origin, Visibility.SHOWN))
            possible = is_possible(column, treatment, is_key=column.name in keys)
            treatments[index] = treatment if possible else Visibility.LEFT_OUT
        rows = shown_before.row_condition or shape.rows
        shape = replace(shape, treatments=tuple(treatments), rows=rows)
        return None if shape.shows_all else shape

    def _shown_as(self, schema: TableSchema, shape: Shape | None) -> ShownAs | None:
        if shape is None:
            return None
        if shape.hashes and self.key is None:
            raise _no_key()
        return ShownAs(
            shape.treatments[: len(schema.columns)],
            shape.rows,
            self._fingerprint if shape.hashes else None,
            self._shown(schema, shape),
        )

    def statement(
        self, logged: LoggedStatement, followed: FollowedStatement, tables: Collection[TableName]
    ) -> SchemaStatement:
        """Return the record of a statement. Values are removed from its text if it
        names a table with rules, or a helper table of an online schema change (gh-ost
        and others), which may be a copy of a table with rules."""
        if not self.hides or not any(is_helper(name) or self.rules_of(name) for name in tables):
            return recorded_statement(logged, followed)
        text = redacted_text(logged.text, logged.context)
        record = recorded_statement(replace(logged, text=text), self._without_values(followed))
        if record.text == logged.text:
            return record
        return replace(record, context={**record.context, REDACTED_TEXT: True})

    def _without_values(self, followed: FollowedStatement) -> FollowedStatement:
        """Return a followed statement without any value from its text, for the
        record."""
        why = followed.not_understood
        if why is not None:
            why = replace(why, reason="it is not understood, and its text has hidden values")
        effects = tuple(map(self._effect, followed.effects))
        return replace(followed, effects=effects, not_understood=why)

    def _effect(self, effect: Effect) -> Effect:
        """Return an effect whose structures have no values at all. Helper tables of
        online schema changes have no rules, so it is unknown which of their columns are
        hidden."""
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
        return redacted(schema, {*map(str.lower, schema.names)})

    def fingerprint(self, schema: TableSchema) -> str | None:
        """Return the fingerprint of a structure's shape by the settings, to be compared
        with `SchemaVersion.shape`; None if the lake shows it as it is. Raise TableError
        if the rules cannot be applied."""
        shown_as = self._shown_as(schema, self.shape(schema))
        return None if shown_as is None else shown_as.fingerprint

    def shaper(self, version: SchemaVersion) -> Shaper | None:
        """Return the function that shapes the rows of a version; None if the lake shows
        them as they are. Raise `ConfigurationError` if the version is hashed with
        another key than that of the settings. Raise TableError if the settings replace
        the version's key by theirs: no version is hashed with two keys."""
        if version.shown_as is None or version.schema is None:
            return None
        self.require_key(version)
        if version.shown_as.key_fingerprint not in (None, self._fingerprint):
            raise TableError(
                "its values were hashed with the key that is replaced",
                hint=f"`lockstep reload {version.table} --reason …` reads all of it",
                need=Need.ROWS,
                by=StoppedBy.RUN,
            )
        return Shaper(_shape_of_version(version.schema, version.shown_as), self.key)

    def require_key(self, version: SchemaVersion) -> None:
        """Raise `ConfigurationError` if a version is hashed with another key than that
        of the settings, and the settings do not say that their key replaces it."""
        recorded = None if version.shown_as is None else version.shown_as.key_fingerprint
        current = self._fingerprint
        if recorded in (None, current):
            return
        if self.key is not None and recorded == self.key.replaces:
            return
        raise ConfigurationError(
            f"columns of {version.table} are hashed with the key {recorded}, and the settings "
            + ("have none" if current is None else f"have the key {current}"),
            hint="give the key with that fingerprint under [privacy] in lockstep.toml; or replace "
            f'it on purpose: replaces = "{recorded}" there has every table with hashes read again',
        )

    def why_changed(self, version: SchemaVersion) -> str | None:
        """Return how the settings differ from a version's shape, in a few words; None
        if they agree. Raise TableError if the rules cannot be applied."""
        if version.schema is None:
            return None
        shown_as = version.shown_as
        if shown_as is None and self.rules_of(version.table) is None:
            return None
        before, now = self._shapes_of(version, version.schema)
        pairs = zip(now.source.names, before.treatments, now.treatments, strict=True)
        if changed := [name for name, old, new in pairs if old != new]:
            return f"other settings apply to {', '.join(changed)}"
        if now.rows != before.rows:
            return "another condition decides which rows are taken"
        if now.hashes and shown_as is not None and shown_as.key_fingerprint != self._fingerprint:
            return "another key makes its hashes"
        return None

    def change(self, version: SchemaVersion) -> ShapeChange:
        """Return what the lake would show less of a version by the settings. Raise
        TableError if the rules cannot be applied."""
        if version.schema is None:
            return ShapeChange()
        before, after = self._shapes_of(version, version.schema)
        key = None if version.shown_as is None else version.shown_as.key_fingerprint
        replaced = None not in (key, self.key) and key != self._fingerprint
        return shape_change(before, after, key_replaced=replaced)

    def _shapes_of(self, version: SchemaVersion, schema: TableSchema) -> tuple[Shape, Shape]:
        """Return the version's own shape, and its shape by the settings."""
        shown_as, whole = version.shown_as, _whole(schema)
        before = whole if shown_as is None else _shape_of_version(schema, shown_as)
        return before, self.shape(schema) or whole

    def cleared(self, version: SchemaVersion, columns: Collection[str]) -> SchemaVersion:
        """Return an earlier version without the values of `columns` and of the columns
        that the settings hide now. Its new shape shows no more than its old shape and
        the settings do."""
        if version.schema is None:
            return version
        names = {name.lower() for name in columns}
        hidden = self.hidden(version.schema) | version.hidden_columns | names
        schema, shown_as = redacted(version.schema, hidden), version.shown_as
        try:
            shape = stricter_shape(*self._shapes_of(replace(version, schema=schema), schema))
            key = None if shown_as is None else shown_as.key_fingerprint
            if key is None and shape.hashes:
                key = self._fingerprint
            if not shape.shows_all:
                treatments = shape.treatments[: len(schema.columns)]
                shown_as = ShownAs(treatments, shape.rows, key, self._shown(schema, shape))
        except TableError:
            if shown_as is not None:
                shown_as = replace(shown_as, schema=redacted(shown_as.schema, hidden))
        return replace(version, schema=schema, shown_as=shown_as)

    def _shown(self, schema: TableSchema, shape: Shape) -> TableSchema:
        """Return the structure that the lake shows."""
        treated = zip(schema.columns, shape.source.columns, shape.treatments, strict=False)
        columns = tuple(
            column
            if treatment is Visibility.SHOWN
            else self._shown_column(column, decoded, treatment)
            for column, decoded, treatment in treated
            if treatment is not Visibility.LEFT_OUT
        )
        names = {column.name.lower() for column in columns}
        # Columns whose treatment keeps different values different, as UNIQUE keys need
        # it.
        unique = {
            column.name.lower()
            for column, treatment in zip(shape.source.columns, shape.treatments, strict=True)
            if is_possible(column, treatment, is_key=True)
        }
        keys = []
        for key in schema.keys:
            allowed = unique if key.kind in ("primary", "unique") else names
            parts = [part.column for part in key.parts]
            if not key.hashed and all(name and name.lower() in allowed for name in parts):
                keys.append(key)
        return replace(schema, columns=columns, keys=tuple(keys), foreign_keys=(), hidden=())

    def _shown_column(
        self, column: ColumnSchema, decoded: Column, treatment: Treatment
    ) -> ColumnSchema:
        """Return a treated column as the lake has it. Its default is treated like a
        value in a row."""
        alone = Shape(TableStructure(TableName("", ""), (decoded,), ()), (treatment,))
        shown = schema_of(alone.structure).columns[0]
        unknown = replace(shown, default=WrittenDefault(_REDACTED))
        kind = arrow_type(decoded)
        fill = pa.scalar(None, kind) if treatment == Mask("null") else fill_of(column, kind, None)
        if fill is None:  # Only the server knows the default.
            return unknown
        rows = pa.RecordBatch.from_arrays([pa.array([fill.as_py()], kind)], names=[decoded.name])
        try:
            value = Shaper(alone, self.key).rows(rows).column(0)[0].as_py()
        except TableError:  # The default cannot be converted: '' is not a UUID.
            return unknown
        if value is None:
            return replace(shown, default=None, nullable=True)
        text = f"b'{int(value)}'" if isinstance(value, bool) else str(value)
        return replace(shown, default=ValueDefault(text))


def _hidden_by(rules: ShapeRules, names: Iterable[str]) -> frozenset[str]:
    """Return the names of columns, in lower case, that the rules leave out, hash or
    mask."""

    def hides(name: str) -> bool:
        patterns = (
            *(rules.exclude_columns or ()),
            *(rules.hash_columns or {}),
            *(rules.mask_columns or {}),
        )
        included = rules.include_columns
        return matches(patterns, name) or (included is not None and not matches(included, name))

    return frozenset(name.lower() for name in names if hides(name))


def _revealing_columns(rules: ShapeRules, schema: TableSchema) -> Iterator[TableError]:
    """Yield an error for each shown column whose values the server computes from a
    hidden column. An expression that was redacted in the history was checked before it
    was recorded."""
    hidden = _hidden_by(rules, row_structure(schema).names)
    for column in schema.columns if hidden else ():
        default = column.default
        text = default.text if isinstance(default, ExpressionDefault) else column.generated
        if text is None or column.name.lower() in hidden:
            continue
        for name in sorted(hidden):
            # The name may only be a word in a literal, but in doubt the column is
            # refused.
            quoted = re.escape(name.replace("`", "``"))
            if not re.search(rf"(?<![\w$]){quoted}(?![\w$])", text, re.IGNORECASE):
                continue
            yield TableError(
                f"column {column.name!r} is computed from {name!r}, which is hidden, and would "
                "show it",
                hint=f"add {column.name!r} to exclude_columns or hash_columns of this table",
            )


def redacted(schema: TableSchema, hidden: Set[str]) -> TableSchema:
    """Return a structure without values of hidden columns in defaults, in members of
    ENUM and SET, and in expressions. The number of members stays, since the log's
    decoder needs it. `hidden`: names in lower case."""
    if not hidden:
        return schema
    columns = tuple(_redacted_column(column, hidden) for column in schema.columns)
    keys = tuple(replace(key, parts=tuple(map(_redacted_part, key.parts))) for key in schema.keys)
    return replace(schema, columns=columns, keys=keys)


def _redacted_column(column: ColumnSchema, hidden: Set[str]) -> ColumnSchema:
    generated = column.generated
    if generated is not None and any(name in generated.lower() for name in hidden):
        generated = _REDACTED
    if column.name.lower() not in hidden:
        return replace(column, generated=generated)
    return replace(
        column,
        members=redacted_members(column.members),
        default=None if column.default is None else WrittenDefault(_REDACTED),
        generated=None if generated is None else _REDACTED,
    )


def redacted_members(members: Sequence[str]) -> tuple[str, ...]:
    """Return as many different placeholders as there are members."""
    return tuple(f"{_REDACTED}{number}" for number, _ in enumerate(members, 1))


def _redacted_part(part: KeyPart) -> KeyPart:
    return part if part.expression is None else replace(part, expression=_REDACTED)


def consent_hint(table: TableName) -> str:
    """Return the hint for a table of which the lake would show more than before."""
    return (
        f"give {table} a shape under [[sources.table]] that shows no more, then `lockstep resume "
        f"{table} --reason …`; to resume it without such a shape is your consent to show it, which "
        "is recorded with its reason"
    )


def _shows_more(
    before: SchemaVersion,
    after: ShownAs | None,
    schema: TableSchema,
    origins: Mapping[str, str],
) -> str | None:
    """Return how the lake would show more of a table than of the version `before`, from
    which the table has its rows or columns; None if it shows no more. `origins`: the
    columns' names in that version, by their names now, both in lower case."""
    shown_before = before.shown_as
    if shown_before is None or before.schema is None:
        return None
    treatments_before = before.treatments
    treatments = (Visibility.SHOWN,) * len(schema.columns) if after is None else after.treatments
    for column, treatment in zip(schema.columns, treatments, strict=True):
        origin = origins.get(column.name.lower())
        if origin is None or shows_no_more(
            treatment, treatments_before.get(origin, Visibility.SHOWN)
        ):
            continue
        return (
            f"its column {column.name!r} shows more than the settings of {before.table} show of "
            f"{origin!r}, whose values it has"
        )
    rows = shown_before.row_condition
    if rows is not None and (after is None or after.row_condition != rows):
        return f"the settings of {before.table} leave rows out, and its own take them"
    return None


# -- shapes of structures ----------------------------------------------------------------------


def _declared(schema: TableSchema, structure: TableStructure) -> TableStructure:
    """Return the structure without the columns that MariaDB adds at the end of row
    images."""
    return replace(structure, columns=structure.columns[: len(schema.columns)])


def _virtual(schema: TableSchema) -> frozenset[str]:
    """Return the names of the generated columns that are not stored."""
    columns = schema.columns
    return frozenset(c.name for c in columns if c.generated is not None and not c.stored)


def _no_key() -> TableError:
    return TableError(
        "its settings hash columns, and there is no key for the hashes",
        hint='set key = "env:…" under [privacy] in lockstep.toml',
    )


# -- shapes of versions --------------------------------------------------------------------------


def _of_images(shape: Shape, structure: TableStructure) -> Shape:
    """Return the shape of row images. It leaves out the columns that MariaDB adds at
    their end, since these contain hashes of the table's values."""
    added = len(structure.columns) - len(shape.treatments)
    treatments = (*shape.treatments, *[Visibility.LEFT_OUT] * added)
    return replace(shape, source=structure, treatments=treatments)


def _whole(schema: TableSchema) -> Shape:
    """Return the shape of a table that the lake shows as it is."""
    structure = row_structure(schema)
    return _of_images(Shape(structure, (Visibility.SHOWN,) * len(schema.columns)), structure)


def _shape_of_version(schema: TableSchema, shown_as: ShownAs) -> Shape:
    structure = row_structure(schema)
    return _of_images(Shape(structure, shown_as.treatments, shown_as.row_condition), structure)
