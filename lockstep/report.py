"""How things are printed that several commands show: rows, pairs, tables that differ or stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.context import CommandContext
from pipeline.json_values import parts
from pipeline.shown import NAMED, listed, shown
from pipeline.table_state import STOPPED_BY, Extent, Quarantine

if TYPE_CHECKING:
    from pipeline.changes.merging import FromChangelog
    from pipeline.replay.rows import ReplayDifference
    from pipeline.runs.reports import RowDifference, TableDifference


def difference_lines(table: TableDifference) -> Iterator[str]:
    """The first rows of a table that are not as MySQL has them, and how many more there are."""
    count = table.only_in_source + table.only_in_lake + table.different
    sides = {"MySQL": "source", "the lake": "lake"}
    yield from row_lines(table.rows, count, sides, before=f"{table.table}: ")


def row_lines(
    rows: Sequence[RowDifference] | Sequence[ReplayDifference],
    count: int,
    sides: Mapping[str, str],
    *,
    before: str,
    indent: str = "  ",
) -> Iterator[str]:
    """Some of `count` rows that differ, and how many more there are. `sides`: what each is called,
    and the attribute of a row that has its values, if they were asked for."""
    for row in rows[:_ROWS]:
        columns = f" ({', '.join(row.columns)})" if row.columns else ""
        yield f"{before}{row.kind}: {row.key}{columns}"
        for where, attribute in sides.items():
            values: Mapping[str, str] | None = getattr(row, attribute)
            if values:
                told = ", ".join(f"{name}={value}" for name, value in values.items())
                yield f"{indent}{where}: {told}"
    more = count - len(rows[:_ROWS])
    if more > 0:
        yield f"{before}{more:,} more"


def partial_lines(tables: Sequence[Extent]) -> Iterator[str]:
    """Tables that the lake has a part of; those that begin together, together."""
    begins: dict[str, list[Extent]] = {}
    for table in tables:
        begins.setdefault(table.sentence, []).append(table)
    for sentence, those in begins.items():
        yield f"  {', '.join(str(extent.table) for extent in those)}: {sentence}"
        yield f"    hint: {those[0].hint}"


def show_stopped(context: CommandContext, tables: Sequence[Quarantine]) -> None:
    """Show stopped tables; those that stopped together for the same reason in one line."""
    alike: dict[tuple[str, str, str], list[Quarantine]] = {}
    for table in tables:
        alike.setdefault((STOPPED_BY[table.by], table.position, table.reason), []).append(table)
    for (who, position, reason), those in alike.items():
        are = "is" if len(those) == 1 else "are"
        names = listed([stopped.table for stopped in those])
        context.say(f"{names} {are} stopped by {who} at {position}: {reason}")
        hints = list(dict.fromkeys(stopped.hint for stopped in those))
        if len(hints) > NAMED:
            hints[NAMED:] = [f"{len(hints) - NAMED} more such: `lockstep status` has them all"]
        for hint in hints:
            context.say(f"  hint: {hint}")


_ROWS = 20
"""Differing rows of a table that are shown; JSON has more of them."""

_BETWEEN = 3
"""Characters from one column to the next."""


def show_table(
    context: CommandContext, heads: Sequence[str], values: Sequence[Iterable[object]]
) -> None:
    """Columns under their heads, a row of `values` a line; nothing when there are no rows. Numbers
    to the right. No name is broken: where they do not fit into the page, the lines are longer."""
    if context.wants_json or not values:
        return
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    rows = [[shown(_cell(value)) for value in row] for row in values]
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


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 row`, `2,000 rows`; `things` where it is more than an s."""
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"


def origin_values(origin: FromChangelog) -> dict[str, Any]:
    """Return what a mirror is written from without MySQL: the version that it begins with, None if
    the table was empty there, and the batches of its changelog."""
    base = "mirror", "delta_version", "last_batch as batch"
    return {
        "base": origin.base and parts(origin.base, *base),
        "batches": [part.batch for part in origin.parts],
        "row_images": origin.images,
    }


def lines(pairs: Mapping[str, str]) -> str:
    """`name  value` lines with aligned values."""
    width = max(map(len, pairs), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in pairs.items())
