"""A server about which there is nothing to say, to be spoiled one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lockstep.pipeline.check.findings import MirrorEvidence, RunEvidence, SourceEvidence
from lockstep.pipeline.model.table_state import Extent
from lockstep.pipeline.ports.source import ListedTable
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.values.survey import AnsweringServer, Survey, SurveyedTable
from lockstep.pipeline.values.table import Column, TableName, TablePatterns, TableStructure

PATTERNS = TablePatterns(("shop.*",))
ORDERS = TableName("shop", "orders")
ITEMS = TableName("shop", "items")
GOOD = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_row_value_options": "",
    "binlog_checksum": "CRC32",
    "sync_binlog": "1",
    "innodb_flush_log_at_trx_commit": "1",
    "binlog_order_commits": "ON",
    "binlog_error_action": "ABORT_SERVER",
    "binlog_expire_logs_seconds": "2592000",
    "binlog_transaction_compression": "OFF",
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "innodb_native_foreign_keys": "OFF",
    "log_replica_updates": "ON",
    "lower_case_table_names": "0",
    "max_allowed_packet": "67108864",
    "net_write_timeout": "60",
    "read_only": "OFF",
    "replica_parallel_workers": "4",
    "replica_preserve_commit_order": "ON",
    "server_id": "1",
    "sql_mode": "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE",
    "super_read_only": "OFF",
    "system_time_zone": "CET",
    "time_zone": "SYSTEM",
}
ANSWERING = AnsweringServer("9.7.4", 7, "9.7.4", 7, "Community", ("db1", "3306", "1", "uuid-1"))
SURVEY = Survey(
    flavour="mysql",
    version="9.7.4",
    settings=GOOD,
    account="lockstep@%",
    grants=(
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `lockstep`@`%`",
        "GRANT XA_RECOVER_ADMIN ON *.* TO `lockstep`@`%`",
    ),
    dump_server_ids=range(2147483648, 2164260864),
    answering_servers=(ANSWERING, replace(ANSWERING, greeting_connection_id=8, connection_id=8)),
    is_encrypted=True,
    is_loopback=False,
    clock_ahead=timedelta(),
    read_at=datetime(2026, 11, 21, tzinfo=UTC),
    tables=(
        SurveyedTable(ORDERS, "BASE TABLE", "InnoDB", is_partitioned=False),
        SurveyedTable(ITEMS, "BASE TABLE", "InnoDB", is_partitioned=False),
    ),
)


def surveyed(settings: dict[str, str] | None = None, **changes: Any) -> Survey:
    """The good server with other settings and other answers."""
    return replace(SURVEY, settings={**GOOD, **(settings or {})}, **changes)


def table(*columns: Column, name: TableName = ORDERS) -> TableStructure:
    """A table whose key is its first column."""
    return TableStructure(name, columns, (columns[0].name,))


STRUCTURES = (table(Column("id", "int")), table(Column("id", "int"), name=ITEMS))


def looked(
    survey: Survey = SURVEY,
    structures: tuple[TableStructure, ...] = STRUCTURES,
    pause: timedelta | None = None,
    partial: tuple[Extent, ...] = (),
    mirrors: tuple[MirrorEvidence, ...] = (),
) -> SourceEvidence:
    plan = SourcePlan("shop", PATTERNS, None)
    return SourceEvidence(survey, plan, pause, partial, mirrors, all_structures=structures)


def planned(evidence: SourceEvidence, **changes: Any) -> SourceEvidence:
    """With other settings of the source."""
    return replace(evidence, plan=replace(evidence.plan, **changes))


def known(**changes: Any) -> RunEvidence:
    tables = [ListedTable(ORDERS, "InnoDB", 0, ("id",)), ListedTable(ITEMS, "InnoDB", 0, ("id",))]
    return replace(RunEvidence.of(SURVEY, tables, PATTERNS, {}), **changes)
