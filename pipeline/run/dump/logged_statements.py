"""QUERY events of the log → statements, with facts about the session and the server that ran
them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from lockstep.pipeline.binlog.stream.commit_times import SECOND, commit_times
from lockstep.pipeline.binlog.stream.control import Description, Query, to_datetime, version_number
from lockstep.pipeline.binlog.stream.ring import SERVER, TransactionGroup
from lockstep.pipeline.binlog.transactions.identity import gtid_text
from lockstep.pipeline.binlog.values.charsets import text_decoder
from lockstep.pipeline.ports.ledger import Structures
from lockstep.pipeline.ports.source import ServerFacts, SourceServer
from lockstep.pipeline.schema.context import ServerDialect, StatementContext, read_context
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.evolve import may_find_view
from lockstep.pipeline.schema.history import SchemaStatement
from lockstep.pipeline.schema.model import ServerSchema
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change

_DEFAULT_CHARSET: Final = "utf8mb4"
_CHANGE_ROWS: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE")
"""First words of statements that change rows, but no structure. Such statements are recognised
before anything is parsed, because a heartbeat may log one every second."""

_SURROGATES: Final = 0xDC00
_IF_NOT_EXISTS: Final = re.compile(r"\bnot\b.*\bexists\b", re.IGNORECASE | re.DOTALL)


def dialect_of(facts: ServerFacts) -> ServerDialect:
    """Return the dialect of a server: facts that are needed to read its statements, but are not in
    its events."""
    number, settings = version_number(facts.version), facts.settings
    return ServerDialect(
        version=ServerDialect().version if number is None else number,
        flavour=facts.flavour,
        lower_case_table_names=int(settings.get("lower_case_table_names") or 0),
        default_engine=settings.get("default_storage_engine") or "InnoDB",
        explicit_timestamps=settings.get("explicit_defaults_for_timestamp") == "ON",
    )


def dialect_of_writer(facts: ServerFacts, writer: Description | None) -> ServerDialect:
    """Return the dialect of the server as it was when it logged a statement. `writer` describes
    this server; `facts` are present facts, perhaps of a later version, to which the server was
    upgraded."""
    if writer is None or writer.version.partition("-")[0] == facts.version.partition("-")[0]:
        return dialect_of(facts)
    # The log does not say which value this variable had before the upgrade: assume the default
    # of older versions.
    settings = {**facts.settings, "explicit_defaults_for_timestamp": "OFF"}
    return dialect_of(
        replace(facts, version=writer.version, flavour=writer.flavour, settings=settings)
    )


def all_statements(group: TransactionGroup, facts: ServerDialect) -> list[LoggedStatement]:
    """Return a group's statements, in the order of the log: statements that may change a structure,
    and statements that are logged in place of rows (`for_rows`)."""
    statements = []
    for number, query in group.statements:
        row = group.transactions[number]
        context = context_of(query, facts)
        text = statement_text(query.raw, context.client_charset)
        # A DROP TABLE inside a transaction changes a structure, too: MariaDB logs it for a
        # CREATE OR REPLACE TABLE … SELECT that failed.
        for_rows = query.for_rows and (
            text[:8].upper().startswith(_CHANGE_ROWS)
            or isinstance(read_change(text, context), NotUnderstood)
        )
        statements.append(
            LoggedStatement(
                text=text,
                context=context,
                for_rows=for_rows,
                begin=group.begin(number),
                end=group.end(number),
                gtid=gtid_text(row, group.sources),
                committed_at=to_datetime(int(commit_times(row[None])[0])),
                executed_at=to_datetime(query.second * SECOND + context.microseconds),
                server_id=int(row[SERVER]),
            )
        )
    return statements


def with_view_noted(
    logged: LoggedStatement, structures: Callable[[], ServerSchema], server: SourceServer
) -> LoggedStatement:
    """Return the statement. If it is a CREATE TABLE IF NOT EXISTS that created nothing because
    there was a view of this name, that is noted in its context (`finds_view`). `structures`:
    returns the structures before the statement.

    If these structures do not have the database's views, the server says whether the name is a view
    now. The statement may have created a table all the same, which a view replaced later: then the
    table is not in the history, and its rows in the log are refused.
    """
    if not _IF_NOT_EXISTS.search(logged.text):
        return logged
    changes = read_change(logged.text, logged.context)
    if isinstance(changes, Irrelevant | NotUnderstood):
        return logged
    name = may_find_view(structures(), changes, logged.context)
    if name is None:
        return logged
    database = structures().database(name.database)
    code = None if database is None else database.code
    is_view = server.is_view(name) if code is None else code.view(name.name) is not None
    if not is_view:
        return logged
    return replace(logged, context=replace(logged.context, finds_view=True))


def context_of(query: Query, facts: ServerDialect) -> StatementContext:
    """Return the facts about the session in which a statement ran, from the statement's event."""
    context = read_context(query.status, facts, query.database)
    return replace(context, thread_specific=query.thread_specific, error=query.error)


def statement_text(raw: bytes, charset: str) -> str:
    """Return a statement's text, decoded from its client's character set; `binary` means utf8mb4.

    Each invalid byte becomes a surrogate. Inside a literal this changes nothing; inside a name it
    makes a name that no server has. The text after an invalid byte must be decoded as characters
    again, not byte by byte, because the second byte of a character may look like a backslash or a
    quote.
    """
    decode = text_decoder(_DEFAULT_CHARSET if charset == "binary" else charset)
    parts = []
    while raw:
        try:
            parts.append(decode(raw))
            break
        except UnicodeDecodeError as error:
            end = max(error.end, error.start + 1)
            parts.append(decode(raw[: error.start]))
            parts += (chr(_SURROGATES + byte) for byte in raw[error.start : end])
            raw = raw[end:]
    return "".join(parts)


_PAGE: Final = 1_000


def recorded_statements(ledger: Structures, source: str) -> Iterator[SchemaStatement]:
    """Yield all statements that the ledger has of a source. It is read page by page."""

    after = 0
    while page := ledger.schema_statements(source, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id
