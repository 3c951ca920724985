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
    """What the settings of one table change, over one structure of it.

    `back`: columns that were left out and are shown now: their values are read by key. `gone`:
    columns that are left out now. `treated`: columns that show something else than before, which
    takes a reload. `rows`: whether another condition holds, which takes one, too. `tightened`:
    columns of which less is shown than before, so that what stands in clear is purged;
    `rows_tightened`: the same of rows; `rehashed`: of hashes, which are made with another key.
    """

    back: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    treated: tuple[str, ...] = ()
    rows: bool = False
    tightened: tuple[str, ...] = ()
    rows_tightened: bool = False
    rehashed: bool = False

    @property
    def nothing(self) -> bool:
        return not (self.back or self.gone or self.treated or self.rows)

    @property
    def reloads(self) -> bool:
        """Whether all rows are written again."""
        return bool(self.treated) or self.rows


def shape_change(before: Shape, after: Shape, *, key_replaced: bool = False) -> ShapeChange:
    """What changes from one shape to another of the same structure. `key_replaced`: hashes are
    made with another key."""
    names = [column.name for column in after.source.columns]
    pairs = dict(zip(names, zip(before.treatments, after.treatments, strict=True), strict=True))

    changed = {
        name: pair
        for name, pair in pairs.items()
        if pair[0] != pair[1] or (key_replaced and isinstance(pair[1], Hash))
    }
    back = tuple(name for name, pair in changed.items() if pair[0] is Fate.LEFT_OUT)
    gone = tuple(name for name, pair in changed.items() if pair[1] is Fate.LEFT_OUT)
    return ShapeChange(
        back=back,
        gone=gone,
        treated=tuple(name for name in changed if name not in (*back, *gone)),
        rows=before.condition != after.condition,
        tightened=tuple(
            name for name, pair in changed.items() if not shows_no_more(pair[0], pair[1])
        ),
        rows_tightened=after.condition is not None and before.condition != after.condition,
        rehashed=key_replaced and any(isinstance(pair[1], Hash) for pair in pairs.values()),
    )
