"""Events of one table → images, by the structure of the moment.

Belongs here: which decoder reads a table map's rows, and the order of images where a table has
several maps. Does not: bytes (`pipeline.binlog`), what becomes of a table that cannot be decoded
(`segment_builder`).
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.binlog.rows.parts import by_map, in_portions
from pipeline.binlog.rows.rows import TableDecoder
from pipeline.binlog.rows.table_map import read_layouts
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Block
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.changes.defaults import refuse_updates, with_defaults
from pipeline.position import Coordinates
from pipeline.row_images import RowImages, in_order
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.schema_choice import checked, version_for
from pipeline.runs.capturing.table_files import CapturedTable
from pipeline.schema.history import SchemaVersion
from pipeline.schema.row_keys import key_columns
from pipeline.schema.tracker import SchemaTracker
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName


class Decoding:
    """The decoders for one buffer's table maps, by map and version. `updated`: updates say
    which columns changed."""

    def __init__(self, structures: SchemaTracker, *, updated: bool = False) -> None:
        self._structures = structures
        self._updated = updated
        self._buffer: TransactionBuffer | None = None
        self._decoders: dict[tuple[int, int], TableDecoder] = {}
        self.filled: set[TableName] = set()
        """Tables whose inserted rows were given defaults that the history has."""

    def follow(self, buffer: TransactionBuffer) -> None:
        """The buffer whose table maps are read."""
        self._buffer = buffer

    @property
    def buffer(self) -> TransactionBuffer:
        if self._buffer is None:
            raise RuntimeError("follow a buffer first")
        return self._buffer

    def decoded(
        self, part: Block, at: Coordinates, tables: CapturedTables
    ) -> tuple[CapturedTable, list[RowImages]]:
        """The images of one table's events, in their order, and the table they belong to.
        TableError where they cannot be decoded, or not captured."""
        version, _ = self.decoder(int(part.events[0, columns.MAP]), at)
        return tables.opened(version, at), list(self.images(part, at))

    def images(self, part: Block, at: Coordinates) -> Iterator[RowImages]:
        """The images of one table's events, in their order; TableError where they cannot be
        decoded."""
        number = int(part.events[0, columns.MAP])
        if (part.events[:, columns.MAP] == number).all():
            return self._of_map(number, part, at)
        return self._of_maps(part, at)

    def _of_maps(self, part: Block, at: Coordinates) -> Iterator[RowImages]:
        """Events of several maps: decoded map by map, put into their order again."""
        for first, portion in in_portions(part):
            yield in_order(
                [
                    (images, first + which)
                    for number, which, events in by_map(portion)
                    for images in self._of_map(number, events, at)
                ]
            )

    def _of_map(self, number: int, events: Block, at: Coordinates) -> Iterator[RowImages]:
        version, decoder = self.decoder(number, at)
        mariadb = self.buffer.maps.known[number].writer.mariadb
        for images in decoder.decode(events):
            yield self._with_defaults(images, version, mariadb=mariadb)

    def _with_defaults(
        self, images: RowImages, version: SchemaVersion, *, mariadb: bool
    ) -> RowImages:
        if images.present is None:
            return images
        if mariadb:
            refuse_updates(images)
        told = self._structures.told_by_log(version.table)
        filled = with_defaults(images, None if told else version.schema)
        if filled is not images:
            self.filled.add(version.table)
        return filled

    def decoder(self, number: int, at: Coordinates) -> tuple[SchemaVersion, TableDecoder]:
        """Of a table map, by the version that holds at `at`."""
        mapped = self.buffer.maps.known[number]
        version = version_for(mapped, self._structures, at)
        key = number, version.version
        if key not in self._decoders:
            hidden, structure = checked(version, mapped), version.structure
            told_by = () if version.schema is None else key_columns(version.schema)
            self._decoders[key] = TableDecoder(
                structure,
                read_layouts(mapped),
                arrow_schema(structure),
                told_by,
                hidden=hidden,
                updated=self._updated,
            )
        return version, self._decoders[key]
