"""The HTML pages of a source's last runs, and the page of a span of the log.

A page is one file without scripts or other resources. Pages of runs are
`.lockstep/pages/<source>/<run>.html`. `pipeline.run.status.span_report` gathers the
data of a page; the template escapes all texts. This module does not import Dagster,
because `lockstep run` uses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from lockstep.assets.state_files import replace_file
from lockstep.pipeline.model.batch import Batch, CapturedRows
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.status.span_report import SpanReport, report_of_run
from lockstep.pipeline.status.verdict import utc_text
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.intent import SettledWrite
from lockstep.pipeline.values.segment import RowCounts
from lockstep.resources.config import Settings
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.private import make_private

LISTED: Final = 500
"""Largest number of rows that a table on the page lists. The page tells how many it
leaves out."""

_DRAWN: Final = 4
"""Largest number of batches whose steps are drawn; for more batches, only sums are
shown."""

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def page(report: SpanReport, lake: LakePath) -> str:
    """Return the report as one HTML document."""
    own = frozenset(batch.id for batch in report.batches)
    columns, highest = rows_over_time((*report.before, *report.batches), report.rows, own)
    few, last = len(report.batches) <= _DRAWN, report.batches[-1]
    # The place has the form that `--at` accepts.
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
    """Return the page's summary: the name and the text of each figure that is known."""
    first, last = report.batches[0], report.batches[-1]
    end = last.end or last.start
    committed = (first.start.committed_at, end.committed_at)
    pairs = {
        "from": str(first.start),
        "to": str(end),
        "committed": " to ".join(utc_text(time) for time in committed if time is not None),
        "GTIDs up to there": "" if end.gtid_set == GtidSet() else end.gtid_set.shortened_text(),
        "transactions": f"{sum(batch.transactions for batch in report.batches):,}",
        "log read": size(sum(batch.log_bytes for batch in report.batches)),
        "requests to the store": "" if report.requests is None else str(report.requests),
        "batches": f"{first.id}" if first is last else f"{first.id} to {last.id}",
        "stands": _stands(report.batches),
    }
    return {name: text for name, text in pairs.items() if text}


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
    """Return the state of the oldest batch that is not acknowledged. If all are
    acknowledged, return the time of the last acknowledgement."""
    slowest = min(batches, key=lambda batch: (batch.acknowledged_at is not None, batch.id))
    last = batches[-1].acknowledged_at
    return f"acknowledged {utc_text(last)}" if slowest.acknowledged_at and last else slowest.state


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
    environment.filters |= {"moment": utc_text, "quoted": quoted, "size": size, "spoken": spoken}
    return environment.get_template("run_page.html.jinja")


# -- the plots: where each bar begins and how long it is, in percent -----------------------------

_MIRRORS: Final = 40
"""Largest number of writes in a waterfall; the longest are drawn."""

_COLUMNS: Final = 80
"""Largest number of columns of a plot. If there are more batches, neighbours share a
column."""

_LEAST: Final = 0.4
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
class RowsBar:
    """The rows of neighbouring batches, in percent of the highest column: `deleted` at
    the bottom, then `updated`, `inserted` and `read`. `own`: the batches belong to the
    report."""

    label: str
    read: float
    inserted: float
    updated: float
    deleted: float
    own: bool


def waterfall(batches: Sequence[Batch], writes: Sequence[SettledWrite]) -> tuple[Bar, ...]:
    """Return a bar for each step of the batches and for each of their longest writes,
    in the order in which they began."""
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
    """Return a column for each batch (for each group of neighbouring batches if there
    are more than `_COLUMNS`), and the number of rows of the highest column. `own`: ids
    of the report's batches.
    """
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
            label=f"{_label(group)}: {counts.inserted:,} inserted, {counts.updated:,} updated, "
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
    """Return the seconds that each step took, summed over the batches."""
    seconds = {"read": 0.0, "merge": 0.0, "acknowledge": 0.0}
    for batch in batches:
        moments = (batch.created_at, batch.captured_at, batch.merged_at, batch.acknowledged_at)
        for step, (begin, end) in zip(seconds, pairwise(moments), strict=True):
            if begin is not None and end is not None:
                seconds[step] += (end - begin).total_seconds()
    return seconds


Span = tuple[str, str, datetime, datetime]
"""A bar before it is scaled: label, step, begin and end."""


def _steps(batch: Batch, writes: Sequence[SettledWrite]) -> Iterable[Span]:
    """Yield the spans of a batch: reading, publishing (up to the beginning of its first
    write) and acknowledging."""
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
    captured = [rows for batch in group for rows in by_batch.get(batch.id, ())]
    counts = sum((rows.counts for rows in captured), RowCounts())
    return counts, sum(rows.rows_read for rows in captured)


def _label(group: Sequence[Batch]) -> str:
    first, last = group[0], group[-1]
    moment = last.captured_at or last.created_at
    numbers = f"batch {last.id}" if first is last else f"batches {first.id} to {last.id}"
    return f"{numbers}, {moment:%Y-%m-%d %H:%M} UTC"


# -- the files ----------------------------------------------------------------------------------

FOLDER: Final = "pages"

KEPT: Final = 500
"""Largest number of pages that are kept for a source; older ones are deleted."""

_LETTERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def page_path(state_folder: Path, source: str, about: str) -> Path:
    """Return the path of a run's or a span's page. `about` names the run or span;
    characters that are unsafe in a file name are replaced."""
    name = _LETTERS.sub("-", about.removeprefix("run ").removeprefix("from "))[:150]
    return state_folder / FOLDER / source / f"{name}.html"


def keep_page(path: Path, text: str) -> None:
    """Write the page atomically and delete the oldest pages in its folder. Raise
    OSError if that fails."""
    make_private(path.parent)
    replace_file(path, text)
    pages = sorted(path.parent.glob("*.html"), key=lambda page: page.stat().st_mtime_ns)
    for old in pages[:-KEPT]:
        old.unlink(missing_ok=True)


def keep_page_of_run(settings: Settings, work: Workplace, run: str) -> Path | None:
    """Write the page of a run and return its path. Return None if the run captured
    nothing, or, with a note, if the page cannot be written."""
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
