"""The settings of all tables of a source, applied to structures.

They decide how the lake shows a structure (its shape: a treatment for each column, and
a condition on rows) and what the history stores of it. Every structure is recorded as
`Shaping.for_history` returns it: without the values of hidden columns (left out, hashed
or masked), and with how the lake shows the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from glob import escape
from typing import Final

import pyarrow as pa

from lockstep.pipeline.schema.effects import (
    Changed,
    Created,
    Effect,
    FollowedStatement,
    LoggedStatement,
    recorded_statement,
)
from lockstep.pipeline.schema.fills import fill_of
from lockstep.pipeline.schema.history import REDACTED_KEY, SchemaStatement, SchemaVersion, ShownAs
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    KeyPart,
    TableSchema,
    ValueDefault,
    WrittenDefault,
)
from lockstep.pipeline.schema.rows import key_columns, row_structure, schema_of
from lockstep.pipeline.schema.treatments import (
    ColumnUse,
    Hash,
    Mask,
    Treatment,
    Visibility,
    shape_in_words,
)
from lockstep.pipeline.schema.types import arrow_type
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.redaction import redact_statement
from lockstep.pipeline.shape.shape import (
    NO_RULES,
    Shape,
    ShapeRules,
    condition_columns,
    is_possible,
    matches,
    shape_faults,
    shape_of,
    shows_no_more,
    stricter,
    stricter_shape,
)
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.upkeep.clearing import Tightening
from lockstep.pipeline.values.errors import ConfigurationError, Need, StoppedBy, TableError
from lockstep.pipeline.values.table import (
    Column,
    TableName,
    TableStructure,
    has_wildcard,
    is_helper,
)

_REDACTED: Final = "***"
"""Replaces the values of hidden columns in a structure."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """The settings of all tables of a source. `rules_of`: returns the rules of a table,
    None if the lake shows it as it is. `key`: the key with which values are hashed,
    None if the settings have none. `has_rules`: whether any table of the source has
    rules. `is_captured`: returns whether a table is captured."""

    rules_of: Callable[[TableName], ShapeRules | None] = lambda _: None
    key: PrivacyKey | None = None
    has_rules: bool = False
    is_captured: Callable[[TableName], bool] = lambda _: True

    @property
    def _key_fingerprint(self) -> str | None:
        return None if self.key is None else self.key.fingerprint

    def without_rules_of(self, tables: Collection[TableName]) -> Shaping:
        """Return the settings without the rules of these tables. The tables do not
        count as captured, so a new version of one shows no more than the version before
        it (`for_history`)."""
        return replace(
            self,
            rules_of=lambda table: None if table in tables else self.rules_of(table),
            is_captured=lambda table: table not in tables and self.is_captured(table),
        )

    def shape(self, schema: TableSchema) -> Shape | None:
        """Return the shape of a structure; None if the lake shows it as it is. Raise
        TableError if the rules cannot be applied."""
        rules = self.rules_of(schema.name)
        if rules is None:
            return None
        error = _revealing_columns_error(rules, schema)
        if error is not None:
            raise error
        declared, virtual = _declared_structure(schema), _virtual_columns(schema)
        shape = shape_of(rules, declared, key_columns=key_columns(schema), virtual_columns=virtual)
        if shape.shows_all:
            return None
        return _image_shape(schema, shape.treatments, shape.row_condition)

    def faults(self, schema: TableSchema) -> Iterator[TableError]:
        """Yield an error for each reason for which the rules cannot be applied to a
        structure."""
        rules = self.rules_of(schema.name)
        if rules is None:
            return
        declared, virtual = _declared_structure(schema), _virtual_columns(schema)
        keys = key_columns(schema)
        yield from shape_faults(rules, declared, key_columns=keys, virtual_columns=virtual)
        if (error := _revealing_columns_error(rules, schema)) is not None:
            yield error
        if rules.hash_columns and self.key is None:
            yield _missing_key_error()

    def describe(self, schema: TableSchema) -> str:
        """Return the shape of a structure in one line; empty if the lake shows it as it
        is. Raise TableError if the rules cannot be applied."""
        shape = self.shape(schema)
        if shape is None:
            return ""
        names = shape.source.names
        count = len(schema.columns)
        return shape_in_words(names[:count], shape.treatments[:count], shape.row_condition)

    def describe_later_columns(self, schema: TableSchema) -> str:
        """Return a clause that says whether columns added to a structure later are
        shown."""
        rules = self.rules_of(schema.name) or NO_RULES
        shown = rules.include_columns
        exceptions = [
            pattern
            for pattern in (_hiding_patterns(rules) if shown is None else shown)
            if has_wildcard(pattern) or not any(matches((pattern,), name) for name in schema.names)
        ]
        words = f"columns added later are {'shown' if shown is None else 'left out'}"
        return f"{words}, except {', '.join(exceptions)}" if exceptions else words

    def hidden_columns(self, schema: TableSchema) -> frozenset[str]:
        """Return the names, in lower case, of the columns whose values the rules hide,
        even if the rules cannot be applied."""
        rules = self.rules_of(schema.name) or NO_RULES
        return _hidden_names(rules, row_structure(schema).names)

    def column_uses(self, schema: TableSchema) -> Mapping[str, ColumnUse]:
        """Return each column of a structure that has a treatment, or that the condition
        on rows uses, by its name in lower case. Return none if the rules cannot be
        applied."""
        try:
            shape = self.shape(schema)
        except TableError:  # `for_history` raises this error too, and its caller reports it.
            return {}
        if shape is None:
            return {}
        in_condition = set(map(str.lower, condition_columns(shape.row_condition)))
        names = map(str.lower, shape.source.names)
        uses = {
            name: ColumnUse(treatment, name in in_condition)
            for name, treatment in zip(names, shape.treatments, strict=True)
        }
        return {name: use for name, use in uses.items() if use != ColumnUse()}

    def hides_column(self, table: TableName, name: str) -> bool:
        """Return whether the rules of a table hide the values of a column with that
        name."""
        return bool(_hidden_names(self.rules_of(table) or NO_RULES, (name,)))

    def redact(self, schema: TableSchema) -> TableSchema:
        """Return a structure without the values of the columns that its rules hide."""
        return redact_schema(schema, self.hidden_columns(schema))

    def for_history(
        self,
        schema: TableSchema,
        before: SchemaVersion | None = None,
        columns_from: Sequence[str | None] | None = None,
        *,
        may_be_renamed: bool = False,
    ) -> tuple[TableSchema, ShownAs | None]:
        """Return the structure as the history stores it, and how the lake shows it; the
        arguments are those of `schema.tracker.HistoryShaping`. Raise TableError if a
        captured table would show more than `before`: this needs a person's consent. A
        table that is not captured is then shown as strictly as `before`."""
        shape = self.shape(schema)
        hidden = self.hidden_columns(schema)
        if before is None:
            return redact_schema(schema, hidden), self._shown_as(schema, shape)
        if may_be_renamed and before.schema is None:
            raise TableError(
                f"it may have the rows of {before.table}: the settings hide values of that table, "
                "and its columns were never known",
                hint=consent_hint(schema.name),
                need=Need.CONSENT,
            )
        if may_be_renamed and (error := self.renamed_error(before, schema)) is not None:
            raise error
        pairs = zip(schema.names, columns_from or schema.names, strict=True)
        origins = {name.lower(): origin.lower() for name, origin in pairs if origin}
        if not self.is_captured(schema.name):
            shape = self._as_strict(shape, schema, before, origins)
        shown_as = self._shown_as(schema, shape)
        error = _consent_error(before, shown_as, schema, origins, is_certain=not may_be_renamed)
        if error is not None:
            raise error
        hidden_before = before.hidden_columns
        hidden |= {name for name, origin in origins.items() if origin in hidden_before}
        return redact_schema(schema, hidden), shown_as

    def consent_error(self, version: SchemaVersion) -> TableError | None:
        """Return an error if the settings, once the table is captured, would show more
        of it than `version` does; otherwise None. `version`: recorded while the table
        was not captured."""
        if version.schema is None:
            return None
        try:
            replace(self, is_captured=lambda _: True).for_history(version.schema, version)
        except TableError as error:
            return error if error.need is Need.CONSENT else None
        return None

    def renamed_error(self, before: SchemaVersion, schema: TableSchema) -> TableError | None:
        """Return an error if a column would be shown that may be a renamed hidden column
        of the version `before`; otherwise None. A column may be one if it is new, or if
        the columns that both structures have are in another order or have other
        types."""
        former = before.schema
        if former is None or before.shown_as is None:
            return None
        try:
            shown_as = self._shown_as(schema, self.shape(schema))
        except TableError:  # A table with rules that cannot be applied is not read.
            return None
        common = [(c.name.lower(), c.type) for c in schema.columns if former.column(c.name)]
        common_before = [(c.name.lower(), c.type) for c in former.columns if schema.column(c.name)]
        pairs = zip(common, common_before, strict=True)
        suspects = [column[0] for column, column_before in pairs if column != column_before]
        suspects += [name.lower() for name in schema.names if former.column(name) is None]
        # Only columns are compared, so the condition on rows must not count.
        without_rows = replace(before, shown_as=replace(before.shown_as, row_condition=None))
        for hidden in sorted(before.hidden_columns):
            origins = dict.fromkeys(suspects, hidden)
            if error := _consent_error(without_rows, shown_as, schema, origins, is_certain=False):
                return error
        return None

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
        shape = shape or _plain_shape(schema)
        keys = key_columns(schema)
        treatments = list(shape.treatments)
        for index, column in enumerate(shape.source.columns[: len(schema.columns)]):
            origin = origins.get(column.name.lower(), "")
            treatment = stricter(treatments[index], treatments_before.get(origin, Visibility.SHOWN))
            possible = is_possible(column, treatment, is_key=column.name in keys)
            treatments[index] = treatment if possible else Visibility.LEFT_OUT
        condition = shown_before.row_condition or shape.row_condition
        shape = replace(shape, treatments=tuple(treatments), row_condition=condition)
        return None if shape.shows_all else shape

    def _shown_as(
        self, schema: TableSchema, shape: Shape | None, key_fingerprint: str | None = None
    ) -> ShownAs | None:
        """Return how the lake shows a structure with a shape. `key_fingerprint`: the
        fingerprint of the key of its hashes; None for the key of the settings."""
        if shape is None:
            return None
        key_fingerprint = (key_fingerprint or self._key_fingerprint) if shape.has_hashes else None
        if shape.has_hashes and key_fingerprint is None:
            raise _missing_key_error()
        return ShownAs(
            shape.treatments[: len(schema.columns)],
            shape.row_condition,
            key_fingerprint,
            self._shown_schema(schema, shape),
        )

    def statement_record(
        self, logged: LoggedStatement, followed: FollowedStatement, tables: Collection[TableName]
    ) -> SchemaStatement:
        """Return the record of a statement. If any table has rules, values are removed
        from its text in three cases: it names a table with rules; it names a helper
        table of an online schema change (gh-ost and others), which may be a copy of a
        table with rules; it names tables, and none of them is captured."""
        may_show_values = any(is_helper(name) or self.rules_of(name) for name in tables)
        is_uncaptured = bool(tables) and not any(map(self.is_captured, tables))
        if not (self.has_rules and (may_show_values or is_uncaptured)):
            return recorded_statement(logged, followed)
        text = redact_statement(logged.text, logged.context)
        record = recorded_statement(replace(logged, text=text), _without_values(followed))
        if record.text == logged.text:
            return record
        return replace(record, context={**record.context, REDACTED_KEY: True})

    def shape_fingerprint(self, schema: TableSchema) -> str | None:
        """Return the fingerprint of a structure's shape by the settings, to be compared
        with `SchemaVersion.shape`; None if the lake shows it as it is. Raise TableError
        if the rules cannot be applied."""
        shown_as = self._shown_as(schema, self.shape(schema))
        return None if shown_as is None else shown_as.fingerprint

    def shaper(self, version: SchemaVersion) -> Shaper | None:
        """Return the shaper of a version's rows; None if the lake shows them as they
        are. Raise `ConfigurationError` if the version is hashed with another key than
        that of the settings. If the settings say that their key replaces that key,
        raise TableError instead, since no version is hashed with two keys."""
        if version.shown_as is None or version.schema is None:
            return None
        self.require_key(version)
        if self._has_other_key(version):
            raise TableError(
                "its values were hashed with the key that is replaced",
                hint=f"`lockstep reload {version.table.word} --reason …` reads all of it",
                need=Need.ROWS,
                by=StoppedBy.RUN,
            )
        return Shaper(_shape_of_version(version.schema, version.shown_as), self.key)

    def require_key(self, version: SchemaVersion) -> None:
        """Raise `ConfigurationError` if a version is hashed with another key than that
        of the settings, and the settings do not say that their key replaces it."""
        recorded, current = version.key_fingerprint, self._key_fingerprint
        if not self._has_other_key(version) or (self.key and recorded == self.key.replaces):
            return
        raise ConfigurationError(
            f"columns of {version.table} are hashed with the key {recorded}, and the settings "
            + ("have none" if current is None else f"have the key {current}"),
            hint="give the key with that fingerprint under [privacy] in lockstep.toml; or replace "
            f'it on purpose: replaces = "{recorded}" there reads the tables with hashes again',
        )

    def _has_other_key(self, version: SchemaVersion) -> bool:
        return version.key_fingerprint not in (None, self._key_fingerprint)

    def difference_from(self, version: SchemaVersion) -> str | None:
        """Return how the settings differ from a version's shape, in a few words; None
        if they agree. Raise TableError if the rules cannot be applied."""
        if version.schema is None:
            return None
        if version.shown_as is None and self.rules_of(version.table) is None:
            return None
        before, after = self._shapes_of(version.schema, version.shown_as)
        pairs = zip(after.source.names, before.treatments, after.treatments, strict=True)
        if changed := [name for name, old, new in pairs if old != new]:
            revealed = self.columns_showing_more(version)
            others = ", ".join(name for name in changed if name not in revealed)
            clauses = [f"the settings show more of {', '.join(revealed)}"] if revealed else []
            clauses += [f"other settings apply to {others}"] if others else []
            return " and ".join(clauses)
        if after.row_condition != before.row_condition:
            return "another condition decides which rows are taken"
        if after.has_hashes and self._has_other_key(version):
            return "another key makes its hashes"
        return None

    def columns_showing_more(self, version: SchemaVersion) -> tuple[str, ...]:
        """Return the columns of which the settings show more than a version does. Raise
        TableError if the rules cannot be applied."""
        if version.schema is None:
            return ()
        before, after = self._shapes_of(version.schema, version.shown_as)
        pairs = zip(after.source.names, before.treatments, after.treatments, strict=True)
        return tuple(name for name, old, new in pairs if not shows_no_more(new, old))

    def tightening(self, version: SchemaVersion) -> Tightening:
        """Return the columns and rows of which the settings show less than a version
        does. The last batch of the result is unknown, so it is 0. Raise TableError if
        the rules cannot be applied."""
        if version.schema is None:
            return Tightening(version.table, 0)
        before, after = self._shapes_of(version.schema, version.shown_as)
        pairs = zip(after.source.names, before.treatments, after.treatments, strict=True)
        return Tightening(
            version.table,
            0,
            tuple(name for name, old, new in pairs if not shows_no_more(old, new)),
            has_fewer_rows=after.row_condition not in (None, before.row_condition),
            is_rehashed=after.has_hashes and self.key is not None and self._has_other_key(version),
        )

    def _shapes_of(self, schema: TableSchema, shown_as: ShownAs | None) -> tuple[Shape, Shape]:
        """Return the shape that a version has, and its shape by the settings."""
        by_settings = self.shape(schema) or _plain_shape(schema)
        return _shape_of_version(schema, shown_as), by_settings

    def cleared_version(self, version: SchemaVersion, columns: Collection[str]) -> SchemaVersion:
        """Return an earlier version without the values of `columns` and of the columns
        that the settings hide now. Its new shape shows no more than its old shape and
        the settings do."""
        if version.schema is None:
            return version
        names = {name.lower() for name in columns}
        hidden = self.hidden_columns(version.schema) | version.hidden_columns | names
        schema = redact_schema(version.schema, hidden)
        shown_as = version.shown_as
        try:
            shape = stricter_shape(*self._shapes_of(schema, shown_as))
            if not shape.shows_all:
                shown_as = self._shown_as(schema, shape, version.key_fingerprint)
        except TableError:
            if shown_as is not None:
                shown_as = replace(shown_as, schema=redact_schema(shown_as.schema, hidden))
        return replace(version, schema=schema, shown_as=shown_as)

    def _shown_schema(self, schema: TableSchema, shape: Shape) -> TableSchema:
        """Return the structure that the lake shows."""
        treated_columns = zip(schema.columns, shape.source.columns, shape.treatments, strict=False)
        columns = tuple(
            column
            if treatment is Visibility.SHOWN
            else self._shown_column(column, decoded, treatment)
            for column, decoded, treatment in treated_columns
            if treatment is not Visibility.LEFT_OUT
        )
        names = {column.name.lower() for column in columns}
        # Columns in which different values stay different, so that a UNIQUE key holds.
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
        return replace(
            schema, columns=columns, keys=tuple(keys), foreign_keys=(), expression_columns=()
        )

    def _shown_column(
        self, column: ColumnSchema, decoded: Column, treatment: Treatment
    ) -> ColumnSchema:
        """Return a treated column as the lake has it. Its default is treated like a
        value in a row."""
        column_shape = Shape(TableStructure(TableName("", ""), (decoded,), ()), (treatment,))
        shown_column = schema_of(column_shape.structure).columns[0]
        with_unknown_default = replace(shown_column, default=WrittenDefault(_REDACTED))
        lake_type = arrow_type(decoded)
        is_null = treatment == Mask("null")
        fill = pa.scalar(None, lake_type) if is_null else fill_of(column, lake_type, None)
        if fill is None or (column_shape.has_hashes and self.key is None):
            # Only the server knows the default, or there is no key to hash it.
            return with_unknown_default
        values = pa.array([fill.as_py()], lake_type)
        rows = pa.RecordBatch.from_arrays([values], names=[decoded.name])
        try:
            value = Shaper(column_shape, self.key).shape_rows(rows).column(0)[0].as_py()
        except TableError:  # The default cannot be converted: '' is not a UUID.
            return with_unknown_default
        if value is None:
            return replace(shown_column, default=None, nullable=True)
        text = f"b'{int(value)}'" if isinstance(value, bool) else str(value)
        return replace(shown_column, default=ValueDefault(text))


def _without_values(followed: FollowedStatement) -> FollowedStatement:
    """Return a followed statement without any value from its text, for the record."""
    not_understood = followed.not_understood
    if not_understood is not None:
        reason = "it is not understood, and its text has hidden values"
        not_understood = replace(not_understood, reason=reason)
    effects = tuple(map(_effect_without_values, followed.effects))
    return replace(followed, effects=effects, not_understood=not_understood)


def _effect_without_values(effect: Effect) -> Effect:
    """Return an effect with structures in which all columns are redacted: helper tables
    of online schema changes have no rules that say which of their columns are
    hidden."""

    def redacted(schema: TableSchema) -> TableSchema:
        return redact_schema(schema, {*map(str.lower, schema.names)})

    match effect:
        case Changed(before=before, after=after):
            return replace(effect, before=redacted(before), after=redacted(after))
        case Created(after=after):
            return replace(effect, after=redacted(after))
        case _:
            return effect


def _hidden_names(rules: ShapeRules, names: Iterable[str]) -> frozenset[str]:
    """Return the names of columns, in lower case, that the rules leave out, hash or
    mask."""
    patterns = _hiding_patterns(rules)
    included = rules.include_columns
    return frozenset(
        name.lower()
        for name in names
        if matches(patterns, name) or (included is not None and not matches(included, name))
    )


def _hiding_patterns(rules: ShapeRules) -> tuple[str, ...]:
    hidden_values = (rules.exclude_columns, rules.hash_columns, rules.mask_columns)
    return tuple(pattern for patterns in hidden_values for pattern in patterns or ())


def _revealing_columns_error(rules: ShapeRules, schema: TableSchema) -> TableError | None:
    """Return an error that names the shown columns whose values the server computes
    from hidden columns, directly or by way of other columns; None if there are none. A
    redacted expression still names the hidden columns that it uses."""
    hidden = {*_hidden_names(rules, row_structure(schema).names)}
    origins_by_column: dict[str, list[str]] = {}

    def computed_from_hidden() -> dict[str, list[str]]:
        return {
            column.name: origins
            for column in schema.columns
            if column.name.lower() not in hidden
            and (origins := _names_in(_expression(column), hidden))
        }

    # A column that is computed from one of these would show a hidden column, too.
    while new_origins := computed_from_hidden():
        origins_by_column |= new_origins
        hidden |= {*map(str.lower, new_origins)}
    if not origins_by_column:
        return None
    sentences = [
        f"column {name!r} is computed from {', '.join(map(repr, origins))}"
        for name, origins in origins_by_column.items()
    ]
    return TableError(
        f"hidden values would be shown: {'; '.join(sentences)}",
        hint=f"add {', '.join(map(repr, origins_by_column))} to exclude_columns or hash_columns of "
        "this table",
    )


def _expression(column: ColumnSchema) -> str:
    """Return the expression from which the server computes a column; empty if none."""
    default = column.default
    return default.text if isinstance(default, ExpressionDefault) else column.generated or ""


def _names_in(expression: str, names: Iterable[str]) -> list[str]:
    """Return those of the names, in lower case, that occur in an expression, even if
    only as a word in a literal."""
    return [
        name
        for name in sorted(names)
        if re.search(
            rf"(?<![\w$]){re.escape(_with_doubled_backticks(name))}(?![\w$])",
            expression,
            re.IGNORECASE,
        )
    ]


def _with_doubled_backticks(name: str) -> str:
    return name.replace("`", "``")


def redact_schema(schema: TableSchema, hidden: Set[str]) -> TableSchema:
    """Return a structure without values of hidden columns in defaults, in members of
    ENUM and SET, and in expressions. The number of members stays, since the log's
    decoder needs it. `hidden`: names in lower case."""
    if not hidden:
        return schema
    columns = tuple(_redact_column(column, hidden) for column in schema.columns)
    keys = tuple(replace(key, parts=tuple(map(_redact_key_part, key.parts))) for key in schema.keys)
    return replace(schema, columns=columns, keys=keys)


def _redact_column(column: ColumnSchema, hidden: Set[str]) -> ColumnSchema:
    generated = column.generated
    if generated is not None and any(
        _with_doubled_backticks(name) in generated.lower() for name in hidden
    ):
        # The names stay in the text: `_revealing_columns_error` looks for them, also in
        # a structure that was redacted before.
        names = [f"`{_with_doubled_backticks(name)}`" for name in _names_in(generated, hidden)]
        generated = " ".join((_REDACTED, *names))
    if column.name.lower() not in hidden:
        return replace(column, generated=generated)
    return replace(
        column,
        members=placeholder_members(column.members),
        default=None if column.default is None else WrittenDefault(_REDACTED),
        generated=None if generated is None else _REDACTED,
    )


def placeholder_members(members: Sequence[str]) -> tuple[str, ...]:
    """Return as many different placeholders as there are members."""
    return tuple(f"{_REDACTED}{number}" for number, _ in enumerate(members, 1))


def _redact_key_part(part: KeyPart) -> KeyPart:
    return part if part.expression is None else replace(part, expression=_REDACTED)


def consent_hint(table: TableName, setting: str | None = None) -> str:
    """Return the hint for a table of which the lake would show more than before.
    `setting`: the lines of lockstep.toml that hide the difference; None if they are not
    known."""
    cure = f"add {setting} to" if setting else "hide its columns or rows in"
    return (
        f"{cure} a [[sources.table]] block that matches {table}, then `lockstep resume "
        f"{table.word} --reason …`; to resume it without that is your consent to show it, which is "
        "recorded with its reason"
    )


def _consent_error(
    before: SchemaVersion,
    after: ShownAs | None,
    schema: TableSchema,
    origins: Mapping[str, str],
    *,
    is_certain: bool,
) -> TableError | None:
    """Return an error if the lake would show more of a table than of the version
    `before`, from which the table has its rows or columns; otherwise None. The error's
    hint has the lines of lockstep.toml that hide what would be shown. `origins`: a
    column's name now → its name in `before`, both in lower case. `is_certain`: False if
    the table or the columns only may have come from there."""
    shown_before = before.shown_as
    if shown_before is None or before.schema is None:
        return None
    treatments_before = before.treatments
    treatments = (Visibility.SHOWN,) * len(schema.columns) if after is None else after.treatments
    reasons: list[str] = []
    hiding: dict[str, Treatment] = {}
    for column, treatment in zip(schema.columns, treatments, strict=True):
        origin = origins.get(column.name.lower())
        treatment_before = treatments_before.get(origin or "", Visibility.SHOWN)
        if origin is None or shows_no_more(treatment, treatment_before):
            continue
        hiding[column.name] = treatment_before
        if (before.table, origin) == (schema.name, column.name.lower()):
            reasons.append(f"its column {column.name!r} would show values that are hidden so far")
            continue
        reasons.append(
            f"its column {column.name!r} shows more than the settings of {before.table} show of "
            f"{origin!r}, whose values it {'has' if is_certain else 'may have'}"
        )
    lines = [*_hiding_lines(hiding)]
    condition = shown_before.row_condition
    if condition is not None and (after is None or after.row_condition != condition):
        reasons.append(
            "its settings would take rows that are left out so far"
            if before.table == schema.name
            else f"the settings of {before.table} leave rows out, and its own take them"
        )
        lines.append(f"rows = {_toml(condition)}")
    if not reasons:
        return None
    hint = consent_hint(schema.name, ", ".join(lines))
    return TableError("; ".join(reasons), hint=hint, need=Need.CONSENT)


def _hiding_lines(treatments: Mapping[str, Treatment]) -> Iterator[str]:
    """Yield the lines of lockstep.toml that give columns, by name, these treatments."""
    patterns = {escape(name): treatment for name, treatment in treatments.items()}
    hashes = {name: kind.value for name, kind in patterns.items() if isinstance(kind, Hash)}
    masks = {name: str(mask) for name, mask in patterns.items() if isinstance(mask, Mask)}
    if set(hashes.values()) == {Hash.EXACT.value}:
        yield f"hash_columns = {_toml([*hashes])}"
    elif hashes:
        yield f"hash_columns = {_toml_table(hashes)}"
    if masks:
        yield f"mask_columns = {_toml_table(masks)}"
    if left_out := [name for name in patterns if name not in hashes and name not in masks]:
        yield f"exclude_columns = {_toml(left_out)}"


def _toml(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _toml_table(values: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{_toml(name)} = {_toml(text)}' for name, text in values.items())} }}"


# -- shapes of structures and of versions ----------------------------------------------


def _declared_structure(schema: TableSchema) -> TableStructure:
    """Return the structure of row images without the columns that MariaDB adds at their
    end."""
    structure = row_structure(schema)
    return replace(structure, columns=structure.columns[: len(schema.columns)])


def _virtual_columns(schema: TableSchema) -> frozenset[str]:
    """Return the names of the generated columns that are not stored."""
    columns = schema.columns
    return frozenset(c.name for c in columns if c.generated is not None and not c.stored)


def _missing_key_error() -> TableError:
    return TableError(
        "its settings hash columns, and there is no key for the hashes",
        hint='set key = "env:…" under [privacy] in lockstep.toml',
    )


def _image_shape(
    schema: TableSchema, treatments: Sequence[Treatment], row_condition: str | None = None
) -> Shape:
    """Return the shape of row images. It leaves out the columns that MariaDB adds at
    their end, since these contain hashes of the table's values."""
    structure = row_structure(schema)
    added_count = len(structure.columns) - len(treatments)
    return Shape(structure, (*treatments, *[Visibility.LEFT_OUT] * added_count), row_condition)


def _plain_shape(schema: TableSchema) -> Shape:
    """Return the shape of a table that the lake shows as it is."""
    return _image_shape(schema, [Visibility.SHOWN] * len(schema.columns))


def _shape_of_version(schema: TableSchema, shown_as: ShownAs | None) -> Shape:
    if shown_as is None:
        return _plain_shape(schema)
    return _image_shape(schema, shown_as.treatments, shown_as.row_condition)
