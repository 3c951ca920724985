"""The parser of row conditions: sqlglot parses the text, which becomes a `Condition`.

It is separate from `condition`, because importing sqlglot takes 0.2 seconds, which only runs with a
condition should spend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import ParseError, TokenError, exp, parse

from lockstep.pipeline.shape.condition import (
    And,
    Compares,
    Condition,
    ConditionUnusable,
    IsIn,
    IsLike,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Or,
    Term,
)

_SIGNS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def read_condition(text: str) -> Condition:
    """Read a condition; raise `ConditionUnusable` for any other text."""
    try:
        statements = parse(text, dialect="mysql")
    except (ParseError, TokenError) as error:
        raise ConditionUnusable(f"{text!r} cannot be parsed as a condition of SQL") from error
    if len(statements) != 1 or statements[0] is None:
        raise ConditionUnusable(f"{text!r} is not exactly one condition")
    root = statements[0]
    if any(node.comments for node in root.walk()):
        raise ConditionUnusable(f"{text!r} has a comment, which a condition cannot have")
    return Condition(text, _term(root))


def _term(node: exp.Expr) -> Term:
    match node:
        case exp.Paren():
            return _term(node.this)
        case exp.And() | exp.Or():
            operands = tuple(map(_term, (node.left, node.right)))
            return And(operands) if isinstance(node, exp.And) else Or(operands)
        case exp.Not():
            return Not(_term(node.this))
        case exp.Column():
            return IsTrue(_column(node))
        case exp.Is() if isinstance(node.expression, exp.Null):
            return IsNull(_column(node.this))
        case exp.In() if node.expressions and not node.args.get("query"):
            return IsIn(_column(node.this), tuple(map(_literal, node.expressions)))
        case exp.Between():
            return And(
                (
                    Compares(_column(node.this), ">=", _literal(node.args["low"])),
                    Compares(_column(node.this), "<=", _literal(node.args["high"])),
                )
            )
        case exp.Like():
            like = IsLike(_column(node.this), _pattern(node.expression))
            return Not(like) if node.args.get("negate") else like
        case _ if type(node) in _SIGNS:
            sign = _SIGNS[type(node)]
            if isinstance(node.this, exp.Column):
                return Compares(_column(node.this), sign, _literal(node.expression))
            if isinstance(node.expression, exp.Column):
                return Compares(_column(node.expression), _MIRRORED[sign], _literal(node.this))
    raise _outside(node)


def _column(node: exp.Expr) -> str:
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        raise _outside(node)
    if node.table:
        raise ConditionUnusable(f"{node.sql('mysql')}: a column is named without its table")
    return node.name


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
    raise _outside(node)


def _pattern(node: exp.Expr) -> str:
    literal = _literal(node)
    if literal.kind != "text":
        raise _outside(node)
    return literal.text


def _outside(node: exp.Expr) -> ConditionUnusable:
    return ConditionUnusable(
        f"{node.sql('mysql')!r} is not part of a row condition: write columns compared with "
        "literals, IN, BETWEEN, LIKE and IS NULL, joined by AND, OR and NOT"
    )
