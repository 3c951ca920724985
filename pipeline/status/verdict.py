"""Judges a source: one sentence that says what is wrong, and what to type. Pure; every
combination of facts has a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from lockstep.pipeline.check.log import spoken
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.proof.proven import TableProof, open_differences
from lockstep.pipeline.snapshot.log_room import KEPT_BY
from lockstep.pipeline.start.question import Refusal, Start
from lockstep.pipeline.status.facts import Headroom, Lag, Standing
from lockstep.pipeline.values.decisions import AttemptOutcome
from lockstep.pipeline.values.errors import Recovery, StoppedBy
from lockstep.pipeline.values.table import TableName


class State(StrEnum):
    """The state of a source, in one word or two."""

    NEVER_RAN = "never ran"
    BUSY = "busy"
    REFUSED = "refused"
    CONFIGURATION = "your configuration"
    UNREACHABLE = "server unreachable"
    FAILED = "failed"
    AT_RISK = "position at risk"
    QUARANTINED = "quarantined"
    PAUSED = "paused"
    BEHIND = "behind"
    DIFFERS = "differs"
    GAP = "gap"
    PARTIAL = "partial"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A source's state. `sentence`: what is wrong. `hint`: what to type or do; "" if
    nothing. `recovery`: who must act before the source continues; None if it continues,
    perhaps without some tables. `about`: text that identifies the trouble, because the
    numbers and times in `sentence` change."""

    state: State
    sentence: str
    hint: str = ""
    recovery: Recovery | None = None
    about: str = ""

    @property
    def needs_a_person(self) -> bool:
        """Whether a person has to act, because no later run can."""
        return self.state in _TROUBLE

    @property
    def trouble(self) -> str:
        """Text that stays the same as long as the trouble does."""
        return f"{self.state}: {_NUMBER.sub('#', self.about or self.sentence)}"


_TROUBLE = frozenset(
    {
        State.REFUSED,
        State.CONFIGURATION,
        State.AT_RISK,
        State.QUARANTINED,
        State.DIFFERS,
        State.GAP,
    }
)

_NUMBER = re.compile(r"(?<![\w.])\d[\d.,:-]*")
"""Matches a count, a time or a size, but not the digits in a name."""


SILENT = timedelta(seconds=30)
"""After this time without a heartbeat, the holder of a source's lock is called silent."""

_LATE = timedelta(minutes=15)
_QUARTER = 0.25
"""A source is late after the schedule's longest pause plus an allowance for the run
itself: a quarter of that pause, at least `_LATE`."""

_GAP_CURE = (
    "`lockstep verify` closes it for each table that is equal, once the log has been read to its "
    "end; with `--repair` the next run reads the others from MySQL"
)
_DIFFERS_CURE = "`lockstep verify {}` shows which rows; with `--repair` the next run mends them"
_DAY = timedelta(days=1)


def verdict(standing: Standing, now: datetime, pause: timedelta | None) -> Verdict:
    """Return the most important verdict. `pause`: the longest time between two
    scheduled runs; None without a schedule."""
    for judge in (_busy, _lake_refused, _next_refused, _failed, _unreachable, _never_ran, _chosen):
        if (result := judge(standing, now)) is not None:
            return result
    room = standing.headroom
    risk = None if room is None else at_risk(standing.source, room, pause)
    return risk or _with_lake(standing, pause)


def _busy(standing: Standing, now: datetime) -> Verdict | None:
    lease = standing.lease
    if lease is None or not lease.live:
        return None
    who = f"{lease.holder}, since {clock(lease.taken_at)}"
    silence = now - lease.beat_at if lease.beat_at is not None else timedelta()
    if silence < SILENT:
        return Verdict(
            State.BUSY, f"a run is going on ({who})", "wait for it, or look at it on Dagster's page"
        )
    return Verdict(
        State.BUSY,
        f"a run holds the source but gave no sign of life for {spoken(silence)} ({who})",
        f"end that process; or `lockstep run --source {standing.source}`, which takes over from "
        "a run that has been silent for a minute",
        Recovery.RETRY,
    )


def _lake_refused(standing: Standing, _: datetime) -> Verdict | None:
    error = standing.lake
    return None if error is None else Verdict(State.REFUSED, error.message, error.hint)


def _next_refused(standing: Standing, _: datetime) -> Verdict | None:
    if not isinstance(standing.start, Refusal):
        return None
    error, failed = standing.start.error, standing.failures
    since = f"no run since {clock(failed.first)}: " if failed else "the next run is refused: "
    return Verdict(
        State.REFUSED, f"{since}{error.message}", error.hint, error.recovery, error.message
    )


def _failed(standing: Standing, _: datetime) -> Verdict | None:
    """Return a verdict if attempts failed and nobody has chosen another start since.
    Trouble with the server is left to `_unreachable`."""
    failed, choice = standing.failures, standing.override
    if failed is None or (choice is not None and choice.chosen_at > failed.last.ended_at):
        return None
    last = failed.last
    times = f"{failed.count} attempt{'s' * (failed.count > 1)} failed"
    if standing.trouble is not None and last.recovery is Recovery.RETRY:
        return None
    if last.outcome is AttemptOutcome.REFUSED and isinstance(standing.start, Start):
        return Verdict(
            State.FAILED,
            f"{times} since {clock(failed.first)} ({last.reason}), but the next one would "
            f"begin: {standing.start.reason}",
            f"`lockstep run --source {standing.source}`",
            Recovery.RETRY,
        )
    return Verdict(
        State.FAILED if last.recovery is Recovery.RETRY else State.REFUSED,
        f"{times} since {clock(failed.first)}: {last.reason}",
        last.hint or f"`lockstep run --source {standing.source}`",
        last.recovery,
        last.reason,
    )


def _unreachable(standing: Standing, _: datetime) -> Verdict | None:
    trouble, failed = standing.trouble, standing.failures
    if trouble is None:
        return None
    since = f" ({failed.count} failed since {clock(failed.first)})" if failed else ""
    configured = trouble.recovery is Recovery.CONFIGURATION
    state = State.CONFIGURATION if configured else State.UNREACHABLE
    return Verdict(
        state, f"{trouble.message}{since}", trouble.hint, trouble.recovery, trouble.message
    )


def _never_ran(standing: Standing, _: datetime) -> Verdict | None:
    if standing.captured is not None or standing.waiting or standing.override:
        return None
    return Verdict(
        State.NEVER_RAN,
        "nothing was captured yet",
        f"`lockstep check --source {standing.source}`, then "
        f"`lockstep run --source {standing.source}`",
        Recovery.RETRY,
    )


def _chosen(standing: Standing, _: datetime) -> Verdict | None:
    choice = standing.override
    if choice is None:
        return None
    return Verdict(
        State.BEHIND,
        f"the next run starts at {choice.place}, as {choice.author} chose: {choice.reason}",
        f"`lockstep plan --source {standing.source}` shows it, `lockstep run` does it",
        Recovery.RETRY,
    )


def at_risk(source: str, room: Headroom, pause: timedelta | None) -> Verdict | None:
    """Return a verdict if the server may purge the log at the cursor (the place up to
    which it was read) before the next runs; else None. `pause`: as in `verdict`."""
    if room.gone:
        return Verdict(
            State.AT_RISK,
            "the log file at the cursor is already gone from the server; GTIDs still say where to "
            "go on",
            f"`lockstep run --source {source}` now; keep logs longer: {KEPT_BY}",
            Recovery.OPERATOR,
        )
    if room.kept is None or room.remaining is None:
        return None
    least = max(min(_DAY, room.kept / 2), pause or timedelta())
    if room.remaining >= least:
        return None
    left = f"in {spoken(room.remaining)}" if room.remaining else "at the next rotation"
    return Verdict(
        State.AT_RISK,
        f"the server may purge the log at the cursor {left}, and the position with it",
        f"`lockstep run --source {source}` now; keep logs longer: {KEPT_BY}",
        Recovery.OPERATOR,
        "the server may purge the log at the cursor",
    )


def _with_lake(standing: Standing, pause: timedelta | None) -> Verdict:
    """Return the verdict on the tables and the lake, once nothing is wrong with server
    and runs."""
    back = standing.ordered_back
    back |= {stopped.table for stopped in standing.quarantined if stopped.starts_by_itself}
    waiting = [stopped for stopped in standing.quarantined if stopped.table not in back]
    faults = [stopped for stopped in waiting if stopped.by is StoppedBy.SYSTEM]
    if faults:
        tables = _all(quarantine.table for quarantine in faults)
        return Verdict(State.QUARANTINED, _quarantined(faults), faults[0].hint, about=tables)
    if standing.astray:
        lost = standing.astray[0]
        return Verdict(
            State.QUARANTINED,
            f"the next run quarantines {lost.table}: {lost.reason}",
            lost.hint,
            about=_all([lost.table]),
        )
    run = f"`lockstep run --source {standing.source}`"
    if back:
        comes = "comes" if len(back) == 1 else "come"
        sentence = f"{_named(sorted(back))} {comes} back with the next run"
        return Verdict(State.BEHIND, sentence, run, Recovery.RETRY)
    if waiting:
        those = [stopped.table for stopped in waiting]
        verb = "is" if len(those) == 1 else "are"
        return Verdict(
            State.PAUSED,
            f"{_named(those)} {verb} paused; everything else goes on",
            waiting[0].hint,
        )
    if standing.waiting:
        first = standing.waiting[0]
        tables = ", ".join(map(str, first.tables[:3])) or "its merge"
        return Verdict(
            State.BEHIND,
            f"batch {first.batch.id} is {first.batch.state.value} and waits for {tables}",
            run,
            Recovery.RETRY,
        )
    if (behind := late(standing.source, standing.lag, pause)) is not None:
        return behind
    if wrong := list(open_differences(standing.proofs).values()):
        hint = _DIFFERS_CURE.format(wrong[0].table)
        tables = _all(proof.table for proof in wrong)
        return Verdict(State.DIFFERS, _differing(wrong), hint, about=tables)
    if gaps := [gap for gap in standing.gaps if gap.is_open]:
        tables = _all(table for gap in gaps for table in gap.open_tables)
        return Verdict(State.GAP, _gaps(gaps), _GAP_CURE, about=tables)
    if standing.partial:
        return Verdict(State.PARTIAL, _partial(standing.partial), standing.partial[0].hint)
    if standing.moved:
        moved = standing.moved[0]
        return Verdict(State.DIFFERS, f"the changelog of {moved.table}: {moved.reason}", moved.hint)
    position = standing.acknowledged.position if standing.acknowledged else None
    return Verdict(State.FINE, f"every captured table is in the lake as it was at {position}")


def late(source: str, lag: Lag, pause: timedelta | None) -> Verdict | None:
    """Return a verdict if the lake is further behind than its schedule explains; else
    None. `pause`: as in `verdict`."""
    allowed = pause + max(_LATE, _QUARTER * pause) if pause else None
    if allowed is None or lag.seconds is None or lag.seconds <= allowed.total_seconds():
        return None
    return Verdict(
        State.BEHIND,
        f"the lake is {spoken(timedelta(seconds=lag.seconds))} behind, and the schedule's longest "
        f"pause is {spoken(pause or allowed)}",
        f"`lockstep run --source {source}`; is `dagster dev` (or the daemon) running?",
        Recovery.RETRY,
    )


def _differing(wrong: Sequence[TableProof]) -> str:
    names = _named(sorted({proof.table for proof in wrong}))
    last = max(proof.compared_at for proof in wrong)
    return f"rows of {names} differed from MySQL when last compared, {clock(last)}"


def _gaps(gaps: Sequence[Gap]) -> str:
    tables = sorted({table for gap in gaps for table in gap.open_tables})
    count = f"{len(gaps)} gaps" if len(gaps) > 1 else "a gap"
    return f"{count} in what was read, see below: rows of {_some(tables)} may be wrong"


def _quarantined(quarantined: Sequence[StoppedTable]) -> str:
    names = _named([quarantine.table for quarantine in quarantined])
    if len(quarantined) == 1:
        return f"{names}: quarantined at {quarantined[0].position}, {quarantined[0].reason}"
    return f"{len(quarantined)} tables are quarantined: {names}; the others go on"


def _partial(partial: Sequence[Extent]) -> str:
    if len(partial) == 1:
        return f"{partial[0].table} is {partial[0].sentence}"
    names = _named([extent.table for extent in partial])
    return f"{len(partial)} tables are partial, see below: {names}"


def _all(tables: Iterable[TableName | str]) -> str:
    return ", ".join(sorted({str(table) for table in tables}))


def _named(tables: Sequence[TableName]) -> str:
    return _some([str(table) for table in tables])


def _some(names: Sequence[str]) -> str:
    first = ", ".join(names[:3])
    return f"{first} and {len(names) - 3} more" if len(names) > 3 else first


def clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
