"""The text of `sources.yml`, which declares mirrors (Delta tables with the current rows
of MySQL tables) as sources of a dbt project. `lockstep read --dbt` prints it.

The file's keys are dbt's (https://docs.getdbt.com/reference/source-properties),
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
from lockstep.pipeline.catalog import DATABASE_PLACEHOLDER, entry_name
from lockstep.pipeline.mirror.lineage import own_comments
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.errors import ConfigurationError, LockstepError
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName
from lockstep.printing import sql_literal
from lockstep.resources.adapters import Adapters

if TYPE_CHECKING:
    from lockstep.assets.names import SourceNames

_FILE_HEAD: Final = """\
# Printed by `lockstep read --dbt`: mirrors of MySQL tables as sources of a dbt project.
# external_location is for dbt-duckdb (extensions: [delta]); other adapters find the tables in
# schema, if they are registered in a catalog: docs/deploy.md#mirrors-in-a-catalog.
# loaded_at_query (in DuckDB's SQL) returns the commit time of the newest transaction that was read
# from the server's log, whichever tables it changed: a mirror without changes is not stale.
"""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JINJA_OPENING: Final = re.compile(r"\{[{%#]")


@dataclass(frozen=True, slots=True)
class DbtTable:
    """A mirror as a table of a dbt source.

    `mirror_name`: its name in the lake.
    `database`, `name`: that name with only the characters that Dagster allows in an
    asset key, because dbt can quote these, too.
    `path`: its folder or URL. `schema`: its schema in a catalog.
    `columns`: names and types in Spark's SQL. `column_comments`: by column.
    `asset_key`: its key in Dagster.
    """

    mirror_name: TableName
    database: str
    name: str
    path: str
    schema: str
    columns: Sequence[tuple[str, str]]
    primary_key: tuple[str, ...]
    unique_keys: Sequence[tuple[str, ...]]
    asset_key: tuple[str, ...]
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)


def sources_yaml(
    context: CommandContext,
    adapters: Adapters,
    sources: Sequence[str],
    only_table: TableName | None,
) -> str | None:
    """Return the file's text with all mirrors of the sources, or only with the mirror
    of one table; None if there is no mirror. Raise `ConfigurationError` if two of
    Lockstep's sources have a dbt source of the same name."""
    entries: dict[str, dict[str, Any]] = {}
    owners: dict[str, str] = {}
    for source in sources:
        for entry in _source_entries(context, adapters, source, only_table):
            name = entry["name"]
            if name in entries:
                raise ConfigurationError(
                    f"Mirrors of {owners[name]} and of {source} would both be in a dbt source "
                    f"{name}.",
                    hint="give the mirrors of one of them another database, by `into` under "
                    "[[sources.table]]",
                )
            entries[name], owners[name] = entry, source
    if not entries:
        return None
    content = {"version": 2, "sources": [*entries.values()]}
    text: str = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=100)
    return _FILE_HEAD + text


def _source_entries(
    context: CommandContext, adapters: Adapters, source: str, only_table: TableName | None
) -> Iterator[dict[str, Any]]:
    """Yield a dbt source for each database of a Lockstep source, named after the
    database. If lockstep.toml has several sources, the name begins with that of the
    source, because two sources may have databases of the same name."""
    from lockstep.assets.declaration import loaded_names

    settings, lake = context.settings, context.settings.lake_path().absolute()
    has_several_sources = len(settings.sources) > 1
    mirror_names = settings.source(source).mirror_names()
    states = [
        state
        for table, state in sorted(adapters.ledger().table_states(source).items())
        if state.mirror_schema_version is not None
        and only_table in (None, table, mirror_names.of(table))
    ]
    names = loaded_names(settings, source)
    tables = _dbt_tables(context, adapters, source, states, names)
    source_databases = {state.table.database for state in states}
    tables_by_database: dict[str, list[DbtTable]] = {}
    for table in tables:
        tables_by_database.setdefault(table.mirror_name.database, []).append(table)
    transactions = sql_literal(str(lake / f"{source}/{SystemTable.TRANSACTIONS}"))
    newest_commit = f"select max(_committed_at) from delta_scan({transactions})"
    for database, database_tables in tables_by_database.items():
        name = database_tables[0].database
        if has_several_sources:
            name = f"{source}_{name}"
        tables_in_words = (
            f"the MySQL database {database}" if database in source_databases else "MySQL tables"
        )
        yield {
            "name": name,
            "description": _escape_jinja(f"Mirrors of {tables_in_words} of {source}, by Lockstep."),
            "schema": _escape_jinja(database_tables[0].schema),
            "config": {"loaded_at_query": _escape_jinja(newest_commit)},
            "tables": [_table_entry(name, table) for table in database_tables],
        }


def _dbt_tables(
    context: CommandContext,
    adapters: Adapters,
    source: str,
    states: Sequence[TableState],
    names: SourceNames,
) -> list[DbtTable]:
    lake = context.settings.lake_path().absolute()
    catalog = context.settings.file.catalog
    plan = context.settings.source(source).plan()
    schema_pattern = catalog.schemas if catalog else DATABASE_PLACEHOLDER
    column_comments, table_comments = _comments(
        context, adapters, source, [state.table for state in states]
    )
    mirrors = adapters.lake().mirrors
    tables = []
    for state in states:
        table = state.table
        version = mirrors.version(state.mirror)
        if version is None or state.mirror_schema_version is None:
            continue
        schema_version = adapters.ledger().schema_version(
            source, table, state.mirror_schema_version
        )
        shown_schema = schema_version.shown_schema
        mirror_name, policies = plan.mirror_names.of(table), plan.policies_of(table)
        *_, database, name = names.default_table_key(table).path
        tables.append(
            DbtTable(
                mirror_name=mirror_name,
                database=database,
                name=name,
                path=str(lake / state.mirror),
                schema=entry_name(schema_pattern, source, mirror_name).schema,
                columns=[
                    (column.name, sql_type(column.type))
                    for column in mirrors.schema(state.mirror, version)
                ],
                primary_key=() if shown_schema is None else shown_schema.primary_key,
                # If deleted rows are kept, two rows may have one value of a UNIQUE key.
                unique_keys=()
                if shown_schema is None or policies.keeps_rows
                else testable_unique_keys(shown_schema),
                asset_key=tuple(names.table_key(table).path),
                comment=table_comments.get(table, ""),
                column_comments=own_comments(policies) | {**column_comments.get(table, {})},
            )
        )
    return tables


def _comments(
    context: CommandContext, adapters: Adapters, source: str, tables: Sequence[TableName]
) -> tuple[Mapping[TableName, Mapping[str, str]], Mapping[TableName, str]]:
    """Return the comments on columns and on tables. If the source does not answer,
    print a warning and return none."""
    try:
        server = adapters.server(source)
        return server.comments(tables), server.table_comments(tables)
    except LockstepError as error:
        context.note(f"Comments are left out: {error.message}")
        return {}, {}


def testable_unique_keys(schema: TableSchema) -> list[tuple[str, ...]]:
    """Return the columns of those UNIQUE keys for which dbt's test demands no more than
    MySQL. MySQL allows several rows with NULL in a UNIQUE key; dbt's test allows them
    only for a key of one column."""
    testable_keys = []
    for key in schema.keys:
        columns = [
            None if part.column is None else schema.column(part.column) for part in key.parts
        ]
        has_only_columns = None not in columns
        has_nullable = any(column is not None and column.nullable for column in columns)
        if key.kind == "unique" and has_only_columns and (len(columns) == 1 or not has_nullable):
            testable_keys.append(key.columns)
    return testable_keys


def _table_entry(dbt_source: str, table: DbtTable) -> dict[str, Any]:
    scan = f"delta_scan({sql_literal(table.path)})"
    # dbt-duckdb formats this text, so braces are doubled.
    location = _escape_jinja(scan.replace("{", "{{").replace("}", "}}"))
    config: dict[str, Any] = {"external_location": location}
    if table.asset_key != (dbt_source, table.name):  # dagster-dbt's default
        config["meta"] = {"dagster": {"asset_key": list(table.asset_key)}}
    entry: dict[str, Any] = {"name": table.name}
    if table.name != table.mirror_name.name:
        entry["identifier"] = _escape_jinja(table.mirror_name.name)
    if table.comment:
        entry["description"] = _escape_jinja(table.comment)
    entry["config"] = config
    keys = [key for key in _shown_keys(table) if len(key) > 1 and _can_be_unquoted(key)]
    if keys:
        entry["data_tests"] = [
            _test_entry("unique", dbt_source, table, key, {"column_name": f"({', '.join(key)})"})
            for key in keys
        ]
    entry["columns"] = [
        _column_entry(dbt_source, table, name, data_type) for name, data_type in table.columns
    ]
    return entry


def _column_entry(dbt_source: str, table: DbtTable, name: str, data_type: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "data_type": data_type}
    if comment := table.column_comments.get(name):
        entry["description"] = _escape_jinja(comment)
    tests = []
    if (name,) in _shown_keys(table):
        tests.append(_test_entry("unique", dbt_source, table, (name,)))
    if name in table.primary_key:
        tests.append(_test_entry("not_null", dbt_source, table, (name,)))
    if tests:
        entry["quote"] = True
        entry["data_tests"] = tests
    return entry


def _shown_keys(table: DbtTable) -> list[tuple[str, ...]]:
    """Return the keys whose columns are all in the mirror, each once."""
    names = {name for name, _ in table.columns}
    keys = dict.fromkeys((table.primary_key, *table.unique_keys))
    return [key for key in keys if key and names.issuperset(key)]


def _can_be_unquoted(key: tuple[str, ...]) -> bool:
    """Return whether these columns can be named in an expression without quotes: the
    quotes differ between dbt's adapters."""
    return all(_PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED_WORDS for name in key)


def _test_entry(
    kind: str,
    dbt_source: str,
    table: DbtTable,
    key: tuple[str, ...],
    arguments: Mapping[str, str] | None = None,
) -> str | dict[str, Any]:
    """Return a dbt test. It gets a name if the one that dbt would generate is invalid."""
    settings: dict[str, Any] = {"arguments": dict(arguments)} if arguments else {}
    default_name = "_".join((kind, dbt_source, table.name, *key))
    if not _PLAIN_NAME.fullmatch(default_name):
        digest = hashlib.sha256(default_name.encode()).hexdigest()[:8]
        name = re.sub(r"\W", "_", default_name, flags=re.ASCII)
        settings = {"name": f"{name}_{digest}", **settings}
    return {kind: settings} if settings else kind


def _escape_jinja(text: str) -> str:
    """Return a Jinja template that renders to the text: dbt renders all texts of the
    file."""
    return _JINJA_OPENING.sub(lambda match: "{{ '" + match[0] + "' }}", text)


_RESERVED_WORDS: Final = frozenset(
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
"""Reserved words of DuckDB and Spark, which are column names only in quotes."""
