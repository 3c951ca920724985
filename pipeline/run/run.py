"""A run of a source (the tables of one MySQL server): capture, publish, merge,
acknowledge.

All steps hold one lease, a lock of the source in the ledger (Postgres), so that no
other run works on the source meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from random import SystemRandom
from typing import Protocol, TypeVar

from lockstep.pipeline.model.batch import RequestCounts
from lockstep.pipeline.ports.lease_check import RequireHeld, check_lease_on_error
from lockstep.pipeline.ports.ledger import Consumers, Leases, Ledger
from lockstep.pipeline.ports.mirrors import MirrorUpkeep
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.catalog import CatalogReport, register_after_run
from lockstep.pipeline.run.clear import clear
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.progress import Progress, StepProgress
from lockstep.pipeline.run.proof.verify_sample import prove_sample
from lockstep.pipeline.run.reports import AcknowledgeReport, CaptureReport, MergeReport, TableMerge
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.values.decisions import AttemptOutcome, Decision, Lease, LeaseView
from lockstep.pipeline.values.errors import (
    LeaseLost,
    LedgerUnavailable,
    LockstepError,
    Recovery,
    SourceBusy,
)
from lockstep.pipeline.values.places import Place
from lockstep.pipeline.values.retries import SOURCE_FREE, STEP
from lockstep.pipeline.values.table import TableName

Result = TypeVar("Result")


class RunAdapters(Protocol):
    """The outside world of a run: `resources.adapters.Adapters`, or a twin in memory."""

    def ledger(self) -> Ledger:
        """Return the port to the ledger in Postgres."""

    def consumers(self) -> Consumers:
        """Return the port to the consumers of the changelogs and their cursors."""

    def close_ledger(self) -> None:
        """Close the ledger after its connection was lost; the next call of `ledger`
        opens it."""

    def ports(self, source: str, progress: Progress) -> RunPorts:
        """Return the ports and the settings of a source."""

    def upkeep(self) -> MirrorUpkeep:
        """Return the port to the upkeep of the lake's mirrors."""


@dataclass(slots=True)
class RunRecord:
    """The results of one run of one source, filled step by step.

    - `began_at`: a moment before the run read the end of the log.
    - `error`: the refusal or failure that ended the run. `defect`: an exception that is
      a bug.
    - `request_counts`: the number of its requests to the object store so far.
    """

    source: str
    began_at: datetime | None = None
    capture_report: CaptureReport | None = None
    merge_report: MergeReport | None = None
    acknowledge_report: AcknowledgeReport | None = None
    catalog_report: CatalogReport | None = None
    error: LockstepError | None = None
    defect: BaseException | None = None
    request_counts: RequestCounts | None = None

    @property
    def covered_until(self) -> datetime | None:
        """A moment up to which all changes of the source were read; None if the run did
        not reach the log's end."""
        report = self.capture_report
        return self.began_at if report is not None and not report.ended_early else None


@dataclass(slots=True)
class RunSession:
    """One run of one source. It performs steps under the source's lease; the first step
    takes the lease. If steps are separate processes, each has its own session and takes
    the lease again.

    - `holder`: names this process in the lease. `run_id`: names the run in the ledger.
      `in_dagster`: `run_id` is the id of a Dagster run.
    - `until`: the place where the run ends; None for the log's present end.
    - `reread`: rows of a table that the run reads from the source again.
    - `pause`: waits a number of seconds.
    - `translate_error`: returns a `LockstepError` for an exception that is no bug, such
      as a full disk.
    - `on_lease`: is called with each new lease and the lease of the run before.
    - `on_wait`: is called while another run has the lease. `on_release`: is called with
      a lease before its release. `on_captured`: is called once the record has the
      capture's report.
    """

    adapters: RunAdapters
    source: str
    holder: str
    run_id: str
    progress: Progress
    pause: Callable[[float], None]
    on_lease: Callable[[Lease, LeaseView | None], None]
    record: RunRecord
    until: Place | None = None
    reread: RereadRows | None = None
    in_dagster: bool = False
    translate_error: Callable[[BaseException], LockstepError | None] = lambda _: None
    on_wait: Callable[[], None] = lambda: None
    on_release: Callable[[Lease], None] = lambda _: None
    on_captured: Callable[[], None] = lambda: None
    _lease_stack: ExitStack = field(default_factory=ExitStack)
    _ports_and_lease: tuple[RunPorts, Lease] | None = None
    _count_requests: Callable[[], RequestCounts | None] | None = None

    def run(self, step: Callable[[RunPorts, Lease], Result], *, patient: bool = False) -> Result:
        """Perform a step under the lease, and return its result. After an error that
        may pass by itself, try again (`retries.STEP`). A step can be repeated, because
        it reads from the ledger what is already done.

        `patient`: wait for the lease while another run has it, instead of raising
        `SourceBusy`. If another step of the same run has it, always wait.
        """
        for retry_count, wait_seconds in enumerate(STEP.tries(self.pause)):
            try:
                if retry_count:
                    self._find_server_again()
                ports, lease = self._leased_ports(patient)
                with check_lease_on_error(partial(ports.ledger.require_held, lease)):
                    return step(ports, lease)
            except LockstepError as error:
                if isinstance(error, LedgerUnavailable):
                    self._reconnect()
                if wait_seconds is None or not may_be_retried(error):
                    self.record.error = error
                    self._note_failure(step, error)
                    raise
                message = error.message.removesuffix(".")
                self.progress.note(f"{message}. Trying again in {wait_seconds:g} s.")
            except BaseException as error:
                known_error = self.translate_error(error)
                if known_error is not None:
                    self.record.error = known_error
                    raise known_error from error
                self.record.defect = error
                raise
        raise AssertionError("the last try returns or raises")

    def ports(self) -> RunPorts:
        """Return the ports for reading. No lease is taken."""
        if self._ports_and_lease is not None:
            return self._ports_and_lease[0]
        try:
            return self._make_ports()
        except LockstepError as error:
            self.record.error = error
            raise

    def _make_ports(self) -> RunPorts:
        ports = self.adapters.ports(self.source, self.progress)
        # After a reconnection to the ledger, the first counter is kept: it has all requests.
        self._count_requests = self._count_requests or ports.count_requests
        source = replace(ports.source, reread_rows=self.reread)
        if self.until is not None:
            source = replace(source, until=self.until)
        return replace(ports, count_requests=self._count_requests, source=source)

    def count_new_requests(self) -> RequestCounts | None:
        """Return the number of requests to the object store since the last call."""
        before, now = self.record.request_counts, self.ports().count_requests()
        self.record.request_counts = now
        return now if before is None or now is None else now - before

    def _note_failure(self, step: Callable[..., object], error: LockstepError) -> None:
        """Record the failed attempt in the ledger for `lockstep status`, if the ledger
        is available and the error is not recorded yet."""
        cannot_record = isinstance(error, LedgerUnavailable | LeaseLost)
        if self._ports_and_lease is None or cannot_record or error.is_recorded:
            return
        ports, lease = self._ports_and_lease
        with suppress(LockstepError):
            function = step.func if isinstance(step, partial) else step
            facts = {"step": getattr(function, "__name__", "step"), "hint": error.hint}
            failure = Decision(
                AttemptOutcome.FAILED.value,
                type(error).__name__,
                error.message,
                facts,
                recovery=error.recovery,
                hint=error.hint,
            )
            ports.ledger.decide(lease, failure)

    def close(self) -> None:
        """Release the lease, if one was taken."""
        ports_and_lease, self._ports_and_lease = self._ports_and_lease, None
        try:
            if ports_and_lease is not None:
                self.on_release(ports_and_lease[1])
        finally:
            self._lease_stack.close()

    def _leased_ports(self, patient: bool) -> tuple[RunPorts, Lease]:
        """Return the ports and the lease. Take the lease if this session has none."""
        if self._ports_and_lease is None:
            ports = self._make_ports()
            lease = self._take_lease(ports.ledger, patient)
            require_not_lost = partial(ports.ledger.require_not_lost, lease)
            ports = replace(ports, progress=_LeasedProgress(ports.progress, require_not_lost))
            self._ports_and_lease = (ports, lease)
            previous = ports.ledger.run_before(lease)
            if previous is not None and not previous.ended and previous.run_id != self.run_id:
                ports.ledger.decide(lease, previous.death_decision())
            self.on_lease(lease, previous)
        return self._ports_and_lease

    def _take_lease(self, ledger: Leases, patient: bool) -> Lease:
        lock = partial(
            ledger.lock, self.source, self.holder, self.run_id, in_dagster=self.in_dagster
        )
        try:
            return self._lease_stack.enter_context(lock())
        except SourceBusy:
            holder = ledger.newest_lease(self.source)
            is_same_run = holder is not None and holder.run_id == self.run_id
            if not (patient or is_same_run):
                raise
        return self._lease_stack.enter_context(lock_when_free(lock, self._note_wait))

    def _note_wait(self, sentence: str) -> None:
        self.progress.note(sentence)
        self.on_wait()

    def _find_server_again(self) -> None:
        """Let this attempt use the server to which the source's address leads now: each
        port uses one server only."""
        if self._ports_and_lease is not None:
            ports, lease = self._ports_and_lease
            self._ports_and_lease = (replace(ports, server=self._make_ports().server), lease)

    def _reconnect(self) -> None:
        """Close the ledger, so that its next use connects again, and forget the lease.
        Postgres released its lock together with the lost connection, so the next
        attempt takes a new one."""
        try:
            self.close()
        except LockstepError:
            self._lease_stack = ExitStack()  # the lock is gone, so there is nothing to release
        self.adapters.close_ledger()


_TRIES_BETWEEN_MESSAGES = 30
"""While a lock is awaited, a message says so once in this number of tries."""


@contextmanager
def lock_when_free(
    lock: Callable[[], AbstractContextManager[Lease]], tell: Callable[[str], None]
) -> Iterator[Lease]:
    """Wait for a source's lock without a limit, and hold it while the context lasts. If
    waiting is interrupted, nothing stays locked.

    - `lock`: takes the lock (`Leases.lock`), or raises `SourceBusy`.
    - `tell`: is called with a sentence that names the holder, once in
      `_TRIES_BETWEEN_MESSAGES` tries."""
    with ExitStack() as locks:
        for tries, _ in enumerate(SOURCE_FREE.tries()):
            try:
                lease = locks.enter_context(lock())
            except SourceBusy as error:
                if tries % _TRIES_BETWEEN_MESSAGES == 0:
                    tell(f"{error.message} Waiting for it.")
                continue
            yield lease
            return


@dataclass(frozen=True, slots=True)
class _LeasedProgress:
    """Reports progress, and raises `LeaseLost` once the lease is lost. A step that
    reads for hours does not use the ledger, but reports its progress, so it ends
    here."""

    progress: Progress
    require_not_lost: RequireHeld

    def tell(self, progress: StepProgress) -> None:
        self.require_not_lost()
        self.progress.tell(progress)

    def note(self, sentence: str) -> None:
        self.progress.note(sentence)


def may_be_retried(error: LockstepError) -> bool:
    """Return whether an error may pass by itself within moments. A lock of another run
    does not, and a lease that another run took over is lost for good."""
    return error.recovery is Recovery.RETRY and not isinstance(error, SourceBusy | LeaseLost)


def run(session: RunSession) -> RunRecord:
    """Perform one run of a source, and release its lease afterwards. A `LockstepError`
    is put into the record and not raised."""
    with closing(session):
        try:
            capture_step(session)
            merge_step(session)
            acknowledge_step(session)
            session.record.request_counts = session.ports().count_requests()
            require_no_stop(session)
        except LockstepError as error:
            session.record.error = error
    return session.record


def capture_step(session: RunSession) -> CaptureReport:
    """Capture the log up to its present end, or up to `until`, and record the report."""
    session.record.began_at = session.ports().clock()
    report = session.run(capture)
    session.record.capture_report = report
    session.on_captured()
    return report


def merge_step(
    session: RunSession,
    on_merged: Callable[[TableMerge], None] = lambda _: None,
    only_tables: frozenset[TableName] | None = None,
) -> MergeReport:
    """Publish captured changes to the changelogs (Delta tables with every change), and
    merge them into the mirrors (Delta tables with the current rows) of all tables, or
    of `only_tables`. `on_merged`: is called with each merge. A merge of some tables,
    which a person starts beside the runs of a source, waits for the lease."""
    step = partial(merge, only_tables=only_tables, on_merged=on_merged)
    report = session.run(step, patient=only_tables is not None)
    if only_tables is None:
        session.record.merge_report = report
    return report


def acknowledge_step(session: RunSession) -> AcknowledgeReport:
    """Acknowledge merged batches, compare a sample of rows with the source, clear
    values that the settings now hide, and register mirrors in the catalog."""
    report = session.run(acknowledge)
    report = replace(report, sample_report=prove_sample(session.ports(), SystemRandom()))
    session.record.acknowledge_report = report
    session.run(clear)
    session.record.catalog_report = session.run(register_after_run)
    return report


def require_no_stop(session: RunSession) -> None:
    """Raise `LogStops` if the capture ended before an event that no run can pass, and
    record this failure. This comes last, so that everything before the event is
    acknowledged. If steps are separate processes, the next run raises it instead."""
    report = session.record.capture_report
    if report is None or (error := report.stop_error) is None:
        return

    def stop(ports: RunPorts, lease: Lease) -> None:
        raise error

    session.run(stop)  # this records the failure
