"""`lockstep schema TABLE` shows a table's structure, now or at a place in the log, with
its history; `lockstep schema verify` checks the history of all tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

from lockstep import exits
from lockstep.arguments import parse_table_name, place_option
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.proof.verify_schema import SchemaVerification, verify_schema
from lockstep.pipeline.run.status.schema_history import (
    ShownSchema,
    ShownVersion,
    show_schema,
    unknown_table_error,
)
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.history_check import Disagreement
from lockstep.pipeline.schema.model import TableSchema, schema_to_json
from lockstep.pipeline.schema.sql_text import (
    default_in_sql,
    further_properties,
    key_in_sql,
    key_kinds,
    options_in_sql,
    reference_in_sql,
    type_in_sql,
)
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.places import Place
from lockstep.pipeline.values.shown import first_words, name_list, pluralize, utc_text
from lockstep.pipeline.values.table import TableName
from lockstep.printing import show_table
from lockstep.resources.adapters import Adapters

VERIFY = "verify"
_FIRST_RUN_HINT = (
    "the first run begins the history; until then `lockstep check` shows what becomes of each "
    "column, and `lockstep tables` lists all tables"
)
_SHOWN_AS_KEYS = "row_condition, key_fingerprint"
_ORIGIN_WORDS = {
    VersionOrigin.BASELINE: "read from the server",
    VersionOrigin.STATEMENT: "made by a statement",
    VersionOrigin.TABLE_MAP: "read from the log, where it precedes the rows",
    VersionOrigin.CARRIED: "an older version applies again",
    VersionOrigin.PERSON: "given by a person",
}


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Show one table, or verify the history of all. The exit code of `verify` is 4 if
    something differs, 3 if the source changed too often meanwhile."""
    is_verification = arguments.table == VERIFY
    if is_verification and arguments.at:
        raise UsageError(
            "`lockstep schema verify` compares with the server as it is now.",
            hint="leave --at out",
        )
    table = None if is_verification else parse_table_name(arguments.table)
    place = place_option(arguments, "--at")
    with context.adapters() as adapters:
        if table is None:
            return _verify_all(adapters, context, arguments.source)
        return _show_one_table(adapters, context, arguments.source, table, place)


def _show_one_table(
    adapters: Adapters,
    context: CommandContext,
    source_name: str | None,
    table: TableName,
    place: Place | None,
) -> Outcome:
    """Show the structure of a table, from the first source that has the table. MySQL is
    asked only if the ledger does not have the structure."""
    known_tables: list[TableName] = []
    for source in context.sources(source_name):
        open_ports = partial(adapters.ports, source.name, SilentProgress())
        try:
            view = show_schema(adapters.ledger(), source.name, table, place, open_ports)
        except NothingMatches:
            known_tables += adapters.ledger().last_versions(source.name)
            continue
        at = str(place) if place is not None else None
        print_schema(context, source.name, view, at)
        return Outcome(exits.DONE, schema_values(source.name, view, at))
    raise unknown_table_error(table, known_tables, "the history", _FIRST_RUN_HINT)


def _verify_all(adapters: Adapters, context: CommandContext, source_name: str | None) -> Outcome:
    answers: dict[str, tuple[int, dict[str, Any]]] = {}
    for source in context.sources(source_name):
        with context.watch(source.name) as progress:
            verification = verify_schema(adapters.ports(source.name, progress))
        context.say(*verification_lines(source.name, verification))
        code = exits.DONE if verification.equal else exits.DIFFERENCES
        answers[source.name] = code, verification_values(verification)
    return Outcome.of_sources(answers)


# -- one table -------------------------------------------------------------------------


def schema_values(source: str, view: ShownSchema, at: str | None) -> dict[str, Any]:
    """Return the values in `--json`. `place` is null for the present structure;
    `schema` and `columns` are null if the table is dropped or its structure is not
    known."""
    version = view.shown_version.version
    schema, shown_as = version.schema, version.shown_as
    return {
        "source": source,
        "table": view.table,
        "place": at,
        **_version_values(view.shown_version, view.table),
        "columns": schema and _column_values(version, schema),
        "schema": schema and schema_to_json(schema),
        # `row_condition`: for the rows that the lake has; `key_fingerprint`: of the key
        # with which values are hashed.
        **({} if shown_as is None else attributes(shown_as, _SHOWN_AS_KEYS)),
        "versions": [_version_values(shown, view.table) for shown in view.versions],
    }


def _version_values(shown: ShownVersion, table: TableName) -> dict[str, Any]:
    version, statement = shown.version, shown.statement
    return {
        **attributes(version, "version, since, knowledge as state, reason, origin, batch"),
        "changelog_generation": version.generation,
        "statement": statement
        and {
            "text": first_words(statement.text),
            **attributes(statement, "gtid, committed_at, outcome"),
            "effects": statement.effects_on(table),
        },
        "changes": shown.changes,
    }


def print_schema(context: CommandContext, source: str, view: ShownSchema, at: str | None) -> None:
    context.say(*_heading_lines(source, view, at))
    schema = view.shown_version.version.schema
    if schema is not None:
        _print_columns(context, view.shown_version.version, schema)
    context.say(f"  {pluralize(len(view.versions), 'version')}:")
    for shown in view.versions:
        context.say(*_version_lines(shown, is_marked=shown is view.shown_version))


def _heading_lines(source: str, view: ShownSchema, at: str | None) -> Iterator[str]:
    version, statement = view.shown_version.version, view.shown_version.statement
    place = f" at {at}" if at else ""
    yield f"{source}: {view.table}{place}: version {version.version}, since {version.since}"
    if statement is None:
        yield f"  {_ORIGIN_WORDS[version.origin]}"
    else:
        when = f"{utc_text(statement.committed_at)}  " if statement.committed_at else ""
        yield f"  {when}{first_words(statement.text)}"
        for effect in statement.effects_on(view.table):
            yield f"    {effect}"
    if version.knowledge is not Knowledge.KNOWN:
        yield f"  {_missing_structure(version)}"


def _column_values(version: SchemaVersion, schema: TableSchema) -> list[dict[str, Any]]:
    """Return the columns' values. `shown`: how the settings hide or change the column
    in the lake, if they do."""
    treatments = version.treatments_in_words
    return [
        {
            "name": column.name,
            "type": type_in_sql(column),
            "nullable": column.nullable,
            "default": default_in_sql(column),
            "keys": key_kinds(column, schema),
            "more": further_properties(column, schema),
            **({"shown": treatments[column.name]} if column.name in treatments else {}),
        }
        for column in schema.columns
    ]


def _print_columns(context: CommandContext, version: SchemaVersion, schema: TableSchema) -> None:
    heads = ["column", "type", "null", "default", "key", ""]
    if version.treatments_in_words:
        heads.append("in the lake")
    rows = []
    for column in _column_values(version, schema):
        nullable = "yes" if column["nullable"] else "no"
        keys = ", ".join(column["keys"])
        row = [column["name"], column["type"], nullable, column["default"], keys, column["more"]]
        if version.treatments_in_words:
            row.append(column.get("shown", ""))
        rows.append(row)
    show_table(context, heads, rows)
    shown_as = version.shown_as
    if shown_as is not None and shown_as.row_condition is not None:
        context.say(f"  the lake has the rows where {shown_as.row_condition}")
    if shown_as is not None and shown_as.key_fingerprint is not None:
        context.say(f"  values are hashed with the key of fingerprint {shown_as.key_fingerprint}")
    for key in schema.keys:
        context.say(f"  {key_in_sql(key)}")
    for reference in schema.foreign_keys:
        context.say(f"  {reference_in_sql(reference)}")
    context.say(f"  {options_in_sql(schema)}\n")


def _version_lines(shown: ShownVersion, *, is_marked: bool) -> Iterator[str]:
    version, statement = shown.version, shown.statement
    mark = "→" if is_marked else " "
    origin = _ORIGIN_WORDS[version.origin] if statement is None else first_words(statement.text)
    yield f"  {mark} {version.version:>3}  {version.since}  {origin}"
    if version.knowledge is not Knowledge.KNOWN:
        yield f"         {_missing_structure(version)}"
    for change in shown.changes:
        yield f"         {change}"


def _missing_structure(version: SchemaVersion) -> str:
    if version.knowledge is Knowledge.DROPPED:
        return "dropped"
    return f"its structure is not known from here on: {version.reason}"


# -- the whole history -----------------------------------------------------------------


def verification_values(verification: SchemaVerification) -> dict[str, Any]:
    return {
        **attributes(
            verification,
            "at as place, equal, statement_count, version_count, compared_count as table_count, "
            "history_disagreements as folded_otherwise, server_disagreements as "
            "otherwise_on_the_server",
        ),
        "not_known": {version.table: version.reason for version in verification.unknown_versions},
        **attributes(verification, "unseen_tables as not_shown_by_the_server, seconds"),
    }


def verification_lines(source: str, verification: SchemaVerification) -> Iterator[str]:
    result = "differs from" if verification.history_disagreements else "equals"
    yield (
        f"{source}: the history ({pluralize(verification.statement_count, 'statement')}, "
        f"{pluralize(verification.version_count, 'version')}) {result} what its statements make"
    )
    for disagreement in verification.history_disagreements:
        yield from _disagreement_lines(disagreement, "recorded, by its statements")
    equal_count = (
        verification.compared_count
        - len(verification.server_disagreements)
        - len(verification.unknown_versions)
    )
    tables = pluralize(verification.compared_count, "table")
    yield (
        f"{source} at {verification.at}: {equal_count} of {tables} "
        f"{'is' if equal_count == 1 else 'are'} on the server as in the history, "
        f"{verification.seconds:.1f} s"
    )
    for disagreement in verification.server_disagreements:
        yield from _disagreement_lines(disagreement, "history, server")
    if verification.server_disagreements:
        yield (
            "  hint: a statement is missing in the log (sql_log_bin=0, another server), or "
            "Lockstep and this server read one differently: `lockstep schema TABLE` shows the "
            "statements. If the log has all of them, report it to us. A table whose rows do not "
            "fit is quarantined; `lockstep resume TABLE --reason …` brings it back"
        )
    for version in verification.unknown_versions:
        yield f"  {version.table}: not known since {version.since}: {version.reason}"
    if verification.unseen_tables:
        names = name_list(verification.unseen_tables)
        yield f"  not captured, and not visible to this account: {names}"


def _disagreement_lines(disagreement: Disagreement, compared: str) -> Iterator[str]:
    subject = str(disagreement.table) if disagreement.table is not None else "a statement"
    number = f", version {disagreement.version}" if disagreement.version is not None else ""
    yield f"  {subject}{number}, at {disagreement.position} ({compared}):"
    for sentence in disagreement.differences:
        yield f"    {sentence}"
