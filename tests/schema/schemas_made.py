"""Schemas and contexts for tests without a server."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.evolve import EvolvedSchema, evolve
from lockstep.pipeline.schema.model import DatabaseSchema, ServerSchema, TableSchema
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.table import TableName

MYSQL = StatementContext(database="shop", server_collation="utf8mb4_0900_ai_ci")
MARIADB = StatementContext(
    facts=ServerDialect(101118, "mariadb"),
    database="shop",
    server_collation="utf8mb4_general_ci",
    utf8mb4_collation="utf8mb4_general_ci",
)
EMPTY = ServerSchema().with_database(DatabaseSchema("shop", "utf8mb4", "utf8mb4_0900_ai_ci"))


def after(
    statements: Sequence[str], context: StatementContext = MYSQL, schema: ServerSchema = EMPTY
) -> EvolvedSchema:
    """All statements, one after the other; the effects are those of the last."""
    done = EvolvedSchema(schema, ())
    for statement in statements:
        read = read_change(statement, context)
        assert not isinstance(read, Irrelevant | NotUnderstood), (statement, read)
        done = evolve(done.schema, read, context)
    return done


def table(statement: str, context: StatementContext = MYSQL) -> TableSchema:
    """The one table that a CREATE TABLE makes."""
    (made,) = after([statement], context).schema.tables.values()
    return made


def named(name: str) -> TableName:
    return TableName("shop", name)
