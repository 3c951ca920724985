"""Makes OpenLineage events of a run with the classes of the official client.

The job is named after the source. A run reads MySQL tables. For each it writes a mirror
(the Delta table with the current rows) and a changelog (the Delta table with all
changes). OpenLineage's run id is derived from the run's own id, so that another process
can send the last event of a run that died.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Final, TypeAlias
from uuid import NAMESPACE_URL, uuid5

import attr
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    error_message_run,
    schema_dataset,
    set_producer,
)
from openlineage.client.naming.dataset import MySQL

from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.run.status.run_news import RunNews, TableNews
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.sql_text import type_in_sql
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.table import TableName

Event: TypeAlias = RunEvent
"""For modules outside of this folder, which may not import the client."""

NO_NEWS: Final = RunNews(())


@dataclass(frozen=True, slots=True)
class DatasetAddresses:
    """The parts of OpenLineage's names for a source's job and tables. The job is
    `source` in `job_namespace`. `host`, `port`: those of MySQL. `lake_namespace`: the
    lake's namespace, `file` or the bucket's URL; `lake_path`: the lake's path in it."""

    job_namespace: str
    source: str
    host: str
    port: int
    lake_namespace: str
    lake_path: str

    def mysql_table(self, name: TableName) -> tuple[str, str]:
        """Return OpenLineage's namespace and name of a table in MySQL."""
        dataset = MySQL(self.host, str(self.port), name.database, name.name)
        return dataset.get_namespace(), dataset.get_name()

    def delta_table(self, path: str) -> tuple[str, str]:
        """Return OpenLineage's namespace and name of a Delta table in the lake."""
        return self.lake_namespace, f"{self.lake_path}/{path}" if self.lake_path else path


@attr.define
class LockstepRunFacet(RunFacet):
    """Lockstep's own facet of a run: its id in Lockstep (`dagsterRun`), and the part of
    the log that it read. Names are camelCase as in OpenLineage's facets.
    `tablesNotListed`: number of further tables, which the event leaves out."""

    dagsterRun: str
    batch: int | None = None
    start: str | None = None
    end: str | None = None
    transactions: int | None = None
    rows: int | None = None
    logBytes: int | None = None
    tablesNotListed: int | None = None


def openlineage_run_id(source: str, lockstep_run_id: str) -> str:
    """Return OpenLineage's id of a run, the same in every process."""
    return str(uuid5(NAMESPACE_URL, f"lockstep:{source}:{lockstep_run_id}"))


def run_event(
    state: str,
    addresses: DatasetAddresses,
    lockstep_run_id: str,
    moment: datetime,
    capture_report: CaptureReport | None = None,
    news: RunNews = NO_NEWS,
    error_text: str | None = None,
) -> RunEvent:
    """Return an event of a run. `state`: START, COMPLETE, FAIL or ABORT;
    `lockstep_run_id`: Lockstep's id of the run; `moment`: when the event happened;
    `capture_report`: None before the capture has ended; `news`: what the run has
    written; `error_text`: the error and its hint if the run failed."""
    producer = f"urn:lockstep:{version('lockstep')}"
    set_producer(producer)  # the facets below contain it
    facet = LockstepRunFacet(lockstep_run_id, tablesNotListed=news.unreported_count or None)
    if capture_report is not None:
        facet.batch = capture_report.batch_id
        facet.start, facet.end = str(capture_report.start), str(capture_report.end)
        facet.transactions, facet.rows = capture_report.transactions, capture_report.rows
        facet.logBytes = capture_report.log_bytes
    facets: dict[str, RunFacet] = {"lockstep_run": facet}
    if error_text is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error_text, "PYTHON")
    return RunEvent(
        eventType=RunState[state],
        eventTime=moment.isoformat(),
        run=Run(openlineage_run_id(addresses.source, lockstep_run_id), facets),
        job=Job(addresses.job_namespace, addresses.source),
        inputs=[_input_dataset(addresses, table) for table in news.tables],
        outputs=[output for table in news.tables for output in _output_datasets(addresses, table)],
        producer=producer,
    )


def _input_dataset(addresses: DatasetAddresses, table_news: TableNews) -> InputDataset:
    schema = table_news.schema
    facets: dict[str, DatasetFacet] = {}
    if schema is not None:
        columns = [(column.name, type_in_sql(column)) for column in schema.columns]
        facets["schema"] = _schema_facet(columns, table_news.comments)
    return InputDataset(*addresses.mysql_table(table_news.table), facets=facets)


def _output_datasets(addresses: DatasetAddresses, table_news: TableNews) -> Iterator[OutputDataset]:
    schema, merge = table_news.schema, table_news.merge
    if merge is None or table_news.state.is_mirror_removed:
        return
    facets: dict[str, DatasetFacet] = {}
    if schema is not None:
        columns = [(name, sql_type(data_type)) for name, data_type in merge.columns]
        source_table = addresses.mysql_table(table_news.table)
        facets = {
            "schema": _schema_facet(columns, table_news.comments),
            "columnLineage": _column_lineage_facet(source_table, schema, dict(columns)),
        }
    yield OutputDataset(*addresses.delta_table(table_news.state.mirror), facets=facets)
    if table_news.has_changed_rows:
        yield OutputDataset(*addresses.delta_table(merge.changelog))


def _schema_facet(
    columns: Sequence[tuple[str, str]], comments: Mapping[str, str]
) -> schema_dataset.SchemaDatasetFacet:
    """Return the facet of columns with their types. `comments`: MySQL's, by column."""
    return schema_dataset.SchemaDatasetFacet(
        [
            schema_dataset.SchemaDatasetFacetFields(name, type_text, comments.get(name), number)
            for number, (name, type_text) in enumerate(columns, start=1)
        ]
    )


def _column_lineage_facet(
    source_table: tuple[str, str], schema: TableSchema, mirror_columns: Iterable[str]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """Return the lineage of each mirror column: the source's column of that name in
    `schema`, unless that was dropped. `source_table`: the table's namespace and
    name."""
    identity = column_lineage_dataset.Transformation("DIRECT", "IDENTITY")
    fields = {
        name: column_lineage_dataset.Fields(
            [column_lineage_dataset.InputField(*source_table, column.name, [identity])]
        )
        for name in mirror_columns
        if (column := schema.column(name)) is not None
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields)
