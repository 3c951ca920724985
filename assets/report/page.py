"""A report's values → its page.

Belongs here: figures and moments as text, and the template they go into, which escapes all of
them. Does not: shapes (`drawing`), files (`kept`).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from assets.report.drawing import rows_over_time, seconds_of, waterfall
from pipeline.batch import Batch
from pipeline.gtid import GtidSet
from pipeline.runs.inspecting.span_report import SpanReport
from resources.lake.paths import LakePath

LISTED: Final = 500
"""Rows of a table on the page; behind them it says how many there are more."""

_DRAWN: Final = 4
"""Batches whose steps are drawn one by one; of more, what each step took in all is told."""


_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def page(report: SpanReport, lake: LakePath) -> str:
    """One HTML document, without a script or anything from elsewhere."""
    own = frozenset(batch.id for batch in report.batches)
    columns, highest = rows_over_time((*report.before, *report.batches), report.rows, own)
    few = len(report.batches) <= _DRAWN
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
            place=_place(report.batches[-1]),
            listed=LISTED,
        )
    )


def figures(report: SpanReport) -> dict[str, str]:
    """The head of the page, name by name."""
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
    """Bytes as people say them."""
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
    """As a program writes it down."""
    return json.dumps(text, ensure_ascii=False)


def _stands(batches: tuple[Batch, ...]) -> str:
    """The last word of the batch that is least far."""
    slowest = min(batches, key=lambda batch: (batch.acknowledged_at is not None, batch.id))
    last = batches[-1].acknowledged_at
    return f"acknowledged {moment(last)}" if slowest.acknowledged_at and last else slowest.state


def _place(batch: Batch) -> str:
    """As `--at` takes it: the run where its set is this batch's, else the place in the log."""
    return f"run:{batch.dagster_run}" if batch.dagster_run else str(batch.end or batch.start)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("assets.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"moment": moment, "quoted": quoted, "size": size, "spoken": spoken}
    return environment.get_template("page.html.jinja")
