"""The checks of a source as a whole: each a function from what was gathered to its result.

Belongs here: what a check is called, what it judges, how severe it is. Does not: gathering
(`source_facts`), how Dagster performs them (`source`). A new one is a row of `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import dagster as dg

from assets.pages.records import (
    account_table,
    consumer_table,
    gap_table,
    partial_table,
    proof_age,
    proof_table,
    quarantine_table,
)
from assets.pages.steps import distance_metadata
from assets.source_facts import CheckedSource
from pipeline.preflight.retention import spoken
from pipeline.proof.proven import open_differences
from pipeline.segment import RowCounts
from pipeline.standing.facts import Lag
from pipeline.standing.verdict import at_risk, late
from pipeline.table import TableName

_WARN, _ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check's result before it has a key."""

    passed: bool
    severity: dg.AssetCheckSeverity
    metadata: Mapping[str, dg.MetadataValue]
    description: str | None = None


def _quarantined(checked: CheckedSource) -> CheckResult:
    quarantined = checked.quarantined
    faults = [quarantine for quarantine in quarantined if quarantine.table not in checked.paused]
    count = {"tables": dg.MetadataValue.int(len(quarantined))}
    listed = {"quarantined": quarantine_table(quarantined)} if quarantined else {}
    return CheckResult(not quarantined, _ERROR if faults else _WARN, count | listed)


def _gaps(checked: CheckedSource) -> CheckResult:
    gaps = [gap for gap in checked.gaps if gap.is_open]
    return CheckResult(not gaps, _WARN, {"gaps": gap_table(gaps)} if gaps else {})


def _partial(checked: CheckedSource) -> CheckResult:
    extents = checked.partial
    return CheckResult(not extents, _WARN, {"partial": partial_table(extents)} if extents else {})


def _differing(checked: CheckedSource) -> CheckResult:
    proofs = checked.proofs
    ages = [age for proof in proofs if (age := proof_age(proof, checked.now)) is not None]
    oldest = {"oldest proof in seconds": dg.MetadataValue.float(max(ages))} if ages else {}
    compared = {"compared": proof_table(proofs)} if proofs else {}
    return CheckResult(not open_differences(proofs), _ERROR, compared | oldest)


def _late(checked: CheckedSource) -> CheckResult:
    judged = late(checked.source, checked.lag, checked.pause)
    told = {"hint": dg.MetadataValue.text(judged.hint)} if judged else {}
    figures = distance_metadata(checked.lag, None)
    return CheckResult(judged is None, _WARN, figures | told, judged.sentence if judged else None)


def _at_risk(checked: CheckedSource) -> CheckResult:
    room = checked.headroom
    judged = None if room is None else at_risk(checked.source, room, checked.pause)
    told = {"hint": dg.MetadataValue.text(judged.hint)} if judged else {}
    figures = distance_metadata(Lag(), room)
    return CheckResult(judged is None, _ERROR, figures | told, judged.sentence if judged else None)


def _adding_up(checked: CheckedSource) -> CheckResult:
    accounts = checked.accounts
    wrong = [account for account in accounts if not (account.whole and account.arrived)]
    figures = {"batches": dg.MetadataValue.int(len(accounts))}
    for words in ("written", "merged", "stopped"):
        counts = sum((getattr(account, words) for account in accounts), RowCounts())
        for operation in ("inserted", "updated", "deleted"):
            name = "of tables that stopped" if words == "stopped" else words
            figures[f"rows {operation}, {name}"] = dg.MetadataValue.int(getattr(counts, operation))
    figures["images read"] = dg.MetadataValue.int(sum(account.read for account in accounts))
    figures["images written"] = dg.MetadataValue.int(sum(account.images for account in accounts))
    listed = {"batches that do not add up": account_table(wrong)} if wrong else {}
    lost = [account for account in wrong if not account.whole]
    numbers = ", ".join(str(account.batch) for account in wrong)
    told = f"batch {numbers}: read, written and merged rows are not the same; `lockstep verify`"
    return CheckResult(
        not wrong, _ERROR if lost else _WARN, figures | listed, told if wrong else None
    )


def _old_proofs(checked: CheckedSource) -> CheckResult:
    """Of tables that follow: when each was last found equal, by all of its rows or by some."""
    newest: dict[TableName, float] = {}
    for proof in checked.proofs:
        age = proof_age(proof, checked.now)
        if age is not None and proof.table in checked.active:
            newest[proof.table] = min(age, newest.get(proof.table, age))
    never = checked.active - newest.keys()
    figures: dict[str, dg.MetadataValue] = {
        "tables proven": dg.MetadataValue.int(len(newest)),
        "tables never proven": dg.MetadataValue.int(len(never)),
    }
    if not newest:
        told = "no table was ever compared with MySQL: `lockstep verify`"
        return CheckResult(True, _WARN, figures, told if never else None)
    oldest = max(newest.values())
    figures["oldest proof in seconds"] = dg.MetadataValue.float(oldest)
    figures["limit in seconds"] = dg.MetadataValue.float(checked.keep.total_seconds())
    old = sorted(t for t, age in newest.items() if age > checked.keep.total_seconds())
    if not old:
        return CheckResult(True, _WARN, figures)
    told = (
        f"{len(old)} tables were last found equal more than {spoken(checked.keep)} ago, {old[0]} "
        f"first: `lockstep verify {old[0]}`"
    )
    return CheckResult(False, _WARN, figures, told)


def _slow_consumers(checked: CheckedSource) -> CheckResult:
    """A consumer that lags for longer than versions are kept."""
    consumers = checked.consumers
    waits = [
        (checked.now - consumer.behind_since).total_seconds()
        for consumer in consumers
        if consumer.behind_since is not None
    ]
    figures: dict[str, dg.MetadataValue] = {
        "consumers": dg.MetadataValue.int(len(consumers)),
        "longest behind in seconds": dg.MetadataValue.float(round(max(waits, default=0.0), 3)),
        "changes not read": dg.MetadataValue.int(
            sum(consumer.consumer.changes for consumer in consumers)
        ),
    }
    if consumers:
        figures["consumers' places"] = consumer_table(consumers)
    slow = [
        consumer.consumer.name
        for consumer in consumers
        if consumer.behind_since is not None and checked.now - consumer.behind_since > checked.keep
    ]
    if not slow:
        return CheckResult(True, _WARN, figures)
    told = (
        f"{', '.join(slow)}: nothing acknowledged for more than {spoken(checked.keep)}, which is "
        "how long versions stay: start the program that reads, or give the consumer up with "
        "lockstep.drop_consumer"
    )
    return CheckResult(False, _WARN, figures, told)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    description: str
    judge: Callable[[CheckedSource], CheckResult]

    def result(self, checked: CheckedSource, asset: dg.AssetKey) -> dg.AssetCheckResult:
        """Return what Dagster is to show for this check of the asset."""
        judged = self.judge(checked)
        return dg.AssetCheckResult(
            check_name=self.name,
            asset_key=asset,
            passed=judged.passed,
            severity=judged.severity,
            description=judged.description,
            metadata=judged.metadata,
        )


CHECKS = (
    Check(
        "no_table_quarantined",
        "Tables that are quarantined or paused do not follow the source until released.",
        _quarantined,
    ),
    Check(
        "no_gap",
        "Changes that were never read, because somebody chose a later start: the tables may "
        "differ from the source.",
        _gaps,
    ),
    Check(
        "no_partial_mirror",
        "Tables that had rows before the place where their log is read from: the mirror has "
        "only part of them.",
        _partial,
    ),
    Check(
        "no_table_differs",
        "Tables whose rows differed from the source's when `lockstep verify`, or a run with "
        "prove_rows, last compared them.",
        _differing,
    ),
    Check("not_late", "Whether the lake is as fresh as its schedule allows.", _late),
    Check(
        "log_is_kept",
        "Whether the server keeps the log behind the cursor long enough for the next runs.",
        _at_risk,
    ),
    Check(
        "rows_add_up",
        "Whether the newest batches have as many rows written and merged as were read of the log, "
        "by operation.",
        _adding_up,
    ),
    Check(
        "proofs_are_recent",
        "Whether each table was found equal to MySQL's within the time that versions are kept.",
        _old_proofs,
    ),
    Check(
        "consumers_keep_up",
        "Whether each consumer of the changelog reads within the time that versions are kept.",
        _slow_consumers,
    ),
)
