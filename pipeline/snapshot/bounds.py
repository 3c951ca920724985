"""Where a chunk begins and ends: values of a key, and the condition that they make.

A bound holds its values as literals that compare, in a session in UTC, as the very values they
were asked from. Zero and partial dates are numbers, which no sql_mode refuses. It is kept as text
between runs, and what is read back is held against the forms that literals have: nothing else ever
becomes part of a statement. A bound of which nobody may see the values is sealed: a server that
hides them hands it out (`resources.mysql.shaped`) and alone can open it, and no statement can be
made of it.

Rows are asked for by their keys, too (`point_condition`). A row that is there must be found: so
each type is proven on each server with its extremes. What is found beside it does no harm; whoever
asks compares the keys that come back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pipeline.errors import TableError
from pipeline.schema.model import ColumnSchema, TableSchema
from pipeline.snapshot.keys import FORMS, chunk_key

_SEALED: Final = r"sealed'[0-9a-f]+'"
_ANY: Final = re.compile(
    "|".join({_SEALED, *(f"(?:{form.literal})" for form in FORMS.values())}), re.ASCII
)


@dataclass(frozen=True, slots=True)
class Bound:
    """A place in the order of `columns`: their values as SQL `literals`, one each.

    ValueError for a literal that has none of the forms, or for another number of them.
    """

    columns: tuple[str, ...]
    literals: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns or len(self.columns) != len(self.literals):
            raise ValueError(f"{len(self.literals)} values for {len(self.columns)} columns")
        for column, literal in zip(self.columns, self.literals, strict=True):
            if _ANY.fullmatch(literal) is None:
                raise ValueError(f"a bound of {column!r} that is no literal of a key")

    @classmethod
    def from_json(cls, data: Any) -> Bound:
        """A bound as the ledger keeps it; ValueError for anything else."""
        try:
            columns, literals = tuple(data["columns"]), tuple(data["literals"])
        except (KeyError, TypeError) as error:
            raise ValueError("not a bound") from error
        if not all(isinstance(one, str) for one in (*columns, *literals)):
            raise ValueError("not a bound")
        return cls(columns, literals)

    def sealed(self, seal: Callable[[str], bytes]) -> Bound:
        """The same place, of which only what `seal` makes of each literal is seen."""
        literals = (f"sealed'{seal(one).hex()}'" for one in self.literals)
        return Bound(self.columns, tuple(literals))

    def opened(self, open_: Callable[[bytes], str]) -> Bound:
        """What a sealed bound was before; ValueError for one that is not sealed."""
        if not all(re.fullmatch(_SEALED, one) for one in self.literals):
            raise ValueError("the bound is not sealed")
        literals = (open_(bytes.fromhex(one.split("'")[1])) for one in self.literals)
        return Bound(self.columns, tuple(literals))


@dataclass(frozen=True, slots=True)
class Range:
    """The rows behind `after` (None: from the first on) up to `through`, which is part of it
    (None: to the last). ValueError where the two are bounds of different columns."""

    after: Bound | None = None
    through: Bound | None = None

    def __post_init__(self) -> None:
        if self.after and self.through and self.after.columns != self.through.columns:
            raise ValueError("a range between bounds of different columns")

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return tuple(bound for bound in (self.after, self.through) if bound is not None)

    @property
    def whole(self) -> bool:
        return not self.bounds

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its bounds; none where it has no bound."""
        bound = self.after or self.through
        return () if bound is None else bound.columns


def asked(schema: TableSchema) -> tuple[str, ...]:
    """What a SELECT asks for to get a bound of the table's chunk key, one expression a column."""
    return tuple(FORMS[c.type].asked.format(quoted(c.name)) for c in _columns(schema))


def bound_of(schema: TableSchema, answers: Sequence[object]) -> Bound:
    """The bound that a row's answers to `asked` make, as text or as Python's numbers.

    `TableError` for a value that cannot be written again: a YEAR(2), which a server orders by
    four digits and compares by two.
    """
    columns = _columns(schema)
    literals = (_literal(column, answer) for column, answer in zip(columns, answers, strict=True))
    return Bound(chunk_key(schema), tuple(literals))


def where(rows: Range) -> str:
    """The condition for the rows of a range: complete SQL, `true` for all of them.

    Columns are compared one by one, `a > 1 or (a = 1 and b > 2)`: servers look up no range for
    `(a, b) > (1, 2)`, they read the index from its beginning.
    """
    columns = [quoted(column) for column in rows.columns]
    if any(re.fullmatch(_SEALED, one) for bound in rows.bounds for one in bound.literals):
        raise ValueError("no statement has a sealed bound")
    conditions = []
    if rows.after is not None:
        conditions.append(_beyond(columns, rows.after.literals, ">", ">"))
    if rows.through is not None:
        conditions.append(_beyond(columns, rows.through.literals, "<", "<="))
    return " and ".join(conditions) or "true"


def order(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _columns(schema: TableSchema) -> list[ColumnSchema]:
    columns = (schema.column(name) for name in chunk_key(schema))
    return [column for column in columns if column is not None]


def _beyond(columns: Sequence[str], literals: Sequence[str], sign: str, last: str) -> str:
    """Nested, not multiplied out: n columns are compared 2n - 1 times."""
    column, literal = columns[0], literals[0]
    if len(columns) == 1:
        return f"{column} {last} {literal}"
    inner = _beyond(columns[1:], literals[1:], sign, last)
    return f"({column} {sign} {literal} or ({column} = {literal} and {inner}))"


def _literal(column: ColumnSchema, answer: object) -> str:
    form = FORMS[column.type]
    literal = form.told(column, str(answer))
    if re.fullmatch(form.literal, literal, re.ASCII) is None:
        raise TableError(
            f"key column {column.name!r} prints values that no statement can compare with",
            hint="change its type (a YEAR(2) to YEAR), or exclude the table",
        )
    return literal


# -- rows by their keys: of values of the lake, none of which a server told ---------------


def unaskable(schema: TableSchema, key: Sequence[str]) -> str | None:
    """The first column of the key by whose values no row can be asked for; None: by all."""
    return next((name for name in key if _shown(schema, name) is None), None)


def point_condition(schema: TableSchema, keys: pa.RecordBatch) -> str:
    """Complete SQL for the rows that have one of these keys, at least one; `keys` has the key's
    columns, of which `unaskable` finds none, as `schema.types` types them, without NULLs."""
    names = [quoted(name) for name in keys.schema.names]
    rows = zip(
        *(_shown_literals(schema, name, keys.column(name)) for name in keys.schema.names),
        strict=True,
    )
    if len(names) == 1:
        return f"{names[0]} in ({', '.join(literal for (literal,) in rows)})"
    # A row constructor is looked up in an index only where all sides have the same types.
    both = (" and ".join(f"{n} = {v}" for n, v in zip(names, row, strict=True)) for row in rows)
    return " or ".join(f"({one})" for one in both)


def _shown_literals(schema: TableSchema, name: str, values: pa.Array) -> list[str]:
    shown = _shown(schema, name)
    if shown is None:
        raise ValueError(f"{schema.name} has no rows to ask for by {name}")
    return [shown(value) for value in values.to_pylist()]


def _shown(schema: TableSchema, name: str) -> Callable[[Any], str] | None:
    column = schema.column(name)
    form = None if column is None else FORMS.get(column.type)
    return None if form is None else form.shown
