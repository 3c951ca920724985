"""Rules about the connection, other sessions, and replication.

A dump is a stream of the binlog (COM_BINLOG_DUMP).

The connection: one server, no proxy, TLS, clocks, limits. Sessions: variables that a
session can set for itself, so that global values do not bind it. Only those of current
sessions can be checked (`performance_schema.variables_by_thread` of MySQL, if the
account may read it). Replication: the server's replicas, the server as a replica,
Galera, filters of the log.

A proxy is recognised by its greeting. It has the proxy's own version and connection id,
because a proxy chooses the server only later, for each statement (ProxySQL and MaxScale
documentation).

Variables of replication: MySQL manual, "Replication and Binary Logging Options and
Variables"; MariaDB documentation, "Replication and Binary Log System Variables" and
"Galera Cluster System Variables".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from lockstep.pipeline.check.account import account_of
from lockstep.pipeline.check.findings import (
    CheckRule,
    Fault,
    Fine,
    Level,
    RuleVerdict,
    SourceEvidence,
    with_topic,
)
from lockstep.pipeline.check.log import set_global_hint
from lockstep.pipeline.values.shown import duration_text, pluralize
from lockstep.pipeline.values.survey import AnsweringServer

_PROXIES: Final = ("proxysql", "maxscale", "mysql router", "dbproxy")
_MAX_CLOCK_DIFFERENCE: Final = timedelta(seconds=30)
"""Largest difference between two clocks for which no warning is given."""

_MIN_WRITE_TIMEOUT_SECONDS: Final = 60
"""Smallest net_write_timeout for which no warning is given."""

_MIN_PACKET_BYTES: Final = 16 << 20
"""Smallest max_allowed_packet for which no warning is given."""

_MARIADB_PREFIX: Final = "5.5.5-"
"""Prefix that MariaDB puts before its version in the greeting, because old replicas
expect a version 5."""


def _judge_one_server(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    identities = sorted({server.identity for server in evidence.survey.answering_servers})
    addresses = " and ".join(f"{hostname}:{port}" for hostname, port, *_ in identities)
    if len(identities) > 1:
        yield Fault(f"two connections reached two servers, {addresses}")
    elif identities:
        yield Fine(f"two connections reach one server, {addresses}")


def _judge_proxy(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    signs = [sign for server in evidence.survey.answering_servers for sign in _proxy_signs(server)]
    if signs:
        yield Fault(f"a proxy seems to answer: {signs[0]}")
    else:
        yield Fine("no sign of a proxy")


def _proxy_signs(server: AnsweringServer) -> Iterator[str]:
    comment = server.version_comment
    if any(name in comment.lower() for name in _PROXIES):
        yield f"version_comment is {comment!r}"
    greeting = server.greeting_version.removeprefix(_MARIADB_PREFIX)
    if greeting != server.version.removeprefix(_MARIADB_PREFIX):
        yield f"it greets as {server.greeting_version} and is {server.version}"
    if server.greeting_connection_id != server.connection_id:
        yield (
            f"it greets as connection {server.greeting_connection_id} and is {server.connection_id}"
        )


def _judge_tls(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if evidence.survey.is_encrypted:
        yield Fine("encrypted")
    elif evidence.survey.is_loopback:
        yield Fine("not encrypted, on this machine")
    else:
        yield Fault("rows and the hashed password travel in plain text")


def _judge_clock(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    ahead = evidence.survey.clock_ahead
    if abs(ahead) > _MAX_CLOCK_DIFFERENCE:
        side = "ahead of" if ahead > timedelta() else "behind"
        yield Fault(f"the server's clock is {duration_text(abs(ahead))} {side} this machine's")
    else:
        yield Fine("the clocks agree")


def _judge_time_zone(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    zone = evidence.variable("time_zone")
    if zone is not None:
        name = evidence.variable("system_time_zone") if zone == "SYSTEM" else zone
        yield Fine(f"time zone {name}; TIMESTAMPs are read as UTC")


def _judge_write_timeout(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    seconds = evidence.variable("net_write_timeout")
    if seconds is not None and int(seconds) < _MIN_WRITE_TIMEOUT_SECONDS:
        yield Fault(f"net_write_timeout is {seconds}: a reader that pauses longer is cut off")


def _judge_packet_size(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    size = evidence.variable("max_allowed_packet")
    if size is not None and int(size) < _MIN_PACKET_BYTES:
        yield Fault(
            f"max_allowed_packet is {size} bytes: `verify` cannot show a longer row that differs"
        )


CONNECTION_RULES: Final = with_topic(
    "the connection",
    CheckRule(
        "one server",
        "hostname, port, server_id and server_uuid over two connections",
        "refusal",
        "each connection would read another server's log, with other offsets",
        "name one server as host, not a balancer or a DNS name with several addresses",
        _judge_one_server,
    ),
    CheckRule(
        "proxy",
        "the greeting's version and connection id against the server's, version_comment",
        "warning",
        "proxies refuse binlog dumps, or move them to another server",
        "name the server itself as host and port",
        _judge_proxy,
    ),
    CheckRule(
        "tls",
        "Ssl_cipher of our session",
        "warning",
        "anyone on the network path can read every row",
        'set tls = "verify" for the source in lockstep.toml',
        _judge_tls,
    ),
    CheckRule(
        "clock",
        "utc_timestamp() against this machine's clock",
        "warning",
        "lag in seconds and moments in `--until` are off by that much",
        "let both machines follow NTP",
        _judge_clock,
    ),
    CheckRule(
        "time zone",
        "time_zone, system_time_zone",
        "ok",
        "nothing: our sessions use UTC, and so does the log",
        "nothing to do",
        _judge_time_zone,
    ),
    CheckRule(
        "net_write_timeout",
        f"global variable, wanted: {_MIN_WRITE_TIMEOUT_SECONDS} or more",
        "warning",
        "`verify` may lose its connection while it compares (a dump sets its own timeout)",
        set_global_hint("net_write_timeout", "600"),
        _judge_write_timeout,
    ),
    CheckRule(
        "max_allowed_packet",
        f"global variable, wanted: {_MIN_PACKET_BYTES >> 20} MiB or more",
        "warning",
        "`verify` cannot show a longer row that differs (binlog dumps do not have this limit)",
        set_global_hint("max_allowed_packet", "64 * 1024 * 1024"),
        _judge_packet_size,
    ),
)


# -- sessions --------------------------------------------------------------------------

_NOTABLE_VALUES: Final[Mapping[str, tuple[tuple[str, ...], Level, str]]] = {
    "sql_log_bin": (
        ("OFF", "0"),
        "warning",
        "its changes are not in the log at all; `lockstep verify` finds them",
    ),
    "binlog_format": (
        ("STATEMENT", "MIXED"),
        "warning",
        "a statement that changes captured tables quarantines them, and one that may change any "
        "table stops a run",
    ),
    "binlog_row_image": (
        ("MINIMAL", "NOBLOB"),
        "warning",
        "its rows are logged in part: merges look up what is left out, and changelogs have NULL "
        "there",
    ),
    "binlog_row_value_options": (
        ("PARTIAL_JSON",),
        "warning",
        "its JSON updates are logged in part; tables it changes are quarantined",
    ),
    "skip_replication": (
        ("ON", "1"),
        "ok",
        "its events are read all the same",
    ),
    "binlog_transaction_compression": (
        ("ON",),
        "ok",
        "its compressed transactions are read all the same",
    ),
}
"""Session variable → its unwanted or notable values, their level, and their effect."""

_SESSION_CURE: Final = (
    "find it (performance_schema.variables_by_thread joined with threads) and end it; take "
    "SESSION_VARIABLES_ADMIN and SUPER from accounts that do not need them"
)
_UNSEEN_SENTENCE: Final = "the account cannot see the variables of other sessions"


def _session_rule(variable: str) -> CheckRule[SourceEvidence]:
    """Return the rule for sessions in which a variable has one of the values in
    `_NOTABLE_VALUES`."""
    values, level, consequence = _NOTABLE_VALUES[variable]

    def judge(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
        # Every server has sql_log_bin, which is not a global variable.
        if variable not in evidence.survey.settings and variable != "sql_log_bin":
            return
        sessions = [
            session
            for session in evidence.survey.session_overrides
            if session.variable == variable and session.value.upper() in values
        ]
        for session in sessions:
            count = pluralize(session.session_count, "session")
            sentence = f"{variable} = {session.value} in {count}: {consequence}"
            yield Fine(sentence) if level == "ok" else Fault(sentence)
        if not sessions:
            is_unseen = "session_overrides" in evidence.survey.unanswered_fields
            yield Fine(_UNSEEN_SENTENCE if is_unseen else "no session differs now")

    return CheckRule(
        f"session {variable}",
        f"sessions with {variable} = {' or '.join(values)}",
        level,
        consequence,
        "nothing to do" if level == "ok" else _SESSION_CURE,
        judge,
    )


def _judge_gtid_next(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if evidence.variable("gtid_mode") not in (None, "OFF"):
        yield Fine("a session may choose its own GTIDs (gtid_next); they are read as they are")


SESSION_RULES: Final = with_topic(
    "sessions",
    *map(_session_rule, _NOTABLE_VALUES),
    CheckRule(
        "session gtid_next",
        "gtid_mode",
        "ok",
        "nothing: GTIDs of another server or with a tag are read as they are",
        "nothing to do",
        _judge_gtid_next,
    ),
)


# -- replication -----------------------------------------------------------------------


_MAX_LAG_SECONDS: Final = 3600
"""Largest lag of a replica for which no warning is given."""


def _judge_server_id(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    dump_ids, dump_count = evidence.survey.dump_server_ids, evidence.survey.dump_count
    id_range = f"{dump_ids[0]} to {dump_ids[-1]}"
    server_id = evidence.variable("server_id") or ""
    faults = []
    if server_id == "0":
        faults.append(Fault("server_id is 0: the server accepts no dump", level="refusal"))
    if server_id.isdigit() and int(server_id) in dump_ids:
        sentence = f"the server's id, {server_id}, is one that our dumps may have ({id_range})"
        faults.append(Fault(sentence))
    for replica in evidence.survey.replicas:
        if replica.server_id in dump_ids:
            where = f" at {replica.host}" if replica.host else ""
            sentence = (
                f"a replica{where} has an id that our dumps may have, {replica.server_id}: the "
                "server may disconnect one of the two when the other connects"
            )
            faults.append(Fault(sentence))
    yield from faults
    if not faults:
        dumps = f", {dump_count} dumps now" if dump_count else ""
        yield Fine(f"server_id {server_id}; each of our dumps has an id from {id_range}{dumps}")


def _is_replica(evidence: SourceEvidence) -> bool:
    return bool(evidence.survey.channels)


def _judge_log_replica_updates(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    value = evidence.variable("log_replica_updates", "log_slave_updates")
    is_galera = evidence.variable("wsrep_on") == "ON"
    if value is None or not (_is_replica(evidence) or is_galera):
        return
    if value.upper() == "OFF":
        role = "a Galera node" if is_galera else "a replica"
        yield Fault(f"the server is {role} and does not log what it replicates")
    else:
        yield Fine("what the server replicates is in its log")


def _judge_commit_order(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    workers = int(evidence.variable("replica_parallel_workers", "slave_parallel_workers") or 0)
    order = evidence.variable("replica_preserve_commit_order", "slave_preserve_commit_order")
    if not _is_replica(evidence) or evidence.is_mariadb or order is None:
        return
    if workers > 1 and order == "OFF":
        yield Fault(f"the server is a replica with {workers} workers that commit in any order")
    else:
        yield Fine("the replica commits in its source's order")


def _judge_replica_writes(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    value = evidence.variable("super_read_only", "read_only")
    if _is_replica(evidence) and value == "OFF":
        yield Fault("the server is a replica that others may write to")


def _judge_replica_state(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for channel in evidence.survey.channels:
        if not (channel.is_receiving and channel.is_applying):
            verb = "applies" if channel.is_receiving else "receives"
            yield Fault(f"the server is a replica of {channel.source} and {verb} nothing now")
        elif channel.lag is not None and channel.lag > _MAX_LAG_SECONDS:
            yield Fault(f"the server is {channel.lag} seconds behind {channel.source}")
        else:
            yield Fine(f"a replica of {channel.source} that keeps up")


def _judge_unseen_replica(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if "channels" not in evidence.survey.unanswered_fields:
        return
    is_read_only = evidence.variable("read_only") not in (None, "OFF")
    if evidence.variable("gtid_slave_pos") or is_read_only:
        needed = "SLAVE MONITOR" if evidence.is_mariadb else "REPLICATION CLIENT"
        yield Fault(
            "the server seems to be a replica, and the account cannot see its status",
            cure=f"GRANT {needed} ON *.* TO {account_of(evidence)};",
        )


def _judge_log_filters(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    filters = evidence.survey.filters
    databases = sorted({table.name.database for table in evidence.tables})
    filtered = [
        name
        for name in databases
        if (filters.included and name not in filters.included) or name in filters.excluded
    ]
    if filtered:
        yield Fault(f"changes to {', '.join(filtered)} are left out of the log")
    elif filters.included or filters.excluded:
        yield Fine("the log's filters leave the captured databases in")


def _judge_galera(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if evidence.variable("wsrep_on") == "ON":
        yield Fault("the server is a Galera node: each node's log has its own files")


def _judge_read_from(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    replica = evidence.survey.read_replica
    if replica is None:
        return
    if replica.reason_unusable is not None:
        yield Fault(replica.reason_unusable, cure=replica.cure)
    else:
        yield Fine(f"tables can be read from {replica.name}")


REPLICATION_RULES: Final = with_topic(
    "replication",
    CheckRule(
        "server id",
        "the ids of our dumps, @@server_id, SHOW REPLICAS",
        "warning",
        "MariaDB ends a dump when another one with the same id begins (MySQL goes by a UUID of "
        "each dump)",
        "give the server or replica an id outside the range of our dumps",
        _judge_server_id,
    ),
    CheckRule(
        "log_replica_updates",
        "log_replica_updates or log_slave_updates, on a replica or a Galera node",
        "refusal",
        "changes that the server replicates are not in its log",
        "set log_replica_updates = ON (before MySQL 8.0.26 and on MariaDB: log_slave_updates) in "
        "the server's configuration and restart it, or read from its source",
        _judge_log_replica_updates,
    ),
    CheckRule(
        "replica_preserve_commit_order",
        "replica_preserve_commit_order and replica_parallel_workers, on a replica",
        "warning",
        "its log has states that the source never had",
        "stop replica sql_thread; set global replica_preserve_commit_order = ON; "
        "start replica sql_thread;",
        _judge_commit_order,
    ),
    CheckRule(
        "writable replica",
        "super_read_only (MariaDB: read_only), on a replica",
        "warning",
        "changes that are made only on the replica make histories differ after a failover",
        "set global super_read_only = ON; (MariaDB: read_only)",
        _judge_replica_writes,
    ),
    CheckRule(
        "replica state",
        "SHOW REPLICA STATUS",
        "warning",
        "the lake can be no newer than the replica it is read from",
        "see SHOW REPLICA STATUS, then start replica;",
        _judge_replica_state,
    ),
    CheckRule(
        "hidden replica",
        "gtid_slave_pos and read_only, where SHOW REPLICA STATUS is not allowed",
        "warning",
        "the rules for replicas could not be checked",
        "GRANT SLAVE MONITOR ON *.* TO 'user'@'host'; (MySQL: REPLICATION CLIENT)",
        _judge_unseen_replica,
    ),
    CheckRule(
        "log filters",
        "binlog_do_db and binlog_ignore_db, against the captured databases",
        "refusal",
        "changes are silently left out of the log",
        "take binlog_do_db and binlog_ignore_db out of the server's configuration and restart it",
        _judge_log_filters,
    ),
    CheckRule(
        "galera",
        "wsrep_on",
        "warning",
        "offsets of one node mean nothing on another",
        "name one node as host, not the cluster's address, and have wsrep_gtid_mode = ON in the "
        "configuration of every node",
        _judge_galera,
    ),
    CheckRule(
        "read_from",
        "gtid_mode, gtid_executed and SHOW REPLICA STATUS of the replica that tables are read from",
        "refusal",
        "runs that have to read a table are refused",
        "rebuild the replica, name another, or remove read_from from [sources.snapshot]",
        _judge_read_from,
    ),
)
