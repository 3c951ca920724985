"""The port `Catalog` (`pipeline.ports.catalog`) for a Hive metastore, over Thrift.

Lockstep speaks to the metastore itself, not through Spark, so a metastore that is down
delays no merge.

An entry is an external table as Spark registers it for a Delta table (observed with
Spark 4.2.0 and Hive 2.3.10): the format's name is in `spark.sql.sources.provider`, the
folder in the serializer's `path`. Spark reads the columns from the Delta log; the entry
repeats them, with their comments, for clients that ask the metastore itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from lockstep.pipeline.catalog import (
    CONTENT_MARK,
    SOURCE_MARK,
    CatalogEntry,
    EntryColumn,
    EntryName,
    WantedEntry,
)
from lockstep.pipeline.values.errors import (
    CatalogRefused,
    CatalogUnavailable,
    LockstepError,
    SetupIncomplete,
)

if TYPE_CHECKING:
    from pymetastore.hive_metastore.ThriftHiveMetastore import Client

_DEFAULT_PORT: Final = 9083
_TIMEOUT_SECONDS: Final = 20
"""Timeout of a request, in seconds."""

_NAME: Final = re.compile(r"[a-z0-9_]{1,128}")
_COMMENT_LENGTH: Final = 256
"""Largest number of characters of a column's comment in a metastore's database."""

_TEXT_SERDE: Final = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_INPUT_FORMAT: Final = "org.apache.hadoop.mapred.SequenceFileInputFormat"
_OUTPUT_FORMAT: Final = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
_DELTA_PROPERTIES: Final = {
    "EXTERNAL": "TRUE",
    "spark.sql.sources.provider": "delta",
    "spark.sql.partitionProvider": "catalog",
    "spark.sql.sources.schema": '{"type":"struct","fields":[]}',
}


class HiveCatalog:
    """The port `Catalog`, which describes each method, for the metastore at
    thrift://host:port."""

    has_marks = True
    has_columns = True

    def __init__(self, uri: str) -> None:
        address = urlsplit(uri)
        self._host, self._port = address.hostname or "", address.port or _DEFAULT_PORT
        self.identity = f"The Hive metastore at {self._host}:{self._port}"

    def reason_refused(self, name: EntryName) -> str | None:
        if _NAME.fullmatch(name.schema) and _NAME.fullmatch(name.table):
            return None
        return "a name in a metastore consists of the letters a to z, digits and _"

    def probe(self) -> str:
        with self._open_client() as client:
            databases = client.get_all_databases()
        return f"{self.identity} answers; it has {len(databases)} databases"

    def find(self, name: EntryName) -> CatalogEntry | None:
        table = self._table(name)
        if table is None:
            return None
        serde_parameters = table.sd.serdeInfo.parameters or {}
        properties: Mapping[str, str] = table.parameters or {}
        is_spark_table = "spark.sql.sources.provider" in properties
        location = serde_parameters.get("path") if is_spark_table else None
        return CatalogEntry(
            location or table.sd.location or None,
            properties.get(SOURCE_MARK),
            properties.get(CONTENT_MARK),
        )

    def put(self, entry: WantedEntry, replaced_name: EntryName | None) -> None:
        """Create the entry, or alter the one named `replaced_name` in place, which
        keeps the properties that others added."""
        from pymetastore.hive_metastore import ttypes

        schema = entry.name.schema
        table = None if replaced_name is None else self._table(replaced_name)
        with self._open_client() as client:
            try:
                client.get_database(schema)
            except ttypes.NoSuchObjectException:
                client.create_database(ttypes.Database(name=schema, parameters={}))
            if replaced_name is None or table is None:
                client.create_table(_fill_in(ttypes.Table(), entry))
            else:
                client.alter_table(
                    replaced_name.schema, replaced_name.table, _fill_in(table, entry)
                )

    def drop(self, name: EntryName) -> None:
        from pymetastore.hive_metastore import ttypes

        with self._open_client() as client, suppress(ttypes.NoSuchObjectException):
            client.drop_table(name.schema, name.table, deleteData=False)

    def _table(self, name: EntryName) -> Any:
        from pymetastore.hive_metastore import ttypes

        with self._open_client() as client:
            try:
                return client.get_table(name.schema, name.table)
            except ttypes.NoSuchObjectException:
                return None

    @contextmanager
    def _open_client(self) -> Iterator[Client]:
        """Yield a client on a connection of its own. Errors are raised as
        `CatalogUnavailable` or `CatalogRefused`."""
        if find_spec("pymetastore") is None:
            raise SetupIncomplete(
                "A Hive metastore needs pymetastore, which is not installed",
                hint="run `pip install 'lockstep[hive]'`",
            )
        from pymetastore.hive_metastore import ThriftHiveMetastore
        from thrift.protocol import TBinaryProtocol
        from thrift.Thrift import TException
        from thrift.transport import TSocket, TTransport

        logging.getLogger("thrift").setLevel(logging.CRITICAL)  # its errors are raised here
        socket = TSocket.TSocket(self._host, self._port)
        socket.setTimeout(_TIMEOUT_SECONDS * 1000)
        transport = TTransport.TBufferedTransport(socket)
        try:
            transport.open()
            yield ThriftHiveMetastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
        except (TException, OSError, EOFError) as error:
            raise _catalog_error(self.identity, error) from error
        finally:
            transport.close()


def _catalog_error(identity: str, error: Exception) -> LockstepError:
    from thrift.transport.TTransport import TTransportException

    if isinstance(error, TTransportException | OSError | EOFError):
        return CatalogUnavailable(
            f"{identity} does not answer",
            hint="start it, or correct uri under [catalog]; the next run tries again",
        )
    message = " ".join(str(getattr(error, "message", None) or type(error).__name__).split())[:200]
    return CatalogRefused(
        f"{identity} refuses: {message}",
        hint="see its log; `lockstep catalog --yes` tries again",
    )


def _fill_in(table: Any, entry: WantedEntry) -> Any:
    """Fill the entry into the metastore's table, and return the table, which keeps its
    other properties."""
    from pymetastore.hive_metastore import ttypes

    serde_parameters = {"path": entry.location, "serialization.format": "1"}
    table.dbName, table.tableName = entry.name.schema, entry.name.table
    table.tableType = "EXTERNAL_TABLE"
    table.partitionKeys = []
    table.owner = table.owner or "lockstep"
    table.sd = ttypes.StorageDescriptor(
        cols=[_field_schema(column) for column in entry.columns],
        location=entry.location,
        inputFormat=_INPUT_FORMAT,
        outputFormat=_OUTPUT_FORMAT,
        serdeInfo=ttypes.SerDeInfo(serializationLib=_TEXT_SERDE, parameters=serde_parameters),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    comment_property = {"comment": entry.comment} if entry.comment else {}
    former_properties = {
        key: value for key, value in (table.parameters or {}).items() if key != "comment"
    }
    table.parameters = {**former_properties, **_DELTA_PROPERTIES, **comment_property, **entry.marks}
    return table


def _field_schema(column: EntryColumn) -> Any:
    from pymetastore.hive_metastore import ttypes

    hive_type = column.type.replace("timestamp_ntz", "timestamp")  # Hive has one timestamp type
    return ttypes.FieldSchema(column.name.lower(), hive_type, column.comment[:_COMMENT_LENGTH])
