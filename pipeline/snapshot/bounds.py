"""Bounds of chunks: values of a key, and the SQL conditions made from them.

A bound has its values as SQL literals. In a session in UTC, these compare like the
values that the server returned. Zero and partial dates are written as numbers, which
every sql_mode accepts. Between runs, bounds are stored as text. When they are read
back, each literal must match the regular expression of a key type, so that no other SQL
can enter a statement. If the settings hide a key's values, its bounds are sealed
(encrypted). Only the code that sealed them (`resources.mysql.shaped`) can open them,
and statements never contain them.

`point_condition` selects rows by their keys. It must select every row that exists, so
each type is tested on each server with its extreme values. It may also select others,
so the caller compares the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lockstep.pipeline.schema.model import ColumnSchema, TableSchema
from lockstep.pipeline.snapshot.keys import FORMS, chunk_key
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import quoted

_SEALED: Final = r"sealed'[0-9a-f]+'"
_LITERAL: Final = re.compile(
    "|".join({_SEALED, *(f"(?:{form.literal_pattern})" for form in FORMS.values())}), re.ASCII
)


@dataclass(frozen=True, slots=True)
class Bound:
    """A place in the order of `columns`, with one SQL literal for each column.

    Raises ValueError for a literal of no key type, or if there are not as many literals
    as columns.
    """

    columns: tuple[str, ...]
    literals: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns or len(self.columns) != len(self.literals):
            raise ValueError(f"{len(self.literals)} values for {len(self.columns)} columns")
        for column, literal in zip(self.columns, self.literals, strict=True):
            if _LITERAL.fullmatch(literal) is None:
                raise ValueError(f"the bound of {column!r} is not a literal of a key")

    @classmethod
    def from_json(cls, data: Any) -> Bound:
        """Return a bound from the ledger's JSON. Raise ValueError for anything else."""
        try:
            columns, literals = tuple(data["columns"]), tuple(data["literals"])
        except (KeyError, TypeError) as error:
            raise ValueError("not a bound") from error
        if not all(isinstance(text, str) for text in (*columns, *literals)):
            raise ValueError("not a bound")
        return cls(columns, literals)

    def seal(self, seal: Callable[[str], bytes]) -> Bound:
        """Return the same bound with each literal encrypted by `seal`."""
        literals = (f"sealed'{seal(literal).hex()}'" for literal in self.literals)
        return Bound(self.columns, tuple(literals))

    def open(self, open_: Callable[[bytes], str]) -> Bound:
        """Return the bound with each literal decrypted by `open_`. Raise ValueError for
        a bound that is not sealed."""
        if not all(re.fullmatch(_SEALED, literal) for literal in self.literals):
            raise ValueError("the bound is not sealed")
        literals = (open_(bytes.fromhex(literal.split("'")[1])) for literal in self.literals)
        return Bound(self.columns, tuple(literals))


@dataclass(frozen=True, slots=True)
class Range:
    """The rows after the bound `after` (None: from the first row), up to and including
    `through` (None: to the last row). Raises ValueError if these are bounds of
    different columns."""

    after: Bound | None = None
    through: Bound | None = None

    def __post_init__(self) -> None:
        if self.after and self.through and self.after.columns != self.through.columns:
            raise ValueError("the bounds of a range have different columns")

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return tuple(bound for bound in (self.after, self.through) if bound is not None)

    @property
    def is_whole_table(self) -> bool:
        return not self.bounds

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the bounds; empty without bounds."""
        bound = self.after or self.through
        return () if bound is None else bound.columns


def key_expressions(schema: TableSchema) -> tuple[str, ...]:
    """Return the SQL expressions that read a bound's values, one per column of the
    chunk key."""
    columns = _key_columns(schema)
    return tuple(
        FORMS[column.type].select_template.format(quoted(column.name)) for column in columns
    )


def bound_of(schema: TableSchema, answers: Sequence[object]) -> Bound:
    """Return the bound of a row. `answers`: what the server returned for
    `key_expressions`.

    Raise TableError for a value without a literal. Only a YEAR(2) has such values: a
    server orders them by four digits and compares them by two.
    """
    columns = _key_columns(schema)
    literals = (_literal(column, answer) for column, answer in zip(columns, answers, strict=True))
    return Bound(chunk_key(schema), tuple(literals))


def range_condition(key_range: Range) -> str:
    """Return the SQL condition for the rows of a range; `true` for all rows.

    Columns are compared one by one, `a > 1 or (a = 1 and b > 2)`. For `(a, b) > (1, 2)`
    servers would read the index from its beginning instead of looking up the range.
    """
    columns = [quoted(column) for column in key_range.columns]
    literals = [literal for bound in key_range.bounds for literal in bound.literals]
    if any(re.fullmatch(_SEALED, literal) for literal in literals):
        raise ValueError("a statement cannot contain a sealed bound")
    conditions = []
    if key_range.after is not None:
        conditions.append(beyond(columns, key_range.after.literals, ">", ">"))
    if key_range.through is not None:
        conditions.append(beyond(columns, key_range.through.literals, "<", "<="))
    return " and ".join(conditions) or "true"


def order_by(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


def _key_columns(schema: TableSchema) -> list[ColumnSchema]:
    columns = (schema.column(name) for name in chunk_key(schema))
    return [column for column in columns if column is not None]


def beyond(columns: Sequence[str], literals: Sequence[str], sign: str, last: str) -> str:
    """Return the condition for the rows beyond a bound, such as (a > 1 or (a = 1 and b
    >= 2)). `sign`: the operator for all columns but the last; `last`: the operator for
    the last column."""
    column, literal = columns[0], literals[0]
    if len(columns) == 1:
        return f"{column} {last} {literal}"
    inner = beyond(columns[1:], literals[1:], sign, last)
    return f"({column} {sign} {literal} or ({column} = {literal} and {inner}))"


def _literal(column: ColumnSchema, answer: object) -> str:
    form = FORMS[column.type]
    literal = form.from_answer(column, str(answer))
    if re.fullmatch(form.literal_pattern, literal, re.ASCII) is None:
        raise TableError(
            f"key column {column.name!r} prints values that no statement can compare with",
            hint="change its type (a YEAR(2) to YEAR), or exclude the table",
        )
    return literal


# -- rows by their keys, whose values come from the lake -------------------------------


def column_without_literal(schema: TableSchema, key: Sequence[str]) -> str | None:
    """Return the first column of the key whose values cannot be written as literals, or
    None."""
    return next((name for name in key if _literal_writer(schema, name) is None), None)


def point_condition(schema: TableSchema, keys: pa.RecordBatch) -> str:
    """Return the SQL condition for the rows with one of these keys. `keys`: at least
    one row, without NULLs, with the types of `schema.types`. Raise ValueError for a
    column without literals (`column_without_literal`)."""
    names, literals = [], []
    for name in keys.schema.names:
        to_literal = _literal_writer(schema, name)
        if to_literal is None:
            raise ValueError(f"rows of {schema.name} cannot be selected by {name}")
        names.append(quoted(name))
        literals.append([to_literal(value) for value in keys.column(name).to_pylist()])
    rows = zip(*literals, strict=True)
    if len(names) == 1:
        return f"{names[0]} in ({', '.join(literal for (literal,) in rows)})"
    # Servers look up row constructors, (a, b) in (…), in an index only if all types are
    # the same.
    return " or ".join(
        "("
        + " and ".join(f"{name} = {literal}" for name, literal in zip(names, row, strict=True))
        + ")"
        for row in rows
    )


def _literal_writer(schema: TableSchema, name: str) -> Callable[[Any], str] | None:
    """Return the function that writes the column's values from the lake as literals."""
    column = schema.column(name)
    form = None if column is None else FORMS.get(column.type)
    return None if form is None else form.from_lake
