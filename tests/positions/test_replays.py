"""Random histories with DDL, replayed at random: the lake is that of a pipeline that never was.

Two followers read one server at the same places. One replays random spans, is killed while it does,
and finds files and rows of its lake damaged; the other does nothing of the kind.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.replay.replay import plan_replay
from lockstep.pipeline.run.replay.segment_comparison import SegmentStanding
from lockstep.pipeline.run.replay.settle import settle_replays
from lockstep.pipeline.values.errors import BatchesWait, SpanRefused
from lockstep.pipeline.values.places import moment_text, parse_place
from lockstep.pipeline.values.policies import Deletes, LakePolicies
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
from tests.twins.changelog import MemoryChangelog
from tests.twins.segments import print_of

TABLES = ("a", "b")
STEPS = (
    "begin_revision",
    "end_revision",
    "intend",
    "settle",
    "note_examined_versions",
    "require_held",
)
ACTIONS, MORE = 13, 40
"""In every run, and in the soak."""


@dataclass
class Chance:
    """What happens next to the tables of one database and to both followers."""

    stand: MySqlStand
    name: str
    random: Random
    calm: Follower
    tried: Follower
    number: int = 0
    miscaptured: set[str] = field(default_factory=set)
    """Digests of the files that say something else than the log has."""

    @property
    def keeps(self) -> bool:
        """Rows that were kept when their table was made anew are in no changelog."""
        return self.tried.lake_policies.keeps_rows

    def act(self) -> None:
        acts = (
            *(self.write,) * 8,
            self.alter,
            *(self.run,) * 4,
            *(self.replay,) * 2,
            *(self.killed,) * 3,
            *(self.damage_file, self.miscapture, self.damage_row),
        )
        self.random.choice(acts)()

    def write(self) -> None:
        table, key = self.random.choice(TABLES), self.random.randrange(12)
        self.number += 1
        other = self.random.randrange(12)
        self.do(
            f"insert ignore into {table} (id, v, s) values ({key}, {self.number}, 'x{other}')",
            f"update {table} set v = {self.number} where id >= {other}",
            f"update ignore {table} set id = {other} where id = {key}",
            f"delete from {table} where id = {self.random.randrange(12)}",
        )

    def alter(self) -> None:
        table = self.random.choice(TABLES)
        self.number += 1
        self.do(
            self.random.choice(
                (
                    f"alter table {table} add column c{self.number} int default {self.number}",
                    f"alter table {table} modify v bigint",
                    f"alter table {table} modify s varchar({20 + self.number})",
                    "flush binary logs",
                    f"truncate table {table}"
                    if self.keeps
                    else self.random.choice((f"truncate table {table}", _anew(table))),
                )
            )
        )

    def run(self) -> None:
        """Both end at the same place, where nothing is written."""
        self.calm.run()
        self.tried.run()

    def killed(self) -> None:
        """In the middle of a replay that has something to do; then a run, or another replay."""
        self.damage_row()
        self.random.choice((self.damage_file, self.miscapture))()
        step, after = self.random.choice(STEPS), self.random.random() < 0.5
        with mortal(self.tried, step, after=after), suppress(Crash):
            self.tried.replay()
        self.random.choice((self.run, self.replay))()

    def replay(self) -> None:
        """What a mirror shows rightly stays: no value of the span comes back over a later one.

        Later changes come from the changelog, so a table is excepted while a segment of it outside
        of the span is wrong."""
        right = [table for table in TABLES if self.shows(table)]
        with suppress(BatchesWait, SpanRefused):
            span = self.span()
            self.compare(*span)
            self.tried.replay(*span)
        right = [table for table in right if table not in self.wrongly_recorded()]
        assert [table for table in right if not self.shows(table)] == []

    def wrongly_recorded(self) -> set[str]:
        """Return the tables of which the ledger still has a miscaptured file."""
        return {
            segment.table.name
            for _, segment in self.tried.ledger.recorded(SOURCE)
            if any(file.sha256 in self.miscaptured for file in segment.files)
        }

    def compare(self, since: str, until: str) -> None:
        """Each row that differs is told of, and nothing is written."""
        with self.tried.leased() as lease:
            tuple(settle_replays(self.tried.ports(), lease))
        before = self.stored()
        told = self.tried.replay(since, until, commit=False)
        assert self.stored() == before
        for one in told.segments:
            assert bool(one.rows) is (one.standing is SegmentStanding.DIFFERENT)
            assert {name for row in one.rows for name in row.columns} == {*one.columns}
        for mirror in told.mirrors:
            assert len(mirror.rows) == mirror.wrong
            assert all(row.log is None for row in mirror.rows)

    def stored(self) -> tuple[set[str], dict[str, int]]:
        lake = self.tried.lake
        files = {path for path in lake.files if "/_replays/" not in path}
        return files, {name: len(commits) for name, commits in lake.tables.items()}

    def shows(self, table: str) -> bool:
        name = f"{self.name}.{table}"
        return self.tried.mirror(name) == self.calm.mirror(name)

    def span(self) -> tuple[str, str]:
        """Some batches, named in one of the ways there are."""
        cursor = self.tried.ledger.cursors(SOURCE).acknowledged
        if cursor is None:
            return "earliest", "latest"
        chain = self.tried.ledger.live_batches(SOURCE, 1, cursor.batch)
        first, last = sorted(self.random.choices(range(len(chain)), k=2))
        start, end = chain[first].start, chain[last].end
        assert end is not None
        ways = [("earliest", "latest"), (str(start.at), str(end.at))]
        if start.gtid_set:
            ways.append((f"gtid:{start.gtid_set}", f"gtid:{end.gtid_set}"))
        if start.committed_at is not None and end.committed_at is not None:
            ways.append((moment_text(start.committed_at), moment_text(end.committed_at)))
        return self.random.choice(ways)

    def damage_file(self) -> None:
        """A file of some changelog is gone, or says something else than was captured."""
        lake = self.tried.lake
        listed = sorted(
            f"{folder}/{file}"
            for folder, commits in lake.tables.items()
            if "/_changes/" in folder
            for commit in commits[-1:]
            for file in commit.files
        )
        if listed and self.acknowledged():
            path = lake.path(self.random.choice(listed))
            if self.random.random() < 0.5:
                lake.files.pop(path, None)
            elif path in lake.files:
                lake.files[path] = lake.files[path].slice(1)

    def miscapture(self) -> None:
        """A capture of before wrote other values than the log has, and the ledger and the lake
        both believe them."""
        lake, found = self.tried.lake, self.tried.ledger.recorded(SOURCE)
        if not found or not self.acknowledged():
            return
        batch, segment = self.random.choice(found)
        [file] = segment.files
        version = self.tried.ledger.schema_version(SOURCE, segment.table, segment.schema_version)
        folder = changelog_path(SOURCE, segment.table, version.generation)
        path = lake.path(f"{folder}/{file.path}")
        rows = lake.files.get(path)
        if rows is None or rows.num_rows != file.images:
            return
        wrong = pa.array([self.number] * rows.num_rows, rows.schema.field("v").type)
        rows = rows.set_column(rows.schema.get_field_index("v"), "v", wrong)
        size, digest = print_of(rows)
        lake.files[path] = rows
        self.miscaptured.add(digest)
        wrongly = replace(file, size=size, sha256=digest)
        self.tried.ledger.misrecord(batch, segment.table, wrongly)

    def damage_row(self) -> None:
        """A row of some mirror has another value, or is gone."""
        lake = self.tried.lake
        table = TableName(self.name, self.random.choice(TABLES))
        state = self.tried.ledger.table_states(SOURCE).get(table)
        commits = lake.tables.get(state.mirror) if state is not None else None
        if not commits or not commits[-1].rows.num_rows or not self.acknowledged():
            return
        rows = commits[-1].rows
        at = self.random.randrange(rows.num_rows)
        kept = [rows.slice(0, at), rows.slice(at + 1)]
        if self.random.random() < 0.5:
            [row] = rows.slice(at, 1).to_pylist()
            kept.append(pa.Table.from_pylist([{**row, "v": -1}], schema=rows.schema))
        commits[-1] = replace(commits[-1], rows=pa.concat_tables(kept))

    def acknowledged(self) -> bool:
        return not self.tried.ledger.unfinished_batches(SOURCE)

    def do(self, *statements: str) -> None:
        for text in statements:
            self.stand.execute(*text.split("; "), database=self.name)

    # -- what must be true ---------------------------------------------------------------

    def require_same(self) -> None:
        for table in TABLES:
            name = f"{self.name}.{table}"
            assert self.tried.mirror(name) == self.calm.mirror(name)
            (count,) = self.stand.rows(f"select count(*) from {name}")[0]
            assert len(self.tried.mirror(name)) == count or self.keeps
        assert changelogs(self.tried) == changelogs(self.calm)


def _anew(table: str) -> str:
    columns = "(id int primary key, v int, s varchar(20))"
    return f"drop table {table}; create table {table} {columns}"


def changelogs(follower: Follower) -> dict[str, list[dict[str, Any]]]:
    """The rows of each changelog, from the files that it lists: a file that is restored under its
    name needs no commit."""
    lake, changelog = follower.lake, MemoryChangelog(follower.lake)
    return {
        folder: sorted(
            (
                row
                for name in changelog.listed_files(folder) or {}
                for row in lake.files[lake.path(f"{folder}/{name}")].to_pylist()
            ),
            key=lambda row: row["_sequence"],
        )
        for folder in lake.tables
        if "/_changes/" in folder
    }


def made(stand: MySqlStand, database: str, seed: int, policies: LakePolicies) -> Chance:
    tables, start = [f"{database}.*"], str(head(stand))
    calm, tried = (
        Follower(server(stand), tables, start=start, lake_policies=policies) for _ in range(2)
    )
    stand.execute(
        *(f"create table {t} (id int primary key, v int, s varchar(20))" for t in TABLES),
        database=database,
    )
    return Chance(stand, database, Random(seed), calm, tried)


@pytest.mark.parametrize("deletes", [Deletes.REMOVE, Deletes.IGNORE])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 80))]
)
def test_what_was_replayed_is_as_if_it_never_was(
    mysql: MySqlStand, database: str, seed: int, deletes: Deletes
) -> None:
    """Whatever is damaged is whole behind a replay of everything, and repeating it writes
    nothing."""
    chance = made(mysql, database, seed, LakePolicies(deletes=deletes))
    chance.write()
    chance.run()
    for _ in range(MORE if seed else ACTIONS):
        chance.act()
    chance.run()
    chance.run()
    whole = chance.tried.replay()
    assert [batch.reason_not_recaptured for batch in whole.batches] == [None] * len(whole.batches)
    assert [mirror.not_compared for mirror in whole.mirrors] == [None] * len(whole.mirrors)
    assert whole.unreplaced_segments == ()
    chance.require_same()
    before = {name: len(commits) for name, commits in chance.tried.lake.tables.items()}
    again = chance.tried.replay()
    assert not again.has_differences
    assert {segment.standing for segment in again.segments} <= {SegmentStanding.SAME}
    assert {name: len(commits) for name, commits in chance.tried.lake.tables.items()} == before
    assert not [path for path in chance.tried.lake.files if "/_replays/" in path]
    plan_replay(chance.tried.ports(), Span(parse_place("earliest"), parse_place("latest")))
