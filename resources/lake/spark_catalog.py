"""The port `pipeline.ports.catalog` for one of Spark's catalogs, such as a Hive
metastore.

Delta keeps a table's properties, comment and columns in the table's log, to which only
runs may write. So an entry here consists of a name and a location, without the
properties and columns that other catalogs get. Nothing here commits to a table.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lockstep.pipeline.catalog import CatalogEntry, EntryName, WantedEntry
from lockstep.pipeline.values.errors import CatalogRefused, CatalogUnavailable
from lockstep.resources.lake.delta.statement import quoted
from lockstep.resources.lake.spark.spark import Spark, exclusive_session
from lockstep.resources.lake.store.storage import first_line

_NAME: Final = re.compile(r"[a-z0-9_]{1,128}")
_NOT_FOUND_CONDITIONS: Final = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
)


class SparkCatalog:
    """A `Catalog` whose entries are in one catalog of the Spark that runs use; `catalog` is
    that catalog's name."""

    has_marks = False
    has_columns = False

    def __init__(self, spark: Spark, catalog: str) -> None:
        self._spark = spark
        self._catalog = catalog
        self.identity = f"Spark's catalog {catalog}"

    def reason_refused(self, name: EntryName) -> str | None:
        if _NAME.fullmatch(name.schema) and _NAME.fullmatch(name.table):
            return None
        return "a name in a catalog of Spark consists of the letters a to z, digits and _"

    def probe(self) -> str:
        schemas = self._execute(f"show schemas in {quoted(self._catalog)}")
        return f"{self.identity} answers; it has {len(schemas)} schemas"

    def find(self, name: EntryName) -> CatalogEntry | None:
        rows = self._execute_or_none(f"describe table extended {self._full_name(name)}")
        if rows is None:
            return None
        properties = {row[0]: row[1] for row in rows}
        is_delta = str(properties.get("Provider", "")).lower() == "delta"
        return CatalogEntry(properties.get("Location") if is_delta else None)

    def put(self, entry: WantedEntry, replaced_name: EntryName | None) -> None:
        """Create the entry, and drop the one with the former name `replaced_name`: not
        every catalog of Spark can rename an entry."""
        if replaced_name is not None:
            self.drop(replaced_name)
        schema = f"{quoted(self._catalog)}.{quoted(entry.name.schema)}"
        self._execute(f"create schema if not exists {schema}")
        location = entry.location.replace("\\", "\\\\").replace("'", "\\'")
        self._execute(
            f"create table {self._full_name(entry.name)} using delta location '{location}'"
        )

    def drop(self, name: EntryName) -> None:
        self._execute(f"drop table if exists {self._full_name(name)}")

    def _full_name(self, name: EntryName) -> str:
        return ".".join(map(quoted, (self._catalog, name.schema, name.table)))

    def _execute(self, statement: str) -> list[Any]:
        rows = self._execute_or_none(statement)
        if rows is None:
            raise self._refusal("its catalog, schema or Delta table does not exist")
        return rows

    def _execute_or_none(self, statement: str) -> list[Any] | None:
        """Return the rows of a statement; None if its table or schema does not exist."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        with exclusive_session(self._spark) as session:
            try:
                return session.sql(statement).collect()
            except PySparkException as error:
                if error.getCondition() in _NOT_FOUND_CONDITIONS:
                    return None
                raise self._refusal(str(error)) from error
            except (Py4JError, OSError) as error:
                raise CatalogUnavailable(
                    f"{self.identity} does not answer, because its Spark does not",
                    hint="run `lockstep catalog --yes`, or wait for the next run",
                ) from error

    def _refusal(self, message: str) -> CatalogRefused:
        return CatalogRefused(
            f"{self.identity} refuses: {first_line(message)[:200]}",
            hint="check its settings under [spark]; `lockstep catalog --yes` tries again",
        )
