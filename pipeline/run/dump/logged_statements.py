"""The statements of the log: they are read from its QUERY events, with facts about the
session and the server that ran them, or from the ledger, which recorded them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final, TypeVar

from lockstep.pipeline.binlog.search.log_scan import end_of_transaction
from lockstep.pipeline.binlog.stream.commit_times import SECOND, commit_times
from lockstep.pipeline.binlog.stream.control import (
    FormatDescription,
    Query,
    to_datetime,
    version_number,
)
from lockstep.pipeline.binlog.stream.ring import ORIGIN_SERVER, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import gtid_text
from lockstep.pipeline.binlog.transactions.loop import Limits
from lockstep.pipeline.binlog.values.charsets import text_decoder
from lockstep.pipeline.ports.ledger import Structures
from lockstep.pipeline.ports.source import ServerFacts, SourceServer
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.context import ServerDialect, StatementContext, read_context
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.evolve import possible_view
from lockstep.pipeline.schema.history import SchemaStatement
from lockstep.pipeline.schema.model import ServerSchema
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.errors import LockstepError, LogStops
from lockstep.pipeline.values.places import start_at
from lockstep.pipeline.values.position import Coordinates

_DEFAULT_CHARSET: Final = "utf8mb4"
_ROW_STATEMENTS: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE")
"""First words of statements that change rows, but no structure. Such statements are
recognised before anything is parsed, because a heartbeat may log one every second."""

_SURROGATES: Final = 0xDC00
"""An invalid byte b is decoded as the code point 0xDC00 + b, as `surrogateescape` does."""

_PIECE_SIZE: Final = 1_024
"""Number of bytes of a statement that are decoded at once."""

_PAGE_SIZE: Final = 1_000
"""Number of statements that are read from the ledger at once."""

_IF_NOT_EXISTS: Final = re.compile(r"\bnot\b.*\bexists\b", re.IGNORECASE | re.DOTALL)


def dialect_of(facts: ServerFacts) -> ServerDialect:
    """Return the dialect of a server: its version and the settings that change the
    meaning of its statements and are not in the log."""
    number, settings = version_number(facts.version), facts.settings
    return ServerDialect(
        version=ServerDialect().version if number is None else number,
        flavour=facts.flavour,
        lower_case_table_names=int(settings.get("lower_case_table_names") or 0),
        default_engine=settings.get("default_storage_engine") or "InnoDB",
        explicit_timestamps=settings.get("explicit_defaults_for_timestamp") == "ON",
    )


def dialect_of_writer(facts: ServerFacts, description: FormatDescription | None) -> ServerDialect:
    """Return the dialect of the server at the time when it logged a statement.
    `description`: the description of the log file with the statement; None if it is not
    known. `facts`: the server's present facts, which differ after an upgrade."""
    version = facts.version if description is None else description.server_version
    if description is None or version.partition("-")[0] == facts.version.partition("-")[0]:
        return dialect_of(facts)
    # The log does not say which value this variable had before the upgrade: assume the
    # default of older versions.
    settings = {**facts.settings, "explicit_defaults_for_timestamp": "OFF"}
    return dialect_of(
        replace(facts, version=version, flavour=description.writer.flavour, settings=settings)
    )


def all_statements(group: TransactionGroup, dialect: ServerDialect) -> list[LoggedStatement]:
    """Return a group's statements in the order of the log. These are statements that
    may change a structure, and statements that are logged instead of rows
    (`replaces_rows`)."""
    statements = []
    for transaction_index, query in group.statements:
        transaction = group.transactions[transaction_index]
        context = context_of(query, dialect)
        text = statement_text(query.raw, context.client_charset)
        # `query.replaces_rows` says only that it was logged inside a transaction. Not
        # all such statements stand for rows: MariaDB logs a DROP TABLE there for a
        # CREATE OR REPLACE TABLE … SELECT that failed.
        replaces_rows = query.replaces_rows and (
            text[:8].upper().startswith(_ROW_STATEMENTS)
            or isinstance(read_change(text, context), NotUnderstood)
        )
        statements.append(
            LoggedStatement(
                text=text,
                context=context,
                replaces_rows=replaces_rows,
                begin=group.begin(transaction_index),
                end=group.end(transaction_index),
                gtid=gtid_text(transaction, group.gtid_sources),
                committed_at=to_datetime(int(commit_times(transaction[None])[0])),
                executed_at=to_datetime(query.timestamp * SECOND + context.microseconds),
                server_id=int(transaction[ORIGIN_SERVER]),
            )
        )
    return statements


def statements_between(
    ports: RunPorts, run_start: RunStart, start: Coordinates, end: Coordinates
) -> Iterator[LoggedStatement]:
    """Yield the statements that may change a structure, from one place of the log to
    another."""
    if start >= end:
        return
    with closing(ports.server.dump(start)) as dump:
        buffer = TransactionBuffer(
            start,
            begins=dump.begins,
            is_captured=lambda _: False,
            spool=ports.spool,
            limits=Limits(end),
            leave_out=run_start.leave_out,
        )
        buffer.prepared.wants_no_rows = True
        try:
            for received in dump:
                buffer.put(received)
                while (group := buffer.get()) is not None:
                    dialect = dialect_of_writer(run_start.facts, buffer.description)
                    statements = all_statements(group, dialect)
                    yield from (
                        statement for statement in statements if not statement.replaces_rows
                    )
                    buffer.ack()
                if buffer.has_stopped or buffer.has_ended:
                    break
        except LogStops as error:
            raise with_command_to_continue(error, ports, end) from error


StoppingError = TypeVar("StoppingError", bound=LogStops)


def with_command_to_continue(
    error: StoppingError, ports: RunPorts, head: Coordinates
) -> StoppingError:
    """Return the error with a hint that has the command to continue after the
    transaction which stopped the run. If the end of this transaction cannot be found,
    return the error unchanged. `head`: the end of the log."""
    if not error.event_place:
        return error
    begin = Coordinates.parse(error.event_place)
    try:
        with closing(ports.server.dump(begin)) as dump:
            end = end_of_transaction(dump, begin, head)
    except LockstepError:
        return error
    hint = (
        f"{error.hint}. To go on after this transaction, without its changes: "
        f"{start_at(end, ports.source.name)}"
    )
    return type(error)(error.message, hint=hint, transaction_end=error.transaction_end)


def with_existing_view(
    statement: LoggedStatement, structures: Callable[[], ServerSchema], server: SourceServer
) -> LoggedStatement:
    """Return the statement, with `finds_view` set in its context if it is a CREATE
    TABLE IF NOT EXISTS and a view, or a sequence of MariaDB, has the table's name, so
    that it created nothing. `structures`: returns the structures before the statement.

    If these structures do not have the database's views, ask the server whether it has
    such a view now. The statement may still have created a table, which a view replaced
    later. In this case the history lacks the table, which is quarantined at its first
    rows in the log.
    """
    if not _IF_NOT_EXISTS.search(statement.text):
        return statement
    changes = read_change(statement.text, statement.context)
    if isinstance(changes, Irrelevant | NotUnderstood):
        return statement
    name = possible_view(structures(), changes, statement.context)
    if name is None:
        return statement
    database = structures().database(name.database)
    code = None if database is None else database.code
    has_view = (
        server.is_view_or_sequence(name) if code is None else code.view(name.name) is not None
    )
    if not has_view:
        return statement
    return replace(statement, context=replace(statement.context, finds_view=True))


def context_of(query: Query, dialect: ServerDialect) -> StatementContext:
    """Return the facts about the session that are in the statement's event."""
    context = read_context(query.status_variables, dialect, query.database)
    return replace(context, thread_specific=query.is_thread_specific, error=query.error_number)


def statement_text(raw: bytes, charset: str) -> str:
    """Return a statement's text, decoded from its client's character set; `binary`
    means utf8mb4.

    Each invalid byte becomes a surrogate. In a literal it does not affect parsing; a
    name with a surrogate is the name of no table or column. The valid characters after
    it are still decoded as such: a byte of theirs may look like a backslash or a quote.
    """
    decode = text_decoder(_DEFAULT_CHARSET if charset == "binary" else charset)
    texts = []
    begin = 0
    while begin < len(raw):
        # An error copies all that was to be decoded, and a binary literal has an error
        # at every second byte: so the text is decoded piece by piece.
        piece = raw[begin : begin + _PIECE_SIZE]
        try:
            texts.append(decode(piece))
            begin += len(piece)
        except UnicodeDecodeError as error:
            # The end of a piece may divide a character: only what is refused at the
            # beginning of a piece is invalid.
            valid, invalid = piece[: error.start], piece[: max(error.end, 1)]
            if valid:
                texts.append(decode(valid))
                begin += len(valid)
            else:
                texts += (chr(_SURROGATES + byte) for byte in invalid)
                begin += len(invalid)
    return "".join(texts)


def recorded_statements(ledger: Structures, source: str) -> Iterator[SchemaStatement]:
    """Yield all statements of a source in the ledger. The ledger is read page by page."""
    after = 0
    while page := ledger.schema_statements(source, limit=_PAGE_SIZE, after=after):
        yield from page
        after = page[-1].id
