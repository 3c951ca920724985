"""Row conditions, which select the rows of a table that its mirror has.

A condition is written like a WHERE clause. It is always evaluated here, on the values that the lake
would have without a shape, and never by MySQL, so that the log and a load cannot disagree. Values
are compared exactly: texts by their characters, whatever the column's collation. A row is taken
only if the condition is TRUE; a comparison with NULL is neither true nor false.

    condition := condition AND | OR condition | NOT condition | ( condition )
               | column                                  whole numbers only: true if it is not 0
               | column =, <>, <, <=, >, >= literal      also with the literal on the left
               | column [NOT] IN (literal, …)
               | column [NOT] BETWEEN literal AND literal
               | column [NOT] LIKE 'pattern'             texts only; \\ escapes % and _
               | column IS [NOT] NULL

A literal has the column's type: a number for numbers, a text for texts, X'…' for bytes, TRUE or
FALSE for BIT(1) and whole numbers, a quoted ISO 8601 date, date and time, or time for temporal
types; that of a TIMESTAMP ends with its offset from UTC (+02:00, Z).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.schema.types import TEXT_TYPES, arrow_type
from lockstep.pipeline.values.table import Column


class ConditionUnusable(ValueError):
    """The condition cannot be read, or cannot be evaluated for a table; `str()` says why."""


# -- the language --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal. `kind`: number, text, bytes (hexadecimal digits) or truth."""

    kind: str
    text: str

    def __str__(self) -> str:
        return {"text": f"'{self.text}'", "bytes": f"X'{self.text}'"}.get(self.kind, self.text)


@dataclass(frozen=True, slots=True)
class IsTrue:
    column: str


@dataclass(frozen=True, slots=True)
class IsNull:
    column: str


@dataclass(frozen=True, slots=True)
class Compares:
    """A comparison. `sign`: =, <>, <, <=, > or >=."""

    column: str
    sign: str
    literal: Literal


@dataclass(frozen=True, slots=True)
class IsIn:
    column: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsLike:
    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Not:
    operand: Term


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Term, ...]


Term = IsTrue | IsNull | Compares | IsIn | IsLike | Not | And | Or


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, with the text as it was written."""

    text: str
    term: Term

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in the condition, each once, in their order."""
        return tuple(dict.fromkeys(_columns(self.term)))


def _columns(term: Term) -> Iterator[str]:
    match term:
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _columns(operand)
        case Not(operand):
            yield from _columns(operand)
        case IsTrue() | IsNull() | Compares() | IsIn() | IsLike():
            yield term.column
        case _:
            assert_never(term)


# -- evaluating ----------------------------------------------------------------------------------

Evaluated = Callable[[pa.RecordBatch], pa.Array]
"""A function from rows to a boolean array, NULL where the condition is neither true nor false."""


def evaluator(condition: Condition, columns: Mapping[str, Column]) -> Evaluated:
    """Return the function that evaluates a condition on a table's rows. `columns`: the table's, by
    their names in lower case. Raise `ConditionUnusable` if a column is missing, or its type does
    not allow the comparison."""
    return _evaluator(condition.term, columns)


def _evaluator(term: Term, columns: Mapping[str, Column]) -> Evaluated:
    match term:
        case And(operands):
            return _joined(pc.and_kleene, [_evaluator(operand, columns) for operand in operands])
        case Or(operands):
            return _joined(pc.or_kleene, [_evaluator(operand, columns) for operand in operands])
        case Not(operand):
            inner = _evaluator(operand, columns)
            return lambda rows: pc.invert(inner(rows))
        case IsNull(name):
            return _of_values(_column(name, columns), pc.is_null)
        case IsTrue(name):
            column = _column(name, columns)
            if not column.type.endswith("int") and not pa.types.is_boolean(arrow_type(column)):
                raise ConditionUnusable(
                    f"column {name!r} is no whole number and cannot stand alone; compare it"
                )
            return _of_values(column, _number(column, "<>", Literal("number", "0")))
        case Compares(name, sign, literal):
            column = _column(name, columns)
            return _of_values(column, _comparison(column, sign, literal))
        case IsIn(name, literals):
            column = _column(name, columns)
            equals = [_comparison(column, "=", literal) for literal in literals]
            return _of_values(column, _any(equals))
        case IsLike(name, pattern):
            column = _column(name, columns)
            if column.type not in TEXT_TYPES:
                raise ConditionUnusable(f"column {name!r} is no text, which LIKE needs")
            return _of_values(column, lambda values: pc.match_like(values, pattern))
        case _:
            assert_never(term)


def _joined(join: Callable[[pa.Array, pa.Array], pa.Array], tests: list[Evaluated]) -> Evaluated:
    return lambda rows: reduce(join, (test(rows) for test in tests))


def _column(name: str, columns: Mapping[str, Column]) -> Column:
    column = columns.get(name.lower())
    if column is None:
        raise ConditionUnusable(f"the table has no column {name!r}")
    return column


_Test = Callable[[pa.Array], pa.Array]
"""A function from a column's values to a boolean array."""


def _of_values(column: Column, test: _Test) -> Evaluated:
    return lambda rows: test(rows.column(column.name))


def _any(tests: list[_Test]) -> _Test:
    return lambda values: reduce(pc.or_kleene, (test(values) for test in tests))


def _always(truth: bool) -> _Test:
    """Return a test with the same result for each value except NULL."""
    return lambda values: pc.if_else(pc.is_valid(values), truth, pa.scalar(None, pa.bool_()))


_COMPARE: Final[Mapping[str, Callable[[pa.Array, pa.Scalar], pa.Array]]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EQUALITY: Final = ("=", "<>")


def _comparison(column: Column, sign: str, literal: Literal) -> _Test:
    """Return the test of one comparison; raise `ConditionUnusable` if the type or the literal does
    not allow it."""
    kind = column.type
    try:
        if kind.endswith("int") or kind in ("bit", "year", "decimal"):
            return _number(column, sign, literal)
        scalar = _scalar(column, literal)
    except ValueError as error:
        if isinstance(error, ConditionUnusable):
            raise
        raise ConditionUnusable(
            f"{literal} is no value of column {column.name!r} ({kind.upper()}){_advice(kind)}"
        ) from error
    if kind in ("enum", "set") and sign not in _EQUALITY:
        raise ConditionUnusable(
            f"column {column.name!r} is {kind.upper()}, whose order is not that of its texts"
        )
    compare = _COMPARE[sign]
    if kind == "time":
        return lambda values: compare(microseconds(values), scalar)
    if kind == "float":  # As a double, since the literal 0.1 is not equal to the float 0.1.
        return lambda values: compare(values.cast(pa.float64()), scalar)
    return lambda values: compare(values, scalar)


def _advice(kind: str) -> str:
    return "; a TIMESTAMP ends with its offset from UTC, as +00:00" if kind == "timestamp" else ""


_NUMBER: Final = re.compile(r"-?(\d{1,70}\.?\d{0,70}|\.\d{1,70})(e[+-]?\d{1,2})?", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(?P<offset>Z|[+-]\d\d:\d\d)?", re.ASCII
)


def _number(column: Column, sign: str, literal: Literal) -> _Test:
    """Return the test of an exact comparison: column and literal are whole numbers of units of the
    column's last digit. If the literal is between two units, its floor decides, with the sign
    adapted."""
    kind = arrow_type(column)
    if pa.types.is_string(kind):
        raise ConditionUnusable(
            f"column {column.name!r} has more digits than the lake's decimals hold, and cannot be "
            "compared"
        )
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    exact = _exactly(literal) * 10**scale
    floor = exact.__floor__()
    if exact != floor:
        if sign in _EQUALITY:
            return _always(sign == "<>")
        sign = {"<": "<=", ">=": ">"}.get(sign, sign)
    least, most = _range(kind)
    if not least <= floor <= most:
        above = floor > most
        return _always(sign == "<>" or (sign in ("<", "<=") if above else sign in (">", ">=")))
    compare = _COMPARE[sign]
    if pa.types.is_boolean(kind):
        return lambda values: compare(values.cast(pa.int8()), pa.scalar(floor, pa.int8()))
    if pa.types.is_decimal(kind):
        bound = pa.scalar(Decimal(floor).scaleb(-scale, _WIDE), kind)
    else:
        bound = pa.scalar(floor, kind)
    return lambda values: compare(values, bound)


_WIDE: Final = Context(prec=80)


def _range(kind: pa.DataType) -> tuple[int, int]:
    """Return the least and the greatest value of a type, in units of its last digit."""
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    if pa.types.is_boolean(kind):
        return 0, 1
    return -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1


def _exactly(literal: Literal) -> Fraction:
    if literal.kind == "truth":
        return Fraction(literal.text == "TRUE")
    if literal.kind != "number" or _NUMBER.fullmatch(literal.text) is None:
        raise ValueError(literal.text)
    return Fraction(literal.text)


def _scalar(column: Column, literal: Literal) -> pa.Scalar:
    """Return a literal as a value of the column's type in the lake; raise ValueError if it is not a
    value of that type."""
    kind = column.type
    if kind in ("float", "double"):
        return pa.scalar(float(_exactly(literal)), pa.float64())
    if kind in ("binary", "varbinary", "blob"):
        return pa.scalar(_bytes(column, literal), pa.binary())
    if kind not in (*TEXT_TYPES, "enum", "set", "date", "datetime", "timestamp", "time"):
        raise ConditionUnusable(
            f"column {column.name!r} is {kind.upper()}, which allows only IS NULL"
        )
    if literal.kind != "text":
        raise ValueError(literal.text)
    if kind == "date":
        if _DATE.fullmatch(literal.text) is None:
            raise ValueError(literal.text)
        return pa.scalar(date.fromisoformat(literal.text))
    if kind in ("datetime", "timestamp"):
        return _moment(kind, literal.text)
    if kind == "time":
        return pa.scalar(microseconds_of(literal.text), pa.int64())
    return pa.scalar(literal.text, pa.string())


def _bytes(column: Column, literal: Literal) -> bytes:
    """Return the bytes of a literal; for BINARY(n) padded with zero bytes, as its values are."""
    if literal.kind != "bytes":
        raise ValueError(literal.text)
    data = bytes.fromhex(literal.text)
    if column.type != "binary":
        return data
    if column.length is not None and len(data) > column.length:
        raise ValueError(literal.text)
    return data.ljust(column.length or 0, b"\0")


def _moment(kind: str, text: str) -> pa.Scalar:
    zoned = kind == "timestamp"
    if not zoned and _DATE.fullmatch(text):
        text += " 00:00:00"
    match = _MOMENT.fullmatch(text)
    if match is None or (match["offset"] is not None) != zoned:
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return pa.scalar(moment, pa.timestamp("us", tz="UTC" if zoned else None))


# -- TIME as a number of microseconds ------------------------------------------------------------

# In the lake a TIME is the text that MySQL prints (`pipeline.schema.types`), from -838:59:59.000000
# to 838:59:59.000000, with two or three digits for hours and the column's fractional digits.

_PARTS: Final = (
    r"^(?P<sign>-?)(?P<hours>\d{1,3}):(?P<minutes>\d\d):(?P<seconds>\d\d)"
    r"(?:\.(?P<fraction>\d{1,6}))?$"
)


def microseconds(times: pa.Array) -> pa.Int64Array:
    """Return the microseconds of each text of a TIME; NULL for NULL."""
    parts = pc.extract_regex(times, _PARTS)
    names = ("hours", "minutes", "seconds")
    hours, minutes, seconds = (pc.struct_field(parts, name).cast(pa.int64()) for name in names)
    fraction = pc.utf8_rpad(pc.struct_field(parts, "fraction"), 6, "0").cast(pa.int64())
    whole = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    size = pc.add(pc.multiply(whole, 1_000_000), fraction)
    return pc.if_else(pc.equal(pc.struct_field(parts, "sign"), "-"), pc.negate(size), size)


def microseconds_of(text: str) -> int:
    """Return the microseconds of one text; raise ValueError if it is not a TIME."""
    match = re.match(_PARTS, text, re.ASCII)
    if match is None or int(match["minutes"]) > 59 or int(match["seconds"]) > 59:
        raise ValueError(text)
    whole = (int(match["hours"]) * 60 + int(match["minutes"])) * 60 + int(match["seconds"])
    size = whole * 1_000_000 + int((match["fraction"] or "").ljust(6, "0"))
    return -size if match["sign"] else size
