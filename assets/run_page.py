"""The HTML pages of a source's last runs, and the page of a span of the log.

A page is one file without scripts or other resources. Pages of runs are
`.lockstep/pages/<source>/<run>.html`. `pipeline.run.status.span_report` gathers the
data of a page; the template escapes all texts. This module does not import Dagster,
because `lockstep run` uses it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from heapq import nlargest
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from lockstep.assets.state_files import replace_file
from lockstep.pipeline.model.batch import Batch, CapturedRows
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.status.span_report import SpanReport, report_of_run
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.intent import SettledWrite
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import batch_words, pluralize, utc_text
from lockstep.resources.config import Settings
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.private import make_private

MAX_ROWS: Final = 500
"""Largest number of rows that a table on the page lists. The page says how many it
leaves out."""

_MAX_DRAWN_BATCHES: Final = 4
"""Largest number of batches whose steps are drawn; for more batches, only sums are
shown."""

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def render_page(report: SpanReport, lake: LakePath) -> str:
    """Return the report as one HTML document."""
    own_batch_ids = frozenset(batch.id for batch in report.batches)
    columns, highest = rows_over_time(
        (*report.earlier_batches, *report.batches), report.captured_rows, own_batch_ids
    )
    draws_steps = len(report.batches) <= _MAX_DRAWN_BATCHES
    last = report.batches[-1]
    # The place has the form that `--at` accepts.
    place = f"run:{last.run_id}" if last.run_id else str(last.end or last.start)
    return str(
        _template().render(
            report=report,
            lake=lake,
            totals=report.totals,
            counts=report.counts,
            figures=summary_figures(report),
            bars=waterfall(report.batches, report.writes) if draws_steps else (),
            seconds=seconds_of(report.batches),
            columns=columns,
            highest=highest,
            place=place,
            max_rows=MAX_ROWS,
        )
    )


def summary_figures(report: SpanReport) -> dict[str, str]:
    """Return the page's summary: the name and the text of each figure that is known."""
    first, last = report.batches[0], report.batches[-1]
    end = last.end or last.start
    commit_times = (first.start.committed_at, end.committed_at)
    figures = {
        "from": str(first.start),
        "to": str(end),
        "committed": " to ".join(utc_text(time) for time in commit_times if time is not None),
        "GTIDs up to there": "" if end.gtid_set == GtidSet() else end.gtid_set.shortened_text(),
        "transactions": f"{sum(batch.transactions for batch in report.batches):,}",
        "log read": format_bytes(sum(batch.log_bytes for batch in report.batches)),
        "requests to the store": ""
        if report.request_counts is None
        else str(report.request_counts),
        "batches": f"{first.id}" if first is last else f"{first.id} to {last.id}",
        "state": _state_words(report.batches),
    }
    return {name: text for name, text in figures.items() if text}


def format_bytes(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:,.1f} {_UNITS[power - 1]}"


def format_seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds / 3600:,.1f} h"


def _state_words(batches: tuple[Batch, ...]) -> str:
    """Return the state of the oldest batch that is not acknowledged. If all are
    acknowledged, return the time of the last acknowledgement."""
    open_batches = [batch for batch in batches if batch.acknowledged_at is None]
    acknowledged_at = batches[-1].acknowledged_at
    if open_batches or acknowledged_at is None:
        return open_batches[0].state
    return f"acknowledged {utc_text(acknowledged_at)}"


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lockstep.assets", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "moment": utc_text,
        "pluralize": pluralize,
        "quote_json": partial(json.dumps, ensure_ascii=False),
        "format_bytes": format_bytes,
        "format_seconds": format_seconds,
    }
    return environment.get_template("run_page.html.jinja")


# -- the plots: where each bar begins and how long it is, in percent -------------------

_MAX_WRITES: Final = 40
"""Largest number of writes in a waterfall; the longest are drawn."""

_MAX_COLUMNS: Final = 80
"""Largest number of columns of a plot. If there are more batches, neighbours share a
column."""

_MIN_WIDTH: Final = 0.4
"""Smallest width of a bar in percent, so that it can be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the waterfall. `left` and `width` are in percent of the whole time
    shown."""

    label: str
    step: str
    left: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RowsColumn:
    """The rows of neighbouring batches, in percent of the highest column: `deleted` at
    the bottom, then `updated`, `inserted` and `read`. `is_own`: the batches belong
    to the report."""

    label: str
    read: float
    inserted: float
    updated: float
    deleted: float
    is_own: bool


def waterfall(batches: Sequence[Batch], writes: Sequence[SettledWrite]) -> tuple[Bar, ...]:
    """Return a bar for each step of the batches and for each of their longest writes,
    in the order in which they began."""
    spans = [span for batch in batches for span in _step_spans(batch, writes)]
    longest = nlargest(_MAX_WRITES, writes, lambda write: write.settled_at - write.intended_at)
    spans += [
        (str(write.intent.table), "merge", write.intended_at, write.settled_at) for write in longest
    ]
    if not spans:
        return ()
    origin = min(begin for _, _, begin, _ in spans)
    total_seconds = max((end - origin).total_seconds() for _, _, _, end in spans) or 1.0
    spans.sort(key=lambda span: (span[2], span[3]))
    return tuple(_scaled_bar(*span, origin, total_seconds) for span in spans)


def rows_over_time(
    batches: Sequence[Batch], captured: Iterable[CapturedRows], own_batch_ids: frozenset[int]
) -> tuple[tuple[RowsColumn, ...], int]:
    """Return a column for each batch (for each group of neighbouring batches if there
    are more than `_MAX_COLUMNS`), and the number of rows of the highest column.
    `own_batch_ids`: the ids of the report's own batches, as opposed to earlier ones.
    """
    by_batch: dict[int, list[CapturedRows]] = {}
    for rows in captured:
        by_batch.setdefault(rows.batch, []).append(rows)
    group_size = -(-len(batches) // _MAX_COLUMNS) or 1
    groups = [batches[index : index + group_size] for index in range(0, len(batches), group_size)]
    sums = [_group_rows(group, by_batch) for group in groups]
    highest = max((counts.total + read for counts, read in sums), default=0)
    scale = 100 / max(highest, 1)
    columns = [
        RowsColumn(
            label=f"{_group_label(group)}: {counts.inserted:,} inserted, "
            f"{counts.updated:,} updated, {counts.deleted:,} deleted, "
            f"{read:,} read from the source",
            read=read * scale,
            inserted=counts.inserted * scale,
            updated=counts.updated * scale,
            deleted=counts.deleted * scale,
            is_own=any(batch.id in own_batch_ids for batch in group),
        )
        for group, (counts, read) in zip(groups, sums, strict=True)
    ]
    return tuple(columns), highest


def seconds_of(batches: Sequence[Batch]) -> Mapping[str, float]:
    """Return the seconds that each step took, summed over the batches."""
    seconds = {"read": 0.0, "merge": 0.0, "acknowledge": 0.0}
    for batch in batches:
        moments = (batch.created_at, batch.captured_at, batch.merged_at, batch.acknowledged_at)
        for step, (begin, end) in zip(seconds, pairwise(moments), strict=True):
            if begin is not None and end is not None:
                seconds[step] += (end - begin).total_seconds()
    return seconds


TimeSpan = tuple[str, str, datetime, datetime]
"""A bar before it is scaled: label, step, begin and end."""


def _step_spans(batch: Batch, writes: Sequence[SettledWrite]) -> Iterable[TimeSpan]:
    """Yield the spans of a batch: reading, publishing (up to the beginning of its first
    write) and acknowledging."""
    if batch.captured_at is None:
        return
    own_writes = [
        write for write in writes if write.intent.first_batch <= batch.id <= write.intent.last_batch
    ]
    yield f"read batch {batch.id}", "read", batch.created_at, batch.captured_at
    if own_writes:
        first_write_at = max(batch.captured_at, min(write.intended_at for write in own_writes))
        yield f"publish batch {batch.id}", "publish", batch.captured_at, first_write_at
    if batch.merged_at is not None and batch.acknowledged_at is not None:
        step = "acknowledge"
        yield f"{step} batch {batch.id}", step, batch.merged_at, batch.acknowledged_at


def _scaled_bar(
    label: str, step: str, begin: datetime, end: datetime, origin: datetime, total_seconds: float
) -> Bar:
    seconds = (end - begin).total_seconds()
    width = max(100 * seconds / total_seconds, _MIN_WIDTH)
    left = min(100 * (begin - origin).total_seconds() / total_seconds, 100 - width)
    return Bar(label, step, round(left, 2), round(width, 2), seconds)


def _group_rows(
    group: Sequence[Batch], by_batch: Mapping[int, Sequence[CapturedRows]]
) -> tuple[RowCounts, int]:
    captured = [rows for batch in group for rows in by_batch.get(batch.id, ())]
    counts = sum((rows.counts for rows in captured), RowCounts())
    return counts, sum(rows.rows_read for rows in captured)


def _group_label(group: Sequence[Batch]) -> str:
    last = group[-1]
    moment = last.captured_at or last.created_at
    return f"{batch_words(group[0].id, last.id)}, {moment:%Y-%m-%d %H:%M} UTC"


# -- the files -------------------------------------------------------------------------

FOLDER: Final = "pages"

MAX_PAGES: Final = 500
"""Largest number of pages that are kept for a source; older ones are deleted."""

_MAX_NAME: Final = 140
_UNSAFE_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def page_path(state_folder: Path, source: str, title: str) -> Path:
    """Return the path of the page of a `SpanReport` with that title. Characters that
    are unsafe in a file name are replaced, and a long name is cut."""
    name = _UNSAFE_CHARACTERS.sub("-", title.removeprefix("run ").removeprefix("from "))
    if len(name) > _MAX_NAME:
        name = f"{name[:_MAX_NAME]}-{hashlib.sha256(title.encode()).hexdigest()[:8]}"
    return state_folder / FOLDER / source / f"{name}.html"


def store_page(path: Path, text: str) -> None:
    """Write the page atomically and delete the oldest pages in its folder. Raise
    OSError if that fails."""
    make_private(path.parent)
    replace_file(path, text)
    pages = sorted(path.parent.glob("*.html"), key=lambda page: page.stat().st_mtime_ns)
    for old in pages[:-MAX_PAGES]:
        old.unlink(missing_ok=True)


def store_page_of_run(settings: Settings, ports: RunPorts, run: str) -> Path | None:
    """Write the page of a run and return its path. Return None if the run captured
    nothing, or, with a note, if the page cannot be written."""
    source = ports.source.name
    try:
        report = report_of_run(ports.ledger, source, run, ports.clock())
        path = page_path(settings.state_folder, source, report.title)
        store_page(path, render_page(report, settings.lake_path()))
    except SpanRefused:
        return None
    except OSError as error:
        ports.progress.note(f"The run's page was not written: {error}")
        return None
    return path
