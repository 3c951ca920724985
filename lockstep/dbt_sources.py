"""Mirrors as sources of a dbt project: `sources.yml`, which `lockstep read --dbt` prints.

Belongs here: its text. Does not: gathering what it says (`lockstep.commands.read`). The keys of the
file are dbt's (https://docs.getdbt.com/reference/source-properties), `external_location` is
dbt-duckdb's, and `meta.dagster.asset_key` is dagster-dbt's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from pipeline.schema.model import TableSchema
from pipeline.table import TableName

_HEAD: Final = """\
# Printed by `lockstep read --dbt`: mirrors of MySQL tables as sources of a dbt project.
# external_location is for dbt-duckdb (extensions: [delta]); other adapters find the tables under
# schema, where a catalog has them: docs/catalogs.md.
# loaded_at_query is when the newest transaction was committed that was read from the server's log,
# whichever tables it changed: a mirror that nothing changes is not late. It is DuckDB's SQL.
"""

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JINJA: Final = re.compile(r"\{[{%#]")


@dataclass(frozen=True, slots=True)
class DbtTable:
    """A mirror. `name`: the table's, with letters that a key of Dagster's can have, which dbt can
    quote too; `path`: where it is; `schema`: where a catalog has it; `columns`: name and type in
    Spark's SQL, in order; `asset_key`: its key in Dagster."""

    table: TableName
    name: str
    path: str
    schema: str
    columns: Sequence[tuple[str, str]]
    primary_key: tuple[str, ...]
    unique_keys: Sequence[tuple[str, ...]]
    asset_key: tuple[str, ...]
    comment: str = ""
    comments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DbtSource:
    """The tables of one database of a source. `transactions`: where the table of all transactions
    is."""

    name: str
    described: str
    transactions: str
    tables: Sequence[DbtTable]


def sources_yaml(sources: Sequence[DbtSource]) -> str:
    """The file's text."""
    content = {"version": 2, "sources": [_source(source) for source in sources]}
    text: str = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=100)
    return _HEAD + text


def unique_keys(schema: TableSchema) -> list[tuple[str, ...]]:
    """The columns of its UNIQUE keys by which dbt's test can find every repeated row and no other:
    MySQL allows any number of rows with a NULL in one, dbt only where the key has one column."""
    found = []
    for key in schema.keys:
        columns = [schema.column(part.column) for part in key.parts if part.column is not None]
        whole = len(columns) == len(key.parts) and None not in columns
        nullable = any(column is not None and column.nullable for column in columns)
        if key.kind == "unique" and whole and (len(columns) == 1 or not nullable):
            found.append(key.columns)
    return found


def _source(source: DbtSource) -> dict[str, Any]:
    newest = f"select max(_committed_at) from delta_scan({_literal(source.transactions)})"
    return {
        "name": source.name,
        "description": _plain(source.described),
        "schema": _plain(source.tables[0].schema),
        "config": {"loaded_at_query": _plain(newest)},
        "tables": [_table(source.name, table) for table in source.tables],
    }


def _table(source: str, table: DbtTable) -> dict[str, Any]:
    config: dict[str, Any] = {
        "external_location": _plain(_braces(f"delta_scan({_literal(table.path)})"))
    }
    if table.asset_key != (source, table.name):  # which is dagster-dbt's own choice
        config["meta"] = {"dagster": {"asset_key": list(table.asset_key)}}
    found: dict[str, Any] = {"name": table.name}
    if table.name != table.table.name:
        found["identifier"] = _plain(table.table.name)
    if table.comment:
        found["description"] = _plain(table.comment)
    found["config"] = config
    together = [key for key in _keys(table) if len(key) > 1 and _all_plain(key)]
    if together:
        found["data_tests"] = [
            _test("unique", source, table, key, {"column_name": f"({', '.join(key)})"})
            for key in together
        ]
    found["columns"] = [_column(source, table, name, kind) for name, kind in table.columns]
    return found


def _column(source: str, table: DbtTable, name: str, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "data_type": kind}
    if comment := table.comments.get(name):
        found["description"] = _plain(comment)
    tests = []
    if (name,) in _keys(table):
        tests.append(_test("unique", source, table, (name,)))
    if name in table.primary_key:
        tests.append(_test("not_null", source, table, (name,)))
    if tests:
        found["quote"] = True
        found["data_tests"] = tests
    return found


def _keys(table: DbtTable) -> list[tuple[str, ...]]:
    """Those whose columns the mirror has, each once."""
    names = {name for name, _ in table.columns}
    keys = dict.fromkeys((table.primary_key, *table.unique_keys))
    return [key for key in keys if key and names.issuperset(key)]


def _all_plain(key: tuple[str, ...]) -> bool:
    """Whether the columns can stand in an expression as they are: how a name is quoted there
    depends on the adapter."""
    return all(_PLAIN.fullmatch(name) and name.lower() not in _RESERVED for name in key)


def _test(
    kind: str,
    source: str,
    table: DbtTable,
    key: tuple[str, ...],
    arguments: Mapping[str, str] | None = None,
) -> str | dict[str, Any]:
    """A test, with a name where dbt would make one of it that it then refuses."""
    written: dict[str, Any] = {"arguments": dict(arguments)} if arguments else {}
    words = "_".join((kind, source, table.name, *key))
    if not _PLAIN.fullmatch(words):
        different = hashlib.sha256(words.encode()).hexdigest()[:8]
        name = re.sub(r"\W", "_", words, flags=re.ASCII)
        written = {"name": f"{name}_{different}", **written}
    return {kind: written} if written else kind


def _plain(text: str) -> str:
    """For dbt, which reads these texts as templates: one that comes to `text`."""
    return _JINJA.sub(lambda found: "{{ '" + found[0] + "' }}", text)


def _braces(text: str) -> str:
    """For dbt-duckdb, which fills in what stands in braces."""
    return text.replace("{", "{{").replace("}", "}}")


def _literal(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


_RESERVED: Final = frozenset(
    re.findall(
        r"\w+",
        """all analyse analyze and any array as asc asymmetric both case cast check collate column
    constraint create default deferrable desc describe distinct do else end except false fetch for
    foreign from full grant group having in initially inner intersect into is join lateral leading
    left limit natural not null offset on only or order outer pivot placing primary qualify
    references returning right select show some summarize symmetric table then to trailing true
    union unique unpivot using variadic when where window with""",
    )
)
"""Words that neither DuckDB nor Spark takes for a column's name unless it is quoted."""
