"""The shell around a step: what is tried again, what is not, and what is kept."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import dagster as dg
import pytest

from lockstep.assets.names import lease_tag
from lockstep.assets.sessions import LoggedProgress, RunSessions
from lockstep.pipeline.model.batch import RequestCounts
from lockstep.pipeline.ports.ledger import attempts_of
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import Progress, StepProgress
from lockstep.pipeline.run.run import RunRecord, RunSession, merge_step
from lockstep.pipeline.values.decisions import AttemptOutcome, Lease, LeaseView
from lockstep.pipeline.values.errors import (
    LeaseLost,
    LedgerUnavailable,
    LockstepError,
    Recovery,
    SourceBusy,
    SourceUnavailable,
    UnsupportedEvent,
)
from lockstep.pipeline.values.retries import STEP
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.dagster.place import MemoryAdapters, settings_for, stand_for


@dataclass
class Watched:
    """A session over memory, and what it told."""

    adapters: MemoryAdapters
    pauses: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    leases: list[tuple[int, int | None]] = field(default_factory=list)

    def tell(self, step: StepProgress) -> None: ...

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def on_lease(self, lease: Lease, before: LeaseView | None) -> None:
        self.leases.append((lease.token, before.token if before else None))

    def session(self, run: str = "run") -> RunSession:
        return RunSession(
            adapters=self.adapters,
            source="shop",
            holder="a test",
            run_id=run,
            progress=self,
            pause=self.pauses.append,
            on_lease=self.on_lease,
            record=RunRecord("shop"),
        )


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    server = MySqlServer(ConnectionSettings("127.0.0.1", 1, "nobody", ""))
    return Watched(MemoryAdapters(settings_for(tmp_path, "shop"), server))


class Step:
    """Fails with the errors given, one per call, then answers with the lease's token."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, ports: RunPorts, lease: Lease) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return lease.token


def unavailable() -> LockstepError:
    return SourceUnavailable("MySQL is away.", hint="wait")


def test_trouble_of_the_moment_is_tried_again(watched: Watched) -> None:
    """Three tries with pauses between, under one lease."""
    step = Step(unavailable(), unavailable())
    assert watched.session().run(step) == 1
    assert (step.calls, tuple(watched.pauses)) == (3, STEP.pauses)
    assert watched.notes[0] == "MySQL is away. Trying again in 0.5 s."
    assert watched.leases == [(1, None)]


@pytest.mark.parametrize("kind", [SourceBusy, LeaseLost, UnsupportedEvent])
def test_what_a_retry_cannot_mend_is_told_at_once(
    watched: Watched, kind: type[LockstepError]
) -> None:
    """Another run's lock, a lost lease, a person's decision: one try."""
    step = Step(kind("No.", hint="do"))
    with pytest.raises(kind):
        watched.session().run(step)
    assert (step.calls, watched.pauses) == (1, [])


def test_a_lease_lasts_over_steps_and_ends_with_the_session(watched: Watched) -> None:
    """One token for all steps; afterwards the source is free."""
    session = watched.session()
    assert [session.run(Step()), session.run(Step())] == [1, 1]
    with pytest.raises(SourceBusy):
        watched.session("another").run(Step())
    session.close()
    assert watched.session().run(Step()) == 2


def test_a_job_of_another_project_may_go_on_after_its_release(tmp_path: Path) -> None:
    """Even if its name begins as ours do; a run of ours ends then."""

    @dg.op
    def nothing() -> None:
        pass

    settings, released = settings_for(tmp_path, "shop"), dict[str, bool]()
    with dg.DagsterInstance.ephemeral() as instance:
        for name in ("lockstep_shop", "lockstep_nightly"):
            job = dg.GraphDefinition(name=name, node_defs=[nothing]).to_job()
            run = instance.create_run_for_job(job)
            progress = LoggedProgress(logging.getLogger())
            sessions = RunSessions(
                settings, MemoryAdapters(settings), RunRecord, instance, run, progress
            )
            sessions._on_release(Lease("shop", 7, "host", run.run_id))
            ended = instance.get_run_by_id(run.run_id)
            assert ended is not None
            released[name] = ended.tags.get(lease_tag("shop")) == f"7 {run.run_id[:8]} released"
    assert released == {"lockstep_shop": False, "lockstep_nightly": True}


@pytest.mark.parametrize("is_forced", [False, True])
def test_a_canceled_run_does_not_begin_its_next_step(tmp_path: Path, is_forced: bool) -> None:
    """Python may have dropped the error by which Dagster interrupts the step before it."""
    settings = settings_for(tmp_path, "shop")
    server = MySqlServer(ConnectionSettings("127.0.0.1", 1, "nobody", ""))
    with stand_for(settings, server) as stand:
        job = stand.definitions().resolve_job_def("lockstep_shop")
        run = stand.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
        progress = LoggedProgress(logging.getLogger())
        sessions = RunSessions(settings, stand.adapters, RunRecord, stand.instance, run, progress)
        assert sessions.of("shop").run(Step()) == 1
        stand.instance.report_run_canceling(run)
        if is_forced:
            stand.instance.report_run_canceled(run)
        with pytest.raises(dg.DagsterExecutionInterruptedError):
            sessions.of("shop")
        sessions.close()


def test_steps_of_one_run_wait_for_each_other(watched: Watched) -> None:
    """Where the executor makes a process of each, two may be due at a time."""
    first, second = watched.session(), watched.session()
    first.run(Step())
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(second.run, Step())
        while not watched.notes:
            assert not waiting.done(), waiting.result()
        first.close()
        assert waiting.result() == 2
    assert "Waiting for it." in watched.notes[0]


def test_looking_takes_no_lease(watched: Watched) -> None:
    """A check may look while another run works."""
    watched.session().ports()
    assert watched.adapters.books.newest_lease("shop") is None


def test_a_defect_is_kept_as_one(watched: Watched) -> None:
    """What is no refusal is not tried again, and not taken for one."""
    session = watched.session()
    with pytest.raises(ZeroDivisionError):
        session.run(Step(ZeroDivisionError()))
    assert isinstance(session.record.defect, ZeroDivisionError)
    assert session.record.error is None


def test_a_failure_is_kept_once(watched: Watched) -> None:
    """With its hint; a refusal that the ledger keeps already is not kept again, whatever was
    decided last."""
    refusal = UnsupportedEvent("An event of a kind nobody knows.", hint="upgrade")
    for recorded in (False, True):
        refusal.is_recorded = recorded
        session = watched.session()
        with pytest.raises(UnsupportedEvent):
            session.run(Step(refusal))
        session.close()
    decisions = watched.adapters.books.decisions("shop")
    kept = [
        (decision.decision.kind, decision.decision.rule, decision.decision.facts["hint"])
        for decision in decisions
    ]
    assert kept == [("failure", "UnsupportedEvent", "upgrade")]
    assert [
        (attempt.outcome, attempt.recovery, attempt.hint)
        for attempt in attempts_of(watched.adapters.books, "shop")
    ] == [(AttemptOutcome.FAILED, Recovery.OPERATOR, "upgrade")]


def test_a_failure_names_its_step(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the step that is given settings of its own."""

    def require_claim(_: RunPorts) -> None:
        raise UnsupportedEvent("No.", hint="upgrade")

    monkeypatch.setattr("lockstep.pipeline.run.merge.require_claim", require_claim)
    with pytest.raises(UnsupportedEvent):
        merge_step(watched.session())
    [failure] = watched.adapters.books.decisions("shop")
    assert failure.decision.facts["step"] == "merge"


@dataclass
class StoreAdapters(MemoryAdapters):
    """Each set of ports counts what is asked of a store since it was put together."""

    asked: int = 0

    def ports(self, source: str, progress: Progress) -> RunPorts:
        before = self.asked
        ports = super().ports(source, progress)
        return replace(ports, count_requests=lambda: RequestCounts(self.asked - before, None))


def test_requests_are_those_since_they_were_asked_for(watched: Watched) -> None:
    """Also where the ledger went away meanwhile, and everything was put together anew."""
    adapters = StoreAdapters(watched.adapters.settings, watched.adapters.server)
    session = replace(watched, adapters=adapters).session()

    def step(ports: RunPorts, lease: Lease) -> None:
        adapters.asked += 5
        if adapters.asked < 10:
            raise LedgerUnavailable("gone", hint="start it")

    session.ports()
    adapters.asked += 2
    session.run(step)
    assert session.count_new_requests() == RequestCounts(12, None)
    adapters.asked += 1
    assert session.count_new_requests() == RequestCounts(1, None)
    assert session.record.request_counts == RequestCounts(13, None)
