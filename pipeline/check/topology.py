"""Rules about replication: the server's replicas, the server as a replica, Galera, filters.

Variables: MySQL manual, "Replication and Binary Logging Options and Variables"; MariaDB
documentation, "Replication and Binary Log System Variables" and "Galera Cluster System
Variables".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lockstep.pipeline.check.account import account_of
from lockstep.pipeline.check.evidence import SourceEvidence
from lockstep.pipeline.check.findings import CheckRule, Fault, Fine, Verdict, about

_OLD_REPLICA: Final = 3600
"""Largest lag of a replica, in seconds, for which no warning is given."""


def _server_id(evidence: SourceEvidence) -> Iterator[Verdict]:
    ours, server = evidence.survey.dump_server_ids, evidence.setting("server_id") or ""
    within = f"{ours[0]} to {ours[-1]}"
    taken = server.isdigit() and int(server) in ours
    if server == "0":
        yield Fault("server_id is 0: the server accepts no dump", level="refusal")
    if taken:
        yield Fault(f"the server's id, {server}, is one that our dumps may have ({within})")
    clashing = [replica for replica in evidence.survey.replicas if replica.server_id in ours]
    for replica in clashing:
        where = f" at {replica.host}" if replica.host else ""
        yield Fault(
            f"a replica{where} has an id that our dumps may have, {replica.server_id}: a server "
            "may end one when the other connects"
        )
    if not clashing and not taken and server != "0":
        dumps = f", {evidence.survey.dumps} dumps now" if evidence.survey.dumps else ""
        yield Fine(f"server_id {server}, our dumps one of {within} each{dumps}")


def _is_replica(evidence: SourceEvidence) -> bool:
    return bool(evidence.survey.channels)


def _log_replica_updates(evidence: SourceEvidence) -> Iterator[Verdict]:
    value = evidence.setting("log_replica_updates", "log_slave_updates")
    galera = evidence.setting("wsrep_on") == "ON"
    if value is None or not (_is_replica(evidence) or galera):
        return
    if value.upper() == "OFF":
        what = "a Galera node" if galera else "a replica"
        yield Fault(f"the server is {what} and does not log what it replicates")
    else:
        yield Fine("what the server replicates is in its log")


def _commit_order(evidence: SourceEvidence) -> Iterator[Verdict]:
    workers = int(evidence.setting("replica_parallel_workers", "slave_parallel_workers") or 0)
    order = evidence.setting("replica_preserve_commit_order", "slave_preserve_commit_order")
    if not _is_replica(evidence) or evidence.mariadb or order is None:
        return
    if workers > 1 and order == "OFF":
        yield Fault(f"the server is a replica with {workers} workers that commit in any order")
    else:
        yield Fine("the replica commits in its source's order")


def _replica_writes(evidence: SourceEvidence) -> Iterator[Verdict]:
    value = evidence.setting("super_read_only", "read_only")
    if _is_replica(evidence) and value == "OFF":
        yield Fault("the server is a replica that others may write to")


def _replica_state(evidence: SourceEvidence) -> Iterator[Verdict]:
    for channel in evidence.survey.channels:
        if not (channel.receives and channel.applies):
            stopped = "applies" if channel.receives else "receives"
            yield Fault(f"the server is a replica of {channel.source} and {stopped} nothing now")
        elif channel.lag is not None and channel.lag > _OLD_REPLICA:
            yield Fault(f"the server is {channel.lag} seconds behind {channel.source}")
        else:
            yield Fine(f"a replica of {channel.source} that keeps up")


def _unseen_replica(evidence: SourceEvidence) -> Iterator[Verdict]:
    if "channels" not in evidence.survey.unanswered:
        return
    signs = evidence.setting("gtid_slave_pos") or evidence.setting("read_only") not in (None, "OFF")
    if signs:
        needed = "SLAVE MONITOR" if evidence.mariadb else "REPLICATION CLIENT"
        yield Fault(
            "the server seems to be a replica, and the account may not see its status",
            cure=f"GRANT {needed} ON *.* TO {account_of(evidence)};",
        )


def _filters(evidence: SourceEvidence) -> Iterator[Verdict]:
    filters = evidence.survey.filters
    databases = sorted({table.name.database for table in evidence.tables})
    filtered = [
        name
        for name in databases
        if (filters.only and name not in filters.only) or name in filters.never
    ]
    if filtered:
        yield Fault(f"changes to {', '.join(filtered)} are left out of the log")
    elif filters.only or filters.never:
        yield Fine("the log's filters leave the captured databases in")


def _galera(evidence: SourceEvidence) -> Iterator[Verdict]:
    if evidence.setting("wsrep_on") == "ON":
        yield Fault("the server is a Galera node: each node's log has its own files")


def _read_from(evidence: SourceEvidence) -> Iterator[Verdict]:
    replica = evidence.survey.read_from
    if replica is None:
        return
    if replica.fault is not None:
        yield Fault(replica.fault, cure=replica.cure)
    else:
        yield Fine(f"tables can be read from {replica.name}")


CHECK_RULES: Final = about(
    "replication",
    CheckRule(
        "server id",
        "the ids of our dumps, @@server_id, SHOW REPLICAS",
        "warning",
        "a server ends a dump when another one with the same id begins (MySQL goes by a "
        "UUID, which differs for each dump; MariaDB goes by the id)",
        "give the other one an id outside that range",
        _server_id,
    ),
    CheckRule(
        "log_replica_updates",
        "log_replica_updates or log_slave_updates, on a replica or a Galera node",
        "refusal",
        "changes that the server replicates are not in its log, and would never reach the lake",
        "set log_replica_updates = ON (before MySQL 8.0.26 and on MariaDB: log_slave_updates) in "
        "the server's configuration and restart it, or read from its source",
        _log_replica_updates,
    ),
    CheckRule(
        "replica_preserve_commit_order",
        "replica_preserve_commit_order and replica_parallel_workers, on a replica",
        "warning",
        "its log is in another order than its source's, so it has states that the source never had",
        "stop replica sql_thread; set global replica_preserve_commit_order = ON; "
        "start replica sql_thread;",
        _commit_order,
    ),
    CheckRule(
        "writable replica",
        "super_read_only (MariaDB: read_only), on a replica",
        "warning",
        "changes that are made only on the replica make histories differ after a failover",
        "set global super_read_only = ON; (MariaDB: read_only)",
        _replica_writes,
    ),
    CheckRule(
        "replica state",
        "SHOW REPLICA STATUS",
        "warning",
        "the lake can be no newer than the replica it is read from",
        "see SHOW REPLICA STATUS, then start replica;",
        _replica_state,
    ),
    CheckRule(
        "hidden replica",
        "gtid_slave_pos and read_only, where SHOW REPLICA STATUS is not allowed",
        "warning",
        "the rules for replicas could not be checked",
        "GRANT SLAVE MONITOR ON *.* TO 'user'@'host'; (MySQL: REPLICATION CLIENT)",
        _unseen_replica,
    ),
    CheckRule(
        "log filters",
        "binlog_do_db and binlog_ignore_db, against the captured databases",
        "refusal",
        "changes are silently left out of the log",
        "take binlog_do_db and binlog_ignore_db out of the server's configuration and restart it",
        _filters,
    ),
    CheckRule(
        "galera",
        "wsrep_on",
        "warning",
        "offsets of one node mean nothing on another",
        "name one node as host, not the cluster's address, and have wsrep_gtid_mode = ON in the "
        "configuration of every node",
        _galera,
    ),
    CheckRule(
        "read_from",
        "gtid_mode, gtid_executed and SHOW REPLICA STATUS of the replica that tables are read from",
        "refusal",
        "runs that have to read a table are refused",
        "rebuild the replica, name another, or remove read_from from [sources.snapshot]",
        _read_from,
    ),
)
