"""A table's shape: how the lake shows its columns, and which of its rows.

The settings in lockstep.toml resolve to a treatment for each column, or are refused
with a reason. Two shapes can be compared by what they show.

| key | value | what the lake shows |
|---|---|---|
| include_columns | patterns of names | these columns, and no other |
| exclude_columns | patterns of names | all columns but these |
| hash_columns | patterns of names, or names with `exact` or `lower` | HMAC-SHA-256 of the value |
| mask_columns | names with `first:N`, `last:N`, `year` or `null` | that part, else `***` |
| types | names with `boolean`, `uuid`, `microseconds` or `string` | the value as that type |
| rows | a condition | the rows for which it is TRUE |
| keep_clear | a reason | captured plaintext stays when less is shown; without one it is purged |

Treatments, from those that show least to those that show most:

    left out, mask "null"          nothing of a value
    hash                           whether two values are equal
    mask first:N, last:N, year     a part of a value; a smaller N shows less
    shown, another type            all of it

A hash and a mask of a part show different things, and so do masks of different kinds.
Then neither treatment is stricter than the other. If two settings ask for both, the
column is left out, because only that shows no more than either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final, NoReturn, assert_never

import pyarrow as pa

from lockstep.pipeline.schema.treatments import (
    Conversion,
    Hash,
    Mask,
    Treatment,
    Visibility,
    hides_values,
)
from lockstep.pipeline.schema.types import FAMILIES, TEXT_TYPES, Family
from lockstep.pipeline.shape.hashes import HASH_DIGITS, is_hashable
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableStructure


@dataclass(frozen=True, slots=True)
class ShapeRules:
    """The settings of a table's shape; None if a setting is absent. Columns are named
    by shell patterns, which ignore case and also match columns that are added later."""

    include_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] | None = None
    hash_columns: Mapping[str, Treatment] | None = None
    mask_columns: Mapping[str, Treatment] | None = None
    types: Mapping[str, Conversion] | None = None
    rows: str | None = None
    keep_clear: str | None = None
    """The reason for keeping values that were captured in plaintext when less is shown;
    None if they are purged."""

    def __or__(self, later: ShapeRules) -> ShapeRules:
        """Combine these rules with those of a later block of lockstep.toml. The later
        block hides more and never less, except that its `include_columns` replaces the
        one here."""
        included, reason = later.include_columns, later.keep_clear
        excluded = (*(self.exclude_columns or ()), *(later.exclude_columns or ()))
        return ShapeRules(
            include_columns=self.include_columns if included is None else included,
            exclude_columns=tuple(dict.fromkeys(excluded)) or None,
            hash_columns=_strict_union(self.hash_columns, later.hash_columns),
            mask_columns=_strict_union(self.mask_columns, later.mask_columns),
            types={**(self.types or {}), **(later.types or {})} or None,
            rows=_both_conditions(self.rows, later.rows),
            keep_clear=self.keep_clear if reason is None else reason,
        )


NO_RULES: Final = ShapeRules()
"""The rules of a table that the lake shows as it is."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the lake shows a table. `source`: the table's structure at the source.
    `treatments`: one for each of its columns, in their order. `row_condition`: the
    condition for rows; None for all rows."""

    source: TableStructure
    treatments: tuple[Treatment, ...]
    row_condition: str | None = None

    @property
    def structure(self) -> TableStructure:
        """The structure of the table's mirror (the Delta table with the current rows)
        and of its changelog (the Delta table with every change)."""
        columns = tuple(
            _lake_column(column, treatment)
            for column, treatment in zip(self.source.columns, self.treatments, strict=True)
            if treatment is not Visibility.LEFT_OUT
        )
        # Settings cannot leave out a column of a key. But a table that is not captured
        # may get a captured name later. So it shows no more than the table from which
        # it has its rows, and that can leave out a column of its key.
        has_key = {column.name for column in columns}.issuperset(self.source.primary_key)
        key = self.source.primary_key if has_key else ()
        return replace(self.source, columns=columns, primary_key=key)

    @property
    def shows_all(self) -> bool:
        """True if every column is shown as it is, and every row is taken."""
        return self.row_condition is None and set(self.treatments) <= {Visibility.SHOWN}

    @property
    def has_hashes(self) -> bool:
        """True if any column is hashed, which needs a key."""
        return any(isinstance(treatment, Hash) for treatment in self.treatments)


# -- the shape of a structure ----------------------------------------------------------

_MEMBER_TYPES: Final = frozenset({"enum", "set"})
_WITH_TEXT: Final = (
    *(Family.INTEGER, Family.FLOATING, Family.DECIMAL, Family.YEAR, Family.DATE, Family.TIME),
    *(Family.DATETIME, Family.TIMESTAMP, Family.TEXT, Family.ENUM, Family.SET),
)
"""Families whose values can be shown as the text that MySQL prints."""
_MEMBERS_UNKNOWN: Final = (
    "{} cannot be {}, since the log has only numbers of its members, and the members of a hidden "
    "column are not stored; exclude_columns or the mask null hide it"
)


def shape_of(
    rules: ShapeRules,
    structure: TableStructure,
    *,
    key_columns: Set[str] = frozenset(),
    virtual_columns: Set[str] = frozenset(),
) -> Shape:
    """Return the shape to which rules resolve for a structure. `key_columns`: columns
    of all keys that identify rows; `virtual_columns`: generated columns that are not
    stored. Raise TableError if the rules cannot be applied; its hint names the setting
    to change."""
    for error in shape_faults(
        rules, structure, key_columns=key_columns, virtual_columns=virtual_columns
    ):
        raise error
    # No key is passed, since `shape_faults` has checked the treatments of keys.
    treatments = tuple(_treatment(rules, column, set()) for column in structure.columns)
    return Shape(structure, treatments, rules.rows)


def shape_faults(
    rules: ShapeRules,
    structure: TableStructure,
    *,
    key_columns: Set[str] = frozenset(),
    virtual_columns: Set[str] = frozenset(),
) -> Iterator[TableError]:
    """Yield an error for each reason for which `shape_of` refuses the rules."""
    key_columns = {name.lower() for name in (*key_columns, *structure.primary_key)}
    left_out_count = 0
    memberless_columns: set[str] = set()
    for column in structure.columns:
        try:
            treatment = _treatment(rules, column, key_columns)
        except TableError as error:
            yield error
        else:
            left_out_count += treatment is Visibility.LEFT_OUT
            if column.type in _MEMBER_TYPES and hides_values(treatment):
                memberless_columns.add(column.name.lower())
    if left_out_count == len(structure.columns):
        yield TableError("its settings leave every column out", hint="exclude the table instead")
    if rules.rows is None:
        return
    try:
        _require_condition(rules.rows, structure, virtual_columns, memberless_columns)
    except TableError as error:
        yield error


def _treatment(rules: ShapeRules, column: Column, key_columns: Set[str]) -> Treatment:
    """Return the treatment of a column. `key_columns`: names, in lower case, of the
    columns of keys that identify rows. Raise TableError if the rules contradict each
    other or do not suit the column."""
    name = column.name
    by_setting: dict[str, Treatment] = {}
    if matches(rules.exclude_columns or (), name):
        by_setting["exclude_columns"] = Visibility.LEFT_OUT
    elif rules.include_columns is not None and not matches(rules.include_columns, name):
        by_setting["include_columns"] = Visibility.LEFT_OUT
    for setting, treatments in (
        ("hash_columns", rules.hash_columns),
        ("mask_columns", rules.mask_columns),
        ("types", rules.types),
    ):
        matching = {
            treatment
            for pattern, treatment in (treatments or {}).items()
            if matches((pattern,), name)
        }
        if len(matching) > 1:
            reason = f"{setting} has more than one treatment for it"
            _refuse(column, reason, f"keep one of them in {setting}")
        by_setting.update((setting, treatment) for treatment in matching)
    if len(by_setting) > 1:
        settings = " and ".join(by_setting)
        _refuse(column, f"{settings} apply to it", "let only one of them apply to it")
    setting, treatment = next(iter(by_setting.items()), ("", Visibility.SHOWN))
    obstacle = _reason_impossible(column, treatment, is_key=name.lower() in key_columns)
    if obstacle is not None:
        hint = "add {!r} to {}" if setting == "include_columns" else "take {!r} out of {}"
        _refuse(column, obstacle, hint.format(name, setting))
    return treatment


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of the shell patterns matches a column's name. Case is
    ignored, as in MySQL's names of columns."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def is_possible(column: Column, treatment: Treatment, *, is_key: bool) -> bool:
    """Return whether a column can have this treatment."""
    return _reason_impossible(column, treatment, is_key=is_key) is None


def _reason_impossible(column: Column, treatment: Treatment, *, is_key: bool) -> str | None:
    """Return why a column cannot have this treatment; None if it can."""
    column_type = column.type
    match treatment:
        case Visibility.SHOWN:
            return None
        case Visibility.LEFT_OUT:
            return "it belongs to a key that identifies rows" if is_key else None
        case Hash.LOWER:
            if column_type not in TEXT_TYPES:
                return f"{column_type.upper()} has no lower case"
            return "two keys that differ by case would be one" if is_key else None
        case Hash.EXACT:
            if column_type in _MEMBER_TYPES:
                return _MEMBERS_UNKNOWN.format(column_type.upper(), "hashed")
            return None if is_hashable(column) else f"{column_type.upper()} cannot be hashed"
        case Mask(kind):
            if is_key:
                return "it belongs to a key that identifies rows; hash_columns may name it"
            if kind != "null" and column_type in _MEMBER_TYPES:
                return _MEMBERS_UNKNOWN.format(column_type.upper(), f"shown as {treatment}")
            if kind == "null" or _has_part(FAMILIES.get(column_type), kind):
                return None
            return f"{column_type.upper()} cannot be shown as {treatment}"
        case Conversion():
            return _reason_conversion_impossible(column, treatment, is_key=is_key)
        case _:
            assert_never(treatment)


def _reason_conversion_impossible(
    column: Column, conversion: Conversion, *, is_key: bool
) -> str | None:
    column_type = column.type
    match conversion:
        case Conversion.BOOLEAN:
            is_integer = FAMILIES.get(column_type) is Family.INTEGER
            return None if is_integer else f"{column_type.upper()} is no whole number"
        case Conversion.MICROSECONDS:
            return None if column_type == "time" else f"{column_type.upper()} is not TIME"
        case Conversion.UUID:
            if column_type == "binary" and column.length == 16:
                return None
            if column_type != "char":
                return f"{column_type.upper()} is neither BINARY(16) nor CHAR(36)"
            return "two keys that differ by case would be one" if is_key else None
        case Conversion.STRING:
            has_text = FAMILIES.get(column_type) in _WITH_TEXT
            return None if has_text else f"{column_type.upper()} has no text to show"
        case _:
            assert_never(conversion)


def _has_part(family: Family | None, kind: str) -> bool:
    """Return whether values of the family have the part that a mask of this kind shows:
    the first or last characters, or the year."""
    if family in (Family.DATE, Family.DATETIME, Family.TIMESTAMP):
        return kind == "year"
    return kind != "year" and family in (Family.INTEGER, Family.DECIMAL, Family.TEXT)


def _require_condition(
    condition: str,
    structure: TableStructure,
    virtual_columns: Set[str],
    memberless_columns: Set[str],
) -> None:
    """Raise TableError if the condition cannot be evaluated. `memberless_columns`:
    names, in lower case, of ENUM and SET columns whose members are hidden, so that the
    values are not known as texts."""
    # `condition` is imported in functions: sqlglot, which it needs, takes 0.2 seconds
    # to import.
    from lockstep.pipeline.shape.condition import ConditionUnusable

    hint = "change rows in the settings of this table"
    for name in condition_columns(condition):
        if name.lower() in {column.lower() for column in virtual_columns}:
            raise TableError(
                f"its condition uses column {name!r}, which is computed when it is read", hint=hint
            )
        if name.lower() in memberless_columns:
            raise TableError(
                f"its condition uses column {name!r}, whose members are hidden with its values",
                hint=f"{hint}, or show {name!r}",
            )
    try:
        evaluator_of(structure, condition)
    except ConditionUnusable as error:
        raise TableError(f"its condition cannot be evaluated: {error}", hint=hint) from error


def condition_columns(condition: str | None) -> tuple[str, ...]:
    """Return the names of the columns that a condition uses, each once."""
    if condition is None:
        return ()
    from lockstep.pipeline.shape.condition import read_condition

    return read_condition(condition).columns


def evaluator_of(source: TableStructure, condition: str) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return the function that evaluates a condition on rows of the source. It returns
    a boolean for each row, NULL if the condition is neither true nor false."""
    from lockstep.pipeline.shape.condition import read_condition

    columns = {column.name.lower(): column for column in source.columns}
    return read_condition(condition).term(columns)


def _refuse(column: Column, reason: str, hint: str) -> NoReturn:
    raise TableError(
        f"column {column.name!r} cannot be shown as its settings say: {reason}", hint=hint
    )


def _lake_column(column: Column, treatment: Treatment) -> Column:
    """Return the column that the lake has instead of a source's column."""
    plain_column = Column(column.name, column.type, column.nullable)
    match treatment:
        case Visibility.SHOWN | Visibility.LEFT_OUT:
            return column
        case Hash():
            return replace(plain_column, type="char", length=HASH_DIGITS, charset="ascii")
        case Mask("year"):
            return replace(plain_column, type="year", unsigned=True)
        case Mask("null"):
            new_type = "text" if column.type in _MEMBER_TYPES else column.type
            return replace(column, nullable=True, type=new_type, members=())
        case Mask():  # `length` of a TEXT: the size of its length prefix, in bytes
            return replace(plain_column, type="text", length=2, charset="utf8mb4")
        case Conversion.BOOLEAN:
            return replace(plain_column, type="bit", length=1)
        case Conversion.UUID:
            return replace(plain_column, type="char", length=36, charset="ascii")
        case Conversion.MICROSECONDS:
            return replace(plain_column, type="bigint")
        case Conversion.STRING:
            return replace(plain_column, type="text", length=2, charset="utf8mb4")
        case _:
            assert_never(treatment)


# -- two shapes ------------------------------------------------------------------------


def shows_no_more(left: Treatment, right: Treatment) -> bool:
    """Return whether `right` shows everything of a value that `left` shows."""
    match left, right:
        case (Visibility.LEFT_OUT, _) | (_, Visibility.SHOWN | Conversion()):
            return True
        case Mask("null"), _:
            return right is not Visibility.LEFT_OUT
        case Hash(), Hash():
            # A hash of the lower case also shows that two texts differ only in case.
            return left is right
        case Mask(kind), Mask(other):
            return kind == other and left.length <= right.length
        case _:
            return False


def stricter(left: Treatment, right: Treatment) -> Treatment:
    """Return the treatment that shows no more than either of two; `left` if both show
    the same."""
    if shows_no_more(left, right):
        return left
    return right if shows_no_more(right, left) else Visibility.LEFT_OUT


def stricter_shape(left: Shape, right: Shape) -> Shape:
    """Return the shape that shows no more than either of two shapes of one structure.
    It takes the rows that both take."""
    treatments = tuple(map(stricter, left.treatments, right.treatments))
    rows = _both_conditions(left.row_condition, right.row_condition)
    return replace(left, treatments=treatments, row_condition=rows)


def _both_conditions(left: str | None, right: str | None) -> str | None:
    """Return the condition for the rows that both conditions take; None takes all rows."""
    if left and right and left != right:
        return f"({left}) and ({right})"
    return left or right


def _strict_union(
    earlier: Mapping[str, Treatment] | None, later: Mapping[str, Treatment] | None
) -> Mapping[str, Treatment] | None:
    """Return the treatments of both blocks. A name that both have gets the stricter
    treatment."""
    if earlier is None or later is None:
        return later if earlier is None else earlier
    common = {
        name: stricter(treatment, earlier[name])
        for name, treatment in later.items()
        if name in earlier
    }
    return {**earlier, **later, **common}
