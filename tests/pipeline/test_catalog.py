"""Entries of mirrors in a catalog follow their tables, whatever fails, and touch no other."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep.pipeline.catalog import CatalogEntry, EntryName, WantedEntry, normal_location
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.catalog import Registry
from lockstep.pipeline.run.catalog import CatalogReport, EntryChangeKind, differences, register
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.schema.history import SchemaStatement
from lockstep.pipeline.values.errors import CatalogRefused, CatalogUnavailable
from lockstep.pipeline.values.mirror_names import MirrorNames, MirrorNameTemplate
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName, TablePatterns
from tests.fix_ledger import LedgerOfTest
from tests.twins.catalog import MemoryCatalog

SOURCE = "shop"
AT = Coordinates(LogFile("binlog", 1), 4)
NAMES = st.sampled_from(["a", "b", "c", "C", "d-e"])
HISTORIES = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("drop"), NAMES),
        st.tuples(st.just("rename"), NAMES, NAMES, st.booleans()),
        st.tuples(st.just("alter"), NAMES),
        st.tuples(st.just("comment"), NAMES),
        st.tuples(st.just("run"), st.integers(0, 6), st.booleans()),
        st.tuples(st.just("theirs"), NAMES),
        st.tuples(st.just("refuses"), st.sampled_from(["", "a", "b", "c", "x"]), st.booleans()),
        st.tuples(st.just("schemas"), st.sampled_from(["{database}", "m_{database}"])),
        st.tuples(st.just("names"), st.permutations("abxy"), st.sampled_from(["shop", "crm"])),
    ),
    max_size=25,
)


TWO = [("create", "a"), ("create", "b"), ("run", 0, False)]
RENAMES_CUT_OFF = [
    [
        *(("create", "a"), ("run", 0, False), ("schemas", "m_{database}"), ("run", call, late)),
        *(() if event is None else (event,)),
    ]
    for call in range(1, 5)
    for late in (False, True)
    for event in (None, ("drop", "a"), ("schemas", "{database}"))
]
"""A run that renames an entry is killed at any of its calls; then nothing else happens, or the
table is dropped, or the entry is to have its former name."""


RENAMES_REFUSED: list[list[tuple[Any, ...]]] = [
    [*TWO, ("names", tuple("xaby"), "shop"), ("refuses", "x", alters), ("run", 0, False)]
    for alters in (False, True)
]
"""A catalog refuses to rename an entry whose former name another table takes."""


def each_of(histories: Collection[list[tuple[Any, ...]]]) -> Callable[[Any], Any]:
    """Have a test try these histories before those that it finds itself."""

    def decorate(test: Any) -> Any:
        for history in histories:
            test = example(history=history)(test)
        return test

    return decorate


class Killed(BaseException):
    """The process ends."""


@dataclass(slots=True)
class Fallible(MemoryCatalog):
    """A catalog of which one call fails: the `fails`-th from now, before it is carried out, or
    (`late`) after. `refuses_entry`: the name of a table's entry that it neither makes nor changes;
    with `alters` an entry that it would have replaced stays then."""

    fails: int = 0
    late: bool = False
    refuses_entry: str = ""
    alters: bool = False

    def put(self, entry: WantedEntry, replaced_name: EntryName | None) -> None:
        if self.alters and entry.name.table == self.refuses_entry:
            raise CatalogRefused("It says no", hint="ask it why")
        MemoryCatalog.put(self, entry, replaced_name)

    def create(self, entry: WantedEntry) -> None:
        if entry.name.table == self.refuses_entry:
            raise CatalogRefused("It says no", hint="ask it why")
        self._failing(lambda: MemoryCatalog.create(self, entry))

    def drop(self, name: EntryName) -> None:
        self._failing(lambda: MemoryCatalog.drop(self, name))

    def find(self, name: EntryName) -> CatalogEntry | None:
        self._failing(lambda: None)
        return MemoryCatalog.find(self, name)

    def _failing(self, call: Callable[[], None]) -> None:
        self.fails -= 1
        if self.fails == 0 and not self.late:
            raise CatalogUnavailable("No catalog answers", hint="start it")
        call()
        if self.fails == 0:
            raise Killed


@dataclass
class Source:
    """Tables by name: folder, version of the structure, comment; and what a run asks of them."""

    catalog: Fallible
    tables: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    statements: list[SchemaStatement] = field(default_factory=list)
    made: int = 0
    schemas: str = "{database}"
    mirror_names: MirrorNames = field(default_factory=lambda: MirrorNames(SOURCE))

    def __post_init__(self) -> None:
        self.ledger = _Ledger(self)

    def happen(self, word: str, *told: Any) -> None:
        match word, told:
            case "create", (name,) if name not in self.tables:
                self._make(name)
            case "drop", (name,) if name in self.tables:
                self._lose(name)
            case "rename", (name, to, keeps) if name in self.tables and to not in self.tables:
                kept = self._lose(name)
                self._make(to)
                if keeps:
                    self.tables[to] = kept
            case "alter", (name,) if name in self.tables:
                folder, version, comment = self.tables[name]
                self.tables[name] = (folder, version + 1, comment)
            case "comment", (name,) if name in self.tables:
                self.tables[name] = (*self.tables[name][:2], f"comment {len(self.statements)}")
                self._log(f"ALTER TABLE `{name}` COMMENT = '…'")
            case "run", (fails, late):
                self.catalog.fails, self.catalog.late = fails, late
                with suppress(Killed):
                    self.run()
            case "refuses", (entry, alters):
                self.catalog.refuses_entry, self.catalog.alters = entry, alters
            case "schemas", (template,):
                self.schemas = template
            case "names", (names, schema):
                rules = [
                    (
                        TablePatterns((f"shop.{table}",)),
                        MirrorNameTemplate.parse(f"{schema}.{name}"),
                    )
                    for table, name in zip("ab", names, strict=False)
                ]
                self.mirror_names = MirrorNames(SOURCE, tuple(rules))
            case "theirs", (name,) if self.entry_name(name) not in self.catalog.entries:
                name_there = self.entry_name(name)
                theirs = WantedEntry("", TableName("x", "x"), name_there, "file:///theirs")
                self.catalog.add(theirs)

    def run(self, **how: bool) -> CatalogReport:
        with self.ledger.lock(SOURCE, "test", None) as lease:
            return register(self.ports(), lease, self.registry(), **how)

    def policies_of(self, table: TableName) -> LakePolicies:
        return LakePolicies()

    def registry(self) -> Registry:
        return Registry(self.catalog, self.schemas, self.catalog.location)

    def ports(self) -> RunPorts:
        """What registering reads of the ports of a run."""
        parts: dict[str, Any] = dict.fromkeys(("source", "server", "mirrors"), self)
        parts |= {"ledger": self.ledger, "progress": SilentProgress()}
        return cast("RunPorts", type("Ports", (), parts))

    name = SOURCE

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        return {table: self.tables[table.name][2] for table in tables}

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        return {table: {"ID": f"key of {table.name}"} for table in tables}

    def version(self, mirror: str) -> int:
        return 7

    def schema(self, mirror: str, version: int) -> pa.Schema:
        (shown,) = [one for one in self.tables.values() if one[0] == mirror]
        return pa.schema([(f"c{number}", pa.int32()) for number in range(shown[1])])

    def entry_name(self, name: str) -> EntryName:
        shown = self.mirror_names.of(TableName("shop", name))
        return EntryName(self.schemas.format(database=shown.database), shown.name.lower())

    def expected(self) -> dict[EntryName, tuple[str, str, int]]:
        """By name: folder, comment, columns. Of names that differ in case, the registered one."""
        known = self.ledger.registrations(SOURCE, self.catalog.identity).entries
        order = sorted(self.tables, key=lambda one: (TableName("shop", one) not in known, one))
        found: dict[EntryName, tuple[str, str, int]] = {}
        for name in order:
            folder, version, comment = self.tables[name]
            if self.catalog.reason_refused(self.entry_name(name)) is None:
                columns = version if self.catalog.has_columns else 0
                found.setdefault(self.entry_name(name), (folder, comment, columns))
        return found

    def shown(self) -> dict[EntryName, tuple[str, str, int]]:
        entries = {n: e for n, (e, _) in self.catalog.entries.items() if e.source == SOURCE}
        root = f"{normal_location(self.catalog.root)}/"
        return {
            name: (normal_location(one.location).removeprefix(root), one.comment, len(one.columns))
            for name, one in entries.items()
        }

    def _make(self, name: str) -> None:
        self.made += 1
        self.tables[name] = (f"shop/{name}-{self.made}", 1, "")
        self.gone.discard(name)
        self._log(f"CREATE TABLE {name} (id INT)")

    def _lose(self, name: str) -> tuple[str, int, str]:
        self.gone.add(name)
        self._log(f"DROP TABLE {name}")
        return self.tables.pop(name)

    def _log(self, text: str) -> None:
        number = len(self.statements) + 1
        logged = SchemaStatement(AT, AT, "", None, "shop", text, "followed", id=number)
        self.statements.append(logged)


class _Ledger(LedgerOfTest):
    """Whose tables are those of the source."""

    def __init__(self, of: Source) -> None:
        super().__init__()
        self._of = of

    def table_states(self, source: str) -> dict[TableName, TableState]:
        found = {
            TableName("shop", name): TableState(
                TableName("shop", name),
                TableCondition.FOLLOWING,
                1,
                folder,
                "-",
                mirror_schema_version=shows,
            )
            for name, (folder, shows, _) in self._of.tables.items()
        }
        gone = (TableName("shop", name) for name in self._of.gone)
        dropped = TableCondition.DROPPED
        return found | {name: TableState(name, dropped, 2, "-", "-") for name in gone}

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        return self._of.statements[after : after + limit]


@pytest.mark.parametrize("marks", [True, False])
@given(history=HISTORIES)
@example(history=[("create", "a"), ("run", 2, True)])
@example(history=[*TWO, ("names", tuple("baxy"), "shop")])  # two change names
@example(history=[*TWO, ("names", tuple("bxay"), "shop")])  # one takes the name of another
@example(history=[*TWO, ("rename", "a", "c", True), ("names", tuple("xaby"), "shop")])  # and so
@each_of(RENAMES_CUT_OFF)
@each_of(RENAMES_REFUSED)
def test_entries_follow_their_tables(marks: bool, history: list[tuple[Any, ...]]) -> None:
    """After tables came, went and changed, with a catalog that failed or refused or a run that was
    killed at any call, one run makes every entry what its table is; a look finds nothing to do
    then; nobody else's entry is another; and a run with nothing new asks for the names alone that
    are taken."""
    source = Source(Fallible(has_marks=marks, has_columns=marks))
    for word, *told in history:
        source.happen(word, *told)
    theirs = {n: e for n, (e, _) in source.catalog.entries.items() if e.source != SOURCE}

    source.catalog.fails, source.catalog.refuses_entry = 0, ""
    report = source.run()
    assert report.trouble is None
    expected = source.expected()
    assert source.shown() == {n: e for n, e in expected.items() if n not in theirs}
    taken = {
        one.name for one in report.missing_entries if one.reason.startswith(("another", "somebody"))
    }
    assert taken == theirs.keys() & expected.keys()
    assert theirs == {n: e for n, (e, _) in source.catalog.entries.items() if e.source != SOURCE}

    source.catalog.asked = 0
    idle = source.run()
    assert (idle.changes, idle.missing_entries) == ((), report.missing_entries)
    assert source.catalog.asked == len(theirs.keys() & expected.keys())
    assert differences(source.ports(), source.registry()).changes == ()


@pytest.mark.parametrize("marks", [True, False])
@given(history=HISTORIES)
@each_of(RENAMES_CUT_OFF)
def test_what_is_shown_is_what_is_then_done(marks: bool, history: list[tuple[Any, ...]]) -> None:
    """After anything that `lockstep catalog` may find, also runs that were killed: `--yes` changes
    the entries that the command named before, and leaves out those that it said it would."""
    source = Source(Fallible(has_marks=marks, has_columns=marks))
    for word, *told in history:
        source.happen(word, *told)
    source.catalog.fails, source.catalog.refuses_entry = 0, ""
    before = {name: entry for name, (entry, _) in source.catalog.entries.items()}
    shown = differences(source.ports(), source.registry())
    assert before == {name: entry for name, (entry, _) in source.catalog.entries.items()}
    done = source.run(examine_all=True)
    assert replace(done, seconds=shown.seconds) == shown


@pytest.mark.parametrize("marks", [True, False])
def test_a_person_takes_over_what_points_at_a_mirror(marks: bool) -> None:
    """A run leaves an entry that somebody made by hand, though it shows our mirror; the command
    makes it Lockstep's, and only if it does."""
    source = Source(Fallible(has_marks=marks, has_columns=marks))
    source.happen("create", "a")
    source.happen("create", "b")
    folder = source.catalog.location(source.tables["a"][0])
    by_hand = WantedEntry("", TableName("x", "x"), EntryName("shop", "a"), folder)
    source.catalog.add(by_hand)
    source.catalog.add(replace(by_hand, name=EntryName("shop", "b"), location="s3a://x/b"))
    assert [one.name.table for one in source.run().missing_entries] == ["a", "b"]
    report = source.run(examine_all=True)
    assert [(one.kind, one.name.table) for one in report.changes] == [
        (EntryChangeKind.CHANGED, "a")
    ]
    assert [one.name.table for one in report.missing_entries] == ["b"]


@pytest.mark.parametrize("marks", [True, False])
def test_a_ledger_made_anew_finds_its_entries(marks: bool) -> None:
    """By their marks, without changing them, unless they are of another lake; where there are none,
    once a person says so."""
    source = Source(Fallible(has_marks=marks, has_columns=marks))
    source.happen("create", "a")
    source.run()
    source.ledger = _Ledger(source)
    source.catalog.root = "file:///another"
    assert [one.name.table for one in source.run().missing_entries] == ["a"]
    source.catalog.root = "file:///lake"
    report = source.run(examine_all=not marks)
    assert (report.missing_entries, report.correct_count) == ((), 1 if marks else 0)
    source.happen("drop", "a")
    assert [one.kind for one in source.run().changes] == [EntryChangeKind.DROPPED]


def test_a_name_that_an_entry_leaves_is_free() -> None:
    """Another table takes it in the same run, and `lockstep catalog` says so before."""
    source = Source(Fallible())
    source.happen("create", "a")
    source.run()
    source.happen("create", "b")
    source.happen("names", "xaby", "shop")
    shown = differences(source.ports(), source.registry())
    done = source.run(examine_all=True)
    assert shown.changes == done.changes
    kinds = [one.kind for one in done.changes]
    assert kinds == [EntryChangeKind.RENAMED, EntryChangeKind.REGISTERED]
    assert source.shown().keys() == {EntryName("shop", "x"), EntryName("shop", "a")}


def test_an_entry_that_is_refused_holds_up_no_other() -> None:
    """It is told, and tried again by the next run, with the comment that it has then."""
    source = Source(Fallible(refuses_entry="a"))
    for name in ("a", "b"):
        source.happen("create", name)
        source.happen("comment", name)
    report = source.run()
    assert (report.trouble, [one.reason for one in report.missing_entries]) == (
        None,
        ["It says no"],
    )
    assert source.shown().keys() == {source.entry_name("b")}
    source.catalog.refuses_entry = ""
    source.run()
    assert source.shown() == source.expected()


@pytest.mark.parametrize("history", RENAMES_REFUSED)
def test_a_name_that_an_entry_keeps_is_said(history: list[tuple[Any, ...]]) -> None:
    """Its table and what to do, as long as the catalog refuses to change the entry; other entries
    are made."""
    source = Source(Fallible())
    for word, *told in history[:-1]:
        source.happen(word, *told)
    source.happen("create", "c")
    report = source.run()
    (refused, waiting) = report.missing_entries
    assert (refused.reason, waiting.hint) == ("It says no", "`lockstep catalog --yes` tries again")
    assert waiting.reason == (
        "shop.a still has that name, because the catalog refused to change its entry"
    )
    assert source.entry_name("c") in source.shown() and report.trouble is None


def test_a_name_that_is_free_is_taken_although_its_former_table_waits() -> None:
    """Where an entry is dropped and made anew, the catalog may refuse the second alone."""
    source = Source(Fallible(has_marks=False, has_columns=False))
    for word, *told in RENAMES_REFUSED[0][:-1]:
        source.happen(word, *told)
    (refused,) = source.run().missing_entries
    assert (str(refused.table), refused.reason) == ("shop.a", "It says no")
    assert EntryName("shop", "a") in source.shown()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/lake/a", "file:///lake/a/"),
        ("/lake/a", "file:///lake/a"),
        ("s3a://bucket/a", "s3://bucket/a"),
    ],
)
def test_a_place_has_one_spelling(one: str, other: str) -> None:
    """Catalogs and Spark write the same place in several ways."""
    assert normal_location(one) == normal_location(other) != normal_location("s3://bucket/b")
