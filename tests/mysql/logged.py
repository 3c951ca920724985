"""The log of a real server, a whole database at once, beside what SELECT says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.rows.table_map import TableMap, read_structure
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.row_images import CHANGE_TYPES
from lockstep.pipeline.values.table import TableName, TableStructure
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import runs, server
from tests.pipeline.buffered import Decoders

Rows = list[dict[str, Any]]


@dataclass(slots=True)
class Logged:
    """What the log says of one table: its images by change type, or why there are none."""

    structure: TableStructure | None = None
    images: dict[str, Rows] = field(default_factory=dict)
    error: TableError | None = None

    def rows(self, kind: str) -> Rows:
        if self.error is not None:
            raise self.error
        return self.images.get(kind, [])


def head(stand: MySqlStand) -> Coordinates:
    """The end of the server's log."""
    (*_, (file, size, *_)) = stand.rows("show binary logs")
    return Coordinates(LogFile.parse(file), int(size))


def logged(
    stand: MySqlStand,
    start: Coordinates,
    database: str,
    structures: Mapping[TableName, TableStructure] | None = None,
) -> dict[TableName, Logged]:
    """The images of every table of a database, read in one pass; by these `structures` if they are
    given, because the log does not name its columns."""

    def structure_of(known: TableMap) -> TableStructure:
        if structures is None:
            return read_structure(known)
        with pytest.raises(TableError, match="no column names"):
            read_structure(known)
        return structures[known.table]

    tables: dict[TableName, Logged] = {}
    decoders = Decoders(structure_of)
    for buffer, run in runs(
        server(stand), start, is_captured=lambda name: name.database == database
    ):
        for block in run.blocks:
            for number, _, part in split_by_map(block):
                known = buffer.maps.table_maps[number]
                table = tables.setdefault(known.table, Logged())
                try:
                    table.structure, decoder = decoders.of(number, known)
                    for found in decoder.decode(part):
                        rows = found.columns.to_pylist()
                        for kind, row in zip(found.change_type.to_pylist(), rows, strict=True):
                            table.images.setdefault(CHANGE_TYPES[kind].value, []).append(row)
                except TableError as error:
                    table.error = error
    return tables


def exact(rows: Rows, *, moved: int = 0) -> Rows:
    """Rows that are equal only if their floats are so to the bit; `id` moved by so much."""
    return [
        {name: _exact(value) for name, value in row.items()} | {"id": row["id"] + moved}
        for row in rows
    ]


def _exact(value: Any) -> Any:
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return value.hex() if isinstance(value, float) else value
