"""Foreign keys whose actions the log does not have.

Belongs here: which tables' rows a server may have changed by itself, because a row that
they refer to was deleted or got another key. Does not: what is done about it
(`segmenting`).

MySQL from 9.6 on carries out foreign keys above its engines and logs what they do; each rows
event of such a statement has the flag 0x10. Before that, with
`innodb_native_foreign_keys=ON`, and on MariaDB the engine does it, and only the parent's
event is in the log. The flag 0x02 says that foreign keys were not looked at
(`Rows_event::enum_flag` in `libs/mysql/binlog/event/rows_event.h`; tried on MySQL 9.7.4 and
MariaDB 10.11.19).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.binlog import ring as columns
from pipeline.binlog.framing import EventType
from pipeline.binlog.ring import Integers
from pipeline.row_images import CHANGE_TYPES, RowImages
from pipeline.schema.model import ForeignKey, ServerSchema
from pipeline.segment import ChangeType
from pipeline.table import TableName

_BY_SQL: Final = 0x10
_UNCHECKED: Final = 0x02
_WRITES: Final = (EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS)
_ACTS: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})
_DELETE = CHANGE_TYPES.index(ChangeType.DELETE)
_BEFORE = CHANGE_TYPES.index(ChangeType.UPDATE_PREIMAGE)


def unlogged(events: Integers) -> npt.NDArray[np.bool_]:
    """Which rows events delete or update, and let foreign keys act unseen."""
    flags = events[:, columns.FLAGS]
    writes = np.isin(events[:, columns.TYPE], _WRITES)
    found: npt.NDArray[np.bool_] = ((flags & (_BY_SQL | _UNCHECKED)) == 0) & ~writes
    return found


def changed_unseen(
    parent: TableName,
    events: npt.NDArray[np.bool_],
    images: Iterable[RowImages],
    schema: ServerSchema,
) -> Iterator[tuple[TableName, str]]:
    """Tables whose rows may have changed with these images of `parent`, each with a
    sentence; `events`: which of the images' events count (`unlogged`)."""
    keys = list(_referring(parent, schema))
    if not keys:
        return
    deleted, updated = False, set[str]()
    for one in images:
        mine = events[one.event.to_numpy()]
        kinds = one.change_type.to_numpy()
        deleted = deleted or bool((mine & (kinds == _DELETE)).any())
        updated |= set(_changed(one, np.flatnonzero(mine & (kinds == _BEFORE)), keys))
    for child, key in keys:
        by_delete = deleted and key.on_delete in _ACTS
        by_update = key.on_update in _ACTS and not updated.isdisjoint(key.referenced)
        if by_delete or by_update:
            what = f"ON DELETE {key.on_delete}" if by_delete else f"ON UPDATE {key.on_update}"
            for table in _with_descendants(child, schema):
                yield (
                    table,
                    f"rows of {parent} that it may refer to were changed, and the server does not "
                    f"log what {what} of {key.name} did",
                )


def _changed(
    images: RowImages, before: Integers, keys: Sequence[tuple[TableName, ForeignKey]]
) -> Iterator[str]:
    """Referenced columns that some update changed: its two images stand side by side."""
    if not len(before):
        return
    rows, others = pa.array(before), pa.array(before + 1)
    for name in sorted({name for _, key in keys for name in key.referenced}):
        column = images.columns.column(name)
        old, new = column.take(rows), column.take(others)
        same = pc.fill_null(pc.equal(old, new), False)
        both_null = pc.and_(pc.is_null(old), pc.is_null(new))
        if not pc.all(pc.or_(same, both_null)).as_py():
            yield name


def _referring(parent: TableName, schema: ServerSchema) -> Iterator[tuple[TableName, ForeignKey]]:
    folded = schema.fold(parent)
    for table in schema.tables.values():
        for key in table.foreign_keys:
            acts = key.on_delete in _ACTS or key.on_update in _ACTS
            if acts and schema.fold(key.references) == folded:
                yield table.name, key


def _with_descendants(child: TableName, schema: ServerSchema) -> list[TableName]:
    """The table, and those whose rows act on its rows in turn."""
    found = [child]
    for table in found:
        found += [other for other, _ in _referring(table, schema) if other not in found]
    return found
