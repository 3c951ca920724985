"""Rows logged without names, signs, character sets and members, read by the structure that
the server has.

MySQL's default, binlog_row_metadata=MINIMAL, logs signs and character sets but no names,
members and keys; MariaDB's, NO_LOG, logs none of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pipeline.binlog.rows.parts import by_map
from pipeline.binlog.rows.rows import TableDecoder
from pipeline.binlog.rows.table_map import read_layouts, read_structure
from pipeline.errors import TableError
from pipeline.row_images import CHANGE_TYPES
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName, TableStructure
from resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.filled import Filled, filled, images_by_select, outermost
from tests.mysql.logged import Rows, exact
from tests.mysql.reading import runs, server

SETTINGS = [
    ("mysql", "minimal"),
    ("mariadb", "no_log"),
    pytest.param("mariadb", "minimal", marks=pytest.mark.soak),
]
"""Server and binlog_row_metadata; between what they log by default lies the last."""

Images = dict[TableName, dict[str, Rows]]


@pytest.mark.parametrize(("name", "metadata"), SETTINGS)
def test_the_server_s_structure_stands_in_for_metadata(
    request: pytest.FixtureRequest, name: str, metadata: str
) -> None:
    """For cases of every type: all images have the values that SELECT has."""
    stand: MySqlStand = request.getfixturevalue(name)
    with _logging(stand, metadata), filled(stand, name, outermost()) as tables:
        source = server(stand)
        structures = {structure.name: structure for structure in source.structures()}
        images = _images(tables, source, structures)
        wrong = [
            case.name
            for table, case in tables.cases.items()
            if images[table] != images_by_select(source, structures[table])
        ]
    assert wrong == []


@contextmanager
def _logging(stand: MySqlStand, metadata: str) -> Iterator[None]:
    stand.execute(f"set global binlog_row_metadata = {metadata}")
    try:
        yield
    finally:
        stand.execute("set global binlog_row_metadata = full")


def _images(
    tables: Filled, source: MySqlServer, structures: dict[TableName, TableStructure]
) -> Images:
    """Every image of every table, by change type, in order."""
    found: Images = defaultdict(lambda: defaultdict(list))
    decoders: dict[int, TableDecoder] = {}
    for buffer, run in runs(source, tables.start, wants=lambda name: name in tables.cases):
        for block in run.blocks:
            for number, _, part in by_map(block):
                known = buffer.maps.known[number]
                if number not in decoders:
                    with pytest.raises(TableError, match="no column names"):
                        read_structure(known.raw, tables.flavour)
                    structure = structures[known.table]
                    decoders[number] = TableDecoder(
                        structure, read_layouts(known.raw, tables.flavour), arrow_schema(structure)
                    )
                for batch in decoders[number].decode(part):
                    kinds = batch.change_type.to_pylist()
                    for kind, row in zip(kinds, exact(batch.columns.to_pylist()), strict=True):
                        found[known.table][CHANGE_TYPES[kind].value].append(row)
    return found
