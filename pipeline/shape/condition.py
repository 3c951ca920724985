"""Row conditions, which select the rows of a table that the lake takes.

Not here: conditions by which rows are read again (`pipeline.snapshot.condition`). MySQL
evaluates those.

A condition is written like a WHERE clause. It is evaluated here and never by MySQL, on
values as the lake would have them without the table's settings. So rows from the log
and rows from a SELECT are judged alike. Values are compared exactly: texts by their
characters, not by the column's collation. A row is taken only if the condition is TRUE.
A comparison with NULL is neither true nor false.

    condition := condition AND | OR condition | NOT condition | ( condition )
               | column                                  whole numbers only: true if it is not 0
               | column =, <>, <, <=, >, >= literal      also with the literal on the left
               | column [NOT] IN (literal, …)
               | column [NOT] BETWEEN literal AND literal
               | column [NOT] LIKE 'pattern'             texts only; \\ escapes % and _
               | column IS [NOT] NULL

A literal has the column's type: a number for numbers, a text for texts, X'…' for bytes,
TRUE or FALSE for BIT(1) and whole numbers, a quoted ISO 8601 date, date and time, or
time for temporal types. The literal for a TIMESTAMP ends with an offset from UTC
(+02:00, Z).

Importing sqlglot, which parses conditions, takes 0.2 seconds. So this module is only
imported if a table has a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, reduce
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import ParseError, TokenError, exp, parse

from lockstep.pipeline.schema.types import (
    FAMILIES,
    TEXT_TYPES,
    Family,
    arrow_type,
    times_to_microseconds,
)
from lockstep.pipeline.values.table import Column


class ConditionUnusable(ValueError):
    """The condition cannot be read, or cannot be evaluated for a table; the message
    says why."""


RowEvaluator = Callable[[pa.RecordBatch], pa.Array]
"""A function from rows to a boolean array; NULL if the condition is neither true nor
false."""

Term = Callable[[Mapping[str, Column]], RowEvaluator]
"""A part of a condition, as a function. It takes a table's columns, by their names in
lower case, and returns the function that evaluates the part on the table's rows. It
raises `ConditionUnusable` if a column is missing, or if its type does not allow the
comparison."""

_Test = Callable[[pa.Array], pa.Array]
"""A function from a column's values to a boolean array."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition. `columns`: the names of its columns, each once, in the order
    of the text."""

    columns: tuple[str, ...]
    term: Term


@cache
def read_condition(text: str) -> Condition:
    """Return the condition in a text. Raise `ConditionUnusable` if the text is not one."""
    try:
        statements = parse(text, dialect="mysql")
    except (ParseError, TokenError) as error:
        raise ConditionUnusable(f"{text!r} cannot be parsed as a condition of SQL") from error
    if len(statements) != 1 or statements[0] is None:
        raise ConditionUnusable(f"{text!r} is not exactly one condition")
    root = statements[0]
    if any(node.comments for node in root.walk()):
        raise ConditionUnusable(f"{text!r} has a comment, which a condition cannot have")
    term = _term(root)
    names = (column.name for column in root.find_all(exp.Column, bfs=False))
    return Condition(tuple(dict.fromkeys(names)), term)


_OPERATORS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_SWAPPED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _term(node: exp.Expr) -> Term:
    match node:
        case exp.Paren():
            return _term(node.this)
        case exp.And():
            return _join_terms(pc.and_kleene, _term(node.left), _term(node.right))
        case exp.Or():
            return _join_terms(pc.or_kleene, _term(node.left), _term(node.right))
        case exp.Not():
            return _negate(_term(node.this))
        case exp.Column():
            return _column_term(node, _truth_test)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return _column_term(node.this, lambda _: pc.is_null)
        case exp.In() if node.expressions and not node.args.get("query"):
            literals = tuple(map(_literal, node.expressions))
            return _column_term(node.this, lambda column: _membership_test(column, literals))
        case exp.Between():
            low = _comparison_term(node.this, ">=", node.args["low"])
            return _join_terms(
                pc.and_kleene, low, _comparison_term(node.this, "<=", node.args["high"])
            )
        case exp.Like():
            pattern = _literal(node.expression)
            like = _column_term(node.this, lambda column: _like_test(column, pattern))
            return _negate(like) if node.args.get("negate") else like
        case _ if type(node) in _OPERATORS:
            operator = _OPERATORS[type(node)]
            if isinstance(node.this, exp.Column):
                return _comparison_term(node.this, operator, node.expression)
            if isinstance(node.expression, exp.Column):
                return _comparison_term(node.expression, _SWAPPED[operator], node.this)
    raise _unsupported_error(node)


def _join_terms(join: Callable[[pa.Array, pa.Array], pa.Array], left: Term, right: Term) -> Term:
    def bind(columns: Mapping[str, Column]) -> RowEvaluator:
        first, second = left(columns), right(columns)
        return lambda rows: join(first(rows), second(rows))

    return bind


def _negate(term: Term) -> Term:
    def bind(columns: Mapping[str, Column]) -> RowEvaluator:
        evaluate = term(columns)
        return lambda rows: pc.invert(evaluate(rows))

    return bind


def _column_term(node: exp.Expr, test_of: Callable[[Column], _Test]) -> Term:
    """Return the term for a test of one column's values. `test_of`: returns the test
    for a column's type."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        raise _unsupported_error(node)
    if node.table:
        raise ConditionUnusable(f"{node.sql('mysql')}: a column is named without its table")
    name = node.name

    def bind(columns: Mapping[str, Column]) -> RowEvaluator:
        column = columns.get(name.lower())
        if column is None:
            raise ConditionUnusable(f"the table has no column {name!r}")
        test = test_of(column)
        return lambda rows: test(rows.column(column.name))

    return bind


def _comparison_term(node: exp.Expr, operator: str, other: exp.Expr) -> Term:
    literal = _literal(other)
    return _column_term(node, lambda column: _comparison_test(column, operator, literal))


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal in a condition. `kind`: number, text, bytes (`text` has hexadecimal
    digits) or truth (TRUE or FALSE)."""

    kind: str
    text: str

    def __str__(self) -> str:
        return {"text": f"'{self.text}'", "bytes": f"X'{self.text}'"}.get(self.kind, self.text)


def _literal(node: exp.Expr) -> Literal:
    match node:
        case exp.Literal():
            return Literal("text" if node.is_string else "number", node.this)
        case exp.Neg(this=exp.Literal(is_string=False) as number):
            return Literal("number", f"-{number.this}")
        case exp.HexString():
            return Literal("bytes", node.this)
        case exp.Boolean():
            return Literal("truth", str(node.this).upper())
        case exp.Null():
            raise ConditionUnusable("a comparison with NULL is never true; write IS NULL")
    raise _unsupported_error(node)


def _unsupported_error(node: exp.Expr) -> ConditionUnusable:
    return ConditionUnusable(
        f"{node.sql('mysql')!r} is not part of a row condition: write columns compared with "
        "literals, IN, BETWEEN, LIKE and IS NULL, joined by AND, OR and NOT"
    )


# -- tests of a column's values --------------------------------------------------------


def _truth_test(column: Column) -> _Test:
    is_integer = FAMILIES.get(column.type) is Family.INTEGER
    if not is_integer and not pa.types.is_boolean(arrow_type(column)):
        raise ConditionUnusable(
            f"column {column.name!r} is no whole number and cannot stand alone; compare it"
        )
    return _number_test(column, "<>", Literal("number", "0"))


def _membership_test(column: Column, literals: tuple[Literal, ...]) -> _Test:
    tests = [_comparison_test(column, "=", literal) for literal in literals]
    return lambda values: reduce(pc.or_kleene, (test(values) for test in tests))


def _like_test(column: Column, pattern: Literal) -> _Test:
    if column.type not in TEXT_TYPES:
        raise ConditionUnusable(f"column {column.name!r} is no text, which LIKE needs")
    if pattern.kind != "text":
        raise ConditionUnusable(f"{pattern} is no text, which LIKE needs")
    return lambda values: pc.match_like(values, pattern.text)


def _constant_test(truth: bool) -> _Test:
    """Return a test with the result `truth` for each value, and NULL for NULL."""
    return lambda values: pc.if_else(pc.is_valid(values), truth, pa.scalar(None, pa.bool_()))


_COMPARE_FUNCTIONS: Final[Mapping[str, Callable[[pa.Array, pa.Scalar], pa.Array]]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EQUALITY_OPERATORS: Final = ("=", "<>")


def _comparison_test(column: Column, operator: str, literal: Literal) -> _Test:
    """Return the test for a comparison with a literal. Raise `ConditionUnusable` if the
    column's type or the literal does not allow the comparison."""
    mysql_type = column.type
    try:
        scalar = _scalar(column, literal)
        if scalar is None:
            return _number_test(column, operator, literal)
    except ConditionUnusable:
        raise
    except ValueError as error:
        zone_rule = "; a TIMESTAMP ends with its offset from UTC, as +00:00"
        raise ConditionUnusable(
            f"{literal} is no value of column {column.name!r} ({mysql_type.upper()})"
            f"{zone_rule if mysql_type == 'timestamp' else ''}"
        ) from error
    if mysql_type in ("enum", "set") and operator not in _EQUALITY_OPERATORS:
        raise ConditionUnusable(
            f"column {column.name!r} is {mysql_type.upper()}, whose order is not that of its texts"
        )
    compare = _COMPARE_FUNCTIONS[operator]
    if mysql_type == "time":
        return lambda values: compare(times_to_microseconds(values), scalar)
    if mysql_type == "float":  # As a double, since the literal 0.1 is not equal to the float 0.1.
        return lambda values: compare(values.cast(pa.float64()), scalar)
    return lambda values: compare(values, scalar)


_NUMBER: Final = re.compile(r"-?(\d{1,70}\.?\d{0,70}|\.\d{1,70})(e[+-]?\d{1,2})?", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(?P<offset>Z|[+-]\d\d:\d\d)?", re.ASCII
)


def _number_test(column: Column, operator: str, literal: Literal) -> _Test:
    """Return the test for an exact comparison of numbers, in units of the column's last
    digit. If the literal is between two units, it is replaced by its floor: `< 1.5`
    becomes `<= 1` for whole numbers, and `= 1.5` is never true."""
    lake_type = arrow_type(column)
    if pa.types.is_string(lake_type):
        raise ConditionUnusable(
            f"column {column.name!r} has more digits than the lake's decimals hold, and cannot be "
            "compared"
        )
    scale = lake_type.scale if pa.types.is_decimal(lake_type) else 0
    exact = _exact_value(literal) * 10**scale
    floor = exact.__floor__()
    if exact != floor:
        if operator in _EQUALITY_OPERATORS:
            return _constant_test(operator == "<>")
        operator = {"<": "<=", ">=": ">"}.get(operator, operator)
    least, greatest = _value_range(lake_type)
    if not least <= floor <= greatest:
        true_operators = ("<", "<=", "<>") if floor > greatest else (">", ">=", "<>")
        return _constant_test(operator in true_operators)
    compare = _COMPARE_FUNCTIONS[operator]
    if pa.types.is_boolean(lake_type):
        return lambda values: compare(values.cast(pa.int8()), pa.scalar(floor, pa.int8()))
    if pa.types.is_decimal(lake_type):
        bound = pa.scalar(Decimal(floor).scaleb(-scale, _WIDE_CONTEXT), lake_type)
    else:
        bound = pa.scalar(floor, lake_type)
    return lambda values: compare(values, bound)


_WIDE_CONTEXT: Final = Context(prec=80)


def _value_range(lake_type: pa.DataType) -> tuple[int, int]:
    """Return the least and the greatest value of a type, in units of its last digit."""
    if pa.types.is_decimal(lake_type):
        return 1 - 10**lake_type.precision, 10**lake_type.precision - 1
    if pa.types.is_boolean(lake_type):
        return 0, 1
    return -(1 << (lake_type.bit_width - 1)), (1 << (lake_type.bit_width - 1)) - 1


def _exact_value(literal: Literal) -> Fraction:
    if literal.kind == "truth":
        return Fraction(literal.text == "TRUE")
    if literal.kind != "number" or _NUMBER.fullmatch(literal.text) is None:
        raise ValueError(literal.text)
    return Fraction(literal.text)


def _scalar(column: Column, literal: Literal) -> pa.Scalar | None:
    """Return a literal as a value of the column's type in the lake; None for a number
    that is compared exactly (`_number_test`). Raise ValueError if it is not a value of
    that type."""
    match FAMILIES.get(column.type):
        case Family.INTEGER | Family.BIT | Family.YEAR | Family.DECIMAL:
            return None
        case Family.FLOATING:
            return pa.scalar(float(_exact_value(literal)), pa.float64())
        case Family.BYTES:
            return pa.scalar(_literal_bytes(column, literal), pa.binary())
        case Family.DATE:
            text = _literal_text(literal)
            if _DATE.fullmatch(text) is None:
                raise ValueError(text)
            return pa.scalar(date.fromisoformat(text))
        case Family.DATETIME | Family.TIMESTAMP:
            return _moment_scalar(column.type, _literal_text(literal))
        case Family.TIME:
            microseconds = times_to_microseconds(pa.array([_literal_text(literal)]))[0]
            if not microseconds.is_valid:
                raise ValueError(literal.text)
            return microseconds
        case Family.TEXT | Family.ENUM | Family.SET:
            return pa.scalar(_literal_text(literal), pa.string())
        case Family.JSON | Family.GEOMETRY | Family.VECTOR | None:
            raise ConditionUnusable(
                f"column {column.name!r} is {column.type.upper()}, which allows only IS NULL"
            )
        case family:
            assert_never(family)


def _literal_text(literal: Literal) -> str:
    if literal.kind != "text":
        raise ValueError(literal.text)
    return literal.text


def _literal_bytes(column: Column, literal: Literal) -> bytes:
    """Return the bytes of a literal. For BINARY(n) they are padded with zero bytes, as
    MySQL pads its values."""
    if literal.kind != "bytes":
        raise ValueError(literal.text)
    data = bytes.fromhex(literal.text)
    if column.type != "binary":
        return data
    if column.length is not None and len(data) > column.length:
        raise ValueError(literal.text)
    return data.ljust(column.length or 0, b"\0")


def _moment_scalar(mysql_type: str, text: str) -> pa.Scalar:
    has_zone = mysql_type == "timestamp"
    if not has_zone and _DATE.fullmatch(text):
        text += " 00:00:00"
    match = _MOMENT.fullmatch(text)
    if match is None or (match["offset"] is not None) != has_zone:
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return pa.scalar(moment, pa.timestamp("us", tz="UTC" if has_zone else None))
