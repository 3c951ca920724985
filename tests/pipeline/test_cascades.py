"""Foreign keys that act unseen: whose rows may have changed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pipeline.binlog import ring as columns
from pipeline.binlog.framing import EventType
from pipeline.row_images import CHANGE_TYPES, RowImages
from pipeline.runs.cascades import changed_unseen, unlogged
from pipeline.schema.model import ForeignKey, ServerSchema, TableSchema
from pipeline.segment import ChangeType
from pipeline.table import TableName

PARENT, CHILD, GRANDCHILD = (TableName("shop", name) for name in ("a", "b", "c"))


def refers(child: TableName, parent: TableName, **actions: str) -> TableSchema:
    key = ForeignKey("fk", ("a_id",), parent, ("id",), **actions)
    return TableSchema(child, (), foreign_keys=(key,))


def server(*tables: TableSchema) -> ServerSchema:
    return ServerSchema(tables={table.name: table for table in tables})


def images(*rows: tuple[ChangeType, int]) -> RowImages:
    count = len(rows)
    return RowImages(
        columns=pa.RecordBatch.from_pydict({"id": [value for _, value in rows]}),
        event=pa.array([0] * count, pa.int32()),
        row=pa.array(range(count), pa.int32()),
        change_type=pa.array([CHANGE_TYPES.index(kind) for kind, _ in rows], pa.int8()),
        softened={},
    )


def found(batch: RowImages, *tables: TableSchema) -> list[TableName]:
    seen = changed_unseen(PARENT, np.array([True]), [batch], server(*tables))
    return [table for table, _ in seen]


DELETED = images((ChangeType.DELETE, 1))
REKEYED = images((ChangeType.UPDATE_PREIMAGE, 1), (ChangeType.UPDATE_POSTIMAGE, 2))
KEPT = images((ChangeType.UPDATE_PREIMAGE, 1), (ChangeType.UPDATE_POSTIMAGE, 1))


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "SET DEFAULT"])
def test_a_deleted_parent_touches_its_children(action: str) -> None:
    """And theirs in turn."""
    chain = refers(CHILD, PARENT, on_delete=action), refers(GRANDCHILD, CHILD, on_delete=action)
    assert found(DELETED, *chain) == [CHILD, GRANDCHILD]


@pytest.mark.parametrize("action", ["RESTRICT", "NO ACTION"])
def test_a_key_that_refuses_changes_nothing(action: str) -> None:
    """The server would not have let the parent go."""
    assert found(DELETED, refers(CHILD, PARENT, on_delete=action)) == []


def test_an_update_counts_if_it_changes_what_is_referred_to() -> None:
    """Other columns are nobody's business."""
    child = refers(CHILD, PARENT, on_update="CASCADE")
    assert found(REKEYED, child) == [CHILD]
    assert found(KEPT, child) == []
    assert found(DELETED, child) == []


def test_what_the_server_logs_is_not_looked_at() -> None:
    """0x10: foreign keys were carried out above the engine; 0x02: not at all."""
    events = np.zeros((4, columns.EVENT_COLUMNS), np.int64)
    events[:, columns.TYPE] = EventType.DELETE_ROWS
    events[:, columns.FLAGS] = 0x01, 0x11, 0x03, 0x01
    events[3, columns.TYPE] = EventType.WRITE_ROWS
    assert unlogged(events).tolist() == [True, False, False, False]
