"""A source followed run by run: a real server, a ledger on Postgres, the lake in memory.

Belongs here: a source's steps as a run performs them, and what the lake shows afterwards.
Does not: servers (`servers`), what is to be true (the tests).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from lockstep.pipeline.model.batch import Batch, Cursor
from lockstep.pipeline.model.table_state import Extent, OrderKind, Supplier, TableState
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.orders import OrderRequest, Reload, give_reload, plan_reload
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.rebuild import origin_at, rebuild_as_of
from lockstep.pipeline.run.replay.replay import ReplayReport, replay
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.run.status.status import standing_of
from lockstep.pipeline.source_plan import SnapshotPlan, SourcePlan, StandbyPlan, TableSettings
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.status.facts import Standing
from lockstep.pipeline.values.decisions import Lease, RecordedDecision
from lockstep.pipeline.values.places import Place, parse_place, parse_start
from lockstep.pipeline.values.policies import LakePolicies, OnSourceChanged, StartPolicies
from lockstep.pipeline.values.segment import Segment
from lockstep.pipeline.values.table import StatementPatterns, TableName, TablePatterns
from tests.fix_ledger import Content, LedgerOfTest
from tests.twins.changelog import MemoryChangelog
from tests.twins.claims import MemoryClaims
from tests.twins.copies import MemoryCopies
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors
from tests.twins.segments import MemorySegments
from tests.twins.spool import MemorySpool

SET_PAUSES = [1.0] * 30
"""How long a run waits for a server's set that never has what was read from it."""

SOURCE = "shop"

KeptLedger: TypeAlias = Content
"""A copy of a ledger, to be put back."""


@dataclass
class Clock:
    """One that stands still until a test moves it."""

    now: datetime = datetime(2026, 11, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Noted(SilentProgress):
    """Progress of which only the sentences are kept."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, sentence: str) -> None:
        self._notes.append(sentence)


@dataclass
class Follower:
    """One source; `server` may be put in another's place between two runs."""

    server: SourceServer
    tables: Sequence[str]
    start: str | None = "latest"
    policies: StartPolicies = field(default_factory=StartPolicies)
    budget: Budget = field(default_factory=Budget)
    standby: StandbyPlan | None = None
    lake_policies: LakePolicies = field(default_factory=LakePolicies)
    ledger: LedgerOfTest = field(default_factory=LedgerOfTest)
    lake: MemoryLake = field(default_factory=MemoryLake)
    spool: MemorySpool = field(default_factory=MemorySpool)
    pauses: list[float] = field(default_factory=list)
    snapshot: SnapshotPlan = field(default_factory=SnapshotPlan)
    notes: list[str] = field(default_factory=list)
    """What runs told a person."""
    passes: Sequence[str] = ()
    settings: Sequence[TableSettings] = ()
    """Of some of the tables."""
    run_id: str | None = None
    """Of the runs from now on."""
    ignores_case: bool = False
    """What the lake's store says of itself."""

    def ports(self, until: str | None = None) -> RunPorts:
        start = parse_start(self.start) if self.start else None
        plan = SourcePlan(
            SOURCE,
            TablePatterns(tuple(self.tables), ()),
            start,
            budget=self.budget,
            start_policies=self.policies,
            lake_policies=self.lake_policies,
            standby=self.standby,
            until=parse_place(until) if until else None,
            snapshot=self.snapshot,
            allowed_statements=StatementPatterns(tuple(self.passes)),
            table_settings=tuple(self.settings),
            ignores_case=lambda: self.ignores_case,
        )
        return RunPorts(
            source=plan,
            server=self.server,
            ledger=self.ledger,
            segments=MemorySegments(self.lake),
            spool=self.spool,
            changelog=MemoryChangelog(self.lake),
            mirrors=MemoryMirrors(self.lake),
            claims=MemoryClaims(self.lake),
            progress=Noted(self.notes),
            clock=lambda: datetime.now(UTC),
            pause=self.pauses.append,
        )

    def capture(self, until: str | None = None) -> CaptureReport:
        """The first step alone: what is captured waits."""
        with self.leased() as lease:
            return capture(self.ports(until), lease)

    def run(self, until: str | None = None) -> CaptureReport:
        """All three steps."""
        return self.steps(self.ports(until))

    def steps(self, ports: RunPorts) -> CaptureReport:
        """All three, through ports of which the test changed some."""
        with self.leased() as lease:
            report = capture(ports, lease)
            merge(ports, lease)
            acknowledge(ports, lease)
            return report

    def order(self, kind: OrderKind, table: TableName) -> None:
        """What a person orders of a table."""
        with self.leased() as lease:
            self.ledger.order_table(lease, table, kind, author="ada", reason="because")

    def reload(self, table: TableName, supplier: Supplier | None = None) -> Reload:
        """What `lockstep reload`, with `--from`, records."""
        ports = self.ports()
        with self.leased() as lease:
            asked = OrderRequest(table, "ada", "because")
            return give_reload(ports, lease, plan_reload(ports, asked, supplier))

    def replay(
        self,
        since: str = "earliest",
        until: str = "latest",
        *,
        ports: RunPorts | None = None,
        **options: Any,
    ) -> ReplayReport:
        """What `lockstep replay` does, maybe through ports of which the test changed some."""
        span = Span(parse_place(since), parse_place(until))
        with self.leased() as lease:
            return replay(ports or self.ports(), lease, span, **options)

    def rebuilt(self, table: TableName, place: Place | str) -> list[dict[str, Any]]:
        """The rows of a table that is made again as of a place, and then thrown away."""
        ports, into = self.ports(), f"/past/{len(self.lake.tables)}"
        at = parse_place(place) if isinstance(place, str) else place
        report = rebuild_as_of(ports, MemoryCopies(self.lake), origin_at(ports, table, at), into)
        rows: list[dict[str, Any]] = self.lake.tables.pop(into)[-1].rows.to_pylist()
        assert report.rows == len(rows)
        return rows

    def choose(self, place: str, reason: str = "because") -> None:
        """What `lockstep start-at` records."""
        with self.leased() as lease:
            self.ledger.choose_start(lease, place=place, reason=reason, author="somebody")

    # The ledger, lost and found: tests that judge from outside do it here, and nowhere else.

    def lose_ledger(self) -> None:
        """There is an empty one in its place: `.lockstep` was deleted."""
        self.ledger = LedgerOfTest(clock=self.ledger.told_clock)

    def kept_ledger(self) -> KeptLedger:
        """A copy of it as it is now."""
        return self.ledger.content()

    def restore_ledger(self, kept: KeptLedger) -> None:
        """The copy takes its place, and nobody holds the lock."""
        self.ledger = LedgerOfTest.of(kept, clock=self.ledger.told_clock)

    def recorded_segments(self) -> Mapping[int, tuple[Segment, ...]]:
        """The captured files that the ledger has on record, by batch."""
        found: dict[int, tuple[Segment, ...]] = {}
        for batch, segment in self.ledger.recorded(SOURCE):
            found[batch] = (*found.get(batch, ()), segment)
        return found

    def record_otherwise(self, batch: int, at: int, size: int, sha256: str) -> None:
        """Have the ledger believe another content of the only file of a segment, as if a defect had
        written that."""
        segment = self.recorded_segments()[batch][at]
        [file] = segment.files
        self.ledger.misrecord(batch, segment.table, replace(file, size=size, sha256=sha256))

    # What the ledger has: they ask it here.

    def standing(self, now: datetime | None = None) -> Standing:
        """What `lockstep status` judges."""
        ports, moment = self.ports(), now or datetime.now(UTC)
        return standing_of(SOURCE, ports.source.patterns, self.ledger, ports, moment)

    def leased(self) -> AbstractContextManager[Lease]:
        """The source's lock, for steps of the test's own; also of one that was restored."""
        return self.ledger.lock(SOURCE, "test", self.run_id)

    def states(self) -> Mapping[TableName, TableState]:
        """How each table stands."""
        return self.ledger.table_states(SOURCE)

    def batches(self, limit: int = 20) -> Sequence[Batch]:
        """The newest first."""
        return self.ledger.batches(SOURCE, limit=limit)

    def live_batches(self) -> Sequence[Batch]:
        """Those that count, oldest first."""
        return self.ledger.live_batches(SOURCE, 1, 1 << 60)

    def partial(self) -> Sequence[Extent]:
        """Tables of which the lake has not all rows."""
        return self.ledger.partial_tables(SOURCE)

    def decisions(self, limit: int) -> Sequence[RecordedDecision]:
        """What was decided, the newest first."""
        return self.ledger.decisions(SOURCE, limit=limit)

    def acknowledged(self) -> Cursor | None:
        """Where the source is acknowledged up to."""
        return self.ledger.cursors(SOURCE).acknowledged

    def mirror(self, table: str) -> list[dict[str, Any]]:
        """The mirror's rows now, in the order of their first column."""
        name = TableName(*table.split(".", 1))
        known = self.ledger.table_states(SOURCE).get(name)
        path = f"{SOURCE}/{table.replace('.', '/')}" if known is None else known.mirror
        rows = self.lake.tables[path][-1].rows.to_pylist() if path in self.lake.tables else []
        return sorted(rows, key=lambda row: next(iter(row.values())))

    def last_rule(self) -> str:
        return self.ledger.decisions(SOURCE, limit=1)[0].decision.rule


def by_time(seconds: float) -> StartPolicies:
    """`on_source_changed = "timestamp"`, with so much overlap."""
    return replace(
        StartPolicies(),
        on_source_changed=OnSourceChanged.TIMESTAMP,
        fallback_interval=timedelta(seconds=seconds),
    )
