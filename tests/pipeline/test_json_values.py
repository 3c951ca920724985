"""Values as JSON: one rule for each kind, and none for what has no rule."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from lockstep import pipeline
from lockstep.pipeline.model.json_values import attributes, to_json
from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.values.errors import LockstepError, NothingMatches
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.table import TableName

AT = Coordinates.parse("binlog.000002:400")
MOMENT = datetime(2026, 11, 1, 6, tzinfo=UTC)
ORDERS = TableName("shop", "orders")


@dataclass(frozen=True, slots=True)
class Whole:
    table: TableName
    kinds: tuple[OrderKind, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    json_keys: ClassVar = ("from_", "doubled")

    number: int

    @property
    def from_(self) -> Coordinates:
        return AT

    @property
    def doubled(self) -> int:
        return self.number * 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.23456, 1.235),
        ("a", "a"),
        (OrderKind.PAUSE, "pause"),
        (MOMENT, "2026-11-01T06:00:00+00:00"),
        (timedelta(minutes=2, microseconds=1499), 120.001),
        (ORDERS, "shop.orders"),
        (AT, "binlog.000002:400"),
        (AT.file, "binlog.000002"),
        (GtidSet(), ""),
        (Path("/lake"), "/lake"),
        ({ORDERS: (1, [2.0])}, {"shop.orders": [1, [2.0]]}),
        (frozenset({"b", "a"}), ["a", "b"]),
        (Whole(ORDERS, (OrderKind.PAUSE,)), {"table": "shop.orders", "kinds": ["pause"]}),
        (Chosen(4), {"from": "binlog.000002:400", "doubled": 8}),
        (
            Position(AT, GtidSet(), "a server", MOMENT),
            {
                "file": "binlog.000002",
                "offset": 400,
                "gtid_set": "",
                "committed_at": "2026-11-01T06:00:00+00:00",
            },
        ),
        (
            NothingMatches("nothing", hint="look"),
            {"kind": "NothingMatches", "message": "nothing", "hint": "look"},
        ),
    ],
)
def test_each_kind_has_one_form(value: Any, expected: Any) -> None:
    """Equal in type, too: what comes out is what a reader of the JSON gets."""
    found = to_json(value)
    assert (found, type(found)) == (expected, type(expected))
    assert json.loads(json.dumps(found)) == expected


@pytest.mark.parametrize("value", [object(), b"bytes", iter([1]), 1j])
def test_what_has_no_rule_is_refused(value: Any) -> None:
    """Nothing is ever shown by accident."""
    with pytest.raises(TypeError, match="has no JSON"):
        to_json(value)


def test_parts_are_attributes_by_names_of_their_own() -> None:
    """Of attributes too; None where one on the way to them is, and for no value at all."""
    whole = Whole(ORDERS, ())
    assert attributes(whole, "table.database as schema, kinds, table as of") == {
        "schema": "shop",
        "kinds": (),
        "of": ORDERS,
    }
    nothing = SimpleNamespace(table=None)
    assert attributes(nothing, "table.database.name as schema") == {"schema": None}
    assert attributes(None, "kinds") == {"kinds": None}


def test_what_a_class_shows_it_has() -> None:
    """Every name in `json_keys` is an attribute of its class, in all modules of the pipeline."""
    modules = [module.name for module in walk_packages(pipeline.__path__, "lockstep.pipeline.")]
    kinds = {
        kind
        for name in modules
        for kind in vars(import_module(name)).values()
        if isinstance(kind, type) and "json_keys" in vars(kind)
    }
    assert len(kinds) > 10
    assert {
        (kind, key)
        for kind in kinds
        for key in vars(kind)["json_keys"]
        if not hasattr(kind, key.partition(" as ")[0])
    } == {
        (LockstepError, "message"),
        (LockstepError, "hint"),  # set when one is raised
    }
