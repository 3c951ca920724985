"""Tables read from MySQL: bounds of chunks, the size of the next one, conditions that a person
gives, and when what was read counts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.load import (
    Chunk,
    ChunkRows,
    FollowedFrom,
    Load,
    LoadBasis,
    reason_void,
)
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema
from lockstep.pipeline.snapshot.chunks import (
    Bound,
    Range,
    bound_of,
    chunk_key,
    key_expressions,
    only_on_mysql,
    range_condition,
)
from lockstep.pipeline.snapshot.condition import Limit, read_condition
from lockstep.pipeline.snapshot.pace import (
    CHUNK_PATIENCE,
    MAX_GROWTH,
    MIN_GROWTH,
    PIECE_SECONDS,
    ChunkRead,
    LoadLimits,
    Pace,
    Patience,
    SourceLoad,
    next_size,
    reason_to_wait,
)
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.errors import ConditionRefused, Need, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import ORDERS, place, schema, state

INTEGERS = st.integers(-3, 3)


def table(*columns: ColumnSchema, key: tuple[KeyPart, ...] | None = None) -> TableSchema:
    parts = key or tuple(KeyPart(column.name) for column in columns)
    return TableSchema(TableName("d", "t"), columns, (KeySchema("PRIMARY", "primary", parts),))


def column(name: str, kind: str = "int", **more: Any) -> ColumnSchema:
    return ColumnSchema(name, kind, nullable=False, **more)


def bound(**values: int) -> Bound:
    return Bound(tuple(values), tuple(str(value) for value in values.values()))


def holds(condition: str, row: dict[str, int]) -> bool:
    """A condition of this room over integers, which Python reads alike."""
    text = condition.replace("`", "").replace(" = ", " == ")
    return bool(eval(text, {"true": True, **row}))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (Range(), "true"),
        (Range(after=bound(a=1)), "`a` > 1"),
        (Range(through=bound(a=1)), "`a` <= 1"),
        (Range(bound(a=1), bound(a=2)), "`a` > 1 and `a` <= 2"),
        (Range(bound(a=1, b=2)), "(`a` > 1 or (`a` = 1 and `b` > 2))"),
        (
            Range(None, bound(a=1, b=2, c=3)),
            "(`a` < 1 or (`a` = 1 and (`b` < 2 or (`b` = 2 and `c` <= 3))))",
        ),
    ],
)
def test_a_condition_compares_column_by_column(rows: Range, expected: str) -> None:
    """What is behind the first bound and not behind the second."""
    assert range_condition(rows) == expected


@given(st.lists(st.tuples(INTEGERS, INTEGERS, INTEGERS), min_size=1, unique=True), st.data())
def test_ranges_that_meet_have_each_row_once(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """Whatever the bounds between them are, also places where no row is."""
    cuts = sorted(data.draw(st.sets(st.tuples(INTEGERS, INTEGERS, INTEGERS))))
    bounds = [None, *(bound(a=a, b=b, c=c) for a, b, c in cuts), None]
    conditions = [range_condition(Range(after, through)) for after, through in pairwise(bounds)]
    for a, b, c in rows:
        found = [holds(condition, {"a": a, "b": b, "c": c}) for condition in conditions]
        expected = sum(cut < (a, b, c) for cut in cuts)
        assert [number for number, one in enumerate(found) if one] == [expected]


@pytest.mark.parametrize(
    ("kind", "answer", "literal"),
    [
        ({"type": "int"}, "-5", "-5"),
        ({"type": "int"}, 7, "7"),
        ({"type": "bigint", "zerofill": True}, "000", "0"),
        ({"type": "decimal"}, "-000.50", "-0.50"),
        ({"type": "float"}, "0.10000000149011612", "1.0000000149011612e-1"),
        ({"type": "double"}, -0.0, "-0e0"),
        ({"type": "double"}, 1.7976931348623157e308, "1.7976931348623157e308"),
        ({"type": "double"}, 5e-324, "4.9406564584124654e-324"),
        ({"type": "bit"}, "18446744073709551615", "18446744073709551615"),
        ({"type": "year"}, "0000", "0000"),
        ({"type": "date"}, "2024-02-29", "date'2024-02-29'"),
        ({"type": "date"}, "0000-00-00", "00000000"),
        ({"type": "datetime"}, "2024-02-00 01:02:03.5", "20240200010203.5"),
        (
            {"type": "datetime"},
            "2024-02-29 23:59:59.999999",
            "timestamp'2024-02-29 23:59:59.999999'",
        ),
        ({"type": "time"}, "-838:59:59", "time'-838:59:59'"),
        ({"type": "varchar", "charset": "utf8mb4"}, "C3A9", "_utf8mb4 x'C3A9'"),
        ({"type": "char", "charset": "utf8mb3"}, "C3A9", "_utf8mb4 x'C3A9'"),
        ({"type": "char", "charset": "cp932"}, "", "_cp932 x''"),
        ({"type": "binary"}, "00FF", "x'00FF'"),
        ({"type": "inet6"}, "::ffff:1.2.3.4", "'::ffff:1.2.3.4'"),
    ],
)
def test_a_value_is_written_as_it_compares(
    kind: dict[str, Any], answer: object, literal: str
) -> None:
    """As the server prints it, or as a driver made a number of it; and it is text and back."""
    given_type = kind["type"]
    rest = {name: value for name, value in kind.items() if name != "type"}
    built = table(column("k", given_type, **rest))
    found = bound_of(built, [answer])
    assert found == Bound(("k",), (literal,))
    assert Bound.from_json(json.loads(json.dumps(to_json(found)))) == found


def test_no_statement_is_made_of_a_sealed_bound() -> None:
    """It is text and back, and opened it is what it was."""
    whole = bound(a=1, b=2)
    sealed = whole.seal(lambda literal: literal.encode()[::-1])
    assert Bound.from_json(json.loads(json.dumps(to_json(sealed)))) == sealed
    assert sealed.open(lambda data: data[::-1].decode()) == whole
    with pytest.raises(ValueError, match="sealed"):
        range_condition(Range(after=sealed))
    with pytest.raises(ValueError, match="not sealed"):
        whole.open(lambda data: data.decode())


@pytest.mark.parametrize("number", [0.1, 1 / 3, 2.0**-1074, 1e22, 123456789012345678.0, -1e-7])
def test_a_double_comes_back(number: float) -> None:
    """Digit for digit."""
    (literal,) = bound_of(table(column("k", "double")), [number]).literals
    assert float(literal) == number


def test_what_is_asked_for_is_named_as_it_is() -> None:
    """Backticks included."""
    built = table(column("a`b", "varchar", charset="latin1"), column("f", "float"))
    assert key_expressions(built) == ("hex(`a``b`)", "`f` * 1e0")
    key = bound_of(built, ["61", "1.5"])
    assert range_condition(Range(through=key)) == (
        "(`a``b` < _latin1 x'61' or (`a``b` = _latin1 x'61' and `f` <= 1.5e0))"
    )


@pytest.mark.parametrize(
    "literal",
    ["", "1 or 1", "x'6'", "'a' or ''='", "sleep(9)", "_utf8mb4 x'61' collate utf8mb4_bin", "null"],
)
def test_what_is_no_literal_is_no_bound(literal: str) -> None:
    """Nothing else that a ledger may hold becomes part of a statement."""
    with pytest.raises(ValueError, match="not a literal"):
        Bound.from_json({"columns": ["a"], "literals": [literal]})


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"columns": ["a"]},
        {"columns": [], "literals": []},
        {"columns": ["a", "b"], "literals": ["1"]},
        {"columns": ["a"], "literals": [1]},
    ],
)
def test_what_is_no_bound_is_refused(data: Any) -> None:
    """By name and by number."""
    with pytest.raises(ValueError, match=r"bound|values"):
        Bound.from_json(data)


@given(st.none() | st.builds(bound, a=INTEGERS), st.none() | st.builds(bound, a=INTEGERS))
def test_a_range_without_bounds_is_the_table(after: Bound | None, through: Bound | None) -> None:
    """And has no columns."""
    one = Range(after, through)
    assert one.is_whole_table == (after is None and through is None)
    assert one.columns == (() if one.is_whole_table else ("a",))


def test_a_range_has_bounds_of_one_key() -> None:
    """Its columns by name, in their order."""
    with pytest.raises(ValueError, match="different columns"):
        Range(bound(a=1), bound(b=1))


def test_a_value_that_cannot_be_written_again_is_said() -> None:
    """Two digits of a year."""
    with pytest.raises(TableError, match="key column 'k'"):
        bound_of(table(column("k", "year")), ["99"])


ID, NAME = column("id"), column("name", "varchar", charset="utf8mb4")
KIND, BODY = column("kind", "enum", members=("a",)), column("body", "json")


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (table(ID), ("id",)),
        (table(ID, NAME), ("id", "name")),
        (table(ID, KIND, NAME), ("id",)),
        (table(KIND, ID), ()),
        (table(ID, BODY, key=(KeyPart("ID"),)), ("id",)),
        (table(NAME, key=(KeyPart("name", prefix=10),)), ()),
        (table(ID, NAME, key=(KeyPart("id"), KeyPart("name", prefix=10))), ("id",)),
        (table(ID, NAME, key=(KeyPart("id", descending=True), KeyPart("name"))), ("id",)),
        (
            table(ID, NAME, key=tuple(KeyPart(one, descending=True) for one in ("id", "name"))),
            ("id", "name"),
        ),
        (replace(table(ID), keys=()), ()),
        (replace(table(ID), keys=(KeySchema("u", "unique", (KeyPart("id"),)),)), ("id",)),
        (replace(table(ID), engine="MEMORY"), ()),
        (replace(table(ID), engine="MyISAM"), ("id",)),
        (replace(table(ID), system_versioned=True), ()),
        (table(column("k", "char", collation="utf8mb4_uca1400_nopad_ai_ci")), ()),
        (table(column("k", "char", collation="latin1_nopad_bin")), ()),
        (table(column("k", "varchar", collation="utf8mb4_nopad_bin")), ("k",)),
        (table(column("k", "char", collation="utf8mb4_0900_ai_ci")), ("k",)),
    ],
)
def test_a_table_is_cut_by_the_run_that_is_proven(
    built: TableSchema, expected: tuple[str, ...]
) -> None:
    """From the key's first column on, in the columns' spelling."""
    assert chunk_key(built) == expected


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (table(column("k", "char", collation="utf8mb4_0900_bin")), True),
        (table(ID, column("k", "char", collation="utf8mb4_da_0900_as_cs")), True),
        (table(column("k", "varchar", collation="utf8mb4_0900_ai_ci")), False),
        (table(column("k", "char", collation="utf8mb4_general_ci")), False),
        (table(ID, column("k", "char", collation="utf8mb4_0900_bin"), key=(KeyPart("id"),)), False),
        (table(KIND, column("k", "char", collation="utf8mb4_0900_bin")), False),
    ],
)
def test_a_char_of_mysql_s_collations_is_cut_by_mysql_alone(
    built: TableSchema, expected: bool
) -> None:
    """Where it is among the columns that the table is cut by."""
    assert only_on_mysql(built) == expected


PACE = Pace()
NARROW = 50


def read(rows: int, seconds: float, *, asked: int | None = None, width: int = NARROW) -> ChunkRead:
    return ChunkRead(rows if asked is None else asked, rows, rows * width, seconds)


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (read(10_000, 2.0), 10_000),
        (read(10_000, 1.6), 12_500),
        (read(10_000, 0.1), 20_000),
        (read(10_000, 60.0), 2_500),
        (read(1_200, 60.0), 1_000),
        (read(900_000, 0.5), 1_000_000),
        (read(3_000, 0.1, asked=10_000), 10_000),
        (read(0, 0.1, asked=10_000), 10_000),
        (read(8_000, 2.0, asked=10_000), 8_000),
        (read(40_000, 2.0, asked=10_000), 20_000),
        (read(10_000, 2.0, width=1 << 20), 256),
        (read(100, 2.0, asked=100, width=512 << 20), 1),
    ],
)
def test_a_chunk_is_as_large_as_the_time_allows(chunk: ChunkRead, expected: int) -> None:
    """By at most the double or a quarter of the one before; of wide rows, so many as fit."""
    assert next_size(PACE, chunk) == expected


@given(
    st.integers(1, 10_000_000),
    st.integers(0, 10_000_000),
    st.floats(0, 1e6),
    st.integers(0, 1 << 30),
)
def test_a_size_is_bounded(asked: int, rows: int, seconds: float, width: int) -> None:
    """Never nothing, never more than the most, and a step at a time from a size that is."""
    asked = min(asked, PACE.most_rows)
    found = next_size(PACE, ChunkRead(asked, rows, rows * width, seconds))
    assert 1 <= found <= PACE.most_rows
    assert found <= max(PACE.least_rows, asked * MAX_GROWTH)
    if rows * width <= PACE.most_bytes and width * found < PACE.most_bytes // 2 and rows:
        assert found >= min(PACE.least_rows, asked) * MIN_GROWTH


@pytest.mark.parametrize("speed", [800.0, 20_000.0, 400_000.0])
def test_the_size_comes_to_the_target(speed: float) -> None:
    """Of a source of any speed, from the first size on, and stays there."""
    size, sizes = PACE.first_rows, []
    for _ in range(20):
        size = next_size(PACE, read(size, size / speed))
        sizes.append(size)
    wanted = min(max(speed * PACE.seconds, PACE.least_rows), PACE.most_rows)
    assert sizes[-5:] == [pytest.approx(wanted, rel=0.01)] * 5


@pytest.mark.parametrize(
    "change", [{"seconds": 0}, {"least_rows": 0}, {"first_rows": 10}, {"most_bytes": 0}]
)
def test_a_pace_that_reads_nothing_is_refused(change: dict[str, int]) -> None:
    """When it is made."""
    with pytest.raises(ValueError, match=r"pace|chunk"):
        replace(PACE, **change)


QUIET = SourceLoad(threads_running=2, replica_lag=None, connections=10, max_connections=100)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (QUIET, None),
        (replace(QUIET, threads_running=25, replica_lag=60, connections=90), None),
        (replace(QUIET, threads_running=26), "26 threads are running at the source, more than 25"),
        (
            replace(QUIET, replica_lag=61),
            "the source is 61 s behind the server it replicates from, more than 60 s",
        ),
        (
            replace(QUIET, connections=91),
            "91 of 100 connections of the source are in use, more than 90%",
        ),
        (
            replace(QUIET, threads_running=99, connections=99),
            "99 threads are running at the source, more than 25; "
            "99 of 100 connections of the source are in use, more than 90%",
        ),
    ],
)
def test_a_source_that_is_busy_is_left_alone(load: SourceLoad, expected: str | None) -> None:
    """For a while, and why."""
    assert reason_to_wait(load, LoadLimits()) == expected


def test_without_limits_nobody_waits() -> None:
    """Each of them can be left out."""
    limits = LoadLimits(threads_running=None, replica_lag=None, connections=None)
    assert reason_to_wait(SourceLoad(9999, 1e9, 9999, 1), limits) is None


@pytest.mark.parametrize(
    ("done", "estimated", "seconds", "sentence"),
    [
        (1_200_000, 5_000_000, 12.6, "1,200,000 of about 5,000,000 rows, 24 %, about 40 s left"),
        (0, 5_000_000, 0, "0 of about 5,000,000 rows, 0 %"),
        (999, 1_000, 100, "999 of about 1,000 rows, 99 %, about 1 s left"),
        (1_000, 1_000, 100, "1,000 of about 1,000 rows, 99 %, about 1 s left"),
        (1_001, 1_000, 100, "1,001 rows, more than the 1,000 estimated"),
        (7, None, 100, "7 rows"),
        (7, 0, 100, "7 rows"),
        (1, 100, 10, "1 of about 100 rows, 1 %, about 16 min left"),
        (1, 1_000, 10, "1 of about 1,000 rows, 0 %, about 3 h left"),
        (1, 100_000, 10, "1 of about 100,000 rows, 0 %, about 12 days left"),
    ],
)
def test_progress_is_a_sentence(
    done: int, estimated: int | None, seconds: float, sentence: str
) -> None:
    """With what can be said, and no more."""
    assert LoadProgress(ORDERS, done, estimated, seconds).sentence() == f"shop.orders: {sentence}"


def test_what_is_finished_is_all_of_it() -> None:
    """Whatever the estimate was."""
    found = LoadProgress(ORDERS, 1_200, 5_000, 3, is_finished=True)
    assert (found.percent, found.remaining_seconds) == (100, 0)
    assert found.sentence() == "shop.orders: all 1,200 rows"


WHOLE = Patience(0.0, PIECE_SECONDS)


@pytest.mark.parametrize(
    ("rule", "seconds", "waited_for", "left"),
    [
        (WHOLE, 0.5, True, "gave way to ALTER"),
        (WHOLE, 3599, False, None),
        (WHOLE, 3600, False, "longer than 3600 s"),
        (Patience(0.0, 5), 6, False, "longer than 5 s"),
        (CHUNK_PATIENCE, 4, True, None),
        (CHUNK_PATIENCE, 5, True, "gave way to ALTER"),
        (CHUNK_PATIENCE, 99_999, False, None),
    ],
)
def test_a_read_is_left_for_others(
    rule: Patience, seconds: float, waited_for: bool, left: str | None
) -> None:
    """A whole table at once, a chunk when it takes long."""
    decision = rule.decide(seconds, waited_for=waited_for)
    assert (decision is None) == (left is None)
    assert decision is None or left is None or left in decision[0]


def test_the_cure_is_the_cause_s() -> None:
    """Who gave way has only to come again."""
    (_, after_alter), (_, after_hour) = (
        WHOLE.decide(3600, waited_for=waited_for) or ("", "") for waited_for in (True, False)
    )
    assert after_alter == "the next run reads it again"
    assert "PRIMARY KEY" in after_hour


REFUSED = {
    "": "it is empty",
    "1 = 1; drop table x": "a semicolon",
    "id = 1 -- all": "a comment",
    "id = 1 # all": "a comment",
    "id = 1 /*! and 0 */": "a comment",
    "1) or (1": "parentheses do not match",
    "(1": "parentheses do not match",
    "1) into outfile '/tmp/x' -- ": "a comment",
    "id in (select id from b)": "another query",
    "id in (table b)": "another query",
    "@a := id": "a variable",
    "id = @@port": "a variable",
    "id = ?": "a placeholder",
    "name = 'open": "cannot be read",
    "a = 'b\0c'": "NUL",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_condition_is_never_sent(text: str) -> None:
    with pytest.raises(ConditionRefused, match=REFUSED[text]):
        read_condition(text)


@pytest.mark.parametrize(
    "text", ["name = 'a;b'", "name = '-- no'", "`select` = 1", "f(a, (b))", "name like '(%'"]
)
def test_quotes_hold_what_they_hold(text: str) -> None:
    assert read_condition(f"  {text} ").text == text


MONTH = datetime(2026, 11, 1)
BOUNDED = {
    "id = 5": [Limit("id", 5, 5)],
    "5 >= id": [Limit("id", None, 5)],
    "id > -3 and id < 7": [Limit("id", -3, None), Limit("id", None, 7)],
    "`i d` between 1 and 2 && name = 'x'": [Limit("i d", 1, 2)],
    "id in (3, -1, 2) and at >= '2026-11-01'": [Limit("id", -1, 3), Limit("at", MONTH, None)],
    "f(id) = 1 and id <= 9": [Limit("id", None, 9)],
    "(id = 1 or id = 2) and v = 3": [Limit("v", 3, 3)],
    "id = 1 or v = 2": [],
    "id = 1 || v = 2": [],
    "not id = 1": [],
    "id = 1 = 0": [],
    "id = 1 is null": [],
    "id + 1 = 5": [],
    "a.id = 5": [],
    "id <=> 5": [],
    "id != 5": [],
    "name = 'open'": [],
    "at = '2026-13-01'": [],
    "id = 1.5": [],
    "id = 1 + 1": [],
    "x between 1 and id = 5": [],
    "case when a then b and id = 5 and c end": [],
    "id in (1, '2026-11-01')": [],
    "id in (1, f(2))": [],
}


@pytest.mark.parametrize("text", BOUNDED)
def test_only_what_follows_for_sure_bounds(text: str) -> None:
    assert list(read_condition(text).limits) == BOUNDED[text]


@given(st.text(alphabet="id=5<>()'\"`-#/*!;?@ andorbetweni,.\\", max_size=40))
def test_whatever_is_taken_stays_in_its_parentheses(text: str) -> None:
    """Read behind WHERE with its parentheses, it is the one thing in them."""
    try:
        condition = read_condition(text)
    except ConditionRefused:
        return
    assert read_condition(f"({condition.text})").text == f"({condition.text})"


NOW = datetime(2026, 11, 1, tzinfo=UTC)
MIDDLE = Bound(("id",), ("5",))
ORDERED = Load(1, ORDERS, "ada", "older", NOW)
READING = replace(ORDERED, basis=LoadBasis(schema(ORDERS), "server", place(100), 20))
FOLLOWED = replace(READING, followed_from=FollowedFrom(3, 30, 1))
LOADING = replace(state(ORDERS), need=Need.ROWS)


def rows(low: int, high: int) -> ChunkRows:
    file = SegmentFile(f"{high}.parquet", 10, 100, "0" * 64)
    return ChunkRows(place(low), place(high), 10, 2.0, (file,))


def chunks(*read: ChunkRows | None, whole: bool = True) -> Load:
    """Of two ranges; the second is the last one if `whole`."""
    ranges = (Range(None, MIDDLE), Range(MIDDLE, None if whole else Bound(("id",), ("9",))))
    made = (
        Chunk(number, part, one)
        for number, (part, one) in enumerate(zip(ranges, read, strict=True))
    )
    return replace(READING, chunks=tuple(made))


def test_a_load_is_complete_with_its_last_chunk() -> None:
    assert not READING.is_complete
    assert not chunks(rows(110, 120), None).is_complete
    assert not chunks(rows(110, 120), rows(130, 140), whole=False).is_complete
    done = chunks(rows(110, 120), rows(130, 140))
    assert (done.is_complete, done.row_count, done.seconds) == (True, 20, 4.0)
    assert [file.path for file in done.files] == ["120.parquet", "140.parquet"]


def test_a_load_that_is_read_on_counts_from_a_place_before_every_chunk() -> None:
    """A later chunk may be opened before an earlier one's low is behind it; none before the
    reading began."""
    assert chunks(rows(110, 120), None).low == place(100)
    assert chunks(rows(130, 140), rows(110, 150)).low == place(110)
    assert chunks(rows(90, 120), rows(110, 150)).low == place(100)
    followed = replace(chunks(rows(130, 140), rows(150, 160)), followed_from=FOLLOWED.followed_from)
    assert followed.low == place(100), "its log is there from the first place on"
    assert chunks(rows(130, 160), rows(110, 150)).high == place(160)


@pytest.mark.parametrize(
    ("load", "condition", "server", "start", "gap", "why"),
    [
        (ORDERED, None, "server", 500, False, None),
        (READING, None, "server", 100, False, None),
        (READING, None, "server", 101, False, "was not captured"),
        (READING, None, "server", 100, True, "was not read"),
        (READING, None, "other", 100, False, "another server"),
        (FOLLOWED, TableCondition.FOLLOWING, "server", 900, False, None),
        (FOLLOWED, TableCondition.FOLLOWING, "server", 900, True, "was not read"),
        (FOLLOWED, TableCondition.FOLLOWING, "other", 900, False, "another server"),
        (FOLLOWED, TableCondition.STOPPED, "server", 900, False, "stopped"),
        (FOLLOWED, TableCondition.DROPPED, "server", 900, False, "stopped or dropped"),
        (FOLLOWED, None, "server", 900, False, "stopped"),
    ],
)
def test_what_voids_a_load(
    load: Load,
    condition: TableCondition | None,
    server: str,
    start: int,
    gap: bool,
    why: str | None,
) -> None:
    known: TableState | None = None
    if condition is not None:
        known = replace(LOADING, condition=condition)
    at: Coordinates = place(start)
    found = reason_void(load, known, server, (at, place(900)), has_gap=gap)
    assert found is None if why is None else found is not None and why in found


def test_a_log_that_ends_before_the_load_began_was_reset() -> None:
    found = reason_void(READING, None, "server", (place(20), place(99)), has_gap=False)
    assert found is not None and "was not captured" in found
