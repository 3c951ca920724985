"""`lockstep read TABLE`: print code that reads a table, ready to paste, for each common
reader; with `--dbt`, print the YAML that declares mirrors as sources of a dbt project.

Paths are quoted as each language requires, because they contain names from the source.
Secrets are never printed: if lockstep.toml refers to one, the code reads it from the
same place.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lockstep import exits
from lockstep.arguments import parse_table_name, place_option
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.values.errors import LakeUnavailable, NothingMatches, VersionSetUnknown
from lockstep.pipeline.values.table import TableName
from lockstep.printing import gap_values, sql_literal
from lockstep.resources.config.secrets import is_reference
from lockstep.resources.lake.spark.settings import HADOOP_VERSION, S3A_NAMES
from lockstep.resources.lake.store.paths import S3_SCHEMES, LakePath

if TYPE_CHECKING:
    from lockstep.pipeline.ports.ledger import Ledger
    from lockstep.pipeline.run.status.version_sets import ShownVersions
    from lockstep.pipeline.values.places import Place
    from lockstep.resources.config import SourceSettings


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Print the snippets that read a mirror, the mirror as of a place (`--at`), or the
    changelog (`--changes`)."""
    if arguments.dbt:
        return _print_dbt_sources(arguments, context)
    typed_name = parse_table_name(arguments.table)
    if arguments.at and arguments.changes:
        raise UsageError(
            "--at applies to a mirror; a changelog has every change with its place.",
            hint="leave --at or --changes out",
        )
    place = place_option(arguments, "--at")
    with context.adapters() as adapters:
        ledger, lake = adapters.ledger(), context.settings.lake_path()
        source, table = _find_table(ledger, context.sources(arguments.source), typed_name)
        values = _mirror_values(ledger, source, table, lake)
        notes = list[str]()
        if place is not None:
            from lockstep.pipeline.run.status.version_sets import version_set_at

            version_set = version_set_at(ledger, source, place)
            values |= _version_values(version_set, table, lake.absolute(), place)
            notes = version_set.lines_on_gaps([table])
        elif arguments.changes:
            values |= _changelog_values(ledger, source, table, lake)
        elif ledger.table_states(source)[table].is_mirror_removed:
            raise NothingMatches(
                f"{table} was dropped or renamed at the source, and has no mirror.",
                hint=f"its changelog still exists: `lockstep read {table.word} --changes`",
            )
        else:
            notes = _notes_on_state(ledger, context.settings.source(source), table)
    values["snippets"] = _with_store_lines(values, context)
    for reader, snippet in values["snippets"].items():
        context.say(f"# {reader}\n{snippet}\n")
    if values.get("unreadable"):
        notes.append(f"this version cannot be opened now: {values['unreadable']}")
    context.say(*(f"# {note}" for note in notes))
    for reader, reason in values.get("refused", {}).items():
        context.say(f"# {reader}: {reason}")
    for name, column in values["renamed"].items():
        context.say(f"# column {name!r} is called {column!r} in the Delta table")
    return Outcome(exits.DONE, values)


def _notes_on_state(ledger: Ledger, source: SourceSettings, table: TableName) -> list[str]:
    """Return a sentence if the mirror is not complete or does not follow its table."""
    from lockstep.assets.notices import readable_patterns
    from lockstep.pipeline.run.status.status import standings_of

    standing = standings_of(ledger, source.name, readable_patterns(source))[table]
    return [] if standing.follows else [f"{table}: {standing.sentence}"]


def _find_table(
    ledger: Ledger, sources: Sequence[SourceSettings], name: TableName
) -> tuple[str, TableName]:
    """Return the source and the table that has this name at the source, or whose mirror
    has this name. If several sources have the same table, return the first of them.
    Raise `NothingMatches` if no run has captured such a table, and `UsageError` if the
    name matches different tables."""
    matches = [
        (source.name, table)
        for source in sources
        for table in source.mirror_names().tables_named(name, ledger.table_states(source.name))
    ]
    if len({table for _, table in matches}) > 1:
        tables = ", ".join(f"{table} of {source}" for source, table in matches)
        raise UsageError(
            f"{name} matches several tables: {tables}.",
            hint="give the name of the table at the source, and --source NAME",
        )
    if not matches:
        raise NothingMatches(
            f"No run has captured a table {name} yet.",
            hint="`lockstep tables` lists what is captured, `lockstep run` captures",
        )
    return matches[0]


def _print_dbt_sources(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    from lockstep.dbt_sources import sources_yaml

    if arguments.at or arguments.changes:
        raise UsageError(
            "--dbt declares mirrors as they are now.", hint="leave --at and --changes out"
        )
    only_table = parse_table_name(arguments.table) if arguments.table else None
    sources = [source.name for source in context.sources(arguments.source)]
    with context.adapters() as adapters:
        text = sources_yaml(context, adapters, sources, only_table)
    if text is None:
        raise NothingMatches(
            f"No run has made a mirror of {only_table or 'any table'} yet.",
            hint="`lockstep tables` lists what is captured, `lockstep run` captures",
        )
    context.say(text.rstrip("\n"))
    return Outcome(exits.DONE, {"sources_yml": text})


def _with_store_lines(values: dict[str, Any], context: CommandContext) -> dict[str, str]:
    """Return the snippets, each after the lines that connect its reader with the lake's
    store."""
    lines = store_lines(values["path"], context.settings.file.lake.options)
    return {
        reader: f"{lines[reader]}\n{snippet}" if lines.get(reader) else snippet
        for reader, snippet in values["snippets"].items()
    }


def _mirror_values(ledger: Ledger, source: str, table: TableName, lake: LakePath) -> dict[str, Any]:
    """Return a mirror's path, version and snippets, as JSON."""
    state = ledger.table_states(source)[table]
    cursor = ledger.cursors(source).acknowledged
    entries = ledger.version_set(source, cursor.batch).entries if cursor else ()
    versions = {entry.table: entry.delta_version for entry in entries}
    path = str(lake / state.mirror)
    features, names, _ = _open_table(lake / state.mirror)
    return {
        "source": source,
        "table": str(table),
        "path": path,
        "changelog": str(lake / state.changelog),
        "delta_version": versions.get(table),
        "position": cursor.position if cursor else None,
        "state": state.condition.value,
        "refused": refusal_reasons(features, names.values()),
        "renamed": _renamed_columns(names),
        "snippets": table_snippets(path, features),
    }


def _open_table(
    folder: LakePath, version: int | None = None
) -> tuple[Collection[str], Mapping[str, str], str | None]:
    """Return the features that a reader of the Delta table must support, the names of
    its columns by their names at the source, and None. If the table cannot be opened,
    both are empty, and the reason replaces None."""
    from lockstep.resources.lake.delta.columns import table_spelling
    from lockstep.resources.lake.store.storage import delta_table, lake_errors

    try:
        with lake_errors(folder):
            table = delta_table(folder, version)
            return table.protocol().reader_features or (), table_spelling(table), None
    except LakeUnavailable as error:
        return (), {}, error.message


def _renamed_columns(names: Mapping[str, str]) -> dict[str, str]:
    return {name: column for name, column in names.items() if name != column}


def _version_values(
    version_set: ShownVersions, table: TableName, lake: LakePath, place: Place
) -> dict[str, Any]:
    """Return the mirror's version in the set of a place and its snippets, as JSON.
    Raise `VersionSetUnknown` if the mirror has no version for that place."""
    source = version_set.source
    for missing in version_set.missing:
        if missing.table == table:
            raise VersionSetUnknown(
                f"{table} cannot be read as of {place}: {missing.reason}", hint=missing.hint
            )
    entry = next((entry for entry in version_set.entries if entry.table == table), None)
    if entry is None:
        raise VersionSetUnknown(
            f"{source} had no table {table} as of {version_set.position}",
            hint=f"`lockstep versions --at {place} --source {source}` lists what it had",
        )
    path = str(lake / entry.mirror)
    features, names, unreadable = _open_table(lake / entry.mirror, entry.delta_version)
    all_tables = f"import lockstep\nlockstep.read_at({source!r}, at={str(place)!r})"
    snippets = {
        "Python": f"{all_tables}[{str(table)!r}].arrow()",
        **table_snippets(path, features, entry.delta_version),
    }
    return {
        "path": path,
        "delta_version": entry.delta_version,
        "table_id": entry.table_id,
        "position": version_set.position,
        "refused": refusal_reasons(features, names.values()),
        "renamed": _renamed_columns(names),
        "unreadable": unreadable,
        "gaps": gap_values(gap for gap in version_set.gaps if gap.open_among([table])),
        "snippets": snippets,
    }


def _changelog_values(
    ledger: Ledger, source: str, table: TableName, lake: LakePath
) -> dict[str, Any]:
    """Return the changelog's generations, their common columns and the snippets, as
    JSON."""
    from lockstep.pipeline.mirror.layout import changelog_names
    from lockstep.reading import whole_changelog

    names: dict[str, str] = {}
    for version in ledger.schema_versions(source, table):
        if version.shown_schema is not None:
            columns = [column.name for column in version.shown_structure.columns]
            names |= zip(columns, changelog_names(columns), strict=True)
    changelog = whole_changelog(ledger, lake.absolute(), source, table)
    snippets = _changelog_snippets(source, str(table))
    if len(changelog.generations) == 1:
        [generation] = changelog.generations
        snippets |= table_snippets(str(generation.path))
    return {
        "refused": generation_refusals(len(changelog.generations)),
        "renamed": _renamed_columns(names),
        "generations": [
            {"generation": generation.number, "path": str(generation.path)}
            for generation in changelog.generations
        ],
        "columns": {column.name: str(column.type) for column in changelog.columns},
        "snippets": snippets,
    }


def generation_refusals(count: int) -> dict[str, str]:
    """Return the readers that cannot read `count` generations as one table, each with
    the reason."""
    reason = (
        f"its changes are in {count} Delta tables (generations), because columns got types that do "
        "not fit; it opens each by its own path, which `--json` lists"
    )
    return dict.fromkeys(("delta-rs", "Polars", "DuckDB"), reason) if count > 1 else {}


_PACKAGES_COMMENT = """\
# Spark 4.2: pyspark --packages io.delta:delta-spark_4.2_2.13:4.4.0 \\
#   --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \\
#   --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog
"""

_AGE_SETTING = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""The setting with which Delta refuses a version whose commit is old, even if that
version was the newest until recently. A snippet for a version switches it off."""

_UNSUPPORTED: Final[Mapping[str, Mapping[str, str]]] = {
    "delta-rs": {"typeWidening": "types of its columns were widened"},
    "Polars": {
        "columnMapping": "columns of it were renamed or dropped",
        "typeWidening": "types of its columns were widened",
    },
}
"""The table features that a reader does not support (deltalake 1.6, Polars 2.1), each
with its cause in words. Spark and DuckDB's delta extension support all features of
mirrors."""


def refusal_reasons(features: Collection[str], columns: Iterable[str] = ()) -> dict[str, str]:
    """Return the readers that cannot read a table with these features and columns, each
    with the reason."""
    from lockstep.pipeline.schema.types import is_refused

    mapped_columns = [column for column in columns if is_refused(column)]
    # typeWidening-preview counts as typeWidening.
    used_features = {feature.partition("-")[0] for feature in features}
    reasons_by_reader = {}
    for reader, causes in _UNSUPPORTED.items():
        reasons = [
            f"the name of its column {mapped_columns[0]!r} needs column mapping"
            if feature == "columnMapping" and mapped_columns
            else cause
            for feature, cause in causes.items()
            if feature in used_features
        ]
        if reasons:
            reasons_by_reader[reader] = f"it does not read this table: {' and '.join(reasons)}"
    return reasons_by_reader


def table_snippets(
    path: str, features: Collection[str] = (), version: int | None = None
) -> dict[str, str]:
    """Return the code that opens a Delta table, by reader, for each reader that
    supports its features; with `version`, the code that opens it at that version."""
    keyword = "" if version is None else f", version={version}"
    setting, option, argument = "", "", ""
    if version is not None:
        setting = f'spark.conf.set("{_AGE_SETTING}", "false")\n'
        option = f'.option("versionAsOf", {version})'
        argument = f", version => {version}"
    snippets = {
        "Spark": f'{_PACKAGES_COMMENT}{setting}spark.read.format("delta"){option}.load({path!r})',
        "delta-rs": (
            "from deltalake import DeltaTable, QueryBuilder\n"
            f'QueryBuilder().register("t", DeltaTable({path!r}{keyword}))'
            '.execute("select * from t").read_all()'
        ),
        "Polars": f"import polars\npolars.scan_delta({path!r}{keyword}).collect()",
        "DuckDB": "install delta; load delta;\n"
        f"select * from delta_scan({sql_literal(path)}{argument});",
    }
    refusing_readers = refusal_reasons(features)
    return {
        reader: snippet for reader, snippet in snippets.items() if reader not in refusing_readers
    }


def _changelog_snippets(source: str, table: str) -> dict[str, str]:
    """Return the code that reads all generations of a changelog as one relation with
    this package: a pyarrow.Table in the order of the changes, or a Spark DataFrame."""
    changelog = f"import lockstep\nlockstep.read_changelog({source!r}, {table!r})"
    return {
        "Python": f"{changelog}.arrow()",
        "Spark": f"{_PACKAGES_COMMENT}{changelog}.spark(spark)",
    }


_S3A_CLASS: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def store_lines(path: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return, by reader, the lines that connect the reader with an S3 store. `options`:
    [lake.options] as written in lockstep.toml. The result is empty for a local folder,
    and for other stores, whose address readers take from their environment."""
    scheme = path.partition("://")[0]
    if scheme not in S3_SCHEMES:
        return {}
    return {
        "Spark": _spark_lines(scheme, options),
        "delta-rs": _environment_lines(options),
        "Polars": _environment_lines(options),
        "DuckDB": _duckdb_lines(options),
    }


def _spark_lines(scheme: str, options: Mapping[str, str]) -> str:
    lines = [
        f"# a session with --packages org.apache.hadoop:hadoop-aws:{HADOOP_VERSION}",
        "import os",
        f'spark.conf.set("fs.{scheme}.impl", "{_S3A_CLASS}")',
    ]
    for name, value in options.items():
        if name in S3A_NAMES:
            lines.append(f'spark.conf.set("fs.s3a.{S3A_NAMES[name]}", {_option_in_python(value)})')
    if "endpoint" in options:
        lines.append('spark.conf.set("fs.s3a.path.style.access", "true")')
    return "\n".join(lines)


def _environment_lines(options: Mapping[str, str]) -> str:
    """Return the lines for delta-rs and Polars, which read the store's options from the
    environment."""
    pairs = ", ".join(
        f'"AWS_{name.upper()}": {_option_in_python(value)}' for name, value in options.items()
    )
    return f"import os\nos.environ |= {{{pairs}}}" if pairs else ""


def _duckdb_lines(options: Mapping[str, str]) -> str:
    clauses = ["type s3"]
    if "access_key_id" not in options:
        clauses.append("provider credential_chain")
    for name, value in options.items():
        if name == "endpoint":
            url = _option_in_sql(value)
            clauses += [f"endpoint regexp_replace({url}, '.*://', '')", "url_style 'path'"]
            clauses.append(f"use_ssl not starts_with({url}, 'http:')")
        elif name in _DUCKDB_OPTIONS:
            clauses.append(f"{_DUCKDB_OPTIONS[name]} {_option_in_sql(value)}")
    return f"install httpfs; load httpfs;\ncreate secret ({', '.join(clauses)});"


_DUCKDB_OPTIONS: Final = {
    "region": "region",
    "access_key_id": "key_id",
    "secret_access_key": "secret",
    "session_token": "session_token",
}


def _option_in_python(value: str) -> str:
    """Return an option's value as an expression of Python."""
    kind, _, target = value.partition(":")
    if not is_reference(value):
        return repr(value)
    return f"os.environ[{target!r}]" if kind == "env" else f"open({target!r}).read().strip()"


def _option_in_sql(value: str) -> str:
    """Return an option's value in SQL. A reference to a file becomes a placeholder,
    because DuckDB's shell can read a secret only from an environment variable."""
    kind, _, target = value.partition(":")
    if is_reference(value):
        content = sql_literal(f"the content of {target}")
        return f"getenv({sql_literal(target)})" if kind == "env" else content
    return sql_literal(value)
