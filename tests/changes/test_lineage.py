"""Lineage, steps, keys: what a mirror becomes after versions that say so themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.evolution import LOCAL, MAPPING, WIDENING, evolution_steps
from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.mirror.lineage import ColumnLineage, ColumnsRead, lineage
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
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    KeySchema,
    ValueDefault,
)
from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.policies import Deletes, DroppedColumns, LakePolicies, Readers
from lockstep.pipeline.values.stamps import Stamp
from tests.changes.following import kept_columns
from tests.changes.tables_made import ID, a_column, a_key, a_table, a_version

DROPPING = LakePolicies(dropped_columns=DroppedColumns.DROP)
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
IDS = ColumnOrigin("id", pa.int32())


def test_nothing_changed_needs_nothing() -> None:
    """One version: every column is its own."""
    line = lineage(history([A]), mirror=mirror(("a", pa.int32())))
    assert line.mirror_origins == line.versions[1] == (IDS, ColumnOrigin("a", pa.int32()))
    assert (evolution_steps(line), line.key, kept_columns(line)) == ((), ("id",), ())


def test_a_table_without_a_mirror_needs_no_steps() -> None:
    """It begins with the last version's columns; older images are mapped to them."""
    line = lineage(history([A, B], ([B, C], ["b", None])))
    assert line.schema == mirror(("b", pa.int32()), ("c", pa.int32()))
    assert evolution_steps(line) == ()
    null = ColumnOrigin(value=pa.scalar(None, pa.int32()))
    assert line.versions[1] == (IDS, ColumnOrigin("b", pa.int32()), null)


def test_an_added_column_is_filled_in_rows_and_images_of_before() -> None:
    """One ALTER, one UPDATE, and only where there is something to fill."""
    seven = a_column("b", default=ValueDefault("7"))
    line = lineage(history([A], ([A, seven, C], ["a", None, None])), mirror=AB.remove(2))
    value = ColumnOrigin(value=pa.scalar(7, pa.int32()))
    null = ColumnOrigin(value=pa.scalar(None, pa.int32()))
    assert (
        line.versions[1] == line.mirror_origins == (IDS, ColumnOrigin("a", pa.int32()), value, null)
    )
    assert evolution_steps(line) == (
        AddColumns(pa.schema([("b", pa.int32()), ("c", pa.int32())])),
        Fill((("b", pa.scalar(7, pa.int32())),)),
    )


def test_swapped_names_go_through_a_temporary_one() -> None:
    """Each rename is a step, and no name is held twice."""
    line = lineage(history([A, B], ([B, A], ["a", "b"])), mirror=AB)
    assert evolution_steps(line) == (
        SetProperties((MAPPING,)),
        RenameColumn("a", "_lockstep_0"),
        RenameColumn("b", "a"),
        RenameColumn("_lockstep_0", "b"),
    )


def test_a_dropped_column_is_kept_and_unknown_to_later_images() -> None:
    """No step; the mirror's value stays."""
    line = lineage(history([A, B], ([B], ["b"])), mirror=AB)
    assert (line.schema.names, kept_columns(line), evolution_steps(line)) == (
        ["id", "b", "a"],
        ("a",),
        (),
    )
    assert line.versions[2][2].is_absent
    assert line.versions[1][2] == ColumnOrigin("a", pa.int32())


def test_a_dropped_column_is_dropped_by_policy() -> None:
    """And cannot be kept without a key."""
    dropped = (SetProperties((MAPPING,)), DropColumns(("a",)))
    line = lineage(history([A, B], ([B], ["b"])), DROPPING, mirror=AB)
    assert evolution_steps(line) == dropped
    keyless = [a_version(1, a_table(A, B, keys=())), a_version(2, a_table(B, keys=()), ["b"])]
    line = lineage(keyless, mirror=AB.remove(0))
    assert (line.key, kept_columns(line), evolution_steps(line)) == ((), (), dropped)


def test_widening_is_done_in_place() -> None:
    """And DATETIME is asked for where the mirror had none."""
    versions = history([A, a_column("b", "date")], ([a_column("a", "bigint"), B], ["a", None]))
    line = lineage(
        versions,
        DROPPING,
        mirror=mirror(("a", pa.int32()), ("b", pa.date32())),
    )
    assert evolution_steps(line) == (
        SetProperties((MAPPING, WIDENING)),
        DropColumns(("b",)),
        WidenColumn("a", pa.int64()),
        AddColumns(pa.schema([("b", pa.int32())])),
    )
    versions = history([a_column("b", "date")], ([a_column("b", "datetime", length=0)], ["b"]))
    line = lineage(versions, mirror=mirror(("b", pa.date32())))
    assert evolution_steps(line)[0] == SetProperties((WIDENING, LOCAL))


@pytest.mark.parametrize("readers", [Readers.ANY, Readers.SPARK])
def test_one_commit_writes_everything_anew(readers: Readers) -> None:
    """Where a column needs it, or where every reader must read the mirror."""
    kind = "int" if readers == Readers.ANY else "tinyint"
    new = a_column("x", "bigint") if readers == Readers.ANY else a_column("x", "float")
    versions = history([a_column("a", kind), B], ([new, C], ["a", None]))
    line = lineage(versions, LakePolicies(readers=readers), mirror=lineage(versions[:1]).schema)
    old = line.mirror_origins[1].type
    assert evolution_steps(line) == (
        Rewrite(
            line.schema,
            (
                IDS,
                ColumnOrigin("a", old),
                ColumnOrigin(value=pa.scalar(None, pa.int32())),
                ColumnOrigin("b", pa.int32()),
            ),
        ),
    )


def test_any_reader_reads_an_added_column() -> None:
    """Adding and filling need no feature."""
    line = lineage(
        history([A], ([A, B], ["a", None])), LakePolicies(readers=Readers.ANY), mirror=AB.remove(2)
    )
    assert evolution_steps(line) == (AddColumns(pa.schema([("b", pa.int32())])),)


def reread(line: ColumnLineage) -> str:
    assert len(line.reasons_to_reread) == 1
    with pytest.raises(ValueError, match="replaced"):
        evolution_steps(line)
    return line.reasons_to_reread[0]


def test_what_only_the_source_can_tell_is_read_again() -> None:
    """An expression, a type that is not widened, rows that are other rows."""
    expression = a_column("b", default=ExpressionDefault("(rand())"))
    line = lineage(history([A], ([A, expression], ["a", None])), mirror=AB.remove(2))
    assert "'b' was added" in reread(line)
    line = lineage(history([A], ([a_column("a", "varchar")], ["a"])), mirror=AB.remove(2))
    assert "'a' changed" in reread(line)
    other = [a_version(1, a_table(ID, A)), a_version(2, a_table(ID, A))]
    assert "version 2" in reread(lineage(other, mirror=AB.remove(2)))


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
    assert lineage(versions, mirror=AB.remove(2)).reasons_to_reread == ()


def test_a_start_elsewhere_goes_on_where_rows_are_built_alike() -> None:
    """Behind a gap the server was asked again: defaults and indexes may be others; types not."""
    before = a_version(1, a_table(ID, A))
    known = a_table(ID, replace(A, default=ValueDefault("7")))
    other = a_table(ID, a_column("a", "bigint"))
    alike = lineage(
        [before, a_version(2, known, None, VersionOrigin.BASELINE)], mirror=AB.remove(2)
    )
    assert alike.reasons_to_reread == ()
    assert "version 2" in reread(
        lineage([before, a_version(2, other, None, VersionOrigin.BASELINE)], mirror=AB.remove(2))
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
    line = lineage(history([A]), soft, mirror=AB.remove(2))
    assert evolution_steps(line) == (AddColumns(pa.schema([DELETED_AT])),)
    marked = AB.remove(2).append(DELETED_AT)
    line = lineage(history([A]), soft, mirror=marked)
    assert (evolution_steps(line), line.schema.names) == ((), ["id", "a"])
    assert len(lineage(history([A]), mirror=marked).reasons_to_reread) == 1
    with pytest.raises(TableError, match="_deleted_at"):
        lineage(history([a_column("_deleted_at", "timestamp", length=6)]), soft)


def test_a_mirror_that_lacks_a_column_is_refused() -> None:
    """It was changed by somebody else."""
    with pytest.raises(TableError, match="'b'"):
        lineage(history([A, B]), mirror=AB.remove(2))
