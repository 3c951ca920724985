"""What several commands print, or return for `--json`: tables of values, aligned pairs,
rows that differ, gaps, tables that stopped or are incomplete, and literals of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.context import CommandContext
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import STOPPED_BY_WORDS, Extent, StoppedTable
from lockstep.pipeline.values.shown import MOST_NAMES, name_list, printable

if TYPE_CHECKING:
    from lockstep.pipeline.mirror.merging import ChangelogOrigin
    from lockstep.pipeline.model.gaps import Gap
    from lockstep.pipeline.replay.rows import ReplayDifference
    from lockstep.pipeline.run.reports import RowDifference, TableComparison


_MAX_ROWS = 20
"""Largest number of differing rows that are printed for a table; JSON has more."""


def comparison_lines(comparison: TableComparison) -> Iterator[str]:
    """Yield lines with the first rows that differ between MySQL and the lake, and one
    with the number of further rows."""
    yield from differing_row_lines(
        comparison.rows, comparison.difference_count, prefix=f"{comparison.table}: "
    )


def differing_row_lines(
    rows: Sequence[RowDifference] | Sequence[ReplayDifference],
    count: int,
    *,
    prefix: str,
    indent: str = "  ",
) -> Iterator[str]:
    """Yield lines with the first rows that differ, and a line with the number of
    further rows. `count`: how many rows differ. `rows`: some of these rows, or none."""
    shown_rows = rows[:_MAX_ROWS]
    for row in shown_rows:
        columns = f" ({', '.join(row.columns)})" if row.columns else ""
        yield f"{prefix}{row.kind}: {row.key}{columns}"
        for side, values in row.values_by_side.items():
            if values:
                pairs = ", ".join(f"{name}={value}" for name, value in values.items())
                yield f"{indent}{side}: {pairs}"
    further_count = count - len(shown_rows)
    if shown_rows and further_count > 0:
        yield f"{prefix}{further_count:,} more"


def gap_values(gaps: Iterable[Gap]) -> list[dict[str, Any]]:
    """Return the gaps as JSON."""
    keys = "begin, end, tables, open_tables as open, closed, author, reason, decided_at, batch"
    return [attributes(gap, keys) for gap in gaps]


def partial_table_lines(extents: Sequence[Extent]) -> Iterator[str]:
    """Yield lines about the missing rows of tables that are only partly in the lake.
    Tables with the same sentence share a line."""
    by_sentence: dict[str, list[Extent]] = {}
    for extent in extents:
        by_sentence.setdefault(extent.sentence, []).append(extent)
    for sentence, group in by_sentence.items():
        yield f"  {', '.join(str(extent.table) for extent in group)}: {sentence}"
        yield f"    hint: {group[0].hint}"


def show_stopped_tables(context: CommandContext, tables: Sequence[StoppedTable]) -> None:
    """Print stopped tables. Tables that stopped at the same place for the same reason
    share a line."""
    groups: dict[tuple[str, str, str], list[StoppedTable]] = {}
    for table in tables:
        groups.setdefault((STOPPED_BY_WORDS[table.by], table.position, table.reason), []).append(
            table
        )
    for (stopped_by, position, reason), group in groups.items():
        verb = "is" if len(group) == 1 else "are"
        table_names = name_list([table.table for table in group])
        context.say(f"{table_names} {verb} stopped by {stopped_by} at {position}: {reason}")
        hints = list(dict.fromkeys(table.hint for table in group))
        for hint in hints[:MOST_NAMES]:
            context.say(f"  hint: {hint}")
        if (further_count := len(hints) - MOST_NAMES) > 0:
            context.say(f"  hint: {further_count} more: `lockstep status` shows all of them")


_COLUMN_GAP = 3
"""Number of characters between two columns."""


def show_table(
    context: CommandContext, heads: Sequence[str], rows: Sequence[Iterable[object]]
) -> None:
    """Print rows of values under their heads; nothing if there are no rows. A column of
    numbers, some of which may be missing, is aligned to the right. Words are never
    broken: if they do not fit, lines are longer than the terminal is wide."""
    if context.wants_json or not rows:
        return
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    texts = [[printable(_cell(value)) for value in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    width = 1  # the margin of the box
    for index, head in enumerate(heads):
        cells = [row[index] for row in texts]
        is_numeric = all(cell.replace(",", "").isdigit() for cell in cells if cell)
        longest = max(cell_len(word) for cell in (head, *cells) for word in cell.split() or [""])
        table.add_column(head, justify="right" if is_numeric else "left", min_width=longest)
        width += longest + _COLUMN_GAP
    for row in texts:
        table.add_row(*map(Text, row))
    context.show(table, width=max(context.answer_console.width, width))


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def origin_values(origin: ChangelogOrigin) -> dict[str, Any]:
    """Return, for `--json`, the origin of a mirror that is rebuilt without reading
    MySQL. `base`: the earlier version to which changes are applied, or None for an
    empty table. `batches`: the changelog's batches with these changes. `row_images`:
    the number of row images in them."""
    base_keys = "mirror, delta_version, last_batch as batch"
    return {
        "base": origin.base and attributes(origin.base, base_keys),
        "batches": [content.batch for content in origin.contents],
        "row_images": origin.images,
    }


def sql_literal(text: str) -> str:
    """Return the text as a literal of SQL in which a backslash is no escape."""
    return "'" + text.replace("'", "''") + "'"


def align_pairs(pairs: Mapping[str, str]) -> str:
    """Return one text with a line `name  value` for each pair, in which the values are
    aligned."""
    width = max(map(len, pairs), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in pairs.items())
