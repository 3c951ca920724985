"""A table's whole changelog in Python: all its generations read as one relation.

Belongs here: `lockstep.read_changelog`. Does not: changes that are given once and in order
(`consuming`), which columns the generations have together (`pipeline.changes.generations`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep.consuming import CONFIG, open_site
from lockstep.grammar import table_name
from pipeline.changes.generations import SharedColumn, together
from pipeline.errors import NothingMatches
from pipeline.table import TableName
from resources.lake.frame import (
    PublishedGeneration,
    generations_frame,
    published_generations,
    read_generations,
)
from resources.lake.paths import LakePath

if TYPE_CHECKING:
    from pipeline.ports.ledger import Ledger


@dataclass(frozen=True, slots=True)
class WholeChangelog:
    """A table's changelog as it was when it was opened: what comes later is not seen.

    A column that changed its type has the newest one; values of a generation that do not fit
    it stand in `name@generation`. NULL where a generation has no such column.
    """

    table: TableName
    generations: tuple[PublishedGeneration, ...]
    columns: tuple[SharedColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    def arrow(self) -> pa.Table:
        """All changes in the order of `_sequence`, in memory."""
        return read_generations(self.generations, self.columns)

    def spark(self, spark: Any) -> Any:
        """The same as a DataFrame of the SparkSession `spark`, which knows Delta, in no
        particular order."""
        return generations_frame(spark, self.generations, self.columns)


def read_changelog(source: str, table: str, *, config: str | Path = CONFIG) -> WholeChangelog:
    """What the lake has of a table's changes, those among them that are captured and not yet
    acknowledged. `NothingMatches` before the first.

    To have each change once, be a consumer (`lockstep.consume`).
    """
    with open_site(source, config) as (adapters, lake):
        return whole_changelog(adapters.ledger(), lake, source, table_name(table))


def whole_changelog(
    ledger: Ledger, lake: LakePath, source: str, table: TableName
) -> WholeChangelog:
    """As `read_changelog`; `lake` is absolute."""
    versions = ledger.schema_versions(source, table)
    newest = max((version.generation for version in versions), default=0)
    generations = published_generations(lake, source, table, newest)
    if not generations:
        raise NothingMatches(
            f"No change of a table {table} of {source!r} is in the lake yet.",
            hint="`lockstep tables` lists what is captured, `lockstep run` captures",
        )
    schemas = [generation.schema for generation in generations]
    columns = together(schemas, [generation.number for generation in generations])
    return WholeChangelog(table, generations, columns)
