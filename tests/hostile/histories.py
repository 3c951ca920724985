"""A source's history with everything kept: its ledger and its lake as they were at each step.

Belongs here: making the history, and putting any two of its moments together. Does not: what
must be true then (`test_restored`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.replay.segment_comparison import changelog_folder
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ForeignCommit, SegmentsLost
from lockstep.pipeline.values.places import Earliest, Latest
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import (
    RecoveryOutcome,
    RunPorts,
    SilentProgress,
    StepProgress,
    acknowledge,
    capture,
    merge,
    plan_recovery,
    publish,
    recover,
    replay,
)
from tests.positions.fake import FakeServer
from tests.positions.follower import SOURCE, Follower, KeptLedger
from tests.positions.foreseen import require_told
from tests.positions.interrupted import interrupted
from tests.twins.lake import MemoryLake
from tests.twins.segments import print_of


class Source(Protocol):
    """Who writes to the source."""

    name: str
    tables: Sequence[str]
    start: str
    rounds: int
    """Batches of its history, behind the first one."""

    def server(self) -> SourceServer: ...

    def write(self, round_: int) -> None:
        """New rows, changes and deletions, of other tables in each round."""

    def rows(self, table: str) -> list[tuple[int, int]]: ...

    def branched(self) -> Source:
        """One whose log goes on without this one's, if there can be two."""


@dataclass
class Made:
    """A server that is nothing but its log, with one table: all pairs take seconds."""

    fake: FakeServer
    name: str = "shop"
    tables: Sequence[str] = ("t",)
    start: str = "earliest"
    rounds: int = 2

    def server(self) -> Any:
        return self.fake

    def write(self, round_: int) -> None:
        self.fake.write(round_, round_)
        self.fake.write(-round_, 0)
        self.fake.write(1, round_)
        self.fake.write(1 - round_, None)

    def rows(self, table: str) -> list[tuple[int, int]]:
        return sorted(self.fake.rows.items())

    def branched(self) -> Made:
        fake = copy(self.fake)
        fake.rows, fake.writes = fake.rows.copy(), fake.writes.copy()
        fake.files = [replace(log, events=log.events.copy()) for log in fake.files]
        return replace(self, fake=fake)


@dataclass
class Real:
    """A real one: a table with a key, one without, and one that is made on the way."""

    stand: MySqlStand
    name: str
    tables: Sequence[str] = ("keyed", "bare", "late")
    start: str = ""
    rounds: int = 3

    def __post_init__(self) -> None:
        self.start = str(head(self.stand))  # What other tests wrote before is not read.
        self.stand.execute(
            f"create table {self.name}.keyed (id int primary key, v int)",
            f"create table {self.name}.bare (id int, v int)",
        )

    def server(self) -> SourceServer:
        return server(self.stand)

    def write(self, round_: int) -> None:
        if round_ == self.rounds:
            self.stand.execute(f"create table {self.name}.late (id int primary key, v int)")
        which = {1: ("keyed", "bare"), 2: ("keyed",)}.get(round_, self.tables)
        for table in which:
            self.stand.execute(
                f"insert into {self.name}.{table} values ({round_}, 0), ({-round_}, 0)",
                f"update {self.name}.{table} set v = v + 1 where id > 0",
                f"delete from {self.name}.{table} where id = {1 - round_}",
            )

    def rows(self, table: str) -> list[tuple[int, int]]:
        return self.stand.rows(f"select id, v from {self.name}.{table} order by id, v")

    def branched(self) -> Real:
        return self


def lake_of(lake: MemoryLake) -> MemoryLake:
    """As it is now."""
    with lake.lock:  # another table is perhaps in the middle of its commit
        tables = {name: list(commits) for name, commits in lake.tables.items()}
        return MemoryLake(lake.files.copy(), tables, lake.claims.copy(), lake.structures.copy())


@dataclass(frozen=True)
class Moment:
    """Both sides as they were."""

    step: str
    ledger: KeptLedger
    lake: MemoryLake

    def has_lake_of(self, other: Moment) -> bool:
        """Whether nothing was written to the lake between them."""
        one, two = self.lake, other.lake
        return (one.files.keys(), one.tables, one.claims, one.structures) == (
            two.files.keys(),
            two.tables,
            two.claims,
            two.structures,
        )


class _Watch(SilentProgress):
    """Keeps both sides whenever a table was merged."""

    def __init__(self, history: History) -> None:
        self._history = history

    def tell(self, step: StepProgress) -> None:
        if step.step == "merge":
            self._history.keep(f"merged: {step.text}")


@dataclass
class History:
    """A source, its writers, and what was kept of it so far."""

    source: Source
    follower: Follower
    moments: list[Moment] = field(default_factory=list)
    round: int = 0

    def keep(self, step: str) -> None:
        follower = self.follower
        self.moments.append(Moment(step, follower.kept_ledger(), lake_of(follower.lake)))

    def write(self) -> None:
        self.round += 1
        self.source.write(self.round)

    def run(self, *, wrongly: bool = False) -> None:
        """All steps of a run, both sides kept after each. `wrongly`: with a defect, which takes
        the value of the row that every round changes for another."""
        chosen = self.follower
        with chosen.leased() as lease:
            ports = replace(chosen.ports(), progress=_Watch(self))
            capture(ports, lease)
            if wrongly:
                misread(chosen)
            self.keep("captured")
            publish(ports, lease)
            self.keep("published")
            merge(ports, lease)
            self.keep("merged")
            acknowledge(ports, lease)
            self.keep("acknowledged")

    def replay(self) -> None:
        """What was read with a defect is read again."""

        def under_way() -> None:
            self.keep("a replay is under way")

        with interrupted(self.follower, "begin_revision", under_way, after=True):
            replayed(self.follower)
        self.keep("replayed")

    def branched(self) -> History:
        """The same past, which goes on by itself where the source can."""
        source = self.source.branched()
        if source is self.source:
            return self
        follower = replace(self.follower, server=source.server())
        return replace(self, source=source, follower=follower)

    def together(self, ledger: int, lake: int) -> Follower:
        """The ledger of one moment and the lake of another, followed."""
        follower = replace(self.follower, lake=lake_of(self.moments[lake].lake))
        follower.restore_ledger(self.moments[ledger].ledger)
        return follower


def make_history(source: Source) -> History:
    """Batches one after another, both sides kept at every step."""
    history = History(source, Follower(source.server(), [f"{source.name}.*"], start=source.start))
    history.keep("nothing")
    history.run()
    for left in reversed(range(source.rounds)):
        history.write()
        history.run(wrongly=left == 1)
    history.replay()
    return history


def replayed(follower: Follower) -> None:
    """All that was captured."""
    with follower.leased() as lease:
        replay(follower.ports(), lease, Span(Earliest(), Latest()))


def misread(follower: Follower, at: int = 0) -> None:
    """In the newest batch's changes of one table, whatever became of them since."""
    lake, recorded = follower.lake, follower.recorded_segments()
    batch = max(recorded)
    [file] = recorded[batch][at].files
    path = lake.path(f"{changelog_folder(follower.ports(), recorded[batch][at])}/{file.path}")
    rows = lake.files[path].to_pylist()
    told = [{**row, "v": -1} if row["id"] == 1 else row for row in rows]
    lake.files[path] = pa.Table.from_pylist(told, schema=lake.files[path].schema)
    follower.record_otherwise(batch, at, *print_of(lake.files[path]))


def brought_together(ports: RunPorts, lease: Lease) -> None:
    """As a person does it whose run was refused; a ledger that captured nothing starts over."""
    new = ports.ledger.cursors(ports.source.name).captured is None
    told = plan_recovery(ports, start_over=new)
    done = recover(ports, lease, author="somebody", reason="a trial", start_over=new)
    assert told.lake_changes.unknown_folders == done.lake_changes.unknown_folders
    assert _restated(told) == _restated(done)
    require_told(told.table_plans, ports)


def _restated(outcome: RecoveryOutcome) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """What becomes of each changelog's files."""
    return [
        (folder, files.removed_count, files.added_count, files.lost_paths)
        for folder, files in outcome.lake_changes.restatements
    ]


def go_on(follower: Follower) -> bool:
    """Run until every table is back; whether a person had to bring ledger and lake together."""
    signed = False
    for _ in range(4):
        try:
            follower.run()
        except (ForeignCommit, SegmentsLost) as error:
            assert "lockstep recover --source shop" in error.hint
            assert not signed, f"signed, and refused again: {error}"
            signed = True
            with follower.leased() as lease:
                brought_together(follower.ports(), lease)
            continue
        states = follower.states()
        quarantined = [table for table, one in states.items() if one.has_stopped]
        if not quarantined:
            break
        for table in quarantined:
            follower.order(OrderKind.RESUME, table)
    return signed


def changelog(follower: Follower, name: str, table: str) -> list[tuple[Any, ...]]:
    """Where each row image of a table's changelogs comes from."""
    return [
        (row["_file"], row["_offset"], row["_row"], row["_change_type"])
        for folder, commits in follower.lake.tables.items()
        if folder.partition("@")[0] == f"{SOURCE}/_changes/{name}/{table}"
        for row in commits[-1].rows.to_pylist()
        if row["_change_type"] not in ("truncate", "resnapshot")
    ]


def recorded(follower: Follower) -> dict[str, set[str]]:
    """The files that the ledger has of each changelog, and the lake has as they were recorded."""
    found: dict[str, set[str]] = {}
    ports = follower.ports()
    for segments in follower.recorded_segments().values():
        for segment in segments:
            folder = changelog_folder(ports, segment)
            there = [
                one for one in segment.files if not ports.segments.damage_sentences(folder, [one])
            ]
            found.setdefault(folder, set()).update(file.path for file in there)
    return found
