"""Events of one table map → images, by the structure of the moment.

Belongs here: which decoder reads a table map's rows. Does not: bytes (`pipeline.binlog`),
what becomes of a table that cannot be decoded (`segmenting`).
"""

from __future__ import annotations

from pipeline.binlog.buffer import TransactionBuffer
from pipeline.binlog.ring import Block
from pipeline.binlog.rows import TableDecoder
from pipeline.binlog.table_map import read_layouts
from pipeline.changes.defaults import refuse_updates, with_defaults
from pipeline.position import Coordinates
from pipeline.row_images import RowImages
from pipeline.runs.captured import CapturedTable, CapturedTables
from pipeline.runs.versions import checked, version_for
from pipeline.schema.history import SchemaVersion
from pipeline.schema.tracker import SchemaTracker
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName


class Decoding:
    """The decoders for one buffer's table maps, by map and version."""

    def __init__(self, structures: SchemaTracker) -> None:
        self._structures = structures
        self._buffer: TransactionBuffer | None = None
        self._decoders: dict[tuple[int, int], TableDecoder] = {}

    def follow(self, buffer: TransactionBuffer) -> None:
        """The buffer whose table maps are read."""
        self._buffer = buffer

    @property
    def buffer(self) -> TransactionBuffer:
        if self._buffer is None:
            raise RuntimeError("follow a buffer first")
        return self._buffer

    @property
    def flavour(self) -> str:
        description = self.buffer.description
        return description.flavour if description else "mysql"

    def name(self, number: int) -> TableName:
        """The table of a map."""
        return self.buffer.maps.known[number].table

    def decoded(
        self, number: int, part: Block, at: Coordinates, tables: CapturedTables
    ) -> tuple[CapturedTable, list[RowImages]]:
        """The images of a map's events, and the table they belong to. TableError where they
        cannot be decoded, or not captured."""
        version, decoder = self._decoder(number, at)
        table = tables.opened(version, at)
        return table, [self._with_defaults(one, version) for one in decoder.decode(part)]

    def _with_defaults(self, images: RowImages, version: SchemaVersion) -> RowImages:
        if images.present is None:
            return images
        if self.flavour == "mariadb":
            refuse_updates(images)
        told = self._structures.told_by_log(version.table)
        return with_defaults(images, None if told else version.schema)

    def _decoder(self, number: int, at: Coordinates) -> tuple[SchemaVersion, TableDecoder]:
        mapped = self.buffer.maps.known[number]
        version = version_for(mapped, self.flavour, self._structures, at)
        key = number, version.version
        if key not in self._decoders:
            structure = checked(version, mapped, self.flavour)
            layouts = read_layouts(mapped.raw, self.flavour)
            self._decoders[key] = TableDecoder(structure, layouts, arrow_schema(structure))
        return version, self._decoders[key]
