"""The text of a mirror's MERGE, and which column names Delta takes. Pure.

Identifiers are quoted by doubling backticks (Spark SQL reference, "Identifiers"); names
come from the source's log, so none is ever put into a statement unquoted.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.errors import TableError

_FORBIDDEN = frozenset(" ,;{}()\n\t=")
"""Characters Delta refuses in a column's name without column mapping."""


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def refuse_columns(names: Sequence[str]) -> None:
    """`TableError` for the first column that Delta cannot hold under its own name."""
    for name in names:
        if not name or not _FORBIDDEN.isdisjoint(name):
            raise TableError(
                f"column {name!r} has a character in its name that Delta refuses "
                "(space , ; { } ( ) = tab newline)",
                hint="rename the column at the source, or exclude the table",
            )


def merge_statement(
    *,
    mirror: str,
    source: str,
    columns: Sequence[str],
    source_columns: Sequence[str],
    key: Sequence[str],
    bounds: Sequence[tuple[str, str, str]],
) -> str:
    """MERGE of folded changes into a mirror.

    `mirror` is its absolute path, `source` the name of a view with `_change_type` and
    `source_columns`, which are `columns` in the same order as the changes spell them.
    `bounds` are (key column, least, greatest) as literals; they let Delta pass over files.
    """
    spelled = dict(zip(columns, source_columns, strict=True))
    on = [f"t.{quoted(c)} = s.{quoted(spelled[c])}" for c in key]
    on += [f"t.{quoted(c)} between {low} and {high}" for c, low, high in bounds]
    values = [(quoted(c), f"s.{quoted(spelled[c])}") for c in columns]
    assignments = ", ".join(f"t.{name} = {value}" for name, value in values)
    return (
        f"merge into delta.{quoted(mirror)} as t using {quoted(source)} as s\n"
        f"on {' and '.join(on)}\n"
        "when matched and s.`_change_type` = 'delete' then delete\n"
        f"when matched then update set {assignments}\n"
        "when not matched and s.`_change_type` <> 'delete' then insert "
        f"({', '.join(name for name, _ in values)}) "
        f"values ({', '.join(value for _, value in values)})"
    )
