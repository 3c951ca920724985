"""What several commands show: a run, a comparison, tables that stopped; and how rows are printed.

Values in, lines or parts of an answer out; nothing here asks anybody anything. What one command
alone shows stands in its module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lockstep.context import CommandContext
from pipeline.errors import LockstepError
from pipeline.json_values import parts
from pipeline.proof.proven import TableProof
from pipeline.segment import RowCounts
from pipeline.shown import NAMED, listed, shown
from pipeline.table_state import Extent, Quarantine

if TYPE_CHECKING:
    from pipeline.runs.inspecting.version_sets import ShownVersions
    from pipeline.runs.registering.outcome import CatalogReport
    from pipeline.runs.reports import MergeReport, TableDifference, VerifyReport
    from pipeline.runs.run import RunRecord
    from resources.lake.paths import LakePath


def refused(
    context: CommandContext, source: str, error: LockstepError
) -> tuple[int, dict[str, Any]]:
    """Tell a person of a refusal of one source; its exit code, and what `--json` says of it."""
    context.note(f"{source}: {error.message}\nhint: {error.hint}")
    return error.recovery.exit_code, {"error": error}


def run_values(record: RunRecord, lake: str) -> dict[str, Any]:
    """What `run --json` says of one source; of steps that were not reached nothing, or null."""
    captured, merged, done = record.captured, record.merged, record.acknowledged
    loading, loaded = (captured.loading, captured.loaded) if captured else ((), ())
    refreshed = captured.refreshed if captured else None
    return {
        "batch": captured.batch if captured else None,
        "start": captured.start if captured else None,
        "end": captured.end if captured else None,
        "acknowledged": done.position if done else None,
        "transactions": captured.transactions if captured else 0,
        "rows": captured.rows if captured else 0,
        "bytes": captured.log_bytes if captured else 0,
        "passed_statements": captured.passed if captured else 0,
        "requests": record.requests,
        "seconds": {
            "start": captured.start_seconds if captured else None,
            "capture": captured.capture_seconds if captured else None,
            "publish": merged.publish_seconds if merged else None,
            "merge": merged.merge_seconds if merged else None,
            "acknowledge": done.seconds if done else None,
        },
        "tables": merged_tables(merged, lake) if merged else {},
        "quarantined": done.quarantined if done else (),
        "partial": done.partial if done else (),
        "loading": {str(progress.table): progress for progress in loading},
        "loaded": {str(progress.table): progress.rows for progress in loaded},
        "refreshed": {} if refreshed is None else {str(refreshed.table): refreshed},
        "softened": captured.softened if captured else {},
        "held": done.held if done else {},
    }


def merged_tables(merged: MergeReport, lake: str) -> dict[str, dict[str, Any]]:
    """The tables that changed; a table merged more than once counts once."""
    found: dict[str, dict[str, Any]] = {}
    counts: dict[str, RowCounts] = {}
    for done in merged.merged:
        name = str(done.table)
        counts[name] = counts.get(name, RowCounts()) + done.counts
        found[name] = {
            **parts(counts[name], "inserted", "updated", "deleted"),
            **parts(done, "delta_version", "reason"),
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
        for name, told in merged_tables(merged, "").items()
        if name not in loaded or any(told.get(k) for k in ("inserted", "updated", "deleted"))
    ]
    show_table(context, ("table", "inserted", "updated", "deleted", "version"), rows)
    for batch, tables in done.held.items():
        context.say(f"batch {batch} is not acknowledged: waits for {', '.join(map(str, tables))}")
    if len(captured.loaded) > NAMED:
        number = sum(one.rows for one in captured.loaded)
        context.say(
            f"all {number:,} rows of {len(captured.loaded)} tables were read from the source"
        )
    for one in captured.loaded if len(captured.loaded) <= NAMED else ():
        context.say(f"{one.sentence()} were read from the source")
    for one in captured.loading:
        context.say(f"{one.sentence()}: the next run reads on")
    show_quarantined(context, done.quarantined)
    context.say(*partial_lines(done.partial))


def catalog_lines(report: CatalogReport) -> Iterator[str]:
    """What a run did in the catalog; of what it could not do, how to see why."""
    deeds = Counter(one.deed.value for one in report.done)
    if deeds:
        told = ", ".join(f"{count:,} {deed}" for deed, count in sorted(deeds.items()))
        yield f"  catalog: {told}"
    if report.left:
        tables = counted(len(report.left), "table")
        yield f"  catalog: {tables} could not be registered: `lockstep catalog` says why"
    if report.waiting:
        yield f"  catalog: {counted(report.waiting, 'table')} more with the next run"
    if report.trouble is not None:
        yield f"  catalog: {report.trouble.message}"
        yield f"    hint: {report.trouble.hint}"


def show_sampled(context: CommandContext, source: str, report: VerifyReport) -> None:
    """What a run compared once it was done: a line, and what differs."""
    rows = sum(difference.compared or 0 for difference in report.tables)
    wrong = [difference for difference in report.tables if not difference.equal]
    told = f"{len(wrong)} tables DIFFER from MySQL" if wrong else "all equal to MySQL"
    context.say(f"{source}: {counted(rows, 'row')} compared at {report.position}: {told}")
    for table in wrong:
        context.say(*difference_lines(table))
        context.say(f"  `lockstep verify {table.table}` finds all of them")


def difference_lines(table: TableDifference) -> Iterator[str]:
    for row in table.rows[:_ROWS]:
        columns = f" ({', '.join(row.columns)})" if row.columns else ""
        yield f"{table.table}: {row}{columns}"
        yield from _values("MySQL", row.source)
        yield from _values("the lake", row.lake)
    more = table.only_in_source + table.only_in_lake + table.different - len(table.rows[:_ROWS])
    if more > 0:
        yield f"{table.table}: {more:,} more"


def _values(where: str, values: Mapping[str, str] | None) -> Iterator[str]:
    if values:
        yield f"  {where}: {', '.join(f'{name}={value}' for name, value in values.items())}"


def _read_too(merged: MergeReport) -> str:
    """The rows that did not come by the log."""
    read = [done.read for done in merged.merged if done.read]
    tables = counted(len(read), "table")
    return f" and {counted(sum(read), 'row')} read from {tables}" if read else ""


def partial_lines(tables: Sequence[Extent]) -> Iterator[str]:
    """Tables that the lake has a part of; those that begin together, together."""
    begins: dict[str, list[Extent]] = {}
    for table in tables:
        begins.setdefault(table.sentence, []).append(table)
    for sentence, those in begins.items():
        yield f"  {', '.join(str(extent.table) for extent in those)}: {sentence}"
        yield f"    hint: {those[0].hint}"


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


def version_set_values(shown: ShownVersions, lake: LakePath) -> dict[str, Any]:
    return {
        "batch": shown.batch.id,
        "run": shown.batch.dagster_run,
        "position": shown.position,
        "tables": {
            entry.table: {
                "path": str(lake / entry.mirror),
                **parts(entry, "delta_version", "table_id"),
            }
            for entry in shown.entries
        },
        "missing": {gap.table: gap for gap in shown.missing},
    }


def proof_values(proofs: Iterable[TableProof], now: datetime) -> list[dict[str, Any]]:
    """What comparisons with MySQL found, by table; `age_seconds`: since it was last found equal."""
    return [
        {
            **parts(proof, "table", "whole", "compared_at", "differing", "proven_at"),
            "age_seconds": proof.proven_at and now - proof.proven_at,
            "proof": proof.proven and proof.proven.proof,
            "rows": proof.proven and proof.proven.rows,
            "position": proof.proven and proof.proven.at,
            "gtid_set": proof.proven and proof.proven.gtid_set,
        }
        for proof in proofs
    ]


_ROWS = 20
"""Differing rows of a table that are shown; JSON has more of them."""

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


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 row`, `2,000 rows`; `things` where it is more than an s."""
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"


def lines(pairs: Mapping[str, str]) -> str:
    """`name  value` lines with aligned values."""
    width = max(map(len, pairs), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in pairs.items())
