"""`lockstep metrics`: how sources stand, as numbers for a monitoring system.

All are gauges, so that OpenMetrics and the older text format of Prometheus, which the node
exporter's textfile collector reads, are the same text but for its last line. There is a line for
each source, never one for each table: a source may have ten thousand.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from assets.report import seconds_of
from lockstep import exits
from lockstep.commands.status import workplace_or_why
from lockstep.context import CommandContext, Outcome
from pipeline.errors import ConfigurationError, LockstepError, SpanRefused, StoppedBy
from pipeline.json_values import parts
from pipeline.preflight import pause_from_now
from pipeline.proof.proven import open_differences, proven_since
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.span_report import SpanReport, report_of_run
from pipeline.runs.inspecting.status import stand
from pipeline.standing.facts import Standing
from pipeline.standing.verdict import State, Verdict, verdict
from pipeline.table_state import TableCondition
from resources.adapters import Adapters
from resources.config import SourceSettings


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """On standard output, or in a file that is replaced as a whole. A source that is in trouble
    is a number, and no error; without the ledger nothing is told."""
    with context.adapters() as adapters:
        figures = [
            _figures(adapters, source, files=arguments.files)
            for source in context.sources(arguments.source)
        ]
    text = metrics_text(figures, datetime.now(UTC))
    if arguments.output is not None:
        _replace(Path(arguments.output), text)
    else:
        context.say(text.rstrip("\n"))
    return Outcome(exits.DONE, {"metrics": text})


def _figures(adapters: Adapters, source: SourceSettings, *, files: bool) -> SourceFigures:

    now, ledger, name = datetime.now(UTC), adapters.ledger(), source.name
    work = workplace_or_why(adapters, name)
    standing = stand(name, source.plan().patterns, ledger, work, now)
    judged = verdict(standing, now, pause_from_now(source.schedule))
    states = ledger.table_states(name)
    tables = Counter((state.condition, state.stopped_by) for state in states.values())
    count = None if isinstance(work, LockstepError) or not files else _files(work)
    last: SpanReport | None = None
    with suppress(SpanRefused):
        last = report_of_run(ledger, name, None, now)
    return SourceFigures(standing, judged, last, tables, count)


def _files(work: Workplace) -> int:
    """Of all mirrors, from their logs: some milliseconds for each."""
    count = 0
    for state in work.ledger.table_states(work.source.name).values():
        version = work.mirrors.version(state.mirror)
        size = None if version is None else work.mirrors.size(state.mirror, version)
        count += 0 if size is None else size.files
    return count


def _replace(path: Path, text: str) -> None:
    """Whoever collects it sees the old text or the new one."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"The metrics cannot be written to {path}: {error.strerror or error}.",
            hint="name another file: --output FILE",
        ) from error


# -- which number stands for what ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """One source. `last`: the last run that captured something; None before there was one.
    `tables`: how many are in each state, and who stopped them. `files` of all mirrors; None where
    nobody counted."""

    standing: Standing
    verdict: Verdict
    last: SpanReport | None
    tables: Mapping[tuple[TableCondition, StoppedBy | None], int]
    files: int | None = None


def metrics_text(figures: Sequence[SourceFigures], now: datetime) -> str:
    registry = CollectorRegistry()
    registry.register(_Figures(figures, now))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


class _Figures(Collector):
    def __init__(self, figures: Sequence[SourceFigures], now: datetime) -> None:
        self._figures, self._now = figures, now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for figures in self._figures:
            for name, told, labels, value in _samples(figures, self._now):
                family = families.get(name)
                if family is None:
                    names = ["source", *labels]
                    family = families[name] = GaugeMetricFamily(
                        f"lockstep_{name}", told, labels=names
                    )
                family.add_metric([figures.standing.source, *labels.values()], value)
        yield from families.values()


Sample = tuple[str, str, dict[str, str], float]

_TABLE_STATES: Final = (
    (TableCondition.FOLLOWING, None),
    *((TableCondition.STOPPED, by) for by in StoppedBy),
    (TableCondition.DROPPED, None),
)


def _samples(figures: SourceFigures, now: datetime) -> Iterator[Sample]:
    """A number that cannot be told now is left out."""
    standing = figures.standing
    yield "measured_timestamp_seconds", "when this was measured", {}, now.timestamp()
    yield "server_up", "1 where the server answered", {}, float(standing.trouble is None)
    for state in State:
        told = "1 for the state that `lockstep status` says"
        yield "state", told, {"state": state.value}, float(state is figures.verdict.state)
    for condition, by in _TABLE_STATES:
        number = figures.tables.get((condition, by), 0)
        labels = {"state": condition.value, "by": by or ""}
        yield "tables", "tables by state, and by whom they were stopped", labels, number
    if figures.files is not None:
        yield "mirror_files", "data files of all mirrors", {}, figures.files
    yield from _distance(standing)
    yield from _waiting(standing)
    yield from _proofs(standing, now)
    if figures.last is not None:
        yield from _last(figures.last)


def _distance(standing: Standing) -> Iterator[Sample]:
    lag, room = standing.lag, standing.headroom
    if lag.seconds is not None:
        yield "lag_seconds", "age of the oldest change not in the lake", {}, lag.seconds
    if lag.log_bytes is not None:
        yield "lag_bytes", "bytes of log that are not in the lake", {}, lag.log_bytes
    if lag.transactions is not None:
        yield "lag_transactions", "transactions not in the lake", {}, lag.transactions
    if room is not None:
        told = "1 where the log at the cursor is purged"
        yield "log_purged", told, {}, float(room.gone)
        if room.remaining is not None:
            told = "until the log at the cursor may be purged"
            yield "headroom_seconds", told, {}, room.remaining.total_seconds()
    if standing.acknowledged is not None:
        committed = standing.acknowledged.position.committed_at
        if committed is not None:
            told = "when the source committed what the lake shows last"
            yield "acknowledged_timestamp_seconds", told, {}, committed.timestamp()


def _waiting(standing: Standing) -> Iterator[Sample]:
    failed = standing.failures.count if standing.failures is not None else 0
    running = standing.lease is not None and standing.lease.live
    yield "running", "1 while a run holds the source", {}, float(running)
    yield "failures", "runs that failed since one went through", {}, failed
    yield "batches_waiting", "batches that are not acknowledged", {}, len(standing.waiting)
    still = sum(1 for gap in standing.gaps if gap.open_tables)
    yield "gaps_open", "spans of the log that tables lack", {}, still
    yield (
        "tables_partial",
        "tables that the lake has only a part of",
        {},
        len(standing.partial),
    )


def _proofs(standing: Standing, now: datetime) -> Iterator[Sample]:
    differing = len(open_differences(standing.proofs))
    yield "tables_differing", "tables that differed when compared", {}, differing
    moments = proven_since(standing.proofs, standing.stopped).values()
    told = "tables that were proven equal and follow the source"
    yield "tables_proven", told, {}, len(moments)
    if moments:
        told = "age of the oldest proof that a table is equal"
        yield "proof_age_seconds", told, {}, (now - min(moments)).total_seconds()


def _last(report: SpanReport) -> Iterator[Sample]:
    counts, rows = report.counts, "rows of the last run, by operation"
    for operation in ("inserted", "updated", "deleted"):
        number = getattr(counts, operation)
        yield "last_run_rows", rows, {"operation": operation}, number
    read = sum(total.read for total in report.totals)
    yield "last_run_rows", rows, {"operation": "read"}, read
    size = sum(batch.log_bytes for batch in report.batches)
    yield "last_run_log_bytes", "bytes of log that the last run read", {}, size
    transactions = sum(batch.transactions for batch in report.batches)
    yield "last_run_transactions", "transactions of the last run", {}, transactions
    for client, requests in parts(report.requests, "own as lockstep, spark").items():
        told = "requests of the last run to the object store, by client; delta-rs counts none"
        if requests is not None:
            yield "last_run_requests", told, {"client": client}, requests
    for step, seconds in seconds_of(report.batches).items():
        told = "seconds of the last run, by step"
        yield "last_run_seconds", told, {"step": step}, seconds
