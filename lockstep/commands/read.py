"""`lockstep read TABLE`: a snippet, ready to paste, for each common reader; `--dbt`: all tables as
sources of a dbt project.

Paths are quoted as each language requires, because they contain names from the source. A value of
`[lake.options]` that stands in lockstep.toml as a reference is told as one: no secret is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument, table_name
from pipeline.errors import LakeUnavailable, NothingMatches, VersionSetUnknown
from pipeline.table import TableName
from resources.config.secrets import is_reference
from resources.lake.paths import LakePath
from resources.lake.s3a import HADOOP, SAME

if TYPE_CHECKING:
    from pipeline.places import Place
    from pipeline.ports.ledger import Ledger
    from resources.config import SourceSettings


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Of the mirror, its path and version at the acknowledged position, which the ledger
    knows; of the changelog, its generations in the lake. And how to open it."""
    if arguments.dbt:
        return _as_dbt_sources(arguments, context)
    table = table_name(arguments.table)
    if arguments.at and arguments.changes:
        raise UsageError(
            "--at is for the mirror; a changelog has every change with its place.",
            hint="leave --at or --changes out",
        )
    place = place_argument(arguments.at, "--at", "read") if arguments.at else None
    with context.adapters() as adapters:
        ledger, lake = adapters.ledger(), context.settings.lake_path()
        meant = _meant(ledger, context.sources(arguments.source), table)
        if meant is not None:
            source, table = meant
            told = describe(ledger, source.name, table, lake)
            if told is not None:
                if place is not None:
                    told |= describe_at(ledger, source.name, table, lake.absolute(), place)
                elif arguments.changes:
                    told |= describe_changes(ledger, source.name, table, lake)
                elif ledger.table_states(source.name)[table].mirror_ended:
                    raise NothingMatches(
                        f"{table} is gone at the source, dropped or renamed, and has no mirror.",
                        hint=f"its changelog is still there: `lockstep read {table} --changes`",
                    )
                told["snippets"] = _in_store(told, context)
                for reader, snippet in told["snippets"].items():
                    context.say(f"# {reader}\n{snippet}\n")
                for reader, why in told.get("refused", {}).items():
                    context.say(f"# {reader}: {why}")
                for name, spelled in told["renamed"].items():
                    context.say(f"# column {name!r} is called {spelled!r} there")
                return Outcome(exits.DONE, told)
    raise NothingMatches(
        f"No run has captured a table {table} yet.",
        hint="`lockstep tables` lists what is captured, `lockstep run` captures",
    )


def _meant(
    ledger: Ledger, sources: Sequence[SourceSettings], name: TableName
) -> tuple[SourceSettings, TableName] | None:
    """The table that is called so at its source, or whose mirror is; of several sources that have a
    table of that name, the first."""
    found = [
        (source, table)
        for source in sources
        for table in source.mirrors().called(name, ledger.table_states(source.name))
    ]
    if len({table for _, table in found}) > 1:
        listed = ", ".join(f"{table} of {source.name}" for source, table in found)
        raise UsageError(
            f"{name} may be several tables: {listed}.",
            hint="give the name of the table at the source, and --source NAME",
        )
    return found[0] if found else None


def _as_dbt_sources(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    from lockstep.dbt_sources import sources_yaml

    if arguments.at or arguments.changes:
        raise UsageError(
            "--dbt is about mirrors as they are now.", hint="leave --at and --changes out"
        )
    only = table_name(arguments.table) if arguments.table else None
    chosen = [source.name for source in context.sources(arguments.source)]
    with context.adapters() as adapters:
        text = sources_yaml(context, adapters, chosen, only)
    if text is None:
        raise NothingMatches(
            f"No run has made a mirror of {only or 'any table'} yet.",
            hint="`lockstep tables` lists what is captured, `lockstep run` captures",
        )
    context.say(text.rstrip("\n"))
    return Outcome(exits.DONE, {"sources_yml": text})


def _in_store(told: dict[str, Any], context: CommandContext) -> dict[str, str]:
    """The snippets, each behind what its reader has to know of the lake's store."""
    lines = store_lines(told["path"], context.settings.file.lake.options)
    found = {}
    for reader, snippet in told["snippets"].items():
        before = lines.get(reader)
        found[reader] = f"{before}\n{snippet}" if before else snippet
    return found


def describe(
    ledger: Ledger, source: str, table: TableName, lake: LakePath
) -> dict[str, Any] | None:
    """Where the table is and how to read it, as JSON; None if the source has no such."""
    state = ledger.table_states(source).get(table)
    if state is None:
        return None
    cursor = ledger.cursors(source).acknowledged
    versions = ledger.version_set(source, cursor.batch).shown if cursor else []
    path, (features, names) = str(lake / state.mirror), _told_of(lake / state.mirror)
    return {
        "source": source,
        "table": str(table),
        "path": path,
        "changelog": str(lake / state.changelog),
        "delta_version": next((e.delta_version for e in versions if e.table == table), None),
        "position": cursor.position if cursor else None,
        "state": state.condition.value,
        "refused": refusals(features),
        "renamed": _renamed(names),
        "snippets": table_snippets(path, features),
    }


def _told_of(
    folder: LakePath, version: int | None = None
) -> tuple[Collection[str], Mapping[str, str]]:
    """What a reader of the table must know, and its columns' names at the source → there; nothing
    where no table is there."""
    from resources.lake.columns import column_names
    from resources.lake.storage import delta_table, lake_errors

    try:
        with lake_errors(folder):
            there = delta_table(folder, version)
            return there.protocol().reader_features or (), column_names(there)
    except LakeUnavailable:
        return (), {}


def _renamed(names: Mapping[str, str]) -> dict[str, str]:
    return {name: spelled for name, spelled in names.items() if name != spelled}


def describe_at(
    ledger: Ledger, source: str, table: TableName, lake: LakePath, place: Place
) -> dict[str, Any]:
    """The mirror's version as of a place, and how to read it, as JSON. `VersionSetUnknown` where
    the table has none there."""
    from pipeline.runs.inspecting.version_sets import version_set_at

    shown = version_set_at(ledger, source, place)
    for lacks in shown.missing:
        if lacks.table == table:
            raise VersionSetUnknown(
                f"{table} cannot be read as of {place}: {lacks.reason}", hint=lacks.hint
            )
    entry = next((one for one in shown.entries if one.table == table), None)
    if entry is None:
        raise VersionSetUnknown(
            f"{source} had no table {table} as of {shown.position}",
            hint=f"`lockstep versions --at {place} --source {source}` lists what it had",
        )
    path = str(lake / entry.mirror)
    features, names = _told_of(lake / entry.mirror, entry.delta_version)
    snippets = {
        "Python": version_set_snippet(source, str(table), str(place)),
        **table_snippets(path, features, entry.delta_version),
    }
    return {
        "path": path,
        "delta_version": entry.delta_version,
        "table_id": entry.table_id,
        "position": shown.position,
        "refused": refusals(features),
        "renamed": _renamed(names),
        "snippets": snippets,
    }


def describe_changes(
    ledger: Ledger, source: str, table: TableName, lake: LakePath
) -> dict[str, Any]:
    """The changelog's generations, their columns together, and how to read it, as JSON."""
    from lockstep.reading import whole_changelog
    from pipeline.changes.layout import changelog_names

    names: dict[str, str] = {}
    for version in ledger.schema_versions(source, table):
        if version.shown is not None:
            own = [column.name for column in version.shown_structure.columns]
            names |= zip(own, changelog_names(own), strict=True)
    changelog = whole_changelog(ledger, lake.absolute(), source, table)
    snippets = changelog_snippets(source, str(table))
    if len(changelog.generations) == 1:
        [generation] = changelog.generations
        snippets |= table_snippets(str(generation.path))
    return {
        "refused": {},
        "renamed": _renamed(names),
        "generations": [
            {"generation": generation.number, "path": str(generation.path)}
            for generation in changelog.generations
        ],
        "columns": {column.name: str(column.type) for column in changelog.columns},
        "snippets": snippets,
    }


_SESSION = "# with --packages io.delta:delta-spark_4.2_2.13:4.4.0, for Spark 4.2\n"

_BY_AGE = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Delta's refusal of a version whose commit is old, also where it was the newest until now."""

_REFUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "delta-rs": {"typeWidening": "types of its columns were widened"},
    "Polars": {
        "columnMapping": "columns of it were renamed or dropped",
        "typeWidening": "types of its columns were widened",
    },
}
"""By reader, the features of a table that it refuses, and what made the table have them
(deltalake 1.6, Polars 2.1). Spark and DuckDB's delta extension read all that mirrors have."""


def refusals(features: Collection[str]) -> dict[str, str]:
    """Which readers cannot read a table with these features of the protocol, and why."""
    found = {}
    for reader, refused in _REFUSED.items():
        # A feature's name may go on: typeWidening-preview.
        why = [
            told
            for name, told in refused.items()
            if any(feature.partition("-")[0] == name for feature in features)
        ]
        if why:
            found[reader] = f"it does not read this table: {' and '.join(why)}"
    return found


def table_snippets(
    path: str, features: Collection[str] = (), version: int | None = None
) -> dict[str, str]:
    """Return the code that opens a Delta table, by reader, for each reader that supports its
    features; with `version`, the code that opens it at that version."""
    at = "" if version is None else f", version={version}"
    travel, told = "", ""
    if version is not None:
        travel = f'spark.conf.set("{_BY_AGE}", "false")\n'
        told = f'.option("versionAsOf", {version})'
    duck = "" if version is None else f", version => {version}"
    quoted = path.replace("'", "''")
    snippets = {
        "Spark": f'{_SESSION}{travel}spark.read.format("delta"){told}.load({path!r})',
        "delta-rs": (
            "from deltalake import DeltaTable, QueryBuilder\n"
            f'QueryBuilder().register("t", DeltaTable({path!r}{at}))'
            '.execute("select * from t").read_all()'
        ),
        "Polars": f"import polars\npolars.scan_delta({path!r}{at}).collect()",
        "DuckDB": f"install delta; load delta;\nselect * from delta_scan('{quoted}'{duck});",
    }
    refused = refusals(features)
    return {reader: snippet for reader, snippet in snippets.items() if reader not in refused}


def version_set_snippet(source: str, table: str, at: str | None) -> str:
    """Return the code that reads the table at a place in the log with this package."""
    place = "" if at is None else f", at={at!r}"
    return f"import lockstep\nlockstep.read_at({source!r}{place})[{table!r}].arrow()"


def changelog_snippets(source: str, table: str) -> dict[str, str]:
    """Return the code that reads all generations of a changelog as one relation with this
    package: a pyarrow.Table in the order of the changes, or a Spark DataFrame."""
    changelog = f"import lockstep\nlockstep.read_changelog({source!r}, {table!r})"
    return {"Python": f"{changelog}.arrow()", "Spark": f"{_SESSION}{changelog}.spark(spark)"}


_FILE_SYSTEM: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def store_lines(path: str, options: Mapping[str, str]) -> dict[str, str]:
    """By reader, what goes in front; nothing for a folder, or for a store that is not S3's kind,
    which readers know by their environment. `options` as they are written down."""
    scheme = path.partition("://")[0]
    if scheme not in ("s3", "s3a"):
        return {}
    return {
        "Spark": _spark(scheme, options),
        "delta-rs": _environment(options),
        "Polars": _environment(options),
        "DuckDB": _duckdb(options),
    }


def _spark(scheme: str, options: Mapping[str, str]) -> str:
    lines = [
        f"# a session with --packages org.apache.hadoop:hadoop-aws:{HADOOP}",
        "import os",
        f'spark.conf.set("fs.{scheme}.impl", "{_FILE_SYSTEM}")',
    ]
    for name, value in options.items():
        if name in SAME:
            lines.append(f'spark.conf.set("fs.s3a.{SAME[name]}", {_python(value)})')
    if "endpoint" in options:
        lines.append('spark.conf.set("fs.s3a.path.style.access", "true")')
    return "\n".join(lines)


def _environment(options: Mapping[str, str]) -> str:
    """delta-rs, and Polars with it, finds a store's options in the environment."""
    told = ", ".join(f'"AWS_{name.upper()}": {_python(value)}' for name, value in options.items())
    return f"import os\nos.environ |= {{{told}}}" if told else ""


def _duckdb(options: Mapping[str, str]) -> str:
    parts = ["type s3"]
    if "access_key_id" not in options:
        parts.append("provider credential_chain")
    for name, value in options.items():
        if name == "endpoint" and not is_reference(value):
            scheme, _, host = value.rpartition("://")
            parts += [f"endpoint {_sql(host)}", "url_style 'path'"]
            parts += ["use_ssl false"] if scheme == "http" else []
        elif name in _DUCKDB:
            parts.append(f"{_DUCKDB[name]} {_sql(value)}")
    return f"install httpfs; load httpfs;\ncreate secret ({', '.join(parts)});"


_DUCKDB: Final = {
    "region": "region",
    "access_key_id": "key_id",
    "secret_access_key": "secret",
    "session_token": "session_token",
}


def _python(value: str) -> str:
    kind, _, target = value.partition(":")
    if not is_reference(value):
        return repr(value)
    return f"os.environ[{target!r}]" if kind == "env" else f"open({target!r}).read().strip()"


def _sql(value: str) -> str:
    """DuckDB's shell reads variables of the environment, and no other place for secrets."""
    kind, _, target = value.partition(":")
    if is_reference(value):
        return f"getenv('{target}')" if kind == "env" else f"'the content of {target}'"
    return "'" + value.replace("'", "''") + "'"
