"""Which of two shapes shows less, and what follows when a table's shape changes.

Belongs here: the order of treatments, the shape that shows no more than either of two, and what a
change of settings comes to. Does not: how treatments follow their columns through statements
(`shaping`), what a run does about it (`pipeline.runs`).

Treatments are ordered by what they show:

    left out, mask "null"          nothing of a value
    hash                           whether two values are equal
    mask first:N, last:N, year     a part of a value; a smaller N shows less
    shown, another type            all of it

A hash and a mask show different things, as do two masks of different kinds: neither is stricter,
and what shows no more than either is to leave the column out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.schema.treatments import Conversion, Fate, Hash, Mask, Treatment
from pipeline.shape.condition import And, Condition
from pipeline.shape.shape import Shape


def shows_no_more(left: Treatment, right: Treatment) -> bool:
    """Whether a column treated as `left` shows nothing that it does not show treated as `right`."""
    match left, right:
        case (Fate.LEFT_OUT, _) | (_, Fate.SHOWN | Conversion()):
            return True
        case Mask("null"), _:
            return right is not Fate.LEFT_OUT
        case Hash(), Hash():
            # Hashes of lower cases also show that two texts differ by nothing else.
            return left is right
        case Mask(kind), Mask(other):
            return kind == other and left.keep <= right.keep
        case _:
            return False


def stricter(left: Treatment, right: Treatment) -> Treatment:
    """The treatment that shows no more than either; of two that show the same, the first."""
    if shows_no_more(left, right):
        return left
    return right if shows_no_more(right, left) else Fate.LEFT_OUT


def stricter_shape(left: Shape, right: Shape) -> Shape:
    """The shape that shows no more than either; both are of the same structure. A row is taken if
    both take it."""
    pairs = zip(left.treatments, right.treatments, strict=True)
    treatments = tuple(stricter(one, other) for one, other in pairs)
    conditions = dict.fromkeys(one.condition for one in (left, right) if one.condition is not None)
    return replace(left, treatments=treatments, condition=_all_of([*conditions]))


def _all_of(conditions: Sequence[Condition]) -> Condition | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    text = " and ".join(f"({one.text})" for one in conditions)
    return Condition(text, And(tuple(one.term for one in conditions)))


# -- settings that change ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShapeChange:
    """What the settings of one table show less of than before, over one structure of it.
    `tightened`: columns; `rows_tightened`: whether rows; `rehashed`: whether hashes are made with
    another key. What stands in clear of that is purged."""

    tightened: tuple[str, ...] = ()
    rows_tightened: bool = False
    rehashed: bool = False


def shape_change(before: Shape, after: Shape, *, key_replaced: bool = False) -> ShapeChange:
    """What changes from one shape to another of the same structure. `key_replaced`: hashes are
    made with another key."""
    pairs = zip(after.source.columns, before.treatments, after.treatments, strict=True)
    return ShapeChange(
        tightened=tuple(column.name for column, then, now in pairs if not shows_no_more(then, now)),
        rows_tightened=after.condition is not None and before.condition != after.condition,
        rehashed=key_replaced and after.hashes,
    )
