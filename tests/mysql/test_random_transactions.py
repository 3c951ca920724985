"""Random transactions over random tables: what their log folds to is what the tables hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pymysql.constants import CLIENT

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.transactions.identity import gtid_text
from lockstep.pipeline.mirror.mapping import last_changes
from lockstep.pipeline.proof.hashes import RowHasher
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_images import CHANGE_TYPES, RowImages
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import knife, together
from tests.mysql.hashed import asked_of, unequal_hashes
from tests.mysql.logged import Logged, head
from tests.mysql.random_tables import random_tables
from tests.mysql.random_writes import RandomWrites
from tests.mysql.reading import rows_read, runs, server
from tests.pipeline.buffered import Decoders

TABLES = 20
SMALL = {"ring_bytes": 1 << 14, "group_bytes": 1 << 12, "events": 64, "transactions": 16}
"""A ring that many of the transactions do not fit into."""

Key = tuple[Any, ...]
Rows = dict[Key, tuple[Any, ...]]


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 250), pytest.param(2, 10_000, marks=pytest.mark.soak)]
)
@pytest.mark.since(9, 0)
def test_what_the_log_folds_to_is_what_the_tables_hold(
    mysql: MySqlStand, database: str, seed: int, count: int
) -> None:
    """Each before image is the row as it stood, each table ends as SELECT has it, through a
    ring that holds all and through one that holds next to nothing. TABLE_MAPs with full metadata
    say what information_schema says. The server's hashes of the rows
    are those of the log's values, and lead to the rows; chunk by chunk they are the table."""
    start, chance, several = head(mysql), Random(seed), 0
    _write(mysql, database, chance, count)
    whole = _read(mysql, start, database)
    small = _read(mysql, start, database, **SMALL)
    source = server(mysql)
    structures = [one for one in source.structures() if one.name.database == database]
    with knife(mysql) as cutting:
        for structure in structures:
            with rows_read(source, structure) as found:
                batches = list(found)
            expected = _by_key(structure, batches)
            changes = whole.changes(structure)
            assert _replayed(structure, changes) == expected
            assert _by_key(structure, _folded(structure, changes).to_batches()) == expected
            assert small.changes(structure).equals(changes)
            assert whole.structures.get(structure.name) in (structure, None)
            _require_hashes(source, structure, changes, batches)
            cut = cutting.cut(structure.name, chance.randint(1, 9))
            assert together(cut.chunks) == cut.whole, structure
            several += len(cut.chunks) > 1
    assert len(structures) == TABLES == len(whole.structures)
    assert several > TABLES / 3
    assert whole.gtids == small.gtids
    assert len(set(whole.gtids)) == len(whole.gtids) > count * 0.8


def _require_hashes(
    source: MySqlServer, structure: TableStructure, changes: pa.Table, batches: list[pa.RecordBatch]
) -> None:
    log = Logged(structure)
    for row in changes.drop_columns(["_sequence"]).to_pylist():
        log.images.setdefault(row.pop("_change_type"), []).append(row)
    asked = asked_of(source, structure)
    assert unequal_hashes(asked, structure, "mysql", log, batches) == "", structure
    for some in (batch.slice(0, 3) for batch in batches):
        keys = RowHasher(structure, "mysql").key_hashes(some).tolist()
        rows = source.rows_by_hash(structure, {*keys, 1}).rows
        assert _by_key(structure, rows.to_batches()) == _by_key(structure, [some])


def _write(stand: MySqlStand, database: str, chance: Random, count: int) -> None:
    with (
        stand.connect(database, client_flag=CLIENT.MULTI_STATEMENTS) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("set time_zone = '+00:00'")
        tables = list(random_tables(chance, TABLES))
        for table in tables:
            cursor.execute(table.create())
        writes = RandomWrites(chance, tables)
        for _ in range(count):
            cursor.execute("; ".join(writes.transaction()))
            while cursor.nextset():
                pass


@dataclass(slots=True)
class _Read:
    """What a log says: the images and the structure of each table, and the transactions in
    order."""

    tables: dict[TableName, list[pa.Table]] = field(default_factory=dict)
    structures: dict[TableName, TableStructure] = field(default_factory=dict)
    gtids: list[str] = field(default_factory=list)

    def changes(self, structure: TableStructure) -> pa.Table:
        """The table's images with `_change_type` and `_sequence`, in order."""
        schema = arrow_schema(structure)
        for name, kind in (("_change_type", pa.string()), ("_sequence", pa.int64())):
            schema = schema.append(pa.field(name, kind))
        found = self.tables.get(structure.name) or [schema.empty_table()]
        changes = pa.concat_tables(found).sort_by("_sequence").combine_chunks()
        return changes.set_column(
            changes.num_columns - 1, "_sequence", pa.array(range(len(changes)), pa.int64())
        )


def _read(stand: MySqlStand, start: Coordinates, database: str, **options: Any) -> _Read:
    read = _Read()
    decoders, events = Decoders(), 0
    wanted = {"is_captured": lambda name: name.database == database, **options}
    for buffer, run in runs(server(stand), start, **wanted):
        read.gtids += [gtid_text(row, run.gtid_sources) for row in run.transactions]
        for block in run.blocks:
            for found in decoders.read(buffer, block):
                read.structures[found.mapped.table] = found.structure
                table = _numbered(found.images, found.which + events)
                read.tables.setdefault(found.mapped.table, []).append(table)
            events += len(block.events)
    return read


def _numbered(images: RowImages, events: columns.Integers) -> pa.Table:
    """`_sequence`: the image's event, then its place within it."""
    event = images.event.to_numpy()
    place = np.arange(len(event)) - np.searchsorted(event, event)
    names = pa.array([kind.value for kind in CHANGE_TYPES])
    table = pa.Table.from_batches([images.columns])
    table = table.append_column("_change_type", names.take(images.change_type))
    return table.append_column("_sequence", pa.array((events[event] << 20) + place))


def _replayed(structure: TableStructure, changes: pa.Table) -> Rows:
    """The rows after all images, one after the other; each is as the last one left it."""
    rows: Rows = {}
    kinds = changes.column("_change_type").to_pylist()
    images = changes.drop_columns(["_change_type", "_sequence"])
    for kind, (key, row) in zip(kinds, _keyed(structure, images.to_pylist()), strict=True):
        if kind in ("delete", "update_preimage"):
            assert rows.pop(key) == row
        else:
            assert key not in rows
            rows[key] = row
    return rows


def _folded(structure: TableStructure, changes: pa.Table) -> pa.Table:
    folded = last_changes(changes, structure.primary_key)
    kinds = folded.column("_change_type").to_pylist()
    kept = folded.filter(pa.array([kind != "delete" for kind in kinds], pa.bool_()))
    return kept.drop_columns(["_change_type", "_sequence"])


def _by_key(structure: TableStructure, batches: Any) -> Rows:
    return {key: row for batch in batches for key, row in _keyed(structure, batch.to_pylist())}


def _keyed(structure: TableStructure, rows: list[dict[str, Any]]) -> Iterator[tuple[Key, Key]]:
    """Each row with its key, floats to the bit but in keys, where 0 is -0."""
    for row in rows:
        key = tuple(row[name] for name in structure.primary_key)
        yield key, tuple(_exact(value) for value in row.values())


def _exact(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_exact(item) for item in value)
    return value.hex() if isinstance(value, float) else value
