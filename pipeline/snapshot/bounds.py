"""Where a chunk begins and ends: values of a key, and the condition that they make.

Belongs here: what is asked for, the values as SQL, the condition. Does not: which columns are a
chunk's key and the forms of types (`keys`), sending any of it (`resources.mysql.chunks`).

A bound holds its values as literals that compare, in a session in UTC, as the very values they
were asked from. Zero and partial dates are numbers, which no sql_mode refuses. It is kept as text
between runs, and what is read back is held against the forms that literals have: nothing else ever
becomes part of a statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipeline.errors import TableError
from pipeline.schema.model import ColumnSchema, TableSchema
from pipeline.snapshot.keys import FORMS, Form, chunk_key

_ASKED: Final = {
    Form.EXACT: "cast({} as char)",
    Form.FLOATING: "{} * 1e0",
    Form.BITS: "cast({} + 0 as char)",
    Form.YEAR: "cast({} as char)",
    Form.DATE: "cast({} as char)",
    Form.MOMENT: "cast({} as char)",
    Form.TIME: "cast({} as char)",
    Form.TEXT: "hex({})",
    Form.BYTES: "hex({})",
    Form.NAMED: "cast({} as char)",
}
_DAY: Final = r"\d{4}-\d\d-\d\d"
_MINUTES: Final = r"\d\d:\d\d(\.\d{1,6})?"
_BYTES: Final = r"x'([0-9A-F]{2})*'"
_WRITTEN: Final = {
    Form.EXACT: r"-?\d{1,65}(\.\d{1,38})?",
    Form.FLOATING: r"-?\d(\.\d{1,17})?e-?\d{1,3}",
    Form.BITS: r"\d{1,20}",
    Form.YEAR: r"\d{4}",
    Form.DATE: rf"date'{_DAY}'|\d{{8}}",
    Form.MOMENT: rf"timestamp'{_DAY} \d\d:{_MINUTES}'|\d{{14}}(\.\d{{1,6}})?",
    Form.TIME: rf"time'-?\d{{2,3}}:{_MINUTES}'",
    Form.TEXT: rf"_[a-z0-9]{{1,32}} {_BYTES}",
    Form.BYTES: _BYTES,
    Form.NAMED: r"'[0-9a-f:.-]{2,45}'",
}
"""What a literal of each form looks like, all of it."""

_SAID: Final = {"utf8mb3": "utf8mb4"}
"""Servers warn of the name, and older ones have another; its bytes mean the same."""

_ANY: Final = re.compile("|".join(f"(?:{form})" for form in _WRITTEN.values()), re.ASCII)


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
    def whole(self) -> bool:
        """Whether it is all of the table."""
        return self.after is None and self.through is None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its bounds; none where it has no bound."""
        bound = self.after or self.through
        return () if bound is None else bound.columns


def asked(schema: TableSchema) -> tuple[str, ...]:
    """What a SELECT asks for to get a bound of the table's chunk key, one expression a column."""
    return tuple(_ASKED[FORMS[c.type]].format(quoted(c.name)) for c in _columns(schema))


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
    conditions = []
    if rows.after is not None:
        conditions.append(_beyond(columns, rows.after.literals, ">", ">"))
    if rows.through is not None:
        conditions.append(_beyond(columns, rows.through.literals, "<", "<="))
    return " and ".join(conditions) or "true"


def order(columns: Sequence[str]) -> str:
    """The columns as an ORDER BY names them."""
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


def _is_partial(moment: str) -> bool:
    """Return whether a month or a day is zero."""
    return "-00" in moment.partition(" ")[0]


def _literal(column: ColumnSchema, answer: object) -> str:
    form = FORMS[column.type]
    literal = _written(form, column, str(answer))
    if re.fullmatch(_WRITTEN[form], literal, re.ASCII) is None:
        raise TableError(
            f"key column {column.name!r} prints values that no statement can compare with",
            hint="change its type (a YEAR(2) to YEAR), or exclude the table",
        )
    return literal


def _written(form: Form, column: ColumnSchema, answer: str) -> str:
    match form:
        case Form.FLOATING:
            return _scientific(float(answer))
        case Form.DATE | Form.MOMENT if _is_partial(answer):
            return re.sub(r"[-: ]", "", answer)
        case Form.DATE:
            return f"date'{answer}'"
        case Form.MOMENT:
            return f"timestamp'{answer}'"
        case Form.TIME:
            return f"time'{answer}'"
        case Form.TEXT:
            return f"_{_SAID.get(column.charset or '', column.charset)} x'{answer}'"
        case Form.BYTES:
            return f"x'{answer}'"
        case Form.NAMED:
            return f"'{answer}'"
        case Form.EXACT:
            return _without_zeros(answer)
        case Form.BITS | Form.YEAR:
            return answer


def _without_zeros(digits: str) -> str:
    """ZEROFILL puts them in front, up to 255."""
    sign = "-" if digits.startswith("-") else ""
    number = digits.removeprefix("-").lstrip("0")
    return f"{sign}{number if number and number[0] != '.' else f'0{number}'}"


def _scientific(value: float) -> str:
    """A DOUBLE has an exponent; without one it would be a DECIMAL. Sixteen digits behind the
    first tell every double."""
    digits, _, exponent = f"{value:.16e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
