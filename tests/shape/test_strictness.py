"""The order of treatments, and what a change of settings comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.treatments import Conversion, Fate, Hash, Mask, Treatment
from pipeline.shape.condition_text import read_condition
from pipeline.shape.rules import ShapeRules
from pipeline.shape.shape import Shape, shape_of
from pipeline.shape.strictness import (
    ShapeChange,
    followed,
    shape_change,
    shows_no_more,
    stricter,
    stricter_shape,
)
from pipeline.table import Column, TableName, TableStructure

TREATMENTS: list[Treatment] = [
    *Fate,
    *Hash,
    *Conversion,
    Mask("null"),
    Mask("year"),
    *(Mask(kind, keep) for kind in ("first", "last") for keep in (1, 2)),
]
ANY = st.sampled_from(TREATMENTS)

STRUCTURE = TableStructure(
    TableName("shop", "customers"),
    (Column("id", "int"), *(Column(name, "varchar", charset="utf8mb4") for name in "abc")),
    ("id",),
)


@given(ANY, ANY, ANY)
def test_treatments_are_ordered(one: Treatment, two: Treatment, three: Treatment) -> None:
    assert shows_no_more(one, one)
    if shows_no_more(one, two) and shows_no_more(two, three):
        assert shows_no_more(one, three)


@given(ANY, ANY)
def test_the_stricter_shows_no_more_than_either(one: Treatment, two: Treatment) -> None:
    both = stricter(one, two)
    assert shows_no_more(both, one) and shows_no_more(both, two)
    assert shows_no_more(stricter(two, one), both)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (Fate.LEFT_OUT, Mask("null")),
        (Mask("null"), Hash.EXACT),
        (Hash.EXACT, Fate.SHOWN),
        (Mask("last", 2), Mask("last", 4)),
        (Mask("year"), Conversion.STRING),
    ],
)
def test_one_shows_less_than_the_other(less: Treatment, more: Treatment) -> None:
    assert shows_no_more(less, more) and not shows_no_more(more, less)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Hash.EXACT, Mask("last", 4)),
        (Mask("first", 1), Mask("last", 1)),
        (Hash.EXACT, Hash.LOWER),
    ],
)
def test_what_shows_something_else_is_left_out(one: Treatment, other: Treatment) -> None:
    assert stricter(one, other) is stricter(other, one) is Fate.LEFT_OUT


def _shape(**rules: object) -> Shape:
    return shape_of(ShapeRules(**rules), STRUCTURE)  # type: ignore[arg-type]


def test_of_two_shapes_both_conditions_hold() -> None:
    one = _shape(rows=read_condition("a = 'x'"), hash_columns={"b": Hash.EXACT})
    other = _shape(rows=read_condition("b = 'y' or c = 'z'"), exclude_columns=("c",))
    both = stricter_shape(one, other)
    assert both.condition is not None
    assert both.condition.text == "(a = 'x') and (b = 'y' or c = 'z')"
    assert both.treatments == (Fate.SHOWN, Fate.SHOWN, Hash.EXACT, Fate.LEFT_OUT)
    assert stricter_shape(one, one) == one


def test_a_renamed_column_shows_no_more_than_before() -> None:
    before = _shape(exclude_columns=("a",), hash_columns={"b": Hash.EXACT})
    names = ("id", "a2", "b", "c")
    renamed = replace(
        STRUCTURE,
        columns=tuple(
            replace(column, name=name)
            for column, name in zip(STRUCTURE.columns, names, strict=True)
        ),
    )
    rules = ShapeRules(exclude_columns=("a",), hash_columns={"b": Hash.EXACT})
    assert followed(before, shape_of(rules, renamed), ("id", "a", "b", "c")) == ("a2",)
    assert followed(before, shape_of(rules, renamed), ("id", None, "b", "c")) == ()
    wider = ShapeRules(exclude_columns=("a*",), hash_columns={"b": Hash.EXACT})
    assert followed(before, shape_of(wider, renamed), ("id", "a", "b", "c")) == ()


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, {}, ShapeChange()),
        ({"exclude_columns": ("a",)}, {}, ShapeChange(back=("a",))),
        ({}, {"exclude_columns": ("a",)}, ShapeChange(gone=("a",), tightened=("a",))),
        (
            {},
            {"hash_columns": {"a": Hash.EXACT}},
            ShapeChange(treated=("a",), tightened=("a",)),
        ),
        ({"hash_columns": {"a": Hash.EXACT}}, {}, ShapeChange(treated=("a",))),
        (
            {"mask_columns": {"a": Mask("last", 4)}},
            {"mask_columns": {"a": Mask("last", 2)}},
            ShapeChange(treated=("a",), tightened=("a",)),
        ),
        ({"rows": read_condition("a = 'x'")}, {}, ShapeChange(rows=True)),
        (
            {"rows": read_condition("a = 'x'")},
            {"rows": read_condition("a = 'y'")},
            ShapeChange(rows=True, rows_tightened=True),
        ),
    ],
)
def test_what_settings_change(
    before: dict[str, object], after: dict[str, object], change: ShapeChange
) -> None:
    assert shape_change(_shape(**before), _shape(**after)) == change
    assert change.nothing == (before == after)


def test_a_key_that_is_replaced_reloads_what_is_hashed() -> None:
    shape = _shape(hash_columns={"a": Hash.EXACT})
    change = shape_change(shape, shape, key_replaced=True)
    assert change.treated == ("a",) and change.reloads and not change.tightened
