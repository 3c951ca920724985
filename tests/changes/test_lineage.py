"""Lineage, steps, keys, and types that become others: what a mirror becomes after versions that say
so themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.mirror.evolution import (
    MAPPING_PROPERTY,
    NTZ_PROPERTY,
    WIDENING_PROPERTY,
    evolution_steps,
)
from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.mirror.lineage import ColumnLineage, ColumnsRead, lineage
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    ColumnOrigin,
    DropColumns,
    Fill,
    RenameColumn,
    Rewrite,
    SetProperties,
    WidenColumn,
)
from lockstep.pipeline.schema.fills import StatementMoment
from lockstep.pipeline.schema.history import SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.model import ColumnSchema, ExpressionDefault, KeySchema, ValueDefault
from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.policies import Deletes, DroppedColumns, LakePolicies, Readers
from lockstep.pipeline.values.stamps import STAMPS, Stamp
from tests.changes.following import Follower, kept_columns
from tests.changes.server import Server
from tests.changes.tables_made import ID, a_column, a_key, a_table, a_version
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors

Step = tuple[Sequence[ColumnSchema], Sequence[str | None]]


def history(first: Sequence[ColumnSchema], *later: Step) -> list[SchemaVersion]:
    """Versions of a table whose key is `id`, which each has."""
    found = [a_version(1, a_table(ID, *first))]
    for columns, sources in later:
        found.append(a_version(len(found) + 1, a_table(ID, *columns), ["id", *sources]))
    return found


def mirror(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([("id", pa.int32()), *columns])


A, B, C = (a_column(name) for name in "abc")
AB = mirror(("a", pa.int32()), ("b", pa.int32()))
ONLY_A = AB.remove(2)
INT = pa.int32()
IDS, FROM_A, NULL = (
    ColumnOrigin("id", INT),
    ColumnOrigin("a", INT),
    ColumnOrigin(value=pa.scalar(None, INT)),
)
DROPPING = LakePolicies(dropped_columns=DroppedColumns.DROP)
ANY_READER = LakePolicies(readers=Readers.ANY)
SEVEN = a_column("b", default=ValueDefault("7"))
DATE = a_column("b", "date")
DROPPED = history([A, B], ([B], ["b"]))
TINY, FLOATING = (a_column(name, kind) for name, kind in (("a", "tinyint"), ("x", "float")))


def rewrite(old: pa.DataType, new: pa.DataType) -> Rewrite:
    schema = mirror(("x", new), ("c", INT), ("b", INT))
    return Rewrite(schema, (IDS, ColumnOrigin("a", old), NULL, ColumnOrigin("b", INT)))


STEPS: dict[str, tuple[list[SchemaVersion], LakePolicies, pa.Schema | None, tuple[object, ...]]] = {
    "nothing changed": (history([A]), LakePolicies(), ONLY_A, ()),
    "a table without a mirror begins with the last version's columns": (
        history([A, B], ([B, C], ["b", None])),
        *(LakePolicies(), None, ()),
    ),
    "one ALTER and one UPDATE, only where there is something to fill": (
        history([A], ([A, SEVEN, C], ["a", None, None])),
        *(LakePolicies(), ONLY_A),
        (AddColumns(pa.schema([("b", INT), ("c", INT)])), Fill((("b", pa.scalar(7, INT)),))),
    ),
    "names that change places go through a temporary one": (
        history([A, B], ([B, A], ["a", "b"])),
        *(LakePolicies(), AB),
        (
            SetProperties((MAPPING_PROPERTY,)),
            RenameColumn("a", "_lockstep_0"),
            RenameColumn("b", "a"),
            RenameColumn("_lockstep_0", "b"),
        ),
    ),
    "a dropped column is kept": (DROPPED, LakePolicies(), AB, ()),
    "a dropped column is dropped by policy": (
        *(DROPPED, DROPPING, AB),
        (SetProperties((MAPPING_PROPERTY,)), DropColumns(("a",))),
    ),
    "it cannot be kept without a key": (
        [a_version(1, a_table(A, B, keys=())), a_version(2, a_table(B, keys=()), ["b"])],
        *(LakePolicies(), AB.remove(0)),
        (SetProperties((MAPPING_PROPERTY,)), DropColumns(("a",))),
    ),
    "a column is widened where it is": (
        history([A, DATE], ([a_column("a", "bigint"), B], ["a", None])),
        *(DROPPING, mirror(("a", INT), ("b", pa.date32()))),
        (
            SetProperties((MAPPING_PROPERTY, WIDENING_PROPERTY)),
            DropColumns(("b",)),
            WidenColumn("a", pa.int64()),
            AddColumns(pa.schema([("b", INT)])),
        ),
    ),
    "DATETIME is asked for where the mirror had none": (
        history([DATE], ([a_column("b", "datetime", length=0)], ["b"])),
        *(LakePolicies(), mirror(("b", pa.date32()))),
        (SetProperties((WIDENING_PROPERTY, NTZ_PROPERTY)), WidenColumn("b", pa.timestamp("us"))),
    ),
    "any reader reads an added column": (
        history([A], ([A, B], ["a", None])),
        *(ANY_READER, ONLY_A),
        (AddColumns(pa.schema([("b", INT)])),),
    ),
    "one commit writes everything anew where every reader must read it": (
        history([A, B], ([a_column("x", "bigint"), C], ["a", None])),
        *(ANY_READER, AB, (rewrite(INT, pa.int64()),)),
    ),
    "or where a column needs it": (
        history([TINY, B], ([FLOATING, C], ["a", None])),
        *(LakePolicies(), mirror(("a", pa.int8()), ("b", INT))),
        (rewrite(pa.int8(), pa.float32()),),
    ),
}


@pytest.mark.parametrize(("versions", "policies", "before", "steps"), STEPS.values(), ids=STEPS)
def test_steps(
    versions: list[SchemaVersion],
    policies: LakePolicies,
    before: pa.Schema | None,
    steps: tuple[object, ...],
) -> None:
    """No more than it takes, and no name is held twice."""
    assert evolution_steps(lineage(versions, policies, mirror=before)) == steps


def test_columns_of_each_version_are_those_of_the_mirror_or_known_to_be_others() -> None:
    """A column that was added has its fill in rows and images of before; one that was dropped is
    kept, and unknown to later images."""
    line = lineage(history([A]), mirror=ONLY_A)
    assert line.mirror_origins == line.versions[1] == (IDS, FROM_A)
    line = lineage(history([A], ([A, SEVEN, C], ["a", None, None])), mirror=ONLY_A)
    filled = (IDS, FROM_A, ColumnOrigin(value=pa.scalar(7, INT)), NULL)
    assert line.versions[1] == line.mirror_origins == filled
    line = lineage(DROPPED, mirror=AB)
    assert (line.schema.names, kept_columns(line)) == (["id", "b", "a"], ("a",))
    assert (line.versions[2][2].is_absent, line.versions[1][2]) == (True, FROM_A)
    line = lineage(history([A, B], ([B, C], ["b", None])))
    assert line.schema == mirror(("b", INT), ("c", INT))
    assert line.versions[1] == (IDS, ColumnOrigin("b", INT), NULL)


def reread(line: ColumnLineage) -> str:
    assert len(line.reasons_to_reread) == 1
    with pytest.raises(ValueError, match="replaced"):
        evolution_steps(line)
    return line.reasons_to_reread[0]


def test_what_only_the_source_can_tell_is_read_again() -> None:
    """An expression, a type that is not widened, rows that are other rows."""
    expression = a_column("b", default=ExpressionDefault("(rand())"))
    line = lineage(history([A], ([A, expression], ["a", None])), mirror=ONLY_A)
    assert "'b' was added" in reread(line)
    line = lineage(history([A], ([a_column("a", "varchar")], ["a"])), mirror=ONLY_A)
    assert "'a' changed" in reread(line)
    other = [a_version(1, a_table(ID, A)), a_version(2, a_table(ID, A))]
    assert "version 2" in reread(lineage(other, mirror=ONLY_A))


def test_columns_that_are_read_by_key_need_no_replacement() -> None:
    """They are added, NULL, and images of before do not know them; what was not read, and what
    came behind the reading, is asked for as before."""
    made, late = a_column("made", generated="a + 1"), a_column("late", generated="a + 2")
    versions = history([A], ([A, made], ["a", None]), ([A, made, late], ["a", "made", None]))
    before = mirror(("a", pa.int32()))
    line = lineage(versions[:2], mirror=before, columns_read=ColumnsRead(2, ("made",)))
    null = ColumnOrigin(value=pa.scalar(None, pa.int32()))
    assert (line.columns_by_key, line.reasons_to_reread) == (("made",), ())
    assert line.versions[1] == (IDS, ColumnOrigin("a", pa.int32()), null)
    assert evolution_steps(line) == (AddColumns(pa.schema([("made", pa.int32())])),)
    assert line.completion(2, ("file",), 7).columns == (
        IDS,
        ColumnOrigin(),
        ColumnOrigin("made", pa.int32()),
    )
    for read in (None, ColumnsRead(2, ("a",)), ColumnsRead(1)):
        assert lineage(versions[:2], mirror=before, columns_read=read).reasons_to_reread
    (sentence,) = lineage(
        versions, mirror=before, columns_read=ColumnsRead(2, ("made",))
    ).reasons_to_reread
    assert "'late'" in sentence
    assert lineage(versions, mirror=before, columns_read=ColumnsRead(3)).columns_by_key == (
        "made",
        "late",
    )


def test_a_carried_version_goes_on_where_nothing_differs() -> None:
    """A start went back; the structure is that of before."""
    versions = [
        a_version(1, a_table(ID, A)),
        a_version(2, a_table(ID, A), None, VersionOrigin.CARRIED),
    ]
    assert lineage(versions, mirror=ONLY_A).reasons_to_reread == ()


def test_a_start_elsewhere_goes_on_where_rows_are_built_alike() -> None:
    """Behind a gap the server was asked again: defaults and indexes may be others; types not."""
    before = a_version(1, a_table(ID, A))
    known = a_table(ID, replace(A, default=ValueDefault("7")))
    other = a_table(ID, a_column("a", "bigint"))
    alike = lineage([before, a_version(2, known, None, VersionOrigin.BASELINE)], mirror=ONLY_A)
    assert alike.reasons_to_reread == ()
    assert "version 2" in reread(
        lineage([before, a_version(2, other, None, VersionOrigin.BASELINE)], mirror=ONLY_A)
    )


def test_now_is_the_statement_s_moment() -> None:
    """As an instant, and as its session's clock showed it."""
    columns = [
        a_column("t", "timestamp", length=3, default=ExpressionDefault("CURRENT_TIMESTAMP(3)")),
        a_column("d", "datetime", length=0, default=ExpressionDefault("CURRENT_TIMESTAMP")),
    ]
    instant = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=UTC)
    moments = {2: StatementMoment(instant, ZoneInfo("Europe/Berlin"))}
    line = lineage(history([], (columns, [None, None])), mirror=mirror(), moments=moments)
    values = [column.value for column in line.mirror_origins[1:]]
    assert [value.as_py() for value in values if value is not None] == [
        instant.replace(microsecond=123000),
        datetime(2026, 7, 1, 14),
    ]
    assert (
        len(lineage(history([], (columns, [None, None])), mirror=mirror()).reasons_to_reread) == 2
    )


U = a_key("u", name="u", kind="unique")
V = a_key("v", name="v", kind="unique")
NOT_NULL = [a_column(name, nullable=False) for name in ("id", "u", "v")]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((V, a_key("id"), U), ("id",)),
        ((V, U), ("u",)),
        ((a_key("n", name="a", kind="unique"), V), ("v",)),
        ((a_key("u", name="i", kind="index"),), ()),
        ((), ()),
    ],
)
def test_rows_are_told_by_the_best_key(
    keys: tuple[KeySchema, ...], expected: tuple[str, ...]
) -> None:
    """The primary one, else a unique one without NULLs, the first by name."""
    assert merge_key(a_table(*NOT_NULL, a_column("n"), keys=keys)) == expected


def keyed(*keys: Sequence[KeySchema]) -> ColumnLineage:
    names = [column.name for column in NOT_NULL]
    versions = [a_version(n, a_table(*NOT_NULL, keys=k), names) for n, k in enumerate(keys, 1)]
    return lineage(versions)


@pytest.mark.parametrize(
    ("code", "proven"),
    [
        (a_column("code", "varchar", nullable=False, charset="cp932"), False),
        (a_column("code", "varchar", nullable=False), True),
        (a_column("code", "enum", nullable=False, members=("", "a")), False),
        (a_column("code", "enum", nullable=False, members=("a", "b")), True),
    ],
)
def test_a_new_key_must_tell_the_mirror_s_rows_apart(code: ColumnSchema, proven: bool) -> None:
    """Values that differ to the server may have one text: nothing was asked of them while they
    were no key, so the table is read again; a table without rows yet need not be."""
    keys = (a_key("id"), a_key("code"))
    versions = [
        a_version(n, a_table(ID, code, keys=[key, a_key("code", name="c", kind="unique")]), names)
        for n, (key, names) in enumerate(zip(keys, (None, ["id", "code"]), strict=True), 1)
    ]
    line = lineage(versions, mirror=mirror(("code", pa.string())))
    assert line.key_of([2]) == (("code",) if proven else None)
    assert lineage(versions).key_of([1, 2]) == ("code",)
    assert lineage(versions[1:], mirror=mirror(("code", pa.string()))).key_of([2]) == ("code",)


def test_a_key_that_holds_throughout_tells_all_rows() -> None:
    """Another primary key is no matter where an older key still holds; in any order of
    columns; and what has no images does not matter."""
    assert keyed([a_key("id"), U], [a_key("v"), U]).key_of([1, 2]) == ("u",)
    assert keyed([a_key("id", "u")], [a_key("u", "id")]).key_of([1, 2]) == ("u", "id")
    line = keyed([a_key("id")], [a_key("v")])
    assert (line.key_of([1, 2]), line.key_of([2])) == (None, ("v",))
    assert keyed([], []).key_of([1, 2]) == ()
    assert keyed([], [a_key("id")]).key_of([1, 2]) is None


def test_a_renamed_key_is_the_same_key() -> None:
    """In the mirror's names."""
    key = a_column("key", nullable=False)
    renamed = a_version(2, a_table(key, keys=[a_key("key")]), ["id"])
    line = lineage([a_version(1, a_table(ID)), renamed], mirror=mirror())
    assert (line.key, line.key_of([1, 2]), line.keys[1]) == (("key",), ("key",), (("key",),))


def test_files_are_read_under_their_changelog_s_names() -> None:
    """A snapshot has the table's own."""
    line = lineage(history([a_column("_row"), A]))
    assert line.part(1, ("x",)).columns[1] == ColumnOrigin("__row", pa.int32())
    assert line.part(1, ("x",), snapshot_stamp=Stamp(1)).columns[1] == ColumnOrigin(
        "_row", pa.int32()
    )


def test_soft_deletes_have_a_column_of_their_own() -> None:
    """Added once, never kept or dropped; a source's column of that name is refused; and rows
    that were marked must go if they shall be no longer."""
    soft = LakePolicies(deletes=Deletes.SOFT)
    line = lineage(history([A]), soft, mirror=ONLY_A)
    assert evolution_steps(line) == (AddColumns(pa.schema([DELETED_AT])),)
    marked = ONLY_A.append(DELETED_AT)
    line = lineage(history([A]), soft, mirror=marked)
    assert (evolution_steps(line), line.schema.names) == ((), ["id", "a"])
    assert len(lineage(history([A]), mirror=marked).reasons_to_reread) == 1
    with pytest.raises(TableError, match="_deleted_at"):
        lineage(history([a_column("_deleted_at", "timestamp", length=6)]), soft)


def test_a_mirror_that_lacks_a_column_is_refused() -> None:
    """It was changed by somebody else."""
    with pytest.raises(TableError, match="'b'"):
        lineage(history([A, B]), mirror=ONLY_A)


D = pa.decimal128
CHANGES: list[tuple[pa.DataType, pa.DataType, TypeChange]] = [
    (pa.int8(), pa.int8(), TypeChange.SAME),
    (pa.int8(), pa.int64(), TypeChange.WIDEN),
    (pa.int32(), pa.float64(), TypeChange.WIDEN),
    (pa.int32(), D(10, 0), TypeChange.WIDEN),
    (pa.int64(), D(20, 0), TypeChange.WIDEN),
    (D(5, 2), D(8, 4), TypeChange.WIDEN),
    (D(5, 5), D(10, 5), TypeChange.WIDEN),
    (D(5, 2), D(6, 4), TypeChange.REREAD),
    (D(5, 2), D(6, 1), TypeChange.REREAD),
    (pa.float32(), pa.float64(), TypeChange.WIDEN),
    (pa.date32(), pa.timestamp("us"), TypeChange.WIDEN),
    (pa.date32(), pa.timestamp("us", tz="UTC"), TypeChange.REREAD),
    (pa.int8(), D(3, 0), TypeChange.REWRITE),
    (pa.int64(), D(19, 0), TypeChange.REWRITE),
    (pa.int64(), D(18, 0), TypeChange.REREAD),
    (pa.int16(), pa.float32(), TypeChange.REWRITE),
    (pa.int32(), pa.float32(), TypeChange.REREAD),
    (pa.int64(), pa.float64(), TypeChange.REREAD),
    (pa.bool_(), pa.int64(), TypeChange.REWRITE),
    (pa.bool_(), D(20, 0), TypeChange.REWRITE),
    (pa.int32(), pa.int16(), TypeChange.REREAD),
    (pa.int32(), pa.string(), TypeChange.REREAD),
    (pa.string(), pa.binary(), TypeChange.REREAD),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_pairs_of_types(old: pa.DataType, new: pa.DataType, expected: TypeChange) -> None:
    """In place, by a cast, or not at all."""
    assert type_change(old, new) is expected


@given(
    dropped=st.sampled_from(DroppedColumns),
    readers=st.sampled_from(Readers),
    buckets=st.sampled_from([1, 3]),
    stamps=st.lists(st.sampled_from(STAMPS.names), unique=True).map(tuple),
    chance=st.randoms(use_true_random=False),
    sizes=st.lists(st.integers(1, 12), max_size=6),
)
@settings(max_examples=50)
def test_a_mirror_follows_columns_and_rows(
    dropped: DroppedColumns,
    readers: Readers,
    buckets: int,
    stamps: tuple[str, ...],
    chance: Random,
    sizes: list[int],
) -> None:
    """Adds, drops, renames, swaps and widenings among inserts, updates, key changes and
    deletes, merged now and then: rows, filled columns and kept values are the server's, and the
    stamps those of each row's last change."""
    server = Server(chance)
    policies = LakePolicies(dropped_columns=dropped, readers=readers, stamps=stamps)
    follower = Follower(MemoryMirrors(MemoryLake()), policies, buckets)
    for size in (4, *sizes):
        for _ in range(size):
            server.step()
        line, _ = follower.run(server)
        assert follower.rows(line) == server.shown(kept_columns(line), stamps)
        assert dropped == DroppedColumns.KEEP or not kept_columns(line)
