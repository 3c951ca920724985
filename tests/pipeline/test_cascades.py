"""Foreign keys that act unseen: whose rows may have changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.run.dump.cascade_watch import ChangedRows, References, may_change_children
from lockstep.pipeline.schema.model import ForeignKey, ServerSchema, TableSchema
from lockstep.pipeline.values.table import TableName

DELETED = ChangedRows(first_delete=4)
REKEYED = ChangedRows(updated_columns={"id": 7})
OTHER = ChangedRows(updated_columns={"note": 7})


def named(text: str) -> TableName:
    return TableName("shop", text)


def references(keys: str, *, folding: int = 0) -> References:
    """Of keys such as `b.a_id a.id delete: CASCADE, update: SET NULL; …`."""
    tables: dict[str, list[ForeignKey]] = {}
    for number, key in enumerate(keys.split("; ")):
        child, parent, told = key.split(" ", 2)
        actions = dict(one.split(": ") for one in told.split(", "))
        (table, column), (other, to) = child.split("."), parent.split(".")
        found: dict[str, Any] = {f"on_{event}": action for event, action in actions.items()}
        tables.setdefault(table, []).append(
            ForeignKey(f"fk{number}", (column,), named(other), (to,), **found)
        )
    schemas = [TableSchema(named(name), (), foreign_keys=(*own,)) for name, own in tables.items()]
    return References(schemas, ServerSchema(lower_case_table_names=folding).fold_case)


CASES: dict[str, tuple[ChangedRows, str, dict[str, tuple[int | None, dict[str, int]]]]] = {
    "deleted rows take others with them, and those theirs in turn": (
        DELETED,
        "b.a_id a.id delete: CASCADE; c.b_id b.id delete: CASCADE",
        {"b": (4, {}), "c": (4, {})},
    ),
    **{
        f"{action} is an update; whoever refers to other columns loses nothing": (
            DELETED,
            f"b.a_id a.id delete: {action}; c.b_id b.id delete: CASCADE, update: CASCADE",
            {"b": (None, {"a_id": 4})},
        )
        for action in ("SET NULL", "SET DEFAULT")
    },
    "whoever refers to the column is updated too": (
        DELETED,
        "b.a_id a.id delete: SET NULL; c.b_id b.A_ID update: SET NULL",
        {"b": (None, {"a_id": 4}), "c": (None, {"b_id": 4})},
    ),
    "RESTRICT would not have let the parent go": (DELETED, "b.a_id a.id delete: RESTRICT", {}),
    "nor would NO ACTION": (DELETED, "b.a_id a.id delete: NO ACTION", {}),
    "an update of what is referred to": (
        REKEYED,
        "b.a_id a.id update: CASCADE",
        {"b": (None, {"a_id": 7})},
    ),
    "of another column": (OTHER, "b.a_id a.id update: CASCADE", {}),
    "a delete, where updates act": (DELETED, "b.a_id a.id update: CASCADE", {}),
    "a table refers to itself": (DELETED, "a.up a.id delete: CASCADE", {"a": (4, {})}),
    "two refer to one another": (
        DELETED,
        "b.a_id a.id delete: CASCADE; a.b_id b.id delete: CASCADE",
        {"b": (4, {}), "a": (4, {})},
    ),
    "the first event counts, by whatever way": (
        ChangedRows(9, {"code": 3}),
        "b.x a.id delete: SET NULL; b.x a.code update: CASCADE",
        {"b": (None, {"x": 3})},
    ),
}


@pytest.mark.parametrize(("change", "keys", "expected"), CASES.values(), ids=CASES)
def test_whose_rows_may_have_changed(
    change: ChangedRows, keys: str, expected: dict[str, tuple[int | None, dict[str, int]]]
) -> None:
    found = references(keys).changes_of_children(named("a"), change)
    assert expected == {
        table.name: (one.first_delete, one.updated_columns) for table, one in found.items()
    }


def test_the_reason_names_what_acted() -> None:
    """The table that the foreign key refers to, and the key."""
    keys = references("b.a_id a.id delete: SET NULL; c.b_id b.a_id update: CASCADE")
    found = keys.changes_of_children(named("a"), DELETED)
    assert {table.name: one.reason for table, one in found.items()} == {
        "b": "rows of its parent table shop.a were changed, and the server does not log the rows "
        "that ON DELETE SET NULL of fk0 changed",
        "c": "rows of its parent table shop.b were changed, and the server does not log the rows "
        "that ON UPDATE CASCADE of fk1 changed",
    }


@pytest.mark.parametrize(("delete", "update", "first"), [(9, 3, "UPDATE"), (3, 9, "DELETE")])
def test_the_reason_is_that_of_the_first_event(delete: int, update: int, first: str) -> None:
    """Whether one key acted twice, or two keys did."""
    change = ChangedRows(delete, {"id": update})
    deleting, updating = "b.x a.id delete: CASCADE", "b.y a.id update: CASCADE"
    one = "b.a_id a.id delete: SET NULL, update: CASCADE"
    for keys in (one, f"{deleting}; {updating}", f"{updating}; {deleting}"):
        found = references(keys).changes_of_children(named("a"), change)[named("b")]
        assert (found.first_event, f"ON {first} " in found.reason) == (3, True)


def test_all_tables_above_a_captured_one_are_watched() -> None:
    """However far; those above others are not, nor those whose keys refuse. Of a parent, only
    columns that are referred to count."""
    found = references(
        "a.t top.id delete: CASCADE; b.a_id a.id delete: SET NULL; "
        "b.x beside.id delete: RESTRICT; c.b_id b.id delete: CASCADE"
    )
    for table, above in (("b", "a top"), ("c", "b a top"), ("top", "")):
        assert found.parents_of(named(table).__eq__) == set(map(named, above.split()))
    assert references("b.a_id a.id update: CASCADE").columns_of(named("a")) == {"id"}


def test_names_are_compared_as_the_server_does() -> None:
    """With lower_case_table_names a key may spell its parent in another case."""
    found = references("b.a_id A.id delete: CASCADE", folding=2)
    assert found.parents_of(lambda table: table == named("b")) == {named("a")}
    assert set(found.changes_of_children(named("a"), DELETED)) == {named("b")}


def test_what_the_server_logs_is_not_looked_at() -> None:
    """0x10: foreign keys were carried out above the engine; 0x02: not at all."""
    events = np.zeros((4, columns.EVENT_COLUMNS), np.int64)
    events[:, columns.TYPE] = EventType.DELETE_ROWS
    events[:, columns.FLAGS] = 0x01, 0x11, 0x03, 0x01
    events[3, columns.TYPE] = EventType.WRITE_ROWS
    assert may_change_children(events).tolist() == [True, False, False, False]
