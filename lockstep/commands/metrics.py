"""`lockstep metrics`: the state of the sources as numbers for a monitoring system.

All metrics are gauges, so that the text is valid both as OpenMetrics and in the older
text format of Prometheus, which the node exporter's textfile collector reads. There are
samples for each source, never for each table, because a source may have ten thousand
tables.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from lockstep import exits
from lockstep.assets.notices import assess_source, readable_patterns
from lockstep.assets.run_page import seconds_of
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.proof.proven import open_differences, proof_times
from lockstep.pipeline.run.status.span_report import SpanReport, report_of_run
from lockstep.pipeline.status.facts import Standing
from lockstep.pipeline.status.verdict import State, Verdict
from lockstep.pipeline.values.errors import LockstepError, SpanRefused, StoppedBy
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import SourceSettings
from lockstep.streams import file_errors


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Write the metrics to standard output, or replace a file. A source in trouble is a
    sample, not an error; only a ledger that cannot be read is an error."""
    with context.adapters() as adapters:
        figures = [
            _source_figures(adapters, source, count_files=arguments.files)
            for source in context.sources(arguments.source)
        ]
    text = metrics_text(figures, datetime.now(UTC))
    if arguments.output is not None:
        _replace_file(Path(arguments.output), text)
    else:
        context.say(text.rstrip("\n"))
    return Outcome(exits.DONE, {"metrics": text})


def _source_figures(
    adapters: Adapters, source: SourceSettings, *, count_files: bool
) -> SourceFigures:
    now = datetime.now(UTC)
    ledger, name = adapters.ledger(), source.name
    standing, source_verdict = assess_source(adapters, source, now)
    is_captured = readable_patterns(source).matches
    states = [state for table, state in ledger.table_states(name).items() if is_captured(table)]
    table_counts = Counter((state.condition, state.stopped_by) for state in states)
    file_count: int | None = None
    if count_files:
        with suppress(LockstepError):  # There is no sample if files cannot be counted now.
            file_count = _count_files(adapters.lake().mirrors, states)
    last_run: SpanReport | None = None
    with suppress(SpanRefused):
        last_run = report_of_run(ledger, name, None, now)
    return SourceFigures(standing, source_verdict, last_run, table_counts, file_count)


def _count_files(mirrors: Mirrors, states: Iterable[TableState]) -> int:
    """Count the data files of all mirrors by their Delta logs, some milliseconds for
    each."""
    total = 0
    for state in states:
        version = mirrors.version(state.mirror)
        size = None if version is None else mirrors.size(state.mirror, version)
        total += 0 if size is None else size.file_count
    return total


def _replace_file(path: Path, text: str) -> None:
    """Replace the file atomically, so that a collector never reads a part of the text.
    The file is readable for other accounts, unlike those of `assets.state_files`."""
    new_file = path.with_name(f".{path.name}.new")
    with file_errors("The metrics", path, "--output"):
        new_file.write_text(text, encoding="utf-8")
        new_file.replace(path)


# -- the metrics and their samples -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """The figures of one source, from which its samples are made. `last_run`: the
    last run that captured changes. `table_counts`: the number of tables by state, and
    by who stopped them. `file_count`: the number of data files of all mirrors, or None
    if they were not counted."""

    standing: Standing
    verdict: Verdict
    last_run: SpanReport | None
    table_counts: Mapping[tuple[TableCondition, StoppedBy | None], int]
    file_count: int | None = None


def metrics_text(figures: Sequence[SourceFigures], now: datetime) -> str:
    registry = CollectorRegistry()
    registry.register(_MetricsCollector(figures, now))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


class _MetricsCollector(Collector):
    def __init__(self, figures: Sequence[SourceFigures], now: datetime) -> None:
        self._figures, self._now = figures, now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for figures in self._figures:
            for name, description, labels, value in _source_samples(figures, self._now):
                if name not in families:
                    families[name] = GaugeMetricFamily(
                        f"lockstep_{name}", description, labels=["source", *labels]
                    )
                families[name].add_metric([figures.standing.source, *labels.values()], value)
        yield from families.values()


Sample = tuple[str, str, dict[str, str], float]
"""A metric's name without its prefix, its description, the labels besides `source`, the
value."""

_TABLE_STATES: Final = (
    (TableCondition.FOLLOWING, None),
    *((TableCondition.STOPPED, by) for by in StoppedBy),
    (TableCondition.DROPPED, None),
)


def _source_samples(figures: SourceFigures, now: datetime) -> Iterator[Sample]:
    """Yield the samples of one source, except those whose value is unknown now."""
    standing = figures.standing
    yield "measured_timestamp_seconds", "when this was measured", {}, now.timestamp()
    yield "server_up", "1 if the server answered", {}, float(standing.server_error is None)
    for state in State:
        description = "1 for the state that `lockstep status` shows"
        yield "state", description, {"state": state.value}, float(state is figures.verdict.state)
    for condition, by in _TABLE_STATES:
        count = figures.table_counts.get((condition, by), 0)
        labels = {"state": condition.value, "by": by or ""}
        yield "tables", "tables by state, and by who stopped them", labels, count
    if figures.file_count is not None:
        yield "mirror_files", "data files of all mirrors", {}, figures.file_count
    yield from _lag_samples(standing)
    yield from _work_samples(standing)
    yield from _proof_samples(standing, now)
    if figures.last_run is not None:
        yield from _last_run_samples(figures.last_run)


def _lag_samples(standing: Standing) -> Iterator[Sample]:
    lag, headroom = standing.lag, standing.headroom
    if lag.seconds is not None:
        yield "lag_seconds", "age of the oldest change not in the lake", {}, lag.seconds
    if lag.log_bytes is not None:
        yield "lag_bytes", "bytes of log that are not in the lake", {}, lag.log_bytes
    if lag.transactions is not None:
        yield "lag_transactions", "transactions not in the lake", {}, lag.transactions
    if headroom is not None:
        description = "1 if the log at the cursor was purged"
        yield "log_purged", description, {}, float(headroom.is_purged)
        if headroom.remaining is not None:
            description = "time until the log at the cursor may be purged"
            yield "headroom_seconds", description, {}, headroom.remaining.total_seconds()
    if standing.acknowledged is not None:
        committed = standing.acknowledged.position.committed_at
        if committed is not None:
            description = "when the source committed the newest transaction in the lake"
            yield "acknowledged_timestamp_seconds", description, {}, committed.timestamp()


def _work_samples(standing: Standing) -> Iterator[Sample]:
    failure_count = standing.failures.count if standing.failures is not None else 0
    is_running = standing.lease is not None
    yield "running", "1 while a run holds the source's lock", {}, float(is_running)
    if standing.lease is not None and standing.lease.recorded_at:
        recorded = standing.lease.recorded_at.timestamp()
        yield "run_recorded_timestamp_seconds", "when the present run last recorded", {}, recorded
    yield "failures", "runs that failed since the last successful one", {}, failure_count
    yield "batches_waiting", "batches that are not acknowledged", {}, len(standing.waiting_batches)
    gap_count = sum(gap.is_open for gap in standing.gaps)
    yield "gaps_open", "parts of the log that were never read for some tables", {}, gap_count
    partial_count = len(standing.extents)
    yield "tables_partial", "tables that the lake has only a part of", {}, partial_count


def _proof_samples(standing: Standing, now: datetime) -> Iterator[Sample]:
    differing_count = len(open_differences(standing.proofs))
    yield "tables_differing", "tables that differed when compared", {}, differing_count
    proven_times = proof_times(standing.proofs, standing.stopped_names).values()
    description = "tables that were proven equal and follow the source"
    yield "tables_proven", description, {}, len(proven_times)
    if proven_times:
        description = "age of the oldest proof that a table is equal"
        yield "proof_age_seconds", description, {}, (now - min(proven_times)).total_seconds()


def _last_run_samples(report: SpanReport) -> Iterator[Sample]:
    row_counts = attributes(report.counts, "inserted, updated, deleted")
    row_counts["read"] = sum(total.rows_read for total in report.totals)
    description = "rows of the last run, by operation"
    for operation, count in row_counts.items():
        yield "last_run_rows", description, {"operation": operation}, count
    log_bytes = sum(batch.log_bytes for batch in report.batches)
    yield "last_run_log_bytes", "bytes of log that the last run read", {}, log_bytes
    transactions = sum(batch.transactions for batch in report.batches)
    yield "last_run_transactions", "transactions of the last run", {}, transactions
    for client, request_count in attributes(report.request_counts, "lockstep, spark").items():
        description = "requests of the last run to the object store, by client, without delta-rs"
        if request_count is not None:
            yield "last_run_requests", description, {"client": client}, request_count
    for step, seconds in seconds_of(report.batches).items():
        yield "last_run_seconds", "seconds of the last run, by step", {"step": step}, seconds
