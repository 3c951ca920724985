"""The order of treatments, what statements do under it, and what a change of settings comes to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.position import Coordinates, LogFile
from pipeline.schema.context import ServerDialect, StatementContext
from pipeline.schema.history import Knowledge
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.tracker import HeldStructures, SchemaTracker
from pipeline.schema.treatments import Conversion, Fate, Hash, Mask, Treatment
from pipeline.shape.condition_text import read_condition
from pipeline.shape.hashes import PrivacyKey
from pipeline.shape.rules import ShapeRules
from pipeline.shape.shape import Shape, shape_of
from pipeline.shape.shaping import Shaping
from pipeline.shape.strictness import (
    ShapeChange,
    shape_change,
    shows_no_more,
    stricter,
    stricter_shape,
)
from pipeline.table import Column, TableName, TableStructure
from pipeline.tables import TablePatterns

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


# -- through statements ---------------------------------------------------------------------------

_HIDING = ShapeRules(
    exclude_columns=("ssn",),
    hash_columns={"email": Hash.EXACT},
    mask_columns={"phone": Mask("last", 4)},
    rows=read_condition("id > 0"),
)
_CUSTOMERS = """create table customers (
  id int primary key, ssn char(9) default 'a secret', email varchar(50), phone varchar(20)
)"""
_KEY = PrivacyKey(b"a key of a test")
_SHOP = TablePatterns(("shop.*",))


def _followed(*statements: str, folding: int = 0) -> SchemaTracker:
    """Of a shop whose customers hide something; tables of `scratch` are not captured."""
    facts = ServerDialect(lower_case_table_names=folding)
    context = StatementContext(facts, "shop", server_collation="utf8mb4_0900_ai_ci")
    rules = {TableName("shop", "customers"): _HIDING, TableName("shop", "clients"): _HIDING}
    shaping = Shaping(rules.get, _KEY, hides=True, captured=_SHOP.matches)
    tracker = SchemaTracker(HeldStructures(), lower_case_table_names=folding, shapes=shaping)
    databases = "create database shop", "create database scratch"
    for number, text in enumerate([*databases, _CUSTOMERS, *statements]):
        begin, end = (Coordinates(LogFile("binlog", 1), 100 * (number + n)) for n in (1, 2))
        tracker.take(LoggedStatement(text, context, begin, end, "", _MOMENT, _MOMENT))
    return tracker


_MOMENT = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    "statements",
    [
        ["alter table customers rename column ssn to note, rename to archive"],
        ["alter table customers change ssn note char(20), rename to archive"],
        ["rename table customers to scratch.c", "rename table scratch.c to archive"],
        [
            "alter table customers rename column ssn to note, rename to scratch.c",
            "alter table scratch.c rename column note to more",
            "rename table scratch.c to archive",
        ],
        ["create table _customers_new like customers", "rename table _customers_new to archive"],
        [
            "rename table customers to scratch.c",
            "alter table scratch.c drop email, modify phone blob, drop primary key, drop id",
            "rename table scratch.c to archive",
        ],
    ],
)
def test_what_is_hidden_stays_hidden_under_every_name(statements: list[str]) -> None:
    tracker = _followed(*statements)
    archive = tracker.version(TableName("shop", "archive"))
    assert archive is not None and archive.knowledge is Knowledge.UNKNOWN
    assert "settings of" in (archive.reason or "")
    assert "secret" not in repr(tracker.history)


@pytest.mark.parametrize(
    "statements",
    [
        ["rename table customers to clients"],
        ["rename table customers to scratch.c", "rename table scratch.c to clients"],
        [
            "create table _customers_new like customers",
            "alter table _customers_new add more int, modify phone varchar(30)",
            "rename table customers to _customers_old, _customers_new to clients",
        ],
    ],
)
def test_what_shows_no_more_is_followed(statements: list[str]) -> None:
    clients = _followed(*statements).version(TableName("shop", "clients"))
    assert clients is not None and clients.shown is not None
    assert [column.name for column in clients.shown.columns][:3] == ["id", "email", "phone"]


@pytest.mark.parametrize("folding", [1, 2])
def test_texts_of_statements_have_no_values_however_names_are_spelled(folding: int) -> None:
    statement = "alter table Customers alter ssn set default 'another secret'"
    assert "secret" not in repr(_followed(statement, folding=folding).history)


# -- settings that change -------------------------------------------------------------------------


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
