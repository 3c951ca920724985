"""Judges a source by its facts (`Standing`): one sentence that says what is wrong, and
what to type. Every combination of facts has a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.proof.proven import ComparisonRecord, open_differences
from lockstep.pipeline.snapshot.log_retention import RETENTION_VARIABLE
from lockstep.pipeline.start.question import Refusal, Start
from lockstep.pipeline.status.facts import Failures, Headroom, Lag, Standing, WaitingBatch
from lockstep.pipeline.values.decisions import AttemptOutcome
from lockstep.pipeline.values.errors import (
    AccessDenied,
    HostUnknown,
    Recovery,
    StoppedBy,
    TlsRefused,
)
from lockstep.pipeline.values.shown import (
    MOST_NAMES,
    duration_text,
    name_list,
    pluralize,
    utc_text,
)
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
    """A mirror had other rows than MySQL, or another program changed a changelog."""
    INVISIBLE = "invisible"
    """The MySQL account cannot see a captured table."""
    GAP = "gap"
    """A part of the log was passed over."""
    PARTIAL = "partial"
    """A mirror may lack rows that are older than its beginning."""
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A source's state. `sentence`: what is wrong. `hint`: what to type or do; "" if
    nothing. `recovery`: who must act before the source continues; None if it continues,
    perhaps without some tables. `stable_text`: the part of `sentence` that stays the
    same as long as the trouble lasts; "" if only numbers in the sentence can change.
    `outlasts_patience`: the next run may succeed, but none did for `RETRY_PATIENCE`."""

    state: State
    sentence: str
    hint: str = ""
    recovery: Recovery | None = None
    stable_text: str = ""
    outlasts_patience: bool = False

    @property
    def needs_a_person(self) -> bool:
        """True if a person has to act, because no later run can end the trouble, or
        because no run has succeeded for a long time."""
        return self.outlasts_patience or self.state in _STATES_FOR_PERSON

    @property
    def is_undecided(self) -> bool:
        """True if only the next run will show whether an earlier trouble still exists."""
        return not self.needs_a_person and self.state in _UNDECIDED_STATES

    @property
    def trouble_key(self) -> str:
        """Text that stays the same as long as the trouble lasts."""
        if self.outlasts_patience:
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
"""Time without a heartbeat after which the holder of a lock is called silent."""

RETRY_PATIENCE = timedelta(hours=1)
"""If no run succeeded for this time, a person is needed, even if the next run may
succeed."""

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
    return (
        _busy_verdict(standing, now, longest_pause)
        or _lake_error_verdict(standing)
        or _refused_start_verdict(standing)
        or _failed_verdict(standing, now)
        or _unreachable_verdict(standing, now)
        or _never_ran_verdict(standing)
        or _chosen_start_verdict(standing)
        or risk_verdict(standing.source, standing.headroom, longest_pause)
        or _stopped_tables_verdict(standing)
        or _waiting_batch_verdict(standing)
        or late_verdict(standing.source, standing.lag, longest_pause)
        or _lake_verdict(standing)
    )


def _busy_verdict(
    standing: Standing, now: datetime, longest_pause: timedelta | None
) -> Verdict | None:
    lease = standing.lease
    if lease is None:
        return None
    holder = f"{lease.holder}, since {utc_text(lease.taken_at)}"
    silence = now - lease.beat_at if lease.beat_at is not None else timedelta()
    if silence >= SILENCE_LIMIT:
        return Verdict(
            State.BUSY,
            "a run holds the source but gave no sign of life for "
            f"{duration_text(silence)} ({holder})",
            f"end that process: {_KILL_IS_SAFE}; or `lockstep run --source {standing.source}`, "
            "which takes over from a run that has been silent for a minute",
            Recovery.RETRY,
        )
    return _stuck_verdict(standing, now, longest_pause) or Verdict(
        State.BUSY,
        f"a run is going on ({holder})",
        "wait for it, or look at it on Dagster's page"
        if lease.in_dagster
        else f"wait for it, or end that process: {_KILL_IS_SAFE}",
    )


def _stuck_verdict(
    standing: Standing, now: datetime, longest_pause: timedelta | None
) -> Verdict | None:
    """Return a verdict if the run that is going on has recorded nothing for too long;
    else None. Its heartbeats show only that its process lives. "Too long" is the time
    after which a source is late; without a schedule, `RETRY_PATIENCE`. A run that reads
    a table from the source in one piece may take any time, so it is not judged. A
    command that is no run, such as a replay, is not judged either: somebody waits for
    it."""
    lease = standing.lease
    batches = standing.waiting_batches
    merging = [waiting for waiting in batches if waiting.batch.state is BatchState.CAPTURED]
    if lease is None or lease.run_id is None or lease.recorded_at is None:
        return None
    if any(load.is_undivided for load in standing.loads) and not merging:
        return None
    idle = now - lease.recorded_at
    if idle <= (_late_after(longest_pause) if longest_pause else RETRY_PATIENCE):
        return None
    step = ""
    if merging:
        step = f"; {_waiting_words(merging[0])}"
    elif batches:
        step = f"; batch {batches[0].batch.id} is {batches[0].batch.state.value}"
    return Verdict(
        State.BUSY,
        f"a run is going on, but has recorded nothing for {duration_text(idle)} "
        f"({lease.holder}, since {utc_text(lease.taken_at)}){step}",
        "look at its progress, or at its process's CPU time; if it does nothing, end that process "
        f"(`kill -9` is safe), then `lockstep run --source {standing.source}`",
        Recovery.RETRY,
        outlasts_patience=idle >= RETRY_PATIENCE,
    )


def _waiting_words(waiting: WaitingBatch) -> str:
    batch = waiting.batch
    tables = name_list(waiting.tables) or "its merge"
    return f"batch {batch.id} is {batch.state.value} and waits for {tables}"


def _late_after(longest_pause: timedelta) -> timedelta:
    """Return the time after which a source with this longest pause is late."""
    return longest_pause + max(_MIN_ALLOWANCE, _ALLOWANCE_SHARE * longest_pause)


def _lake_error_verdict(standing: Standing) -> Verdict | None:
    error = standing.lake_error
    if error is None:
        return None
    return Verdict(State.REFUSED, error.message, error.hint, error.recovery)


def _refused_start_verdict(standing: Standing) -> Verdict | None:
    if not isinstance(standing.start, Refusal):
        return None
    error = standing.start.error
    failures = standing.failures
    refusal = (
        f"no run since {utc_text(failures.first_at)}" if failures else "the next run is refused"
    )
    return Verdict(
        State.REFUSED,
        f"{refusal}: {error.message}",
        error.hint,
        error.recovery,
        stable_text=error.message,
    )


def _failed_verdict(standing: Standing, now: datetime) -> Verdict | None:
    """Return a verdict if attempts failed and nobody has chosen another start since. If
    the server does not answer now, failures that a retry may end and failures of the
    login are left to `_unreachable_verdict`."""
    failures = standing.failures
    choice = standing.override
    if failures is None:
        return None
    last = failures.last_attempt
    if choice is not None and choice.chosen_at > last.ended_at:
        return None
    is_login_error = last.rule in _LOGIN_ERRORS
    if standing.server_error is not None and (last.recovery is Recovery.RETRY or is_login_error):
        return None
    since = _failed_words(failures)
    was_refused = is_login_error or last.outcome is AttemptOutcome.REFUSED
    if was_refused and isinstance(standing.start, Start):
        return Verdict(
            State.FAILED,
            f"{since} ({last.reason}), but the next one would begin: {standing.start.reason}",
            f"`lockstep run --source {standing.source}`",
            Recovery.RETRY,
            # This command could log in, but runs may use other credentials.
            outlasts_patience=is_login_error and _outlast_patience(failures, now),
        )
    return Verdict(
        State.FAILED if last.recovery is Recovery.RETRY else State.REFUSED,
        f"{since}: {last.reason}",
        last.hint or f"`lockstep run --source {standing.source}`",
        last.recovery,
        stable_text=last.reason,
        outlasts_patience=last.recovery is Recovery.RETRY and _outlast_patience(failures, now),
    )


_LOGIN_ERRORS = frozenset(error.__name__ for error in (AccessDenied, HostUnknown, TlsRefused))
"""Errors on connecting to the server. `lockstep status` connects, too, so it sees
whether they have ended."""


def _failed_words(failures: Failures) -> str:
    return f"{pluralize(failures.count, 'attempt')} failed since {utc_text(failures.first_at)}"


def _outlast_patience(failures: Failures | None, now: datetime) -> bool:
    return failures is not None and now - failures.first_at >= RETRY_PATIENCE


def _unreachable_verdict(standing: Standing, now: datetime) -> Verdict | None:
    error = standing.server_error
    failures = standing.failures
    if error is None:
        return None
    since = f" ({_failed_words(failures)})" if failures else ""
    is_mistake = error.recovery is Recovery.CONFIGURATION
    return Verdict(
        State.CONFIGURATION if is_mistake else State.UNREACHABLE,
        f"{error.message}{since}",
        error.hint,
        error.recovery,
        stable_text=error.message,
        outlasts_patience=not is_mistake and _outlast_patience(failures, now),
    )


def _never_ran_verdict(standing: Standing) -> Verdict | None:
    if standing.captured is not None or standing.waiting_batches or standing.override:
        return None
    return Verdict(
        State.NEVER_RAN,
        "nothing was captured yet",
        f"`lockstep check --source {standing.source}`, then "
        f"`lockstep run --source {standing.source}`",
        Recovery.RETRY,
    )


def _chosen_start_verdict(standing: Standing) -> Verdict | None:
    choice = standing.override
    if choice is None:
        return None
    return Verdict(
        State.BEHIND,
        f"the next run starts at {choice.place}, as {choice.author} chose: {choice.reason}",
        f"`lockstep plan --source {standing.source}` shows it, `lockstep run` does it",
        Recovery.RETRY,
    )


def risk_verdict(
    source: str, headroom: Headroom | None, longest_pause: timedelta | None
) -> Verdict | None:
    """Return a verdict if the server may purge the log at the cursor (the place up to
    which the log was read) before the next runs; else None. `longest_pause`: the
    longest time between two scheduled runs."""
    if headroom is None:
        return None
    if headroom.is_purged:
        return Verdict(
            State.AT_RISK,
            "the log file at the cursor is already gone from the server; GTIDs still say where to "
            "go on",
            f"`lockstep run --source {source}` now; keep logs longer: {RETENTION_VARIABLE}",
            Recovery.OPERATOR,
        )
    if headroom.retention is None or headroom.remaining is None:
        return None
    safe_time = max(min(_DAY, headroom.retention / 2), longest_pause or timedelta())
    if headroom.remaining >= safe_time:
        return None
    when = (
        f"in {duration_text(headroom.remaining)}" if headroom.remaining else "at the next rotation"
    )
    return Verdict(
        State.AT_RISK,
        f"the server may purge the log at the cursor {when}: the position would be lost",
        f"`lockstep run --source {source}` now; keep logs longer: {RETENTION_VARIABLE}",
        Recovery.OPERATOR,
        stable_text="the server may purge the log at the cursor",
    )


def _stopped_tables_verdict(standing: Standing) -> Verdict | None:
    returning = standing.tables_to_resume | {
        stopped.table for stopped in standing.stopped_tables if stopped.starts_by_itself
    }
    remaining = [stopped for stopped in standing.stopped_tables if stopped.table not in returning]
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
    if returning:
        verb = "comes" if len(returning) == 1 else "come"
        return Verdict(
            State.BEHIND,
            f"{name_list(sorted(returning))} {verb} back with the next run",
            f"`lockstep run --source {standing.source}`",
            Recovery.RETRY,
        )
    if remaining:
        verb = "is" if len(remaining) == 1 else "are"
        paused = name_list([stopped.table for stopped in remaining])
        return Verdict(
            State.PAUSED, f"{paused} {verb} paused; everything else goes on", remaining[0].hint
        )
    return None


def _waiting_batch_verdict(standing: Standing) -> Verdict | None:
    if not standing.waiting_batches:
        return None
    return Verdict(
        State.BEHIND,
        _waiting_words(standing.waiting_batches[0]),
        f"`lockstep run --source {standing.source}`",
        Recovery.RETRY,
    )


def _lake_verdict(standing: Standing) -> Verdict:
    """Return the verdict on what the lake shows, if nothing is wrong with server, runs
    and tables."""
    if differences := list(open_differences(standing.proofs).values()):
        tables = sorted(proof.table for proof in differences)
        words = " ".join(table.word for table in tables)
        is_short = len(tables) <= MOST_NAMES
        hint = _DIFFERS_CURE.format(words if is_short else f"--source {standing.source}")
        names = _sorted_names(proof.table for proof in differences)
        sentence = _difference_sentence(differences)
        return Verdict(State.DIFFERS, sentence, hint, stable_text=names)
    if invisible := standing.invisible_tables:
        sentence = f"{name_list([table.table for table in invisible])}: {invisible[0].reason}"
        names = _sorted_names(table.table for table in invisible)
        return Verdict(State.INVISIBLE, sentence, invisible[0].hint, stable_text=names)
    if gaps := [gap for gap in standing.gaps if gap.is_open]:
        names = _sorted_names(table for gap in gaps for table in gap.open_tables)
        return Verdict(State.GAP, _gap_sentence(gaps), _GAP_CURE, stable_text=names)
    if standing.rewritten_changelogs:
        first = standing.rewritten_changelogs[0]
        return Verdict(State.DIFFERS, f"the changelog of {first.table}: {first.reason}", first.hint)
    if standing.extents:
        sentence = _partial_sentence(standing.extents)
        return Verdict(State.PARTIAL, sentence, standing.extents[0].hint)
    position = standing.acknowledged.position if standing.acknowledged else None
    return Verdict(State.FINE, f"every captured table is in the lake as it was at {position}")


def late_verdict(source: str, lag: Lag, longest_pause: timedelta | None) -> Verdict | None:
    """Return a verdict if the lake is further behind than its schedule explains; else
    None. `longest_pause`: the longest time between two scheduled runs."""
    if not longest_pause or lag.seconds is None:
        return None
    if lag.seconds <= _late_after(longest_pause).total_seconds():
        return None
    return Verdict(
        State.BEHIND,
        f"the lake is {duration_text(timedelta(seconds=lag.seconds))} behind, and the schedule's "
        f"longest pause is {duration_text(longest_pause)}",
        f"`lockstep run --source {source}`; is `dagster dev` (or the daemon) running?",
        Recovery.RETRY,
    )


def _difference_sentence(differences: Sequence[ComparisonRecord]) -> str:
    names = name_list(sorted({proof.table for proof in differences}))
    last = max(proof.compared_at for proof in differences)
    return f"rows of {names} differed from MySQL when last compared, {utc_text(last)}"


def _gap_sentence(gaps: Sequence[Gap]) -> str:
    tables = sorted({table for gap in gaps for table in gap.open_tables})
    count = f"{len(gaps)} gaps" if len(gaps) > 1 else "a gap"
    return f"{count} in what was read: rows of {name_list(tables)} may be wrong"


def _quarantine_sentence(quarantined: Sequence[StoppedTable]) -> str:
    names = name_list([stopped.table for stopped in quarantined])
    if len(quarantined) == 1:
        return f"{names}: quarantined at {quarantined[0].position}, {quarantined[0].reason}"
    return f"{len(quarantined)} tables are quarantined: {names}; the others go on"


def _partial_sentence(extents: Sequence[Extent]) -> str:
    if len(extents) == 1:
        return f"{extents[0].table} is {extents[0].sentence}"
    names = name_list([extent.table for extent in extents])
    return f"{len(extents)} tables are partial: {names}"


def _sorted_names(tables: Iterable[TableName | str]) -> str:
    return ", ".join(sorted({str(table) for table in tables}))
