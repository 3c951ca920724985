"""Foreign keys that act unseen: whose rows may have changed."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.run.dump.cascade_watch import CascadedChange, References, may_change_children
from lockstep.pipeline.schema.model import (
    ForeignKey,
    ReferentialAction,
    ServerSchema,
    TableSchema,
)
from lockstep.pipeline.values.table import TableName

PARENT, CHILD, GRANDCHILD = (TableName("shop", name) for name in ("a", "b", "c"))
DELETED = CascadedChange(first_delete=4)
REKEYED = CascadedChange(updated_columns={"id": 7})
OTHER = CascadedChange(updated_columns={"note": 7})


def refers(
    child: TableName,
    parent: TableName,
    column: str = "a_id",
    to: str = "id",
    **actions: ReferentialAction,
) -> TableSchema:
    key = ForeignKey("fk", (column,), parent, (to,), **actions)
    return TableSchema(child, (), foreign_keys=(key,))


def references(*tables: TableSchema, folding: int = 0) -> References:
    return References(tables, ServerSchema(lower_case_table_names=folding).fold_case)


def below(
    change: CascadedChange, *tables: TableSchema
) -> dict[TableName, tuple[int | None, dict[str, int]]]:
    found = references(*tables).changes_of_children(PARENT, change)
    return {table: (one.first_delete, one.updated_columns) for table, one in found.items()}


def test_deleted_rows_take_others_with_them() -> None:
    """And those theirs in turn."""
    chain = (
        refers(CHILD, PARENT, on_delete="CASCADE"),
        refers(GRANDCHILD, CHILD, on_delete="CASCADE"),
    )
    assert below(DELETED, *chain) == {CHILD: (4, {}), GRANDCHILD: (4, {})}


@pytest.mark.parametrize("action", ["SET NULL", "SET DEFAULT"])
def test_a_reference_that_is_taken_back_is_an_update(action: ReferentialAction) -> None:
    """Of the child's own columns; whoever refers to others of them loses nothing."""
    child = refers(CHILD, PARENT, on_delete=action)
    to_key = refers(GRANDCHILD, CHILD, on_delete="CASCADE", on_update="CASCADE")
    assert below(DELETED, child, to_key) == {CHILD: (None, {"a_id": 4})}
    to_reference = refers(GRANDCHILD, CHILD, to="A_ID", on_update="SET NULL")
    assert below(DELETED, child, to_reference) == {
        CHILD: (None, {"a_id": 4}),
        GRANDCHILD: (None, {"a_id": 4}),
    }


@pytest.mark.parametrize("action", ["RESTRICT", "NO ACTION"])
def test_a_key_that_refuses_changes_nothing(action: ReferentialAction) -> None:
    """The server would not have let the parent go."""
    assert below(DELETED, refers(CHILD, PARENT, on_delete=action)) == {}


def test_an_update_counts_if_it_changes_what_is_referred_to() -> None:
    """Other columns are nobody's business."""
    child = refers(CHILD, PARENT, on_update="CASCADE")
    assert below(REKEYED, child) == {CHILD: (None, {"a_id": 7})}
    assert below(OTHER, child) == {}
    assert below(DELETED, child) == {}
    assert references(child).columns_of(PARENT) == {"id"}


def test_keys_that_go_round_end() -> None:
    """A table may refer to itself, and two to one another."""
    itself = refers(PARENT, PARENT, on_delete="CASCADE")
    assert below(DELETED, itself) == {PARENT: (4, {})}
    both = refers(CHILD, PARENT, on_delete="CASCADE"), refers(PARENT, CHILD, on_delete="CASCADE")
    assert below(DELETED, *both) == {CHILD: (4, {}), PARENT: (4, {})}


def test_the_first_event_counts() -> None:
    """By whatever way it reaches the table."""
    keys = (
        ForeignKey("one", ("x",), PARENT, ("id",), on_delete="SET NULL"),
        ForeignKey("two", ("x",), PARENT, ("code",), on_update="CASCADE"),
    )
    found = below(CascadedChange(9, {"code": 3}), TableSchema(CHILD, (), foreign_keys=keys))
    assert found == {CHILD: (None, {"x": 3})}


def test_the_reason_names_what_acted() -> None:
    """The table that the foreign key refers to, and the key."""
    keys = references(
        refers(CHILD, PARENT, on_delete="SET NULL"),
        refers(GRANDCHILD, CHILD, to="a_id", on_update="CASCADE"),
    )
    changes = keys.changes_of_children(PARENT, DELETED)
    assert changes[CHILD].reason == (
        "rows of shop.a to which it may refer were changed, and the server does not log the "
        "rows that ON DELETE SET NULL of fk changed"
    )
    assert changes[GRANDCHILD].reason == (
        "rows of shop.b to which it may refer were changed, and the server does not log the "
        "rows that ON UPDATE CASCADE of fk changed"
    )


@pytest.mark.parametrize(("delete", "update", "first"), [(9, 3, "UPDATE"), (3, 9, "DELETE")])
def test_the_reason_is_that_of_the_first_event(delete: int, update: int, first: str) -> None:
    """Whether one key acted twice, or two keys did."""
    change = CascadedChange(delete, {"id": update})
    one = refers(CHILD, PARENT, on_delete="SET NULL", on_update="CASCADE")
    deleting = refers(CHILD, PARENT, "x", on_delete="CASCADE")
    updating = refers(CHILD, PARENT, "y", on_update="CASCADE")
    for tables in ((one,), (deleting, updating), (updating, deleting)):
        found = references(*tables).changes_of_children(PARENT, change)[CHILD]
        assert (found.first_event, f"ON {first} " in found.reason) == (3, True)


def test_all_tables_above_a_captured_one_are_watched() -> None:
    """However far; those above others are not, nor those whose keys refuse."""
    above, beside = TableName("shop", "top"), TableName("shop", "beside")
    found = references(
        refers(PARENT, above, on_delete="CASCADE"),
        refers(CHILD, PARENT, on_delete="SET NULL"),
        refers(CHILD, beside, on_delete="RESTRICT"),
        refers(GRANDCHILD, CHILD, on_delete="CASCADE"),
    )
    assert found.parents_of(lambda table: table == CHILD) == {PARENT, above}
    assert found.parents_of(lambda table: table == GRANDCHILD) == {CHILD, PARENT, above}
    assert found.parents_of(lambda table: table == above) == set()


def test_names_are_compared_as_the_server_does() -> None:
    """With lower_case_table_names a key may spell its parent in another case."""
    spelled = TableName("Shop", "A")
    found = references(refers(CHILD, spelled, on_delete="CASCADE"), folding=2)
    assert found.parents_of(lambda table: table == CHILD) == {PARENT}
    assert set(found.changes_of_children(PARENT, DELETED)) == {CHILD}


def test_what_the_server_logs_is_not_looked_at() -> None:
    """0x10: foreign keys were carried out above the engine; 0x02: not at all."""
    events = np.zeros((4, columns.EVENT_COLUMNS), np.int64)
    events[:, columns.TYPE] = EventType.DELETE_ROWS
    events[:, columns.FLAGS] = 0x01, 0x11, 0x03, 0x01
    events[3, columns.TYPE] = EventType.WRITE_ROWS
    assert may_change_children(events).tolist() == [True, False, False, False]
