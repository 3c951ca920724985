"""What kind of statement one is: a code that stays, for whoever picks statements by it.

Belongs here: the codes, and the statement of each. Does not: what a statement did to a table
(`pipeline.schema.sentences`), what followed in the lake (`pipeline.schema.consequences`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pipeline.schema.statements.changes import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateLike,
    CreateSelect,
    CreateTable,
    DropDatabase,
    DropTables,
    NotUnderstood,
    RenameTables,
    RepairTables,
    SchemaChange,
    TruncateTable,
)


class StatementKind(StrEnum):
    """Codes of `_ddl`: none is ever renamed, new ones may come."""

    CREATE_TABLE = "create_table"
    ALTER_TABLE = "alter_table"
    RENAME_TABLE = "rename_table"
    TRUNCATE_TABLE = "truncate_table"
    DROP_TABLE = "drop_table"
    REPAIR_TABLE = "repair_table"
    CREATE_DATABASE = "create_database"
    ALTER_DATABASE = "alter_database"
    DROP_DATABASE = "drop_database"
    NOT_UNDERSTOOD = "not_understood"


_KINDS: Final[Mapping[type, StatementKind]] = {
    CreateTable: StatementKind.CREATE_TABLE,
    CreateLike: StatementKind.CREATE_TABLE,
    CreateSelect: StatementKind.CREATE_TABLE,
    AlterTable: StatementKind.ALTER_TABLE,
    RenameTables: StatementKind.RENAME_TABLE,
    TruncateTable: StatementKind.TRUNCATE_TABLE,
    DropTables: StatementKind.DROP_TABLE,
    RepairTables: StatementKind.REPAIR_TABLE,
    CreateDatabase: StatementKind.CREATE_DATABASE,
    AlterDatabase: StatementKind.ALTER_DATABASE,
    DropDatabase: StatementKind.DROP_DATABASE,
    NotUnderstood: StatementKind.NOT_UNDERSTOOD,
}


def kind_of(read: SchemaChange | NotUnderstood) -> StatementKind:
    """`CREATE INDEX` and `DROP INDEX` are an ALTER TABLE."""
    return _KINDS[type(read)]
