"""Less is shown of a table than before: nothing of what it hides is left in the lake or the ledger.

A word stands in a column's values, its default and its comments, in texts of statements and in a
key; it is searched for in all that a ledger and a lake have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lockstep.pipeline.mirror.layout import scratch_path
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.lake_commit import WriteKind, metadata_of_kind
from lockstep.pipeline.model.table_state import OrderKind, TableEventKind
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run import orders
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.clear import clear, clearable
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.orders import OrderRequest, give_order
from lockstep.pipeline.run.rebuild import origin_at
from lockstep.pipeline.run.recovery.recover import run_to_undo
from lockstep.pipeline.run.replay.segment_comparison import changelog_folder
from lockstep.pipeline.run.reshaping import plaintext_sentence, stop_reshaped_tables
from lockstep.pipeline.run.status.span_report import report_of_span
from lockstep.pipeline.schema import tracker
from lockstep.pipeline.schema.treatments import Hash
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.upkeep.clearing import UnclearedValues
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    LedgerRefused,
    PastRefused,
    SpanRefused,
)
from lockstep.pipeline.values.mirror_names import MirrorNameTemplate
from lockstep.pipeline.values.places import Earliest, Latest, parse_place
from lockstep.pipeline.values.policies import Deletes, LakePolicies
from lockstep.pipeline.values.segment import Segment, SystemTable
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.hostile.histories import lake_of
from tests.hostile.test_foreign_files import Files, ports_on_disk
from tests.mysql.logged import head
from tests.positions.follower import SOURCE
from tests.positions.interrupted import Crash, interrupted, mortal
from tests.positions.test_replays import changelogs
from tests.shape.follower import KEY, ShapedFollower, followed_by_nobody
from tests.twins.lake import MemoryLake

WORD = "canary"
HIDING = ShapeRules(exclude_columns=("secret",), hash_columns={"code": Hash.EXACT})

_TABLE = f"""
create table c (code varchar(20) primary key, secret varchar(50) default '{WORD} default', v int)
"""


class Cleared:
    """One table that stood in plaintext, and one beside it that stays so."""

    def __init__(self, stand: MySqlStand, name: str, **options: Any) -> None:
        self.stand, self.name = stand, name
        beside = "create table beside (id int primary key, v int)"
        self.do(_TABLE, beside, "insert into beside values (1, 1)")
        self.do(f"insert into c values ('{WORD}1', '{WORD} a', 1), ('other', '{WORD} b', 2)")
        self.follower = ShapedFollower(stand, [f"{name}.*"], {}, **{"start": "snapshot", **options})
        self.follower.run()
        self.do(
            f"alter table c alter secret set default '{WORD}''s later'",
            f"update c set secret = '{WORD} c' where v = 1",
            "update beside set v = 2",
        )
        self.follower.run()

    def do(self, *statements: str) -> None:
        logged = "set session binlog_rows_query_log_events = on"
        self.stand.execute(logged, *statements, database=self.name)

    def hide(self, rules: ShapeRules = HIDING) -> None:
        self.follower.shapes = {f"{self.name}.c": rules}

    @property
    def table(self) -> TableName:
        return TableName(self.name, "c")

    def clear(self, ports: RunPorts | None = None) -> tuple[UnclearedValues, ...]:
        """What `upkeep --dry-run` told before is cleared, unless something cannot be."""
        ports, before = ports or self.follower.ports(), len(self.follower.notes)
        told = tuple(clearable(ports))
        with self.follower.leased() as lease:
            done = clear(ports, lease)
        left = [note for note in self.follower.notes[before:] if "not cleared yet" in note]
        assert [note.id for note in told] == [note.id for note in done] or left
        return done

    def require_cleared(self, count: int = 1) -> None:
        """So much waited to be cleared; nothing of it is left anywhere."""
        assert len(self.clear()) == count
        assert (self.found(), self.notes()) == ([], [])

    def notes(self) -> list[UnclearedValues]:
        return self.follower.ledger.uncleared_values(SOURCE)

    def found(self, word: str = WORD) -> list[str]:
        """Where a word stands."""
        lake = self.follower.lake
        found = [path for path, rows in lake.files.items() if word in str(rows.to_pylist())]
        for folder, commits in lake.tables.items():
            # Of a changelog an earlier version has what files have that are still there.
            mirror = folder.startswith(f"{SOURCE}/{self.name}/")
            found += [
                f"{folder} {version}"
                for version, commit in enumerate(commits)
                if word in commit.user_metadata
                or (word in str(commit.rows.to_pylist()) and (mirror or commit is commits[-1]))
            ]
        found += [f"structures {key}" for key, text in lake.structures.items() if word in text]
        content = self.follower.ledger.content()
        return found + [table for table, rows in content.rows.items() if word in rows]


@pytest.fixture
def cleared(mysql: MySqlStand) -> Iterator[Cleared]:
    with mysql.own_database() as name:
        yield Cleared(mysql, name)


class Mortal:
    """A port at one of whose writes the process dies."""

    def __init__(self, port: Any, left: list[int]) -> None:
        self._port, self._left = port, left

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)
        if name not in _WRITES:
            return call

        def mortal(*args: Any, **kwargs: Any) -> Any:
            self._step()
            done = call(*args, **kwargs)
            self._step()
            return done

        return mortal

    def _step(self) -> None:
        self._left[0] -= 1
        if self._left[0] < 0:
            raise Crash


_WRITES = frozenset(
    {
        "begin_clearing",
        "revise",
        "delete_batches",
        "cut",
        "note_examined_versions",
        "note_kept_because",
        "note_tightened",
        "quarantine",
        "note_upkeep_version",
        "bring",
        "clear_files",
        "clear_structures",
        "clear_ledger_rows",
    }
)


def test_nothing_is_left_wherever_the_process_dies(cleared: Cleared) -> None:
    """It dies before and after each write to the ledger and the lake, once each."""
    assert len(cleared.found()) > 8
    cleared.hide()
    cleared.follower.run()
    (note,) = cleared.notes()
    assert (note.tightening.columns, note.holders) == (("code", "secret"), ())
    deaths = 0
    while cleared.notes():
        ports, left = cleared.follower.ports(), [deaths]
        names = ("ledger", "segments", "changelog", "mirrors", "claims")
        dying: dict[str, Any] = {name: Mortal(getattr(ports, name), left) for name in names}
        try:
            cleared.clear(replace(ports, **dying))
        except Crash:
            deaths += 1
    assert deaths > 12
    assert cleared.found() == []
    # What was recorded is read again by whoever goes on.
    cleared.do("insert into c (code, v) values ('new', 3)", "update beside set v = 3")
    cleared.follower.run()
    assert len(cleared.follower.mirror(f"{cleared.name}.c")) == 3
    assert cleared.follower.mirror(f"{cleared.name}.beside") == [{"id": 1, "v": 3}]


def test_rows_of_a_load_that_were_left_are_cleared(cleared: Cleared) -> None:
    """The process died when the ledger had voided the load, and its files were still there."""
    follower = cleared.follower
    with follower.leased() as lease:
        follower.ledger.order_load(lease, cleared.table, author="ann", reason="because")
    with mortal(follower, "record_capture", after=False), pytest.raises(Crash):
        follower.run()
    cleared.hide()
    with mortal(follower, "void_load", after=True), pytest.raises(Crash):
        follower.run()
    assert [path for path in cleared.found() if "/load-" in path]
    follower.run()
    cleared.clear()
    assert (cleared.found(), cleared.notes()) == ([], [])


def test_a_consumer_and_a_person_hold_it(cleared: Cleared) -> None:
    """The person comes when the consumer holds it already, and is heard by whoever clears. Once it
    is cleared, `earliest` is the first batch after which the changes of all tables are kept."""
    consumers = cleared.follower.ledger.consumers
    consumers.make_consumer(SOURCE, "reader", "earliest")
    cleared.hide()
    cleared.follower.run()
    cleared.clear()
    (note,) = cleared.notes()
    assert "the consumer reader has not acknowledged" in note.hint
    with cleared.follower.leased() as lease, pytest.raises(LedgerRefused):
        cleared.follower.ledger.begin_clearing(lease, note.id)
    cleared.hide(replace(HIDING, keep_clear="the lawyers look at it"))
    consumers.drop_consumer(SOURCE, "reader", author="ada", reason="gone")
    assert cleared.clear() == ()
    (note,) = cleared.notes()
    assert "the lawyers look at it" in note.hint
    assert cleared.found()
    cleared.hide()
    cleared.require_cleared()


def test_less_and_more_and_less_again(cleared: Cleared) -> None:
    """What was captured in plaintext in between goes, too, though the first time is still held."""
    consumers = cleared.follower.ledger.consumers
    consumers.make_consumer(SOURCE, "reader", "earliest")
    for shapes in ({f"{cleared.name}.c": HIDING}, {}, {f"{cleared.name}.c": HIDING}):
        cleared.follower.shapes = shapes
        cleared.do("update c set secret = concat(secret, ' more')")
        cleared.follower.run()
        assert cleared.clear() == ()
    assert len(cleared.notes()) == 2
    consumers.drop_consumer(SOURCE, "reader", author="ada", reason="gone")
    cleared.require_cleared(2)


def test_a_truncate_stands_once_in_a_report(cleared: Cleared) -> None:
    """With its statement, before its values are cleared and after."""

    def truncates() -> list[tuple[TableEventKind, str | None, tuple[str, ...]]]:
        span, now = Span(Earliest(), Latest()), datetime.now(UTC)
        changes = report_of_span(cleared.follower.ledger, SOURCE, span, now).structure_changes
        return [
            (change.event.kind, change.statement, change.effects)
            for change in changes
            if change.event.kind is TableEventKind.TRUNCATED
            or (change.statement or "").startswith("truncate")
        ]

    cleared.do("truncate table c", "insert into c values ('other', 'x', 3)")
    cleared.follower.run()
    before = truncates()
    effects = (f"{cleared.table}: emptied",)
    assert before == [(TableEventKind.TRUNCATED, "truncate table c", effects)]
    cleared.hide()
    cleared.follower.run()
    cleared.require_cleared()
    assert truncates() == before


def test_a_time_before_does_not_come_back(cleared: Cleared) -> None:
    """Nor is it named as what could, before its values are cleared and after."""
    cursor = cleared.follower.acknowledged()
    assert cursor is not None
    cleared.do("update beside set v = 3")
    cleared.hide()
    with pytest.raises(PastRefused, match="less is shown of code, secret"):
        origin_at(cleared.follower.ports(), cleared.table, parse_place(str(cursor.position.at)))
    cleared.follower.run()
    with pytest.raises(PastRefused) as refused:
        origin_at(cleared.follower.ports(), cleared.table, parse_place(str(cursor.position.at)))
    assert f"as of {cursor.position.at} " not in str(refused.value.hint)
    cleared.clear()
    with pytest.raises(SpanRefused):
        cleared.follower.replay(only_tables=frozenset({cleared.table}))
    with pytest.raises(PastRefused):
        origin_at(cleared.follower.ports(), cleared.table, parse_place(str(cursor.position.at)))
    cleared.follower.order(OrderKind.RELOAD, cleared.table)
    cleared.follower.run()
    assert cleared.found() == []


@pytest.mark.parametrize(
    ("rename", "rules", "word"),
    [
        ("secret to ssn", ShapeRules(exclude_columns=("ssn",)), f"{WORD} a"),
        ("v to person", ShapeRules(rows="person <> 1"), f"{WORD}1"),
    ],
)
def test_a_replay_of_all_leaves_cleared_changes_out(
    mysql: MySqlStand, rename: str, rules: ShapeRules, word: str
) -> None:
    """They are not written, nor said to be damaged, though the column had another name when they
    were captured. Other tables of their batches are whole afterwards, and so are later changes of
    this one."""
    with mysql.own_database() as name:
        cleared = Cleared(mysql, name, start=str(head(mysql)))
        follower, table, beside = cleared.follower, cleared.table, TableName(name, "beside")
        cleared.do(
            "update c set secret = 'before' where code = 'other'",
            f"alter table c rename column {rename}",
            "insert into c (code) values ('third')",
            "update beside set v = 7",
        )
        follower.run()
        assert cleared.found(word)
        cleared.hide(rules)
        follower.run()
        cleared.clear()
        assert (cleared.found(word), cleared.notes()) == ([], [])
        through = follower.ledger.deletion_notes(SOURCE, table).last_batch
        cleared.do("insert into c values ('fourth', null, 4)", "update beside set v = 3")
        follower.run()
        before = changelogs(follower)
        lost = _lose_files(follower, {table, beside}, after=through + 1, of_all=beside)
        assert {segment.table for _, segment in lost} == {table, beside}
        ports = follower.ports()
        segments: Any = Opened(ports.segments)
        report = follower.replay(ports=replace(ports, segments=segments))
        assert cleared.found(word) == []
        assert not [
            batch
            for folder, batch in segments.opened
            if batch <= through and folder.endswith(f"/{name}/c")
        ]
        early = [batch for batch in report.batches if batch.batch.id <= through and batch.segments]
        assert [batch.reason_not_recaptured for batch in early] == [None] * 3
        replaced = [(s.batch, s.table) for s in report.segments if s.has_replacement]
        assert replaced == [(batch, segment.table) for batch, segment in lost]
        assert report.unreplaced_segments == ()
        assert min(s.batch for s in report.segments if s.table == table) > through
        assert report.tables == (beside, table)
        assert [mirror.wrong for mirror in report.mirrors] == [0, 0]
        assert changelogs(follower) == before


def test_one_person_after_another_is_left_out_of_replays(mysql: MySqlStand) -> None:
    """Changes of whoever was left out already were not numbered, those of the next one were."""
    with mysql.own_database() as name:
        cleared = Cleared(mysql, name, start=str(head(mysql)))
        follower, beside = cleared.follower, TableName(name, "beside")
        for person in (1, 2):
            cleared.hide(ShapeRules(rows=f"v > {person}"))
            follower.run()
            cleared.clear()
            cleared.do(
                f"insert into c values ('p{person}', '{WORD}', {person}), ('later', '', 9)",
                f"update beside set v = {person + 5}",
                "delete from c where code = 'later'",
            )
            follower.run()
        assert (cleared.notes(), cleared.found("p1")) == ([], [])
        before = changelogs(follower)
        lost = _lose_files(follower, {beside}, after=0, of_all=beside)
        report = follower.replay()
        assert (
            [segment.has_replacement for segment in report.segments].count(True) == len(lost) == 4
        )
        assert (changelogs(follower), cleared.found("p1")) == (before, [])


def _lose_files(
    follower: ShapedFollower, tables: set[TableName], *, after: int, of_all: TableName
) -> list[tuple[int, Segment]]:
    """Delete the files of these tables, of the batches after one; of one table, of all batches."""
    lost = []
    for batch, segment in follower.ledger.recorded(SOURCE):
        if segment.table in tables and (batch > after or segment.table == of_all):
            folder = changelog_folder(follower.ports(), segment)
            for file in segment.files:
                follower.lake.files.pop(follower.lake.path(f"{folder}/{file.path}"), None)
            lost.append((batch, segment))
    return lost


class Opened:
    """The store of segments, and the folder and batch of each that was begun."""

    def __init__(self, port: Any) -> None:
        self._port, self.opened = port, list[tuple[str, int]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def open(self, folder: str, *, batch: int, **options: Any) -> Any:
        self.opened.append((folder, batch))
        return self._port.open(folder, batch=batch, **options)


@pytest.mark.parametrize("is_read_again", [False, True])
def test_a_ledger_of_before_it_was_cleared(cleared: Cleared, is_read_again: bool) -> None:
    """It records files that the clearing deleted. Nothing of them comes back, neither before the
    next run finds the settings nor after it cleared what it read."""
    follower, kept = cleared.follower, cleared.follower.kept_ledger()
    cleared.hide()
    follower.run()
    if is_read_again:
        kept = follower.kept_ledger()
    cleared.clear()
    assert cleared.found() == []
    follower.restore_ledger(kept)
    follower.recover()
    follower.replay()
    assert not [path for path in cleared.found() if "shop/" in path]
    follower.run()
    cleared.require_cleared()
    report = follower.replay()
    assert (cleared.found(), report.unreplaced_segments) == ([], ())
    cleared.do("insert into c (code, v) values ('new', 3)")
    follower.run()
    assert len(follower.mirror(f"{cleared.name}.c")) == 3


def test_files_that_no_run_publishes_any_more_are_cleared(cleared: Cleared) -> None:
    """Of a replay that was killed; into which another program put changes by OPTIMIZE, where no run
    publishes afterwards; and of versions of upkeep, behind which the next run knows the log to
    begin."""
    lake, follower = cleared.follower.lake, cleared.follower
    scratch = f"{scratch_path(SOURCE)}/_changes/{cleared.name}/c"
    lake.files[lake.path(f"{scratch}/batch-000000000001-v1-00000.parquet")] = pa.table(
        {"secret": [WORD]}
    )
    cleared.hide()
    follower.run()
    changed = [f"{SOURCE}/{f}" for f in (f"_changes/{cleared.name}/c", "_ddl", "_transactions")]
    optimized: dict[str, Any] = {"app_id": "", "user_metadata": "", "operation": "OPTIMIZE"}
    for folder in changed:
        commits = lake.tables[folder]
        lake.files[lake.path(f"{folder}/part-0.parquet")] = pa.concat_tables(
            lake.files[lake.path(f"{folder}/{path}")] for path in commits[-1].files
        )
        commits.append(replace(commits[-1], files=("part-0.parquet",), **optimized))
    mirror = f"{SOURCE}/{cleared.name}/c"
    commits = lake.tables[mirror]
    said = metadata_of_kind(commits[-1].user_metadata, WriteKind.UPKEEP, shows=len(commits) - 1)
    for _ in range(2):
        commits.append(replace(commits[-1], **{**optimized, "user_metadata": said}))
    cleared.require_cleared()
    assert follower.ledger.examined_versions(SOURCE)[mirror] == len(commits) - 1
    cleared.do("insert into c (code, v) values ('new', 3)")
    follower.run()
    assert not [f for f in changed if "part-0.parquet" in lake.tables[f][-1].files]
    assert len(follower.mirror(f"{cleared.name}.c")) == 3


@pytest.mark.parametrize("way", ["followed", "given", "read"])
def test_a_column_that_gets_a_hidden_name_is_cleared_of_what_it_showed(
    cleared: Cleared, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody changed the settings: a pattern hides its new name. The batch of the statement may
    have values from before it. If nobody follows the statement, a person gives the structure after
    it, or has the table read."""
    if way != "followed":
        nobody = partial(followed_by_nobody, cleared.table)
        monkeypatch.setattr(tracker, "read_change", nobody)
        monkeypatch.setattr(orders, "read_change", nobody)
    cleared.hide(ShapeRules(exclude_columns=("*_hidden",)))
    cleared.do(
        f"insert into c values ('x', '{WORD} d', 8)",
        "alter table c rename column secret to secret_hidden",
        f"insert into c values ('y', '{WORD} e', 9)",
        f"update c set code = 'key' where code = '{WORD}1'",
    )
    cleared.follower.run()
    if way != "followed":
        text = cleared.stand.rows(f"show create table {cleared.table}")[0][1]
        given = (str(text), (("secret", "secret_hidden"),)) if way == "given" else (None, ())
        asked = OrderRequest(cleared.table, "ada", "because", *given)
        with cleared.follower.leased() as lease:
            give_order(cleared.follower.ports(), lease, OrderKind.RESUME, asked)
    for _ in range(3):
        cleared.follower.run()
        cleared.clear()
    assert cleared.notes() == []
    assert f"{WORD} " not in str([cleared.found(f"{WORD} {letter}") for letter in "abcde"])
    assert [cleared.found(f"{WORD} {letter}") for letter in "abcde"] == [[]] * 5


def test_no_run_is_undone_behind_which_mirrors_would_show_more(cleared: Cleared) -> None:
    cleared.hide()
    ports, ledger = cleared.follower.ports(), cleared.follower.ledger
    with ledger.lock(SOURCE, "test", "the-run-that-hides") as lease:
        capture(ports, lease)
        merge(ports, lease)
        acknowledge(ports, lease)
    with pytest.raises(SpanRefused) as refused:
        run_to_undo(ledger, SOURCE, "the-run-that-hides")
    assert "would show more than its settings say" in refused.value.message
    cleared.clear()
    assert run_to_undo(ledger, SOURCE, "the-run-that-hides").later_count == 0


def test_a_key_is_replaced_on_purpose(cleared: Cleared) -> None:
    """Another key is refused before anything is read. One that replaces it hashes all anew, into
    files of its own, and the hashes of before go."""
    cleared.hide()
    cleared.follower.run()
    cleared.clear()
    before = {row["code"] for row in cleared.follower.mirror(f"{cleared.name}.c")}
    former = PrivacyKey(KEY).fingerprint
    cleared.do("insert into c (code) values ('new')")
    cleared.follower.key = b"another key that nobody guesses"
    with pytest.raises(ConfigurationError, match="hashed with the key") as refused:
        cleared.follower.run()
    assert former in refused.value.hint
    assert {row["code"] for row in cleared.follower.mirror(f"{cleared.name}.c")} == before
    cleared.follower.replaces = former
    cleared.follower.run()
    (note,) = cleared.notes()
    assert (note.tightening.is_rehashed, note.tightening.columns) == (True, ())
    assert len(cleared.clear()) == 1
    after = {row["code"] for row in cleared.follower.mirror(f"{cleared.name}.c")}
    assert (len(after), after & before) == (3, set())
    for hashed in before:
        assert cleared.found(hashed) == []


def test_a_key_counts_where_the_lake_has_hashes_of_it(cleared: Cleared) -> None:
    """Not of a table that nobody captures, though its structure is recorded under the key, nor of
    one that is paused while the key is replaced: once it goes on, it is read again."""
    name, follower = cleared.name, cleared.follower
    cleared.do("create table other (code varchar(20) primary key)")
    cleared.hide()
    follower.shapes[f"{name}.other"] = ShapeRules(hash_columns={"code": Hash.EXACT})
    follower.run()
    cleared.clear()
    former, follower.tables = PrivacyKey(KEY).fingerprint, [f"{name}.c", f"{name}.beside"]
    follower.order(OrderKind.PAUSE, cleared.table)
    follower.run()
    follower.key, follower.replaces = b"another key that nobody guesses", former
    follower.run()
    follower.replaces = None
    follower.run()
    follower.order(OrderKind.RESUME, cleared.table)
    follower.run()
    assert len(cleared.clear()) == 1
    follower.key = b"a third key that nobody meant"
    with pytest.raises(ConfigurationError):
        follower.run()


def test_a_table_that_was_paused_is_read_again(cleared: Cleared) -> None:
    cleared.follower.order(OrderKind.PAUSE, cleared.table)
    cleared.follower.run()
    cleared.do(f"insert into c (code, secret) values ('late', '{WORD} late')")
    cleared.hide()
    cleared.follower.run()
    (note,) = cleared.notes()
    assert "was not read from the source since" in note.hint
    cleared.follower.order(OrderKind.RESUME, cleared.table)
    cleared.follower.run()
    assert len(cleared.clear()) == 1
    assert (cleared.found(), len(cleared.follower.mirror(f"{cleared.name}.c"))) == ([], 3)


def test_names_that_a_table_had_and_tables_that_nothing_reads(cleared: Cleared) -> None:
    """What a mirror that nothing writes any more shows, a person deletes; the rest goes with it."""
    follower, name = cleared.follower, cleared.name
    cleared.do("rename table c to d", f"create table left_out as select '{WORD}' as secret")
    cleared.do("alter table left_out add primary key (secret)")
    cleared.do("rename table d to e", f"insert into e values ('late', '{WORD} x', 9)")
    follower.run()
    follower.tables = [f"{name}.[!l]*"]
    rules = ShapeRules(hash_columns={"secret": Hash.EXACT})
    follower.shapes = {f"{name}.e": HIDING, f"{name}.left_out": rules}
    for _ in range(2):
        follower.run()
        cleared.clear()
    told = {note.table.name: note.hint for note in cleared.notes()}
    assert told.keys() == {"c", "d", "left_out"}
    assert "if `tables` has it" in told["left_out"]
    for former in ("c", "d"):
        mirror = f"shop/{name}/{former}"
        assert f"delete the folder {mirror} of the lake" in told[former]
        follower.lake.tables.pop(mirror, None)
    follower.tables = [f"{name}.*"]
    for _ in range(2):
        follower.run()
        cleared.clear()
    assert (cleared.found(), cleared.notes()) == ([], [])
    # A replay has nothing to compare with mirrors that were deleted.
    report = follower.replay()
    assert {table.name for table in report.tables} == {"beside", "e", "left_out"}
    assert cleared.found() == []


def test_tables_that_one_statement_renamed_are_told_apart(cleared: Cleared) -> None:
    """Though they have the same columns: the settings hide the values of one of them."""
    follower, name = cleared.follower, cleared.name
    cleared.do("create table twin like c", "insert into twin select * from c")
    follower.run()
    cleared.do("rename table c to z, twin to a")
    follower.run()
    follower.shapes = {f"{name}.z": HIDING}
    follower.run()
    assert {note.table.name for note in cleared.notes()} == {"c", "z"}


def test_a_ledger_that_is_lost_before_it_is_cleared(cleared: Cleared) -> None:
    """The mirror's commits say how each version showed the table."""
    cleared.hide()
    cleared.follower.run()
    cleared.follower.lose_ledger()
    cleared.follower.recover()
    (note,) = cleared.notes()
    assert "was not read from the source since" in note.hint
    cleared.follower.run()
    cleared.require_cleared()
    # Once all is cleared, a ledger that is lost again has nothing to read.
    cleared.follower.lose_ledger()
    cleared.follower.recover()
    assert cleared.notes() == []


def test_a_lake_of_before_it_was_cleared(cleared: Cleared) -> None:
    """The ledger was made from the lake, and so has no file of before on record. No changelog lists
    what was cleared, although the restored lake still does."""
    follower = cleared.follower
    follower.lose_ledger()
    follower.recover()
    older = lake_of(follower.lake)
    cleared.hide()
    follower.run()
    assert len(cleared.clear()) == 1
    follower.lake = older
    follower.recover()
    changes = follower.lake.tables[f"{SOURCE}/_changes/{cleared.name}/c"][-1].rows
    assert WORD not in str(changes.to_pylist())


@pytest.mark.parametrize("place", ["{name}.aa", "{name}.moved"])
def test_a_ledger_that_is_lost_after_the_mirror_moved(cleared: Cleared, place: str) -> None:
    """The former folder still shows what the settings hide, and so does the changelog."""
    cleared.hide()
    into = MirrorNameTemplate.parse(place.format(name=cleared.name))
    ports = cleared.follower.ports

    def moved(until: str | None = None) -> RunPorts:
        found = ports(until)
        blocks = tuple(replace(block, into=into) for block in found.source.table_settings)
        return replace(found, source=replace(found.source, table_settings=blocks))

    cleared.follower.ports = moved  # type: ignore[method-assign]
    cleared.follower.run()
    assert cleared.follower.mirror(f"{cleared.name}.c")
    cleared.follower.lose_ledger()
    cleared.follower.recover()
    assert len(cleared.notes()) == 1
    cleared.follower.run()
    cleared.require_cleared()


def test_rows_that_a_policy_keeps_go_too(mysql: MySqlStand) -> None:
    """With `keep_clear` they stay, and go once it is gone, though nothing else was to be done."""
    policies = LakePolicies(deletes=Deletes.SOFT)
    with mysql.own_database() as name:
        cleared = Cleared(mysql, name, lake_policies=policies)
        cleared.do("delete from c where v = 1")
        cleared.follower.run()
        cleared.hide()
        assert "its mirror kept" in (
            plaintext_sentence(cleared.follower.ports(), cleared.table) or ""
        )
        cleared.hide(replace(HIDING, keep_clear="the lawyers look at it"))
        cleared.follower.run()
        assert f"{WORD}1" in str(cleared.follower.mirror(f"{name}.c"))
        cleared.hide()
        assert "its mirror kept" in (
            plaintext_sentence(cleared.follower.ports(), cleared.table) or ""
        )
        # Upkeep without a run leaves them: the table must be read again first.
        assert cleared.clear() == ()
        # Each run dies one write later than the one before it.
        deaths = 0
        while True:
            ports = cleared.follower.ports()
            ledger: Any = Mortal(ports.ledger, [deaths])
            with cleared.follower.leased() as lease:
                try:
                    stop_reshaped_tables(replace(ports, ledger=ledger), lease)
                    break
                except Crash:
                    deaths += 1
        assert deaths > 2
        cleared.follower.run()
        cleared.require_cleared(2)
        assert len(cleared.follower.mirror(f"{name}.c")) == 1


def test_rows_that_were_read_and_went_before_a_merge_are_kept(
    mysql: MySqlStand, database: str
) -> None:
    """Both batches wait: no image tells of the rows that the first one read."""
    make = "create table t (id int primary key)", "insert into t values (1), (2)"
    mysql.execute(*make, database=database)
    policies = LakePolicies(deletes=Deletes.SOFT)
    options: dict[str, Any] = {"start": "snapshot", "lake_policies": policies}
    follower = ShapedFollower(mysql, [f"{database}.t"], {}, **options)
    follower.capture()
    mysql.execute("truncate table t", "insert into t values (2), (3)", database=database)
    follower.run()
    rows = follower.mirror(f"{database}.t")
    assert {row["id"]: row["_deleted_at"] is None for row in rows} == {1: False, 2: True, 3: True}


@pytest.mark.parametrize(
    ("after", "runs_between"), [(False, False), (False, True), (True, False), (True, True)]
)
def test_a_clearing_that_was_killed_lists_each_row_once(
    mysql: MySqlStand, database: str, tmp_path: Path, after: bool, runs_between: bool
) -> None:
    """It died before or after the ledger had the new files of a system table, when the lake listed
    the old ones; the next process gives its files other names. The run between lists no file
    that the clearing had ceased to list."""
    shop = Cleared(mysql, database)
    follower, memory_ports = shop.follower, shop.follower.ports
    follower.lose_ledger()
    follower.lake = MemoryLake()
    files = follower.lake.files = Files()
    files.folder = tmp_path

    def ports(until: str | None = None) -> RunPorts:
        memory: Any = SimpleNamespace(lake=follower.lake, ports=lambda: memory_ports(until))
        return ports_on_disk(memory, tmp_path)

    follower.ports = ports  # type: ignore[method-assign]
    follower.run()
    shop.do(f"alter table c comment '{WORD}'", "update c set v = v + 1")
    follower.run()
    shop.hide()
    follower.run()
    folders = [system_table_path(SOURCE, table) for table in SystemTable]

    def listed() -> set[str]:
        changelog = follower.ports().changelog
        return {path for folder in folders for path in changelog.listed_files(folder) or ()}

    for number, _ in enumerate(SystemTable):
        calls = count()
        before = listed()

        def die(calls: Iterator[int] = calls, number: int = number) -> None:
            # There is no second call for a table whose files the ledger has already.
            if after or next(calls) == number:
                raise Crash

        with interrupted(follower, "clear_files", die, after=after), pytest.raises(Crash):
            shop.clear()
        unlisted = before - listed()
        if runs_between:
            shop.do("update beside set v = v + 1", f"alter table beside comment '{number}'")
            follower.run()
            assert not unlisted & listed()
    assert len(shop.clear()) == 1
    for table in SystemTable:
        path = tmp_path / system_table_path(SOURCE, table)
        rows = DeltaTable(path).to_pyarrow_table().to_pylist()
        places = [(row["_file"], row["_offset"], row.get("_sequence")) for row in rows]
        assert len(places) == len(set(places)) > 0
        assert WORD not in str(rows)
        recorded = [
            file.path
            for content in follower.ledger.contents(SOURCE, 1, 1000)
            for segment in content.system_segments
            if segment.table is table
            for file in segment.files
        ]
        listed_paths = follower.ports().changelog.listed_files(system_table_path(SOURCE, table))
        assert sorted(recorded) == sorted(listed_paths or ())
        assert sorted(recorded) == sorted(file.name for file in path.glob("*.parquet"))
