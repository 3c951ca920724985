"""Asset checks: they report what the ledger recorded, and block nothing.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

import dagster as dg

from assets.hints import evaluated
from assets.metadata import (
    failure,
    gap_table,
    partial_table,
    proof_age,
    proof_table,
    set_aside_table,
)
from assets.names import acknowledged_key
from assets.runs import SESSIONS, session_of
from pipeline.errors import LockstepError
from pipeline.runs.acknowledge import tables_set_aside
from pipeline.runs.capturing.table_extents import partial_tables

NAME = "no_table_set_aside"
GAP_NAME = "no_gap"
PARTIAL_NAME = "no_partial_mirror"
PROOF_NAME = "no_table_differs"


def set_aside_check(source: str) -> dg.AssetChecksDefinition:
    """Whether every captured table takes part; lists those set aside, with their cures."""

    @dg.asset_check(
        asset=dg.AssetKey(acknowledged_key(source)),
        name=NAME,
        required_resource_keys={SESSIONS},
        description="Tables that were set aside do not follow the source until released.",
    )
    @evaluated
    def no_table_set_aside(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        try:
            aside = tables_set_aside(session_of(context, source).workplace())
        except LockstepError as error:
            raise failure(error) from error
        return dg.AssetCheckResult(
            passed=not aside,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"set aside": set_aside_table(aside)} if aside else {},
        )

    return no_table_set_aside


def gap_check(source: str) -> dg.AssetChecksDefinition:
    """Whether everything was read; lists what an operator chose to leave out, until the
    tables are read anew."""

    @dg.asset_check(
        asset=dg.AssetKey(acknowledged_key(source)),
        name=GAP_NAME,
        required_resource_keys={SESSIONS},
        description="Changes that were never read, because somebody chose a later start: the "
        "tables may differ from the source.",
    )
    @evaluated
    def no_gap(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        try:
            found = session_of(context, source).workplace().ledger.gaps(source)
            found = [gap for gap in found if gap.is_open]
        except LockstepError as error:
            raise failure(error) from error
        return dg.AssetCheckResult(
            passed=not found,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"gaps": gap_table(found)} if found else {},
        )

    return no_gap


def partial_check(source: str) -> dg.AssetChecksDefinition:
    """Whether the lake can have all of every table; lists those it has a part of, and where
    that begins."""

    @dg.asset_check(
        asset=dg.AssetKey(acknowledged_key(source)),
        name=PARTIAL_NAME,
        required_resource_keys={SESSIONS},
        description="Tables that had rows before the place where their log is read from: the "
        "mirror has only part of them.",
    )
    @evaluated
    def no_partial_mirror(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        try:
            work = session_of(context, source).workplace()
            found = partial_tables(work.ledger, source, work.source.patterns)
        except LockstepError as error:
            raise failure(error) from error
        return dg.AssetCheckResult(
            passed=not found,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"partial": partial_table(found)} if found else {},
        )

    return no_partial_mirror


def proof_check(source: str) -> dg.AssetChecksDefinition:
    """Whether every table was equal to the source's when it was last compared; lists what was
    compared, and when it was last proven."""

    @dg.asset_check(
        asset=dg.AssetKey(acknowledged_key(source)),
        name=PROOF_NAME,
        required_resource_keys={SESSIONS},
        description="Tables whose rows differed from the source's when `lockstep verify`, or a "
        "run with prove_rows, last compared them.",
    )
    @evaluated
    def no_table_differs(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        try:
            work = session_of(context, source).workplace()
            found = work.ledger.proofs(source)
        except LockstepError as error:
            raise failure(error) from error
        ages = [age for one in found if (age := proof_age(one, work.clock())) is not None]
        oldest = {"oldest proof in seconds": max(ages)} if ages else {}
        return dg.AssetCheckResult(
            passed=not any(one.differing for one in found),
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={"compared": proof_table(found), **oldest} if found else {},
        )

    return no_table_differs


CHECKS = (set_aside_check, gap_check, partial_check, proof_check)
