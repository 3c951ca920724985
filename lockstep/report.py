"""The same facts twice: as a person sees them, and as JSON.

Values in, text or JSON out; nothing here asks anybody anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.context import CommandContext
from pipeline.batch import Requests
from pipeline.changes.extents import cure, told
from pipeline.errors import LockstepError
from pipeline.position import Position
from pipeline.segment import RowCounts
from pipeline.shown import NAMED, listed, shown
from pipeline.snapshot.progress import LoadProgress
from pipeline.table_state import Extent, Quarantine

if TYPE_CHECKING:
    from pipeline.runs.reports import MergeReport, Refreshed
    from pipeline.runs.run import RunRecord


def error_json(error: LockstepError) -> dict[str, Any]:
    return {"kind": type(error).__name__, "message": error.message, "hint": error.hint}


def refused(
    context: CommandContext, source: str, error: LockstepError
) -> tuple[int, dict[str, Any]]:
    """A refusal of one source, told: the exit code, and the JSON of every command."""
    context.note(f"{source}: {error.message}\nhint: {error.hint}")
    return error.recovery.exit_code, {"error": error_json(error)}


def position_json(position: Position | None) -> dict[str, Any] | None:
    if position is None:
        return None
    committed = position.committed_at
    return {
        "file": str(position.at.file),
        "offset": position.at.offset,
        "gtid_set": str(position.gtid_set),
        "committed_at": committed.isoformat() if committed else None,
    }


def quarantined_json(tables: Iterable[Quarantine]) -> list[dict[str, Any]]:
    return [
        {
            "table": str(table.table),
            "reason": table.reason,
            "hint": table.hint,
            "position": table.position,
        }
        for table in tables
    ]


def partial_json(tables: Iterable[Extent]) -> list[dict[str, Any]]:
    return [
        {"table": str(table.table), "begins": str(table.begins), "hint": cure(table.table)}
        for table in tables
    ]


def loading_json(tables: Iterable[LoadProgress]) -> dict[str, dict[str, Any]]:
    """Tables whose rows are being read from the source: rows so far, and what is left."""
    return {
        str(table.table): {
            "rows": table.done,
            "estimated_rows": table.estimated,
            "percent": table.percent,
            "remaining_seconds": rounded(table.remaining),
        }
        for table in tables
    }


def run_json(record: RunRecord, lake: str) -> dict[str, Any]:
    """`run --json` of one source; parts that were not reached are null."""
    captured, merged, done = record.captured, record.merged, record.acknowledged
    quarantined = done.quarantined if done else ()
    held = done.held if done else {}
    return {
        "batch": captured.batch if captured else None,
        "start": position_json(captured.start) if captured else None,
        "end": position_json(captured.end) if captured else None,
        "acknowledged": position_json(done.position) if done else None,
        "transactions": captured.transactions if captured else 0,
        "rows": captured.rows if captured else 0,
        "bytes": captured.log_bytes if captured else 0,
        "passed_statements": captured.passed if captured else 0,
        "requests": requests_json(record.requests),
        "seconds": _seconds(record),
        "tables": tables_json(merged, lake) if merged else {},
        "quarantined": quarantined_json(quarantined),
        "partial": partial_json(done.partial if done else ()),
        "loading": loading_json(captured.loading if captured else ()),
        "loaded": {str(progress.table): progress.done for progress in captured.loaded}
        if captured
        else {},
        "refreshed": refreshed_json(captured.refreshed if captured else None),
        "softened": dict(captured.softened) if captured else {},
        "held": {str(batch): [str(t) for t in tables] for batch, tables in held.items()},
    }


def requests_json(asked: Requests | None) -> dict[str, int | None] | None:
    """To an object store, by who asked; null for a lake in a folder."""
    return None if asked is None else {"lockstep": asked.own, "spark": asked.spark}


def refreshed_json(found: Refreshed | None) -> dict[str, Any]:
    """Rows that were read again by a condition, by their table."""
    if found is None:
        return {}
    return {str(found.table): {"read": found.rows, "gone": found.gone, "left": found.left}}


def _seconds(record: RunRecord) -> dict[str, float | None]:
    captured, merged, done = record.captured, record.merged, record.acknowledged
    return {
        "start": rounded(captured.start_seconds if captured else None),
        "capture": rounded(captured.capture_seconds if captured else None),
        "publish": rounded(merged.publish_seconds if merged else None),
        "merge": rounded(merged.merge_seconds if merged else None),
        "acknowledge": rounded(done.seconds if done else None),
    }


def tables_json(merged: MergeReport, lake: str) -> dict[str, dict[str, Any]]:
    """The tables that changed; a table merged more than once counts once."""
    found: dict[str, dict[str, Any]] = {}
    counts: dict[str, RowCounts] = {}
    for done in merged.merged:
        name = str(done.table)
        counts[name] = counts.get(name, RowCounts()) + done.counts
        found[name] = {
            "inserted": counts[name].inserted,
            "updated": counts[name].updated,
            "deleted": counts[name].deleted,
            "delta_version": done.delta_version,
            "reason": done.reason,
            "path": f"{lake}/{done.mirror}",
            "state": "active",
        }
    for quarantine in merged.failed:
        found.setdefault(str(quarantine.table), {})["state"] = "quarantined"
    return found


def show_run(context: CommandContext, record: RunRecord) -> None:
    """What one run did: a line, the tables that changed, those quarantined."""
    captured, merged, done = record.captured, record.merged, record.acknowledged
    if captured is None or merged is None or done is None:
        return
    seconds = captured.start_seconds + captured.capture_seconds + merged.publish_seconds
    seconds += merged.merge_seconds + done.seconds
    if captured.batch is None and not merged.merged:
        nothing = captured.reason if captured.end_is_behind else f"nothing new at {captured.end}"
        context.say(f"{record.source}: {nothing}")
    else:
        context.say(
            f"{record.source}: {captured.start} → {done.position or captured.end}: "
            f"{counted(captured.transactions, 'transaction')}, {counted(captured.rows, 'row')}"
            f"{_read_too(merged)}, {seconds:.1f} s"
        )
    if record.requests is not None:
        context.say(f"  requests to the store: {record.requests}")
    loaded = {str(progress.table) for progress in captured.loaded}
    rows = [
        (
            name,
            *(f"{told.get(k, 0):,}" for k in ("inserted", "updated", "deleted", "delta_version")),
        )
        for name, told in tables_json(merged, "").items()
        if name not in loaded or any(told.get(k) for k in ("inserted", "updated", "deleted"))
    ]
    show_table(context, ("table", "inserted", "updated", "deleted", "version"), rows)
    for batch, tables in done.held.items():
        context.say(f"batch {batch} is not acknowledged: waits for {', '.join(map(str, tables))}")
    if len(captured.loaded) > NAMED:
        number = sum(one.done for one in captured.loaded)
        context.say(
            f"all {number:,} rows of {len(captured.loaded)} tables were read from the source"
        )
    for one in captured.loaded if len(captured.loaded) <= NAMED else ():
        context.say(f"{one.sentence()} were read from the source")
    for one in captured.loading:
        context.say(f"{one.sentence()}: the next run reads on")
    show_quarantined(context, done.quarantined)
    for line in partial_lines(done.partial):
        context.say(line)


def _read_too(merged: MergeReport) -> str:
    """The rows that did not come by the log."""
    read = [done.read for done in merged.merged if done.read]
    tables = counted(len(read), "table")
    return f" and {counted(sum(read), 'row')} read from {tables}" if read else ""


def partial_lines(tables: Sequence[Extent]) -> Iterator[str]:
    """Tables that the lake has a part of; those that begin together, together."""
    begins: dict[str, list[Extent]] = {}
    for table in tables:
        begins.setdefault(told(table), []).append(table)
    for sentence, those in begins.items():
        yield f"  {', '.join(str(extent.table) for extent in those)}: {sentence}"
        yield f"    hint: {cure(those[0].table)}"


def show_quarantined(context: CommandContext, tables: Sequence[Quarantine]) -> None:
    """Those that stopped together for the same reason are told together."""
    alike: dict[tuple[str, str], list[Quarantine]] = {}
    for table in tables:
        alike.setdefault((table.position, table.reason), []).append(table)
    for (position, reason), those in alike.items():
        are = "is" if len(those) == 1 else "are"
        names = listed([one.table for one in those])
        context.say(f"{names} {are} quarantined at {position}: {reason}")
        hints = list(dict.fromkeys(one.hint for one in those))
        if len(hints) > NAMED:
            hints[NAMED:] = [f"{len(hints) - NAMED} more such: `lockstep status` has them all"]
        for hint in hints:
            context.say(f"  hint: {hint}")


_BETWEEN = 3
"""Characters from one column to the next."""


def show_table(
    context: CommandContext, heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Columns under their heads; nothing when there are no rows. Numbers to the right. No name is
    broken: where they do not fit into the page, the lines are longer than it."""
    if context.wants_json or not rows:
        return
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    rows = [[shown(cell) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    needed = 1
    for place, head in enumerate(heads):
        cells = [row[place] for row in rows]
        numeric = all(cell.replace(",", "").isdigit() for cell in cells)
        longest = max(cell_len(word) for cell in (head, *cells) for word in cell.split() or [""])
        table.add_column(head, justify="right" if numeric else "left", min_width=longest)
        needed += longest + _BETWEEN
    for row in rows:
        table.add_row(*map(Text, row))
    context.show(table, width=max(context.page.width, needed))


def counted(count: int, thing: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def lines(pairs: Mapping[str, str]) -> str:
    """`name  value` lines with aligned values."""
    width = max(map(len, pairs), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in pairs.items())


def rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
