"""The checks of a source as a whole, on the step that acknowledges.

One op performs them all: a run spends a step on them, not one each. Each is a function from what
was gathered to its result; a new one is a row of `CHECKS`.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import dagster as dg

from assets.declared import Declaration
from assets.failures import failure
from assets.hints import evaluated
from assets.pages.records import (
    gap_table,
    partial_table,
    proof_age,
    proof_table,
    quarantine_table,
)
from assets.pages.steps import distance_metadata
from assets.runs import SESSIONS, session_of
from pipeline.errors import LockstepError
from pipeline.gaps import Gap
from pipeline.preflight import pause_from_now
from pipeline.proof.proven import TableProof
from pipeline.runs.acknowledge import quarantines_of
from pipeline.runs.capturing.table_extents import partial_tables
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.status import distance
from pipeline.standing.facts import Headroom, Lag
from pipeline.standing.verdict import at_risk, late
from pipeline.table import TableName
from pipeline.table_state import Extent, Quarantine, TableCondition
from resources.config import Settings

_WARN, _ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@dataclass(frozen=True, slots=True)
class Looked:
    """What the checks judge. `pause`: the longest between two scheduled runs, if any."""

    source: str
    now: datetime
    pause: timedelta | None
    quarantined: Sequence[Quarantine]
    paused: frozenset[TableName]
    gaps: Sequence[Gap]
    partial: Sequence[Extent]
    proofs: Sequence[TableProof]
    lag: Lag
    headroom: Headroom | None


@dataclass(frozen=True, slots=True)
class Found:
    """One check's result before it has a key."""

    passed: bool
    severity: dg.AssetCheckSeverity
    metadata: Mapping[str, dg.MetadataValue]
    description: str | None = None


def _quarantined(looked: Looked) -> Found:
    quarantined = looked.quarantined
    faults = [one for one in quarantined if one.table not in looked.paused]
    count = {"tables": dg.MetadataValue.int(len(quarantined))}
    listed = {"quarantined": quarantine_table(quarantined)} if quarantined else {}
    return Found(not quarantined, _ERROR if faults else _WARN, count | listed)


def _gaps(looked: Looked) -> Found:
    found = [gap for gap in looked.gaps if gap.is_open]
    return Found(not found, _WARN, {"gaps": gap_table(found)} if found else {})


def _partial(looked: Looked) -> Found:
    found = looked.partial
    return Found(not found, _WARN, {"partial": partial_table(found)} if found else {})


def _differing(looked: Looked) -> Found:
    found = looked.proofs
    ages = [age for one in found if (age := proof_age(one, looked.now)) is not None]
    oldest = {"oldest proof in seconds": dg.MetadataValue.float(max(ages))} if ages else {}
    compared = {"compared": proof_table(found)} if found else {}
    return Found(not any(one.differing for one in found), _ERROR, compared | oldest)


def _late(looked: Looked) -> Found:
    judged = late(looked.source, looked.lag, looked.pause)
    told = {"hint": dg.MetadataValue.text(judged.hint)} if judged else {}
    figures = distance_metadata(looked.lag, None)
    return Found(judged is None, _WARN, figures | told, judged.sentence if judged else None)


def _at_risk(looked: Looked) -> Found:
    room = looked.headroom
    judged = None if room is None else at_risk(looked.source, room, looked.pause)
    told = {"hint": dg.MetadataValue.text(judged.hint)} if judged else {}
    figures = distance_metadata(Lag(), room)
    return Found(judged is None, _ERROR, figures | told, judged.sentence if judged else None)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    description: str
    judge: Callable[[Looked], Found]


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
)


def source_checks(settings: Settings, source: str) -> dg.AssetChecksDefinition:
    """All of `CHECKS`, or those that somebody clicked."""
    names = Declaration.of(settings, source).names
    pause = pause_from_now(settings.source(source).schedule)

    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        try:
            looked = _look(session_of(context, source).workplace(), pause)
        except LockstepError as error:
            raise failure(error) from error
        asked = {key.name for key in context.selected_asset_check_keys}
        for check in CHECKS:
            if check.name in asked:
                found = check.judge(looked)
                yield dg.AssetCheckResult(
                    check_name=check.name,
                    asset_key=names.acknowledged,
                    passed=found.passed,
                    severity=found.severity,
                    description=found.description,
                    metadata=found.metadata,
                )

    return dg.multi_asset_check(
        name=names.op("checks"),
        specs=[
            dg.AssetCheckSpec(check.name, asset=names.acknowledged, description=check.description)
            for check in CHECKS
        ],
        can_subset=True,
        required_resource_keys={SESSIONS},
        description="What a person should know of the source; blocks nothing.",
    )(evaluated(checks))


def _look(work: Workplace, pause: timedelta | None) -> Looked:
    source, ledger, now = work.source.name, work.ledger, work.clock()
    states = ledger.table_states(source)
    lag, room = distance(work, now)
    return Looked(
        source=source,
        now=now,
        pause=pause,
        quarantined=quarantines_of(states),
        paused=frozenset(t for t, one in states.items() if one.condition is TableCondition.PAUSED),
        gaps=ledger.gaps(source),
        partial=partial_tables(ledger, source, work.source.patterns),
        proofs=ledger.proofs(source),
        lag=lag,
        headroom=room,
    )
