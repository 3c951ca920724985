"""Every rule of the preflight is made to speak, one server at a time; what the lines of SHOW GRANTS
give; and what a schedule asks of the log's retention."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from croniter import croniter

from lockstep.pipeline.check import CHECK_RULES, RUN_RULES, Finding, check_findings, run_findings
from lockstep.pipeline.check.account import has_globally
from lockstep.pipeline.check.findings import (
    MirrorEvidence,
    RunEvidence,
    SourceEvidence,
    findings_of,
)
from lockstep.pipeline.check.log import RETENTION_RULES, longest_pause
from lockstep.pipeline.model.table_state import Extent
from lockstep.pipeline.ports.source import ListedTable
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.model import KeyPart, KeySchema, TableSchema
from lockstep.pipeline.schema.rows import schema_of
from lockstep.pipeline.schema.treatments import Conversion, Hash, Mask
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.source_plan import TableSettings
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    NothingMatches,
    PrivilegeMissing,
    ServerSettings,
)
from lockstep.pipeline.values.mirror_names import MirrorNameTemplate
from lockstep.pipeline.values.policies import Deletes, ForeignKeys, LakePolicies
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.retention import Retention
from lockstep.pipeline.values.shown import duration_text
from lockstep.pipeline.values.survey import (
    Channel,
    LogFilters,
    ReadReplica,
    RegisteredReplica,
    SessionOverride,
    SurveyedForeignKey,
    SurveyedTable,
    has_privilege,
    read_grants,
)
from lockstep.pipeline.values.table import Column, StatementPatterns, TableName, TablePatterns
from tests.pipeline.preflight_made import (
    ANSWERING,
    GOOD,
    ITEMS,
    ORDERS,
    SURVEY,
    known,
    looked,
    planned,
    surveyed,
    table,
)

UPSTREAM = Channel("db0", is_receiving=True, is_applying=True, lag=0)
MARIADB: dict[str, Any] = {"flavour": "mariadb", "version": "10.11.18-MariaDB-log"}
ID = Column("id", "int")


def kind(name: str, engine: str, partitioned: bool = False) -> SourceEvidence:
    """The shop with one table of that kind and engine."""
    return looked(surveyed(tables=(SurveyedTable(ORDERS, name, engine, partitioned),)))


ALL = ("GRANT ALL PRIVILEGES ON *.* TO `lockstep`@`%`",)


def settings(**found: str) -> SourceEvidence:
    return looked(surveyed(found))


def replica(channel: Channel = UPSTREAM, **found: str) -> SourceEvidence:
    """The server replicates from another one."""
    return looked(surveyed({"super_read_only": "ON", **found}, channels=(channel,)))


def foreign_key(on_delete: str | None, **found: str) -> SourceEvidence:
    key = SurveyedForeignKey("fk", ITEMS, ORDERS, on_delete and "NO ACTION", on_delete)
    return looked(surveyed(found, foreign_keys=(key,)))


def odd(variable: str, value: str) -> SourceEvidence:
    """Two sessions have that value for themselves."""
    return looked(
        surveyed({variable: "?"}, session_overrides=(SessionOverride(variable, value, 2),))
    )


def answering(**changes: Any) -> SourceEvidence:
    """The second connection is answered otherwise."""
    return looked(surveyed(answering_servers=(ANSWERING, replace(ANSWERING, **changes))))


def columns(*found: Column, **changed: str) -> SourceEvidence:
    return looked(surveyed(changed), (table(*found),))


def followed(*found: Column, **policies: Any) -> SourceEvidence:
    """A table with these columns, or without a key, which is followed by these policies."""
    structure = table(*found) if found else replace(table(ID), primary_key=())
    evidence = looked(structures=(structure,))
    return planned(evidence, lake_policies=replace(LakePolicies(), **policies))


BLOCK = TablePatterns((str(ORDERS),))
EMAIL = Column("email", "varchar", length=80, charset="utf8mb4")
EMAILS: dict[str, Any] = {"hash_columns": {"email": Hash.EXACT}}


def shown(
    *found: Column,
    key: bytes | None = b"a key",
    virtual: bool = False,
    of: TableSchema | None = None,
    **rules: Any,
) -> SourceEvidence:
    """The orders have these columns besides their key, and settings of what is shown of them."""
    schema = of or schema_of(table(ID, *found))
    if virtual:
        last = replace(schema.columns[-1], generated="1", stored=False)
        schema = replace(schema, columns=(*schema.columns[:-1], last))
    settings = (TableSettings(BLOCK, {}, ShapeRules(**rules)),)
    evidence = planned(looked(), table_settings=settings)
    shaping = evidence.plan.shaping(None if key is None else PrivacyKey(key))
    return replace(evidence, shaping=shaping, schemas_to_shape=(schema,))


def hashed_with(key: bytes) -> SourceEvidence:
    """The lake is hashed with a key, and the settings have another."""
    schema = schema_of(table(ID, EMAIL))
    _, shown_as = shown(EMAIL, key=key, **EMAILS).shaping.for_history(schema)
    version = SchemaVersion(
        ORDERS,
        1,
        Coordinates.parse("binlog.000001:4"),
        Knowledge.KNOWN,
        VersionOrigin.BASELINE,
        schema=schema,
        shown_as=shown_as,
    )
    return replace(shown(EMAIL, **EMAILS), shaped_versions=(version,))


def shown_again() -> SourceEvidence:
    """The lake is hashed, and the settings hide nothing any more."""
    hashed = planned(hashed_with(b"a key"), table_settings=())
    return replace(hashed, shaping=Shaping(), schemas_to_shape=())


def dropped(**rules: Any) -> SourceEvidence:
    """The orders had a column that is gone."""
    return replace(shown(EMAIL, **rules), recorded_columns={ORDERS: {"id", "mail"}})


def in_part(evidence: SourceEvidence) -> SourceEvidence:
    """The server logs rows in part."""
    return replace(evidence, survey=surveyed({"binlog_row_image": "MINIMAL"}))


def named(*names: str) -> SourceEvidence:
    return looked(structures=tuple(table(ID, name=TableName("shop", name)) for name in names))


def block(*match: str, **policies: Any) -> TableSettings:
    return TableSettings(TablePatterns(match), policies or {"deletes": Deletes.SOFT})


def into(text: str, *tables: str) -> SourceEvidence:
    """Tables of the shop whose mirrors are all called so."""
    found = tuple(
        SurveyedTable(TableName("shop", name), "BASE TABLE", "InnoDB", False) for name in tables
    )
    rule = TableSettings(TablePatterns(("*",)), {}, into=MirrorNameTemplate.parse(text))
    return planned(looked(surveyed(tables=found)), table_settings=(rule,))


RUN_CASES: list[tuple[str, RunEvidence, str, type[Exception] | None]] = [
    ("version", known(version="5.6.51"), "refusal", ServerSettings),
    ("version", known(version="10.4.2-MariaDB", flavour="mariadb"), "refusal", ServerSettings),
    ("version", known(flavour="percona-tidb"), "refusal", ServerSettings),
    *(
        (name, known(variables={**GOOD, name: value}), "refusal", ServerSettings)
        for name, value in (
            ("log_bin", "OFF"),
            ("binlog_format", "STATEMENT"),
            ("binlog_format", "MIXED"),
            ("binlog_row_value_options", "PARTIAL_JSON"),
        )
    ),
    ("patterns", known(tables=[]), "refusal", NothingMatches),
    ("primary key", known(tables=[ListedTable(ORDERS, "InnoDB", 0, ())]), "warning", None),
    ("stopped tables", known(stopped_tables=[ORDERS]), "warning", None),
]

SHORT = MirrorEvidence(
    ORDERS, "/lake/shop/shop/orders", Retention(timedelta(days=7), timedelta(days=30))
)

CASES: list[tuple[str, SourceEvidence, str]] = [
    ("settings of tables", planned(looked(), table_settings=(block("shop.nothing"),)), "refusal"),
    ("settings of tables", planned(looked(), table_settings=(block("shop.orders"),)), "ok"),
    ("exclude", planned(looked(), patterns=TablePatterns(("*.*",), ("shop.ordrs",))), "warning"),
    ("one server", answering(identity=("db2", "3306", "2", "uuid-2")), "refusal"),
    ("proxy", answering(version_comment="(ProxySQL)"), "warning"),
    ("proxy", answering(greeting_version="8.0.11"), "warning"),
    ("proxy", answering(greeting_connection_id=4711), "warning"),
    ("tls", looked(surveyed(is_encrypted=False)), "warning"),
    ("clock", looked(surveyed(clock_ahead=timedelta(minutes=-3))), "warning"),
    ("time zone", looked(), "ok"),
    ("net_write_timeout", settings(net_write_timeout="10"), "warning"),
    ("max_allowed_packet", settings(max_allowed_packet="1048576"), "warning"),
    ("replication privileges", looked(surveyed(grants=())), "refusal"),
    ("select", looked(surveyed(grants=())), "warning"),
    ("lock tables", looked(structures=(replace(table(ID), primary_key=()),)), "warning"),
    ("xa", looked(surveyed(grants=())), "warning"),
    ("password lifetime", settings(default_password_lifetime="90"), "warning"),
    ("connections", settings(max_user_connections="8"), "warning"),
    ("waiting ALTER", looked(surveyed(grants=())), "warning"),
    (
        "waiting ALTER",
        looked(surveyed(grants=("GRANT SELECT ON *.* TO `a`@`%`",), **MARIADB)),
        "warning",
    ),
    ("triggers and views", looked(surveyed(grants=ALL)), "ok"),
    ("triggers and views", looked(), "ok"),
    (
        "triggers and views",
        looked(surveyed(session_overrides=(SessionOverride("binlog_format", "STATEMENT", 1),))),
        "warning",
    ),
    (
        "triggers and views",
        planned(
            looked(surveyed(grants=ALL)), allowed_statements=StatementPatterns(("mysql.rds_%",))
        ),
        "ok",
    ),
    ("prepared statements", settings(max_prepared_stmt_count="9"), "warning"),
    ("binlog_checksum", settings(binlog_checksum="NONE"), "warning"),
    ("binlog_row_image", settings(binlog_row_image="MINIMAL"), "warning"),
    ("binlog_row_image", settings(binlog_row_image="NOBLOB"), "warning"),
    ("sync_binlog", settings(sync_binlog="0"), "warning"),
    ("sync_binlog", settings(sync_binlog="100"), "warning"),
    ("innodb_flush_log_at_trx_commit", settings(innodb_flush_log_at_trx_commit="2"), "warning"),
    ("binlog_order_commits", settings(binlog_order_commits="OFF"), "warning"),
    ("binlog_error_action", settings(binlog_error_action="IGNORE_ERROR"), "warning"),
    ("binlog_storage_engine", settings(binlog_storage_engine="innodb"), "refusal"),
    ("mysql56_temporal_format", settings(mysql56_temporal_format="OFF"), "warning"),
    ("gtid_strict_mode", settings(gtid_strict_mode="OFF"), "warning"),
    ("gtid_mode", settings(gtid_mode="ON_PERMISSIVE"), "warning"),
    ("enforce_gtid_consistency", settings(enforce_gtid_consistency="WARN"), "warning"),
    ("binlog_row_metadata", settings(binlog_row_metadata="MINIMAL"), "ok"),
    ("binlog_row_metadata", settings(binlog_row_metadata="NO_LOG"), "ok"),
    ("encryption", settings(binlog_encryption="ON"), "ok"),
    ("encryption", settings(encrypt_binlog="ON"), "ok"),
    ("compression", settings(log_bin_compress="ON"), "ok"),
    ("retention", settings(binlog_expire_logs_seconds="86400"), "warning"),
    ("reading tables", settings(binlog_expire_logs_seconds="1100"), "warning"),
    ("log size limit", settings(binlog_space_limit="1073741824"), "warning"),
    ("log size limit", settings(max_binlog_total_size="1073741824"), "warning"),
    ("managed service", settings(basedir="/rdsdbbin/mysql-8.4.5/"), "warning"),
    ("managed service", settings(aurora_version="3.10"), "warning"),
    ("server id", settings(server_id=str(SURVEY.dump_server_ids[52])), "warning"),
    ("server id", settings(server_id="0"), "refusal"),
    (
        "server id",
        looked(surveyed(replicas=(RegisteredReplica(SURVEY.dump_server_ids[52], "db3"),))),
        "warning",
    ),
    ("log_replica_updates", replica(log_replica_updates="OFF"), "refusal"),
    ("log_replica_updates", settings(wsrep_on="ON", log_replica_updates="OFF"), "refusal"),
    ("replica_preserve_commit_order", replica(replica_preserve_commit_order="OFF"), "warning"),
    ("writable replica", replica(super_read_only="OFF"), "warning"),
    ("replica state", replica(replace(UPSTREAM, is_receiving=False)), "warning"),
    ("replica state", replica(replace(UPSTREAM, is_applying=False)), "warning"),
    ("replica state", replica(replace(UPSTREAM, lag=7200)), "warning"),
    (
        "hidden replica",
        looked(surveyed({"gtid_slave_pos": "0-1-5"}, unanswered_fields=frozenset({"channels"}))),
        "warning",
    ),
    ("log filters", looked(surveyed(filters=LogFilters(included=("crm",)))), "refusal"),
    ("log filters", looked(surveyed(filters=LogFilters(excluded=("shop",)))), "refusal"),
    ("read_from", looked(surveyed(read_replica=ReadReplica("db3:3306"))), "ok"),
    ("read_from", looked(surveyed(read_replica=ReadReplica("db3:3306", "no GTIDs"))), "refusal"),
    ("galera", settings(wsrep_on="ON"), "warning"),
    ("engine", kind("BASE TABLE", "MyISAM"), "warning"),
    ("engine", kind("BASE TABLE", "Aria"), "warning"),
    ("engine", kind("BASE TABLE", "MEMORY"), "refusal"),
    ("engine", kind("BASE TABLE", "BLACKHOLE"), "refusal"),
    ("engine", kind("BASE TABLE", "MRG_MYISAM"), "refusal"),
    ("engine", kind("BASE TABLE", "FEDERATED"), "refusal"),
    ("engine", kind("BASE TABLE", "SPIDER"), "refusal"),
    ("system versioning", kind("SYSTEM VERSIONED", "InnoDB"), "refusal"),
    ("sequences", kind("SEQUENCE", "InnoDB"), "warning"),
    ("partitions", kind("BASE TABLE", "InnoDB", partitioned=True), "warning"),
    ("foreign keys", foreign_key("CASCADE"), "ok"),  # MySQL logs what it does to the children
    ("foreign keys", foreign_key("RESTRICT", innodb_native_foreign_keys="ON"), "ok"),
    ("foreign keys", foreign_key("CASCADE", innodb_native_foreign_keys="ON"), "warning"),
    ("foreign keys", foreign_key("SET NULL", innodb_native_foreign_keys="ON"), "warning"),
    ("foreign keys", foreign_key(None, innodb_native_foreign_keys="ON"), "warning"),
    ("lower_case_table_names", settings(lower_case_table_names="2"), "warning"),
    (
        "partial mirrors",
        looked(partial=(Extent(ORDERS, Coordinates.parse("binlog.000001:157")),)),
        "warning",
    ),
    ("types", columns(ID, Column("c", "compressed text")), "warning"),
    ("types", columns(ID, Column("c", "old datetime")), "warning"),
    ("character sets", columns(ID, Column("c", "varchar", charset="klingon")), "warning"),
    ("keys of equal text", columns(Column("id", "varchar", charset="cp932")), "warning"),
    ("keys of equal text", columns(Column("id", "enum", members=("a", ""))), "warning"),
    ("floating-point keys", columns(Column("id", "double")), "warning"),
    ("zero dates in keys", columns(Column("id", "date"), sql_mode=""), "warning"),
    ("names and case", named("T", "t", "other"), "refusal"),
    ("names of mirrors", into("T.t", "customers", "orders"), "refusal"),
    ("types", columns(ID, Column("\u00df", "int"), Column("\u1e9e", "int")), "warning"),
    ("columns of MERGE", columns(ID, Column("filePath", "int")), "warning"),
    ("many columns", columns(*(Column(f"c{n}", "int") for n in range(501))), "warning"),
    ("changelog columns", columns(ID, Column("unit price", "int")), "ok"),
    ("changelog columns", columns(ID, Column("_batch", "int")), "ok"),
    ("columns of mirrors", followed(ID, Column("_Gtid", "text"), stamps=("_gtid",)), "refusal"),
    ("columns of mirrors", followed(stamps=("_gtid",)), "refusal"),
    (
        "columns of mirrors",
        followed(ID, Column("_deleted_at", "int"), deletes=Deletes.SOFT),
        "refusal",
    ),
    ("clustering", followed(ID, cluster_by=("ID", "gone")), "refusal"),
    ("clustering", followed(ID, Column("c", "blob"), cluster_by=("c",)), "refusal"),
    ("columns and rows", shown(EMAIL, exclude_columns=("id",)), "refusal"),
    ("columns and rows", shown(EMAIL, **EMAILS), "ok"),
    ("columns shown again", shown_again(), "warning"),
    ("names of hidden columns", shown(EMAIL, exclude_columns=("mail",)), "refusal"),
    ("names of hidden columns", dropped(exclude_columns=("Mail",)), "warning"),
    (
        "names of hidden columns",
        replace(dropped(exclude_columns=("emial",)), schemas_to_shape=()),
        "refusal",
    ),
    ("names of columns", shown(EMAIL, include_columns=("id", "mail")), "refusal"),
    ("names of columns", dropped(include_columns=("id", "Mail")), "warning"),
    ("row images for conditions", in_part(shown(EMAIL, rows="id > 5")), "refusal"),
    ("privacy key", hashed_with(b"another key"), "refusal"),
    ("privacy key", hashed_with(b"a key"), "ok"),
    ("session sql_log_bin", odd("sql_log_bin", "OFF"), "warning"),
    ("session binlog_format", odd("binlog_format", "STATEMENT"), "warning"),
    ("session binlog_row_image", odd("binlog_row_image", "MINIMAL"), "warning"),
    (
        "session binlog_row_value_options",
        odd("binlog_row_value_options", "PARTIAL_JSON"),
        "warning",
    ),
    ("session skip_replication", odd("skip_replication", "ON"), "ok"),
    ("session binlog_transaction_compression", odd("binlog_transaction_compression", "ON"), "ok"),
    ("session gtid_next", looked(), "ok"),
    ("versions kept", looked(mirrors=(SHORT,)), "warning"),
    (
        "files of mirrors",
        looked(mirrors=(replace(SHORT, reason_unreadable="1 of its files were deleted"),)),
        "warning",
    ),
    (
        "files of changelogs",
        looked(
            mirrors=(replace(SHORT, reason_changelog_unreadable="1 of its files were deleted"),)
        ),
        "warning",
    ),
]


def _judged(name: str, evidence: SourceEvidence) -> list[Finding]:
    return list(findings_of([rule for rule in CHECK_RULES if rule.name == name], evidence))


KEYLESS = replace(schema_of(table(ID, EMAIL)), keys=())
UNIQUE = replace(
    schema_of(table(ID, replace(EMAIL, nullable=False))),
    keys=(KeySchema("email", "unique", (KeyPart("email"),)),),
)
REFUSED: list[tuple[SourceEvidence, list[str]]] = [
    (
        shown(EMAIL, exclude_columns=("ID",), mask_columns={"email": Mask("year")}),
        [
            "column 'id' cannot be shown as its settings say: it belongs to a key that identifies "
            "rows",
            "column 'email' cannot be shown as its settings say: VARCHAR cannot be shown as year",
        ],
    ),
    (
        shown(EMAIL, key=None, **EMAILS),
        ["its settings hash columns, and there is no key for the hashes"],
    ),
    (
        shown(EMAIL, rows="email = ''", virtual=True),
        ["its condition uses column 'email', which is computed when it is read"],
    ),
    (
        shown(of=UNIQUE, exclude_columns=("email",)),
        [
            "column 'email' cannot be shown as its settings say: it belongs to a key that "
            "identifies rows"
        ],
    ),
    (shown(of=KEYLESS, exclude_columns=("*",)), ["its settings leave every column out"]),
]


@pytest.mark.parametrize(("evidence", "sentences"), REFUSED)
def test_what_cannot_be_shown_is_refused_by_name(
    evidence: SourceEvidence, sentences: list[str]
) -> None:
    """All of it, about the table."""
    found = _judged("columns and rows", evidence)
    assert [(one.level, one.subject) for one in found] == [("refusal", "shop.orders")] * len(found)
    assert [one.sentence for one in found] == sentences


def test_what_is_shown_of_a_table_is_a_line() -> None:
    """The table is its subject."""
    phone, ssn = (Column(name, "varchar", length=20, charset="ascii") for name in ("phone", "ssn"))
    (finding,) = _judged(
        "columns and rows",
        shown(
            EMAIL,
            phone,
            ssn,
            **EMAILS,
            mask_columns={"phone": Mask("last", 4)},
            exclude_columns=("ssn",),
            rows="id > 5 and phone is not null",
        ),
    )
    assert (finding.subject, finding.topic) == ("shop.orders", "shop.orders")
    assert finding.sentence == (
        "email hashed, phone masked last:4, ssn left out, rows where id > 5 and phone is not null; "
        "columns added later are shown"
    )


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            {
                "exclude_columns": ("*iban*",),
                "hash_columns": {"mail": Hash.EXACT, "email": Hash.EXACT},
            },
            "email hashed; columns added later are shown, except *iban*, mail",
        ),
        (
            {"include_columns": ("id", "public_*"), "exclude_columns": ("*iban*",)},
            "email left out; columns added later are left out, except public_*",
        ),
        (
            {"include_columns": ("*",)},
            "is shown as it is; columns added later are left out, except *",
        ),
        (
            {"mask_columns": {"*iban": Mask("null")}},
            "is shown as it is; columns added later are shown, except *iban",
        ),
    ],
)
def test_what_becomes_of_later_columns_is_said(rules: dict[str, Any], sentence: str) -> None:
    """With the names and patterns that wait for them."""
    [finding] = _judged("columns and rows", shown(EMAIL, **rules))
    assert finding.sentence == sentence


def test_a_name_with_a_wildcard_may_wait_for_its_columns() -> None:
    """One without is a mistake, which is told with its setting and its block."""
    waiting = shown(EMAIL, exclude_columns=("*_secret",), hash_columns={"e[-]*": Hash.EXACT})
    assert _judged("names of columns", waiting) == _judged("names of hidden columns", waiting) == []
    unseen = replace(dropped(exclude_columns=("mail",)), schemas_to_shape=())
    assert _judged("names of hidden columns", unseen) == []
    (finding,) = _judged("names of columns", shown(EMAIL, types={"E-mail": Conversion.STRING}))
    assert (finding.subject, finding.sentence) == (
        '[[sources.table]] match = ["shop.orders"]',
        "types names 'E-mail', and no column of its tables has or had that name",
    )


def test_another_key_than_the_lakes_is_refused_as_a_run_does() -> None:
    """Both fingerprints are told."""
    told = [one for one in _judged("privacy key", hashed_with(b"other")) if one.level != "ok"]
    assert [(one.subject, type(one.error)) for one in told] == [("shop.orders", ConfigurationError)]
    for key in (b"other", b"a key"):
        assert PrivacyKey(key).fingerprint in told[0].sentence


def test_a_good_server_has_nothing_to_answer_for() -> None:
    """Every line is ok, and there are more than thirty."""
    found = check_findings(known(), looked())
    assert {finding.level for finding in found} == {"ok"}
    assert len(found) > 30


@pytest.mark.parametrize(
    ("name", "evidence", "level", "error"), RUN_CASES, ids=[case[0] for case in RUN_CASES]
)
def test_a_rule_of_a_run(
    name: str, evidence: RunEvidence, level: str, error: type[Exception] | None
) -> None:
    """One fault, one finding besides the good ones; a refusal carries the run's error."""
    (finding,) = [finding for finding in run_findings(evidence) if finding.level != "ok"]
    assert finding.level == level
    assert (type(finding.error) if finding.error else None) is error


@pytest.mark.parametrize(("name", "evidence", "level"), CASES, ids=[case[0] for case in CASES])
def test_a_rule_of_check(name: str, evidence: SourceEvidence, level: str) -> None:
    """The rule speaks at that level, and has something to type or do."""
    found = [finding for finding in _judged(name, evidence) if finding.level == level]
    assert found
    assert all(finding.sentence for finding in found)
    assert level == "ok" or all(finding.hint for finding in found)


def test_every_rule_has_a_case() -> None:
    """A rule that nothing makes speak may be dead."""
    assert {rule.name for rule in RUN_RULES} == {case[0] for case in RUN_CASES}
    assert {rule.name for rule in CHECK_RULES} == {case[0] for case in CASES}
    assert len(RUN_RULES) + len(CHECK_RULES) > 30


def test_a_known_table_that_is_gone_is_no_idle_pattern() -> None:
    """The ledger's tables count as matched; one that is stopped does not stop a run again."""
    gone = known(tables=[], ledger_tables=[ORDERS])
    assert [finding.level for finding in run_findings(gone) if finding.error] == []
    keyless = known(
        tables=[ListedTable(ORDERS, "InnoDB", 0, ())],
        ledger_tables=[ORDERS],
        stopped_tables=[ORDERS],
    )
    assert [finding.error for finding in run_findings(keyless) if finding.error] == []


def test_the_grant_names_the_account() -> None:
    """As CURRENT_USER() gives it, quotes and all, and in the flavour's own words."""
    survey = surveyed(account="o'brien@10.%", grants=())
    (finding,) = _judged("replication privileges", looked(survey))
    assert isinstance(finding.error, PrivilegeMissing)
    assert finding.hint == (
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'o''brien'@'10.%';"
    )
    (other,) = _judged("replication privileges", looked(surveyed(grants=(), **MARIADB)))
    assert other.hint == "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'lockstep'@'%';"


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("new.*", "correct the pattern, or GRANT SELECT ON `new`.* TO 'lockstep'@'%';"),
        ("new.t", "correct the pattern, or GRANT SELECT ON `new`.`t` TO 'lockstep'@'%';"),
        ("new.t[12]", "correct the pattern, or GRANT SELECT ON `new`.* TO 'lockstep'@'%';"),
        ("n*.t", "correct the pattern, or grant SELECT on the tables it means (n*.t)"),
    ],
)
def test_a_pattern_without_tables_has_its_grant(pattern: str, hint: str) -> None:
    """To be typed as it stands, if the pattern names a database."""
    known = RunEvidence.of(SURVEY, [], TablePatterns((pattern,), ()), {})
    assert [one.hint for one in run_findings(known) if one.subject == pattern] == [hint]


def test_tables_are_named_one_by_one() -> None:
    """Each table that lacks SELECT has its own GRANT."""
    found = _judged("select", looked(surveyed(grants=())))
    assert [(f.subject, f.hint) for f in found] == [
        ("shop.orders", "GRANT SELECT ON `shop`.`orders` TO 'lockstep'@'%';"),
        ("shop.items", "GRANT SELECT ON `shop`.`items` TO 'lockstep'@'%';"),
    ]


def test_a_server_without_the_switch_has_another_cure() -> None:
    """MariaDB has no innodb_native_foreign_keys to set."""
    settings = {name: value for name, value in GOOD.items() if "native" not in name}
    key = SurveyedForeignKey("fk", ITEMS, ORDERS, "NO ACTION", "CASCADE")
    survey = replace(SURVEY, settings=settings, foreign_keys=(key,), **MARIADB)
    (finding,) = _judged("foreign keys", looked(survey))
    assert (finding.subject, finding.level) == ("shop.items (fk)", "warning")
    assert finding.hint is not None
    assert 'foreign_keys = "resnapshot"' in finding.hint
    assert "innodb_native" not in finding.hint
    followed = planned(
        looked(survey), lake_policies=LakePolicies(foreign_keys=ForeignKeys.RESNAPSHOT)
    )
    assert [one.level for one in _judged("foreign keys", followed)] == ["ok"]


def test_a_parent_that_the_account_does_not_see_is_named() -> None:
    """However far above; what it refers to itself nobody could tell."""
    middle, top = TableName("other", "middle"), TableName("other", "top")
    keys = (
        SurveyedForeignKey("a", ITEMS, middle, "NO ACTION", "CASCADE"),
        SurveyedForeignKey("b", middle, top, "NO ACTION", "SET NULL"),
        SurveyedForeignKey("c", top, TableName("other", "beside"), "NO ACTION", "RESTRICT"),
    )
    seen = (*SURVEY.tables, SurveyedTable(middle, "BASE TABLE", "InnoDB", False))
    found = surveyed({"innodb_native_foreign_keys": "ON"}, foreign_keys=keys, tables=seen)
    child, parent = _judged("foreign keys", looked(found))
    assert child.subject == "shop.items (a)"
    assert (parent.subject, parent.hint) == (
        "other.top",
        "GRANT SELECT ON `other`.`top` TO 'lockstep'@'%';",
    )


def test_only_a_replica_is_asked_for_a_replicas_settings() -> None:
    """On a server that replicates nothing they mean nothing."""
    for name in ("log_replica_updates", "replica_preserve_commit_order", "writable replica"):
        off = settings(log_replica_updates="OFF", replica_preserve_commit_order="OFF")
        assert _judged(name, off) == []


def test_a_block_holds_for_some_table() -> None:
    """Each of its patterns, and each of its keys: one that later blocks overrule everywhere is a
    mistake. What is left of a block is told for each table that has it."""
    found = _judged(
        "settings of tables",
        replace(
            planned(
                looked(),
                table_settings=(
                    block("shop.*", deletes=Deletes.SOFT, updated_columns=True),
                    block("shop.orders", "shop.carts", deletes=Deletes.IGNORE),
                    block("shop.items", deletes=Deletes.REMOVE),
                    block("shop.gone", "old.*", deletes=Deletes.SOFT),
                ),
            ),
            ledger_tables=(TableName("shop", "gone"), TableName("shop", "kept")),
        ),
    )
    label = '[[sources.table]] match = ["shop.orders", "shop.carts"]'
    assert [(one.subject, one.sentence) for one in found] == [
        (label, "its pattern 'shop.carts' matches no captured table"),
        (
            '[[sources.table]] match = ["shop.gone", "old.*"]',
            "its pattern 'old.*' matches no captured table",
        ),
        ("shop.gone", 'deletes = "soft", updated_columns = true'),
        ("shop.items", 'deletes = "remove", updated_columns = true'),
        ("shop.kept", 'deletes = "soft", updated_columns = true'),
        ("shop.orders", 'deletes = "ignore", updated_columns = true'),
    ]
    over = planned(looked(), table_settings=(block("shop.orders"), block("shop.*")))
    [refused] = [one for one in _judged("settings of tables", over) if one.level != "ok"]
    assert refused.sentence == (
        "its 'deletes' applies to no table: later blocks override it for all of them"
    )


def test_refusals_come_first() -> None:
    """Then warnings, then what is fine."""
    found = check_findings(
        known(variables={**GOOD, "binlog_format": "MIXED"}), settings(gtid_mode="OFF")
    )
    levels = [finding.level for finding in found]
    assert levels[:2] == ["refusal", "warning"]
    assert set(levels[2:]) == {"ok"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["GRANT SELECT ON *.* TO `a`@`%`"], True),
        (["GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION"], True),
        (["GRANT INSERT, SELECT ON `shop`.* TO `a`@`%`"], True),
        (["GRANT SELECT ON `shop`.`orders` TO `a`@`%`"], True),
        (['GRANT SELECT ON "shop"."orders" TO "a"@"%"'], True),
        (["GRANT SELECT ON `sh%`.* TO `a`@`%`"], True),
        (["GRANT SELECT ON `s_op`.* TO `a`@`%`"], True),
        ([r"GRANT SELECT ON `s\_op`.* TO `a`@`%`"], False),
        (["GRANT SELECT ON `s_op`.`orders` TO `a`@`%`"], False),
        (["GRANT SELECT ON `shop`.`items` TO `a`@`%`"], False),
        (["GRANT INSERT ON *.* TO `a`@`%`"], False),
        (["GRANT SELECT (`id`, `at`), INSERT ON `shop`.`orders` TO `a`@`%`"], False),
        (["GRANT USAGE ON *.* TO `a`@`%`"], False),
        (["GRANT `select`@`%` TO `a`@`%`"], False),
        (["GRANT EXECUTE ON PROCEDURE `shop`.`orders` TO `a`@`%`"], False),
        (["GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `shop`.* FROM `a`@`%`"], False),
        (["GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `crm`.* FROM `a`@`%`"], True),
        (["GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh% FROM `.* FROM `a`@`%`"], True),
        (["GRANT SELECT (`a ON b`), INSERT ON `shop`.`orders` TO `a`@`%`"], False),
        (["GRANT PROXY ON ``@`` TO `a`@`%`"], False),
    ],
)
def test_select(lines: list[str], expected: bool) -> None:
    """A grant covers a table by name, by database pattern, or by everything."""
    assert has_privilege(read_grants(tuple(lines)), "SELECT", ORDERS) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("GRANT SELECT, REPLICATION SLAVE ON *.* TO `a`@`%`", True),
        ("GRANT ALL PRIVILEGES ON *.* TO `a`@`%`", True),
        ("GRANT REPLICATION SLAVE ADMIN ON *.* TO `a`@`%`", False),
        ("GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION", False),
    ],
)
def test_a_global_privilege(line: str, expected: bool) -> None:
    """Names are compared whole."""
    assert has_globally(looked(surveyed(grants=(line,))), "REPLICATION SLAVE") is expected


def test_names_that_look_like_words() -> None:
    """A database may be called by the words that come after its name."""
    lines = ("GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `a FROM b`.* FROM `a`@`%`")
    assert not has_privilege(read_grants(lines), "SELECT", TableName("a FROM b", "t"))
    given = ("GRANT SELECT ON `a TO b`.* TO `a`@`%`",)
    assert has_privilege(read_grants(given), "SELECT", TableName("a TO b", "t"))


NOW = datetime(2026, 11, 21, 11, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/10 * * * *", timedelta(minutes=10)),
        ("0 * * * *", timedelta(hours=1)),
        ("30 2 * * *", timedelta(days=1)),
        ("0 0 * * 1-5", timedelta(days=3)),
        ("*/5 8-17 * * 1-5", timedelta(days=2, hours=14, minutes=5)),
        ("0 6 1 * *", timedelta(days=31)),
        ("0 0 29 2 *", timedelta(days=1461)),
    ],
)
def test_the_longest_pause(cron: str, expected: timedelta) -> None:
    """Nights, weekends and months are found."""
    assert longest_pause(cron, NOW) == expected


@pytest.mark.parametrize(
    "cron", ["17 3,9,23 * * 2,6", "0 1-5 */9 * *", "7,13 */5 * * *", "5 1,2,16 * * *"]
)
def test_looking_at_few_moments_finds_what_looking_at_all_finds(cron: str) -> None:
    """The same as going from tick to tick."""
    ticks = croniter(cron, NOW)
    first = before = ticks.get_prev(datetime)
    best = timedelta()
    while before < first + timedelta(days=100):
        after = ticks.get_next(datetime)
        best, before = max(best, after - before), after
    assert longest_pause(cron, NOW) == best


@pytest.mark.parametrize(
    ("days", "pause", "level"),
    [(30, 1, "ok"), (7, 1, "ok"), (7, 3, "warning"), (7, 7, "refusal"), (1, None, "warning")],
)
def test_retention_against_the_schedule(days: int, pause: int | None, level: str) -> None:
    """Less than one pause loses the position for sure, less than three by a failed run."""
    survey = surveyed({"binlog_expire_logs_seconds": str(days * 86_400)})
    evidence = looked(survey, pause=None if pause is None else timedelta(days=pause))
    assert [finding.level for finding in findings_of(RETENTION_RULES[:1], evidence)] == [level]


def test_spans_are_spoken_in_a_fitting_unit() -> None:
    """Whole numbers stay whole, and one of a unit is singular."""
    spans = {
        timedelta(days=30): "30 days",
        timedelta(hours=36): "1.5 days",
        timedelta(days=1): "1 day",
        timedelta(minutes=90): "1.5 hours",
        timedelta(seconds=60): "1 minute",
        timedelta(seconds=5): "5 seconds",
        timedelta(seconds=1.2): "1 second",
    }
    assert {span: duration_text(span) for span in spans} == spans
