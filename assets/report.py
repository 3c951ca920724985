"""The report of a run or a span: what it looks like, as one HTML file that needs nothing beside it,
and the files of a source's last runs, `.lockstep/pages/<source>/<run>.html`.

Does not belong here: what is in a report (`pipeline.runs.inspecting.span_report`), Dagster. The
template escapes all figures and texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from assets.files import replace_file
from pipeline.batch import Batch, CapturedRows
from pipeline.errors import SpanRefused
from pipeline.gtid import GtidSet
from pipeline.intent import SettledWrite
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.span_report import SpanReport, report_of_run
from pipeline.segment import RowCounts
from resources.config import Settings
from resources.lake.paths import LakePath
from resources.private import make_private

LISTED: Final = 500
"""Rows of a table on the page; behind them it says how many there are more."""

_DRAWN: Final = 4
"""Batches whose steps are drawn one by one; of more, what each step took in all is told."""


_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def page(report: SpanReport, lake: LakePath) -> str:
    """One HTML document, without a script or anything from elsewhere."""
    own = frozenset(batch.id for batch in report.batches)
    columns, highest = rows_over_time((*report.before, *report.batches), report.rows, own)
    few, last = len(report.batches) <= _DRAWN, report.batches[-1]
    # As `--at` takes it: the run where its set is this batch's, else the place in the log.
    place = f"run:{last.dagster_run}" if last.dagster_run else str(last.end or last.start)
    return str(
        _template().render(
            report=report,
            lake=lake,
            totals=report.totals,
            counts=report.counts,
            figures=figures(report),
            bars=waterfall(report.batches, report.writes) if few else (),
            seconds=seconds_of(report.batches),
            columns=columns,
            highest=highest,
            place=place,
            listed=LISTED,
        )
    )


def figures(report: SpanReport) -> dict[str, str]:
    first, last = report.batches[0], report.batches[-1]
    end = last.end or last.start
    committed = (first.start.committed_at, end.committed_at)
    found = {
        "from": str(first.start),
        "to": str(end),
        "committed": " to ".join(moment(one) for one in committed if one is not None),
        "GTIDs up to there": "" if end.gtid_set == GtidSet() else end.gtid_set.shortened(),
        "transactions": f"{sum(batch.transactions for batch in report.batches):,}",
        "log read": size(sum(batch.log_bytes for batch in report.batches)),
        "requests to the store": "" if report.requests is None else str(report.requests),
        "batches": f"{first.id}" if first is last else f"{first.id} to {last.id}",
        "stands": _stands(report.batches),
    }
    return {name: told for name, told in found.items() if told}


def moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:,.1f} {_UNITS[power - 1]}"


def spoken(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _stands(batches: tuple[Batch, ...]) -> str:
    """The last word of the batch that is least far."""
    slowest = min(batches, key=lambda batch: (batch.acknowledged_at is not None, batch.id))
    last = batches[-1].acknowledged_at
    return f"acknowledged {moment(last)}" if slowest.acknowledged_at and last else slowest.state


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("assets", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"moment": moment, "quoted": quoted, "size": size, "spoken": spoken}
    return environment.get_template("report.html.jinja")


# -- shapes: where each bar begins and how long it is, in percent -------------------------------

_MIRRORS: Final = 40
"""Mirrors in one waterfall: those that took longest."""

_COLUMNS: Final = 80
"""Columns of a plot; of more batches, neighbours stand together."""

_LEAST: Final = 0.4
"""Percent of the width that the shortest bar has, to be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """`left` and `width` in percent of the time that is shown. `step`: what it was spent on."""

    label: str
    step: str
    left: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RowsBar:
    """Rows of neighbouring batches, in percent of the highest column: `deleted` at the bottom,
    then `updated`, `inserted` and `read`. `own`: of the run that is told of."""

    label: str
    read: float
    inserted: float
    updated: float
    deleted: float
    own: bool


def waterfall(batches: Sequence[Batch], writes: Sequence[SettledWrite]) -> tuple[Bar, ...]:
    """From the first batch's beginning to the last moment that the ledger has of them, in the
    order in which things began."""
    spans = [span for batch in batches for span in _steps(batch, writes)]
    longest = sorted(writes, key=lambda write: write.intended_at - write.settled_at)[:_MIRRORS]
    spans += [(str(w.intent.table), "merge", w.intended_at, w.settled_at) for w in longest]
    if not spans:
        return ()
    origin = min(begin for _, _, begin, _ in spans)
    whole = max((end - origin).total_seconds() for _, _, _, end in spans) or 1.0
    spans.sort(key=lambda span: (span[2], span[3]))
    return tuple(_bar(*span, origin, whole) for span in spans)


def rows_over_time(
    batches: Sequence[Batch], rows: Iterable[CapturedRows], own: frozenset[int]
) -> tuple[tuple[RowsBar, ...], int]:
    """A column for each batch, or for so many neighbours that all find room; and how many rows
    the highest of them stands for."""
    by_batch: dict[int, list[CapturedRows]] = {}
    for row in rows:
        by_batch.setdefault(row.batch, []).append(row)
    size = -(-len(batches) // _COLUMNS) or 1
    groups = [batches[at : at + size] for at in range(0, len(batches), size)]
    sums = [_sum(group, by_batch) for group in groups]
    highest = max((counts.total + read for counts, read in sums), default=0)
    scale = 100 / max(highest, 1)
    columns = [
        RowsBar(
            label=f"{_told(group)}: {counts.inserted:,} inserted, {counts.updated:,} updated, "
            f"{counts.deleted:,} deleted, {read:,} read from the source",
            read=read * scale,
            inserted=counts.inserted * scale,
            updated=counts.updated * scale,
            deleted=counts.deleted * scale,
            own=any(batch.id in own for batch in group),
        )
        for group, (counts, read) in zip(groups, sums, strict=True)
    ]
    return tuple(columns), highest


def seconds_of(batches: Sequence[Batch]) -> Mapping[str, float]:
    found: dict[str, float] = {"read": 0.0, "merge": 0.0, "acknowledge": 0.0}
    for batch in batches:
        moments = (batch.created_at, batch.captured_at, batch.merged_at, batch.acknowledged_at)
        for step, (begin, end) in zip(found, pairwise(moments), strict=True):
            if begin is not None and end is not None:
                found[step] += (end - begin).total_seconds()
    return found


Span = tuple[str, str, datetime, datetime]


def _steps(batch: Batch, writes: Sequence[SettledWrite]) -> Iterable[Span]:
    """Reading, publishing (up to the first write), acknowledging (from the last)."""
    own = [w for w in writes if w.intent.first_batch <= batch.id <= w.intent.last_batch]
    if batch.captured_at is None:
        return
    yield f"read batch {batch.id}", "read", batch.created_at, batch.captured_at
    if own:
        first = max(batch.captured_at, min(write.intended_at for write in own))
        yield f"publish batch {batch.id}", "publish", batch.captured_at, first
    if batch.merged_at is not None and batch.acknowledged_at is not None:
        step = "acknowledge"
        yield f"{step} batch {batch.id}", step, batch.merged_at, batch.acknowledged_at


def _bar(
    label: str, step: str, begin: datetime, end: datetime, origin: datetime, whole: float
) -> Bar:
    seconds = (end - begin).total_seconds()
    width = max(100 * seconds / whole, _LEAST)
    left = min(100 * (begin - origin).total_seconds() / whole, 100 - width)
    return Bar(label, step, round(left, 2), round(width, 2), seconds)


def _sum(
    group: Sequence[Batch], by_batch: Mapping[int, Sequence[CapturedRows]]
) -> tuple[RowCounts, int]:
    those = [rows for batch in group for rows in by_batch.get(batch.id, ())]
    return sum((rows.counts for rows in those), RowCounts()), sum(one.read for one in those)


def _told(group: Sequence[Batch]) -> str:
    first, last = group[0], group[-1]
    moment = last.captured_at or last.created_at
    which = f"batch {last.id}" if first is last else f"batches {first.id} to {last.id}"
    return f"{which}, {moment:%Y-%m-%d %H:%M} UTC"


# -- the files ----------------------------------------------------------------------------------

FOLDER: Final = "pages"

KEPT: Final = 500
"""Pages of a source; the oldest go."""

_LETTERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def page_path(state_folder: Path, source: str, about: str) -> Path:
    """Where the page of a run or a span belongs; `about` names it, whatever letters it has."""
    name = _LETTERS.sub("-", about.removeprefix("run ").removeprefix("from "))[:150]
    return state_folder / FOLDER / source / f"{name}.html"


def keep_page(path: Path, text: str) -> None:
    """Written whole; the oldest pages beside it make room. OSError where it cannot be."""
    make_private(path.parent)
    replace_file(path, text)
    pages = sorted(path.parent.glob("*.html"), key=lambda page: page.stat().st_mtime_ns)
    for old in pages[:-KEPT]:
        old.unlink(missing_ok=True)


def keep_page_of_run(settings: Settings, work: Workplace, run: str) -> Path | None:
    """Make the page of a run, and keep it; None where the run captured nothing, or its page cannot
    be written, which is noted."""
    source = work.source.name
    try:
        report = report_of_run(work.ledger, source, run, work.clock())
        path = page_path(settings.state_folder, source, report.about)
        keep_page(path, page(report, settings.lake_path()))
    except SpanRefused:
        return None
    except OSError as error:
        work.progress.note(f"The run's page was not written: {error}")
        return None
    return path
