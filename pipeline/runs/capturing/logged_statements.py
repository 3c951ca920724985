"""QUERY events of the log as statements that can be followed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from pipeline.binlog.stream.commit_times import SECOND, commit_times
from pipeline.binlog.stream.control import Query, moment
from pipeline.binlog.stream.description import Description, version_number
from pipeline.binlog.stream.ring import SERVER, TransactionGroup
from pipeline.binlog.text.charsets import text_decoder
from pipeline.binlog.transactions.identity import gtid_text
from pipeline.ports.ledger import Ledger
from pipeline.ports.source import ServerFacts, SourceServer
from pipeline.schema.context import ServerDialect, StatementContext, read_context
from pipeline.schema.evolve import may_find_view
from pipeline.schema.history import SchemaStatement
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.model import ServerSchema
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change

_OWN: Final = "utf8mb4"
_CHANGE_ROWS: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE")
"""First words of statements that change no structure: a heartbeat comes every second."""

_SURROGATES: Final = 0xDC00
_IF_NOT_EXISTS: Final = re.compile(r"\bnot\b.*\bexists\b", re.IGNORECASE | re.DOTALL)


def facts_of(version: str, flavour: str, settings: Mapping[str, str]) -> ServerDialect:
    """What no event tells, from what the server said of itself."""
    number = version_number(version)
    return ServerDialect(
        version=ServerDialect().version if number is None else number,
        flavour=flavour,
        lower_case_table_names=int(settings.get("lower_case_table_names") or 0),
        default_engine=settings.get("default_storage_engine") or "InnoDB",
        explicit_timestamps=settings.get("explicit_defaults_for_timestamp") == "ON",
    )


def facts_of_server(facts: ServerFacts) -> ServerDialect:
    """What the context of a statement needs of the server."""
    return facts_of(facts.version, facts.flavour, facts.settings)


def facts_of_writer(facts: ServerFacts, writer: Description | None) -> ServerDialect:
    """Return what the context of a statement needs of the server that logged it: the version may
    be one that the server has been upgraded from since."""
    if writer is None or writer.version.partition("-")[0] == facts.version.partition("-")[0]:
        return facts_of_server(facts)
    # A setting that an older version does not log has to be taken as it was by default.
    settings = {**facts.settings, "explicit_defaults_for_timestamp": "OFF"}
    return facts_of(writer.version, writer.flavour, settings)


def logged_statements(group: TransactionGroup, facts: ServerDialect) -> list[LoggedStatement]:
    """The statements of a run that may change a structure, in the order of the log."""
    return [logged for logged in all_statements(group, facts) if not logged.for_rows]


def all_statements(group: TransactionGroup, facts: ServerDialect) -> list[LoggedStatement]:
    """The statements of a run that may change a structure, or that stand for rows, in the order of
    the log. A DROP TABLE inside a transaction changes a structure: MariaDB logs it for a CREATE OR
    REPLACE TABLE … SELECT that failed."""
    found = []
    for number, query in group.statements:
        row = group.transactions[number]
        context = context_of(query, facts)
        text = statement_text(query.raw, context.client_charset)
        for_rows = query.for_rows and (
            text[:8].upper().startswith(_CHANGE_ROWS)
            or isinstance(read_change(text, context), NotUnderstood)
        )
        found.append(
            LoggedStatement(
                text=text,
                context=context,
                for_rows=for_rows,
                begin=group.begin(number),
                end=group.end(number),
                gtid=gtid_text(row, group.sources),
                committed_at=moment(int(commit_times(row[None])[0])),
                executed_at=moment(query.second * SECOND + context.microseconds),
                server_id=int(row[SERVER]),
            )
        )
    return found


def with_views(
    logged: LoggedStatement, structures: Callable[[], ServerSchema], server: SourceServer
) -> LoggedStatement:
    """Return the statement with what is known of the name that CREATE TABLE IF NOT EXISTS gives, if
    `structures`, which hold where the statement stands, have no table of that name.

    Where they do not know the database's views, the server is asked what has the name now. If the
    statement did make a table, which was dropped for a view since, rows of that table in the log
    are refused: it is not in the history.
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
    viewed = server.is_view(name) if code is None else code.view(name.name) is not None
    if not viewed:
        return logged
    return replace(logged, context=replace(logged.context, finds_view=True))


def context_of(query: Query, facts: ServerDialect) -> StatementContext:
    """The session that a statement ran in, as its event tells it."""
    context = read_context(query.status, facts, query.database)
    return replace(context, thread_specific=query.thread_specific, error=query.error)


def statement_text(raw: bytes, charset: str) -> str:
    """A statement's bytes in its client's character set; `binary` stands for the server's own.

    Bytes without meaning are kept as surrogates, one for each: inside a literal they change
    nothing, inside a name they make one that no server has. What is behind them is read on, for
    the second byte of a character may look like a quote's escape.
    """
    decode = text_decoder(_OWN if charset == "binary" else charset)
    found = []
    while raw:
        try:
            found.append(decode(raw))
            break
        except UnicodeDecodeError as error:
            end = max(error.end, error.start + 1)
            found.append(decode(raw[: error.start]))
            found += (chr(_SURROGATES + byte) for byte in raw[error.start : end])
            raw = raw[end:]
    return "".join(found)


_PAGE: Final = 1_000


def recorded_statements(ledger: Ledger, source: str) -> Iterator[SchemaStatement]:
    """All of them, asked for in pages."""
    after = 0
    while page := ledger.schema_statements(source, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id
