"""What a run did → OpenLineage's events, in the words of its official client.

Belongs here: names of data sets by OpenLineage's naming, and facets. Does not: sending
(`sending`). A run is one job run: its job is called like the source; it reads MySQL's tables and
writes a mirror and a changelog of each. The run's id is made from Dagster's, so that whoever finds
a run dead can say so of the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    BaseFacet,
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    lifecycle_state_change_dataset,
    nominal_time_run,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
    storage_dataset,
)
from openlineage.client.naming.dataset import MySQL

from pipeline.runs.inspecting.table_news import RunNews, TableNews
from pipeline.runs.reports import CaptureReport
from pipeline.schema.column_words import written_type
from pipeline.schema.types import sql_type
from pipeline.table import TableName
from pipeline.table_state import TableEventKind

Event: TypeAlias = RunEvent

NOTHING: Final = RunNews(())

_CHANGE = lifecycle_state_change_dataset.LifecycleStateChange
_AT_THE_SOURCE = {
    TableEventKind.CREATED: _CHANGE.CREATE,
    TableEventKind.CHANGED: _CHANGE.ALTER,
    TableEventKind.TRUNCATED: _CHANGE.TRUNCATE,
    TableEventKind.DROPPED: _CHANGE.DROP,
}
_IN_THE_LAKE = {
    TableEventKind.CHANGED: _CHANGE.ALTER,
    TableEventKind.TRUNCATED: _CHANGE.TRUNCATE,
    TableEventKind.REREAD: _CHANGE.OVERWRITE,
    TableEventKind.REBUILT: _CHANGE.OVERWRITE,
}


@dataclass(frozen=True, slots=True)
class DatasetPlace:
    """Where a source's tables are, and the lake. `host` and `port` of the server; `storage`: the
    lake's namespace, `file` or the bucket's URL; `folder`: what its paths begin with."""

    job_namespace: str
    source: str
    host: str
    port: int
    storage: str
    folder: str

    def table(self, name: TableName) -> tuple[str, str]:
        """Namespace and name of a table of the source."""
        named = MySQL(self.host, str(self.port), name.database, name.name)
        return named.get_namespace(), named.get_name()

    def stored(self, path: str) -> tuple[str, str]:
        """Namespace and name of a table of the lake."""
        return self.storage, f"{self.folder}/{path}" if self.folder else path


@dataclass(frozen=True, slots=True)
class Moment:
    """What each event of one run has. `run`: Dagster's id; `scheduled`: when it was due, by a
    schedule."""

    place: DatasetPlace
    run: str
    at: datetime
    scheduled: datetime | None = None


@attr.define
class LockstepRunFacet(RunFacet):
    """What a run is in Lockstep's words: how to ask for it there, and which part of the log it
    read."""

    dagsterRun: str
    batch: int | None = None
    start: str | None = None
    end: str | None = None
    transactions: int | None = None
    rows: int | None = None
    logBytes: int | None = None
    tablesNotListed: int | None = None


def run_id(source: str, dagster_run: str) -> str:
    """The same for the same run, whoever asks."""
    return str(uuid5(NAMESPACE_URL, f"lockstep:{source}:{dagster_run}"))


def run_event(
    state: str,
    moment: Moment,
    captured: CaptureReport | None = None,
    news: RunNews = NOTHING,
    why: str | None = None,
) -> RunEvent:
    """`state`: START, COMPLETE, FAIL or ABORT. `news`: what was written until then. `why`: of a run
    that failed or was stopped, a sentence and its cure."""
    release = version("lockstep")
    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(release, "Lockstep"),
        "lockstep_run": _lockstep(moment, captured, news.unnamed or None),
    }
    if moment.scheduled is not None:
        due = moment.scheduled.isoformat()
        facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(due)
    if why is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(why, "PYTHON")
    place = moment.place
    kind = job_type_job.JobTypeJobFacet("BATCH", "LOCKSTEP", "JOB")
    event = RunEvent(
        eventType=RunState[state],
        eventTime=moment.at.isoformat(),
        run=Run(run_id(place.source, moment.run), facets),
        job=Job(place.job_namespace, place.source, {"jobType": kind}),
        inputs=[_read(place, table) for table in news.tables],
        outputs=[written for table in news.tables for written in _written(place, table)],
        producer=f"urn:lockstep:{release}",
    )
    for facet in _facets(event):
        facet._producer = event.producer
    return event


def _facets(event: RunEvent) -> Iterator[BaseFacet]:
    """All of them, whatever they are about."""
    read, written = event.inputs or [], event.outputs or []
    for facets in (
        event.run.facets,
        event.job.facets,
        *(one.facets for one in (*read, *written)),
        *(one.inputFacets for one in read),
        *(one.outputFacets for one in written),
    ):
        yield from (facets or {}).values()


def _lockstep(
    moment: Moment, captured: CaptureReport | None, unnamed: int | None
) -> LockstepRunFacet:
    if captured is None:
        return LockstepRunFacet(moment.run, tablesNotListed=unnamed)
    return LockstepRunFacet(
        moment.run,
        captured.batch,
        str(captured.start),
        str(captured.end),
        captured.transactions,
        captured.rows,
        captured.log_bytes,
        unnamed,
    )


def _read(place: DatasetPlace, news: TableNews) -> InputDataset:
    """The source's table, as it is behind the run."""
    facets: dict[str, DatasetFacet] = {}
    if news.schema is not None:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(
            [
                schema_dataset.SchemaDatasetFacetFields(
                    column.name, written_type(column), news.comments.get(column.name), number
                )
                for number, column in enumerate(news.schema.columns, start=1)
            ]
        )
    if news.was is not None:
        before = place.table(news.was.table)
        facets["lifecycleStateChange"] = _changed(_CHANGE.RENAME, before)
    elif news.happened in _AT_THE_SOURCE:
        facets["lifecycleStateChange"] = _changed(_AT_THE_SOURCE[news.happened])
    rows = news.counts.total + news.read
    told = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rows)
    return InputDataset(*place.table(news.table), {"inputStatistics": told}, facets=facets)


def _written(place: DatasetPlace, news: TableNews) -> Iterator[OutputDataset]:
    """Its mirror and its changelog, or the mirror that is gone with it."""
    mirror = place.stored(news.state.mirror)
    if news.state.mirror_ended:
        yield OutputDataset(*mirror, facets={"lifecycleStateChange": _changed(_CHANGE.DROP)})
        return
    if news.merge is None:
        return
    facets: dict[str, DatasetFacet] = {
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(
            str(news.merge.delta_version)
        ),
        "storage": storage_dataset.StorageDatasetFacet("delta", "parquet"),
    }
    if news.schema is not None:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(
            [
                schema_dataset.SchemaDatasetFacetFields(
                    name, sql_type(kind), news.comments.get(name), number
                )
                for number, (name, kind) in enumerate(news.merge.columns, start=1)
            ]
        )
        facets["columnLineage"] = _columns(place, news)
    change = _of_mirror(news)
    if change is not None:
        facets["lifecycleStateChange"] = change
    rows = news.counts.total + news.read
    told = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rows)
    yield OutputDataset(*mirror, {"outputStatistics": told}, facets=facets)
    if news.counts.total:
        yield OutputDataset(
            *place.stored(news.merge.changelog),
            facets={"storage": storage_dataset.StorageDatasetFacet("delta", "parquet")},
        )


def _of_mirror(
    news: TableNews,
) -> lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet | None:
    """A renamed table's mirror is made anew, or stays where it was: neither is a rename."""
    if news.merge is not None and news.merge.delta_version == 0:
        return _changed(_CHANGE.CREATE)
    if news.was is None and news.happened in _IN_THE_LAKE:
        return _changed(_IN_THE_LAKE[news.happened])
    return None


def _changed(
    change: lifecycle_state_change_dataset.LifecycleStateChange,
    before: tuple[str, str] | None = None,
) -> lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet:
    previous = None
    if before is not None:
        namespace, name = before
        previous = lifecycle_state_change_dataset.PreviousIdentifier(name, namespace)
    return lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(change, previous)


def _columns(
    place: DatasetPlace, news: TableNews
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """Each column is the source's of that name; one that the source dropped comes from nowhere."""
    namespace, table = place.table(news.table)
    same = column_lineage_dataset.Transformation("DIRECT", "IDENTITY")
    fields = {
        name: column_lineage_dataset.Fields(
            [column_lineage_dataset.InputField(namespace, table, column.name, [same])]
        )
        for name, _ in (news.merge.columns if news.merge is not None else ())
        if news.schema is not None and (column := news.schema.column(name)) is not None
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields)
