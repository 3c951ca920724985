"""Mirrors as sources of a dbt project: `sources.yml`, which `lockstep read --dbt` prints.

The keys of the file are dbt's (https://docs.getdbt.com/reference/source-properties),
`external_location` is dbt-duckdb's, and `meta.dagster.asset_key` is dagster-dbt's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from lockstep.context import CommandContext
from pipeline.catalog.plan import DATABASE, entry_name
from pipeline.changes.lineage import own_comments
from pipeline.errors import LockstepError
from pipeline.schema.model import TableSchema
from pipeline.schema.types import sql_type
from pipeline.segment import SourceTable
from pipeline.table import TableName
from pipeline.table_state import TableState
from resources.adapters import Adapters

if TYPE_CHECKING:
    from assets.names import SourceNames

_HEAD: Final = """\
# Printed by `lockstep read --dbt`: mirrors of MySQL tables as sources of a dbt project.
# external_location is for dbt-duckdb (extensions: [delta]); other adapters find the tables under
# schema, where a catalog has them: docs/deploy.md#mirrors-in-a-catalog.
# loaded_at_query is when the newest transaction was committed that was read from the server's log,
# whichever tables it changed: a mirror that nothing changes is not late. It is DuckDB's SQL.
"""

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JINJA: Final = re.compile(r"\{[{%#]")


@dataclass(frozen=True, slots=True)
class DbtTable:
    """A mirror. `table`: its name; `database` and `name`: the same with letters that a key of
    Dagster's can have, which dbt can quote too; `path`: where it is; `schema`: where a catalog has
    it; `columns`: name and type in Spark's SQL, in order; `asset_key`: its key in Dagster."""

    table: TableName
    database: str
    name: str
    path: str
    schema: str
    columns: Sequence[tuple[str, str]]
    primary_key: tuple[str, ...]
    unique_keys: Sequence[tuple[str, ...]]
    asset_key: tuple[str, ...]
    comment: str = ""
    comments: Mapping[str, str] = field(default_factory=dict)


def sources_yaml(
    context: CommandContext, adapters: Adapters, sources: Sequence[str], only: TableName | None
) -> str | None:
    """The file's text, with all mirrors of the sources or with one table; None without a mirror."""
    found = [entry for name in sources for entry in _sources(context, adapters, name, only)]
    if not found:
        return None
    content = {"version": 2, "sources": found}
    text: str = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=100)
    return _HEAD + text


def _sources(
    context: CommandContext, adapters: Adapters, source: str, only: TableName | None
) -> Iterator[dict[str, Any]]:
    """The mirrors of a source by database. A dbt source is called like the database; like source
    and database together, where several sources may have that database."""
    from assets.declared import names_as_loaded

    settings, lake = context.settings, context.settings.lake_path().absolute()
    shared, mirrored = len(settings.sources) > 1, settings.source(source).mirrors()
    states = [
        state
        for table, state in sorted(adapters.ledger().table_states(source).items())
        if state.mirror_version is not None and only in (None, table, mirrored.of(table))
    ]
    names = names_as_loaded(settings, source)
    tables = _tables(context, adapters, source, states, names)
    databases = {state.table.database for state in states}
    spelled = {table.table.database: table.database for table in tables}
    transactions = _literal(str(lake / f"{source}/{SourceTable.TRANSACTIONS}"))
    newest = f"select max(_committed_at) from delta_scan({transactions})"
    for database, spelling in spelled.items():
        name = f"{source}_{spelling}" if shared else spelling
        told = f"Mirrors of the MySQL database {database} of {source}, by Lockstep."
        if database not in databases:
            told = f"Mirrors of MySQL tables of {source}, by Lockstep."
        own = [table for table in tables if table.table.database == database]
        yield {
            "name": name,
            "description": _plain(told),
            "schema": _plain(own[0].schema),
            "config": {"loaded_at_query": _plain(newest)},
            "tables": [_table(name, table) for table in own],
        }


def _tables(
    context: CommandContext,
    adapters: Adapters,
    source: str,
    states: Sequence[TableState],
    keys: SourceNames,
) -> list[DbtTable]:
    lake, catalog = context.settings.lake_path().absolute(), context.settings.file.catalog
    policies_of = context.settings.source(source).plan().policies_of
    mirrored = context.settings.source(source).mirrors()
    comments, told = _comments(context, adapters, source, [state.table for state in states])
    mirrors, found = adapters.lake().mirrors, []
    for state in states:
        table, version = state.table, mirrors.version(state.mirror)
        if version is None or state.mirror_version is None:
            continue
        shown = adapters.ledger().schema_version(source, table, state.mirror_version).shown
        mirror = mirrored.of(table)
        found.append(
            DbtTable(
                table=mirror,
                database=keys.default(table).path[-2],
                name=keys.default(table).path[-1],
                path=str(lake / state.mirror),
                schema=entry_name(catalog.schemas if catalog else DATABASE, source, mirror).schema,
                columns=[
                    (column.name, sql_type(column.type))
                    for column in mirrors.schema(state.mirror, version)
                ],
                primary_key=() if shown is None else shown.primary_key,
                # Of rows that stay when they are deleted, two may have one value of a UNIQUE key.
                unique_keys=()
                if shown is None or policies_of(table).keeps_rows
                else unique_keys(shown),
                asset_key=tuple(keys.table(table).path),
                comment=told.get(table, ""),
                comments=own_comments(policies_of(table)) | {**comments.get(table, {})},
            )
        )
    return found


def _comments(
    context: CommandContext, adapters: Adapters, source: str, tables: Sequence[TableName]
) -> tuple[Mapping[TableName, Mapping[str, str]], Mapping[TableName, str]]:
    """Comments on columns and on tables; none where the source does not answer, which is noted."""
    try:
        server = adapters.server(source)
        return server.comments(tables), server.table_comments(tables)
    except LockstepError as error:
        context.note(f"Comments are left out: {error.message}")
        return {}, {}


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


def _table(source: str, table: DbtTable) -> dict[str, Any]:
    place = f"delta_scan({_literal(table.path)})"
    # dbt-duckdb fills in what stands in braces.
    config: dict[str, Any] = {
        "external_location": _plain(place.replace("{", "{{").replace("}", "}}"))
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
