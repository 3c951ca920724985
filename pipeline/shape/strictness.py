"""Comparison of two shapes: which shows less, the shape that shows no more than either, and what a
change of a table's settings means.

Treatments are ordered by what they show:

    left out, mask "null"          nothing of a value
    hash                           whether two values are equal
    mask first:N, last:N, year     a part of a value; a smaller N shows less
    shown, another type            all of it

A hash and a mask show different things, as do two masks of different kinds: neither is stricter, so
only leaving the column out shows no more than either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.schema.treatments import Conversion, Fate, Hash, Mask, Treatment
from pipeline.shape.condition import And, Condition
from pipeline.shape.shape import Shape


def shows_no_more(left: Treatment, right: Treatment) -> bool:
    """Return whether a column treated as `left` shows nothing that `right` does not show."""
    match left, right:
        case (Fate.LEFT_OUT, _) | (_, Fate.SHOWN | Conversion()):
            return True
        case Mask("null"), _:
            return right is not Fate.LEFT_OUT
        case Hash(), Hash():
            # A hash of the lower case also shows that two texts differ only in case.
            return left is right
        case Mask(kind), Mask(other):
            return kind == other and left.keep <= right.keep
        case _:
            return False


def stricter(left: Treatment, right: Treatment) -> Treatment:
    """Return the treatment that shows no more than either; the first if both show the same."""
    if shows_no_more(left, right):
        return left
    return right if shows_no_more(right, left) else Fate.LEFT_OUT


def stricter_shape(left: Shape, right: Shape) -> Shape:
    """Return the shape that shows no more than either of two shapes of one structure. It takes the
    rows that both take."""
    treatments = tuple(map(stricter, left.treatments, right.treatments))
    condition = _both(left.condition, right.condition)
    return replace(left, treatments=treatments, condition=condition)


def _both(left: Condition | None, right: Condition | None) -> Condition | None:
    if left is None or right is None or left == right:
        return left or right
    return Condition(f"({left.text}) and ({right.text})", And((left.term, right.term)))


# -- settings that change ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShapeChange:
    """What a table shows less of after a change of its settings: the columns in `tightened`, and
    rows if `rows_tightened`. `rehashed`: hashes are made with another key. Values captured in clear
    are purged for all of these."""

    tightened: tuple[str, ...] = ()
    rows_tightened: bool = False
    rehashed: bool = False


def shape_change(before: Shape, after: Shape, *, key_replaced: bool = False) -> ShapeChange:
    """Compare two shapes of the same structure. `key_replaced`: hashes are made with another
    key."""
    pairs = zip(after.source.columns, before.treatments, after.treatments, strict=True)
    return ShapeChange(
        tightened=tuple(column.name for column, then, now in pairs if not shows_no_more(then, now)),
        rows_tightened=after.condition is not None and before.condition != after.condition,
        rehashed=key_replaced and after.hashes,
    )
