"""Judges a source: one sentence that says what is wrong, and what to type. Pure; every
combination of facts has a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from lockstep.pipeline.check.log import duration_text
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.proof.proven import ComparisonRecord, open_differences
from lockstep.pipeline.snapshot.log_retention import RETENTION_VARIABLE
from lockstep.pipeline.start.question import Refusal, Start
from lockstep.pipeline.status.facts import Failures, Headroom, Lag, Standing
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
    INVISIBLE = "invisible"
    GAP = "gap"
    PARTIAL = "partial"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A source's state. `sentence`: what is wrong. `hint`: what to type or do; "" if
    nothing. `recovery`: who must act before the source continues; None if it continues,
    perhaps without some tables. `stable_text`: text that identifies the trouble if
    `sentence` without its numbers does not; "" if it does. `lasts`: no run has gone
    through for `RETRY_PATIENCE`, although each might have."""

    state: State
    sentence: str
    hint: str = ""
    recovery: Recovery | None = None
    stable_text: str = ""
    lasts: bool = False

    @property
    def needs_a_person(self) -> bool:
        """Whether a person has to act, because no later run can, or none did for
        long."""
        return self.lasts or self.state in _STATES_FOR_PERSON

    @property
    def is_undecided(self) -> bool:
        """Whether the next run will show if an earlier trouble is over."""
        return not self.needs_a_person and self.state in _UNDECIDED_STATES

    @property
    def trouble_key(self) -> str:
        """Text that stays the same as long as the trouble does."""
        if self.lasts:
            return "no run goes through"
        return f"{self.state}: {_NUMBER.sub('#', self.stable_text or self.sentence)}"


_STATES_FOR_PERSON = frozenset(
    {
        State.REFUSED,
        State.CONFIGURATION,
        State.AT_RISK,
        State.QUARANTINED,
        State.DIFFERS,
        State.INVISIBLE,
        State.GAP,
    }
)

_UNDECIDED_STATES = frozenset({State.BUSY, State.UNREACHABLE, State.FAILED})

_NUMBER = re.compile(r"(?<![\w.])\d[\d.,:-]*")
"""Matches a count, a time or a size, but not the digits in a name."""


SILENCE_LIMIT = timedelta(seconds=30)
"""After this time without a heartbeat, the holder of a source's lock is called silent."""

RETRY_PATIENCE = timedelta(hours=1)
"""After this time in which no run went through, a person is needed, even if the next
run may succeed."""

_MIN_ALLOWANCE = timedelta(minutes=15)
_ALLOWANCE_SHARE = 0.25
"""A source is late after the schedule's longest pause plus an allowance for the run
itself: a quarter of that pause, at least `_MIN_ALLOWANCE`."""

_KILL_IS_SAFE = (
    "`kill -9` is safe, the next run takes over within a minute and repairs what was begun"
)
_GAP_CURE = (
    "`lockstep verify` closes it for each table that is equal, once the log has been read to its "
    "end; `--repair` has the others read from MySQL, at once or by the next run"
)
_DIFFERS_CURE = (
    "`lockstep verify {}` compares again and shows which rows; `--repair` has them read from "
    "MySQL, at once or by the next run, as it says"
)
_DAY = timedelta(days=1)


def verdict(standing: Standing, now: datetime, longest_pause: timedelta | None) -> Verdict:
    """Return the most important verdict. `longest_pause`: the longest time between two
    scheduled runs; None without a schedule."""
    if (busy := _busy_verdict(standing, now, longest_pause)) is not None:
        return busy
    for judge in (
        _lake_error_verdict,
        _refused_start_verdict,
        _failed_verdict,
        _unreachable_verdict,
        _never_ran_verdict,
        _chosen_start_verdict,
    ):
        if (result := judge(standing, now)) is not None:
            return result
    room = standing.headroom
    risk = None if room is None else risk_verdict(standing.source, room, longest_pause)
    return risk or _lake_verdict(standing, longest_pause)


def _busy_verdict(
    standing: Standing, now: datetime, longest_pause: timedelta | None
) -> Verdict | None:
    lease = standing.lease
    if lease is None or not lease.live:
        return None
    holder = f"{lease.holder}, since {utc_text(lease.taken_at)}"
    silence = now - lease.beat_at if lease.beat_at is not None else timedelta()
    if silence < SILENCE_LIMIT:
        if (stuck := _stuck_verdict(standing, now, longest_pause)) is not None:
            return stuck
        return Verdict(
            State.BUSY,
            f"a run is going on ({holder})",
            "wait for it, or look at it on Dagster's page"
            if lease.in_dagster
            else f"wait for it, or end that process: {_KILL_IS_SAFE}",
        )
    return Verdict(
        State.BUSY,
        f"a run holds the source but gave no sign of life for {duration_text(silence)} ({holder})",
        f"end that process: {_KILL_IS_SAFE}; or `lockstep run --source {standing.source}`, which "
        "takes over from a run that has been silent for a minute",
        Recovery.RETRY,
    )


def _stuck_verdict(
    standing: Standing, now: datetime, longest_pause: timedelta | None
) -> Verdict | None:
    """Return a verdict if the run that is going on has recorded nothing for so long that
    its source would be late, or without a schedule for `RETRY_PATIENCE`; else None. Its
    heartbeats show only that its process lives. Not judged are runs that read a table
    from the source in one piece, however long that takes, and commands that are no runs,
    such as a replay, for which somebody waits."""
    lease, waiting = standing.lease, standing.waiting_batches
    merging = [batch for batch in waiting if batch.batch.state is BatchState.CAPTURED]
    if lease is None or lease.dagster_run is None or lease.recorded_at is None:
        return None
    if any(load.is_one_read for load in standing.loads) and not merging:
        return None
    idle = now - lease.recorded_at
    if idle <= (_latest(longest_pause) if longest_pause else RETRY_PATIENCE):
        return None
    step = ""
    if waiting:
        batch = (merging or waiting)[0]
        names = _first_tables(batch.tables) or "its merge"
        step = f"; batch {batch.batch.id} is {batch.batch.state.value}"
        step += f" and waits for {names}" if merging else ""
    return Verdict(
        State.BUSY,
        f"a run is going on, but has recorded nothing for {duration_text(idle)} "
        f"({lease.holder}, since {utc_text(lease.taken_at)}){step}",
        "look at its progress, or at its process's CPU time; if it does nothing, end that process "
        f"(`kill -9` is safe), then `lockstep run --source {standing.source}`",
        Recovery.RETRY,
        lasts=idle >= RETRY_PATIENCE,
    )


def _latest(longest_pause: timedelta) -> timedelta:
    """Return the time after which a source with this longest pause is late."""
    return longest_pause + max(_MIN_ALLOWANCE, _ALLOWANCE_SHARE * longest_pause)


def _lake_error_verdict(standing: Standing, _: datetime) -> Verdict | None:
    error = standing.lake_error
    if error is None:
        return None
    return Verdict(State.REFUSED, error.message, error.hint, error.recovery)


def _refused_start_verdict(standing: Standing, _: datetime) -> Verdict | None:
    if not isinstance(standing.start, Refusal):
        return None
    error, failed = standing.start.error, standing.failures
    since = f"no run since {utc_text(failed.first_at)}: " if failed else "the next run is refused: "
    return Verdict(
        State.REFUSED, f"{since}{error.message}", error.hint, error.recovery, error.message
    )


def _failed_verdict(standing: Standing, now: datetime) -> Verdict | None:
    """Return a verdict if attempts failed and nobody has chosen another start since.
    Trouble with the server is left to `_unreachable_verdict`."""
    failed, choice = standing.failures, standing.override
    if failed is None or (choice is not None and choice.chosen_at > failed.last_attempt.ended_at):
        return None
    last = failed.last_attempt
    times = f"{failed.count} attempt{'s' * (failed.count > 1)} failed"
    if standing.server_error is not None and last.recovery is Recovery.RETRY:
        return None
    if last.outcome is AttemptOutcome.REFUSED and isinstance(standing.start, Start):
        return Verdict(
            State.FAILED,
            f"{times} since {utc_text(failed.first_at)} ({last.reason}), but the next one would "
            f"begin: {standing.start.reason}",
            f"`lockstep run --source {standing.source}`",
            Recovery.RETRY,
        )
    return Verdict(
        State.FAILED if last.recovery is Recovery.RETRY else State.REFUSED,
        f"{times} since {utc_text(failed.first_at)}: {last.reason}",
        last.hint or f"`lockstep run --source {standing.source}`",
        last.recovery,
        last.reason,
        last.recovery is Recovery.RETRY and _lasts(failed, now),
    )


def _lasts(failed: Failures | None, now: datetime) -> bool:
    return failed is not None and now - failed.first_at >= RETRY_PATIENCE


def _unreachable_verdict(standing: Standing, now: datetime) -> Verdict | None:
    error, failed = standing.server_error, standing.failures
    if error is None:
        return None
    since = f" ({failed.count} failed since {utc_text(failed.first_at)})" if failed else ""
    configured = error.recovery is Recovery.CONFIGURATION
    state = State.CONFIGURATION if configured else State.UNREACHABLE
    lasts = not configured and _lasts(failed, now)
    sentence = f"{error.message}{since}"
    return Verdict(state, sentence, error.hint, error.recovery, error.message, lasts)


def _never_ran_verdict(standing: Standing, _: datetime) -> Verdict | None:
    if standing.captured is not None or standing.waiting_batches or standing.override:
        return None
    return Verdict(
        State.NEVER_RAN,
        "nothing was captured yet",
        f"`lockstep check --source {standing.source}`, then "
        f"`lockstep run --source {standing.source}`",
        Recovery.RETRY,
    )


def _chosen_start_verdict(standing: Standing, _: datetime) -> Verdict | None:
    choice = standing.override
    if choice is None:
        return None
    return Verdict(
        State.BEHIND,
        f"the next run starts at {choice.place}, as {choice.author} chose: {choice.reason}",
        f"`lockstep plan --source {standing.source}` shows it, `lockstep run` does it",
        Recovery.RETRY,
    )


def risk_verdict(source: str, room: Headroom, longest_pause: timedelta | None) -> Verdict | None:
    """Return a verdict if the server may purge the log at the cursor (the place up to
    which it was read) before the next runs; else None. `longest_pause`: between two
    scheduled runs."""
    if room.is_purged:
        return Verdict(
            State.AT_RISK,
            "the log file at the cursor is already gone from the server; GTIDs still say where to "
            "go on",
            f"`lockstep run --source {source}` now; keep logs longer: {RETENTION_VARIABLE}",
            Recovery.OPERATOR,
        )
    if room.retention is None or room.remaining is None:
        return None
    least = max(min(_DAY, room.retention / 2), longest_pause or timedelta())
    if room.remaining >= least:
        return None
    when = f"in {duration_text(room.remaining)}" if room.remaining else "at the next rotation"
    return Verdict(
        State.AT_RISK,
        f"the server may purge the log at the cursor {when}, and the position with it",
        f"`lockstep run --source {source}` now; keep logs longer: {RETENTION_VARIABLE}",
        Recovery.OPERATOR,
        "the server may purge the log at the cursor",
    )


def _lake_verdict(standing: Standing, longest_pause: timedelta | None) -> Verdict:
    """Return the verdict on the tables and the lake, once nothing is wrong with server
    and runs."""
    resumed = standing.tables_to_resume
    resumed |= {stopped.table for stopped in standing.stopped_tables if stopped.starts_by_itself}
    remaining = [stopped for stopped in standing.stopped_tables if stopped.table not in resumed]
    quarantined = [stopped for stopped in remaining if stopped.by is StoppedBy.SYSTEM]
    if quarantined:
        names = _sorted_names(stopped.table for stopped in quarantined)
        sentence = _quarantine_sentence(quarantined)
        return Verdict(State.QUARANTINED, sentence, quarantined[0].hint, stable_text=names)
    if standing.upcoming_quarantines:
        upcoming = standing.upcoming_quarantines[0]
        return Verdict(
            State.QUARANTINED,
            f"the next run quarantines {upcoming.table}: {upcoming.reason}",
            upcoming.hint,
            stable_text=_sorted_names([upcoming.table]),
        )
    run_command = f"`lockstep run --source {standing.source}`"
    if resumed:
        comes = "comes" if len(resumed) == 1 else "come"
        sentence = f"{_first_tables(sorted(resumed))} {comes} back with the next run"
        return Verdict(State.BEHIND, sentence, run_command, Recovery.RETRY)
    if remaining:
        paused = [stopped.table for stopped in remaining]
        verb = "is" if len(paused) == 1 else "are"
        return Verdict(
            State.PAUSED,
            f"{_first_tables(paused)} {verb} paused; everything else goes on",
            remaining[0].hint,
        )
    if standing.waiting_batches:
        waiting = standing.waiting_batches[0]
        names = ", ".join(map(str, waiting.tables[:3])) or "its merge"
        return Verdict(
            State.BEHIND,
            f"batch {waiting.batch.id} is {waiting.batch.state.value} and waits for {names}",
            run_command,
            Recovery.RETRY,
        )
    if (late := late_verdict(standing.source, standing.lag, longest_pause)) is not None:
        return late
    if differences := list(open_differences(standing.proofs).values()):
        hint = _DIFFERS_CURE.format(differences[0].table)
        names = _sorted_names(proof.table for proof in differences)
        sentence = _difference_sentence(differences)
        return Verdict(State.DIFFERS, sentence, hint, stable_text=names)
    if invisible := standing.invisible_tables:
        sentence = f"{_first_tables([table.table for table in invisible])}: {invisible[0].reason}"
        names = _sorted_names(table.table for table in invisible)
        return Verdict(State.INVISIBLE, sentence, invisible[0].hint, stable_text=names)
    if gaps := [gap for gap in standing.gaps if gap.is_open]:
        names = _sorted_names(table for gap in gaps for table in gap.open_tables)
        return Verdict(State.GAP, _gap_sentence(gaps), _GAP_CURE, stable_text=names)
    if standing.extents:
        sentence = _partial_sentence(standing.extents)
        return Verdict(State.PARTIAL, sentence, standing.extents[0].hint)
    if standing.rewritten_changelogs:
        first = standing.rewritten_changelogs[0]
        return Verdict(State.DIFFERS, f"the changelog of {first.table}: {first.reason}", first.hint)
    position = standing.acknowledged.position if standing.acknowledged else None
    return Verdict(State.FINE, f"every captured table is in the lake as it was at {position}")


def late_verdict(source: str, lag: Lag, longest_pause: timedelta | None) -> Verdict | None:
    """Return a verdict if the lake is further behind than its schedule explains; else
    None. `longest_pause`: between two scheduled runs."""
    if not longest_pause or lag.seconds is None:
        return None
    if lag.seconds <= _latest(longest_pause).total_seconds():
        return None
    return Verdict(
        State.BEHIND,
        f"the lake is {duration_text(timedelta(seconds=lag.seconds))} behind, and the schedule's "
        f"longest pause is {duration_text(longest_pause)}",
        f"`lockstep run --source {source}`; is `dagster dev` (or the daemon) running?",
        Recovery.RETRY,
    )


def _difference_sentence(differences: Sequence[ComparisonRecord]) -> str:
    names = _first_tables(sorted({proof.table for proof in differences}))
    last = max(proof.compared_at for proof in differences)
    return f"rows of {names} differed from MySQL when last compared, {utc_text(last)}"


def _gap_sentence(gaps: Sequence[Gap]) -> str:
    tables = sorted({table for gap in gaps for table in gap.open_tables})
    count = f"{len(gaps)} gaps" if len(gaps) > 1 else "a gap"
    return f"{count} in what was read, see below: rows of {_first_names(tables)} may be wrong"


def _quarantine_sentence(quarantined: Sequence[StoppedTable]) -> str:
    names = _first_tables([stopped.table for stopped in quarantined])
    if len(quarantined) == 1:
        return f"{names}: quarantined at {quarantined[0].position}, {quarantined[0].reason}"
    return f"{len(quarantined)} tables are quarantined: {names}; the others go on"


def _partial_sentence(extents: Sequence[Extent]) -> str:
    if len(extents) == 1:
        return f"{extents[0].table} is {extents[0].sentence}"
    names = _first_tables([extent.table for extent in extents])
    return f"{len(extents)} tables are partial, see below: {names}"


def _sorted_names(tables: Iterable[TableName | str]) -> str:
    return ", ".join(sorted({str(table) for table in tables}))


def _first_tables(tables: Sequence[TableName]) -> str:
    return _first_names([str(table) for table in tables])


def _first_names(names: Sequence[str]) -> str:
    first = ", ".join(names[:3])
    return f"{first} and {len(names) - 3} more" if len(names) > 3 else first


def utc_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
