"""One function shapes rows, and a second implementation agrees with it."""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.run.dump.image_decoder import with_default_values
from lockstep.pipeline.run.load.by_condition import comparable_limits
from lockstep.pipeline.schema.model import ValueDefault
from lockstep.pipeline.schema.treatments import Conversion, Hash, Mask, Visibility, read_mask
from lockstep.pipeline.schema.types import FAMILIES, arrow_schema, arrow_type
from lockstep.pipeline.shape.condition import ConditionUnusable, read_condition
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import NO_RULES, ShapeRules, shape_of
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.snapshot.condition import Limit
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.row_images import CHANGE_TYPES, RowImages, pack_bits
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from tests.schema.schemas_made import table
from tests.shape import reference

KEY = b"a key of a test"
NAME = TableName("shop", "customers")

Show = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type in a test: its column, its values, what may be done to it besides hashing."""

    column: Column
    values: st.SearchStrategy[Any]
    text: Show | None = None
    conversions: Mapping[Conversion, Show] = field(default_factory=dict)
    hashed: bool = True


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


_TIMES = st.builds(
    lambda sign, h, m, s, f: f"{sign}{h:02}:{m:02}:{s:02}.{f:02}",
    st.sampled_from(["", "-"]),
    st.integers(0, 838),
    st.integers(0, 59),
    st.integers(0, 59),
    st.integers(0, 99),
)
_MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2037, 12, 31))
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)

_TWO_DIGITS = partial(reference.printed, reference.Of("decimal", 2))

KINDS = [
    Kind(
        Column("", "tinyint"),
        st.sampled_from([0, 1]),
        str,
        {Conversion.BOOLEAN: bool, Conversion.STRING: str},
    ),
    Kind(Column("", "bigint", unsigned=True), st.integers(0, 2**64 - 1), str),
    Kind(
        Column("", "decimal", precision=10, scale=2),
        st.decimals(-(10**7), 10**7, places=2),
        _TWO_DIGITS,
        {Conversion.STRING: _TWO_DIGITS},
    ),
    Kind(Column("", "varchar", length=40, charset="utf8mb4"), _TEXTS, str),
    Kind(
        Column("", "enum", length=1, charset="utf8mb4", members=("a", "B")),
        st.sampled_from(["a", "B"]),
        None,
        {Conversion.STRING: str},
        hashed=False,
    ),
    Kind(Column("", "date"), st.dates(date(1000, 1, 1)), None, {Conversion.STRING: str}),
    Kind(
        Column("", "datetime", length=3),
        _MOMENTS.map(lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000)),
        None,
        {Conversion.STRING: partial(reference.printed, reference.Of("datetime", 3))},
    ),
    Kind(
        Column("", "timestamp", length=6),
        _MOMENTS.map(lambda one: one.replace(tzinfo=UTC)),
        None,
        {Conversion.STRING: partial(reference.printed, reference.Of("timestamp", 6))},
    ),
    Kind(
        Column("", "time", length=2),
        _TIMES,
        None,
        {Conversion.MICROSECONDS: reference.microseconds, Conversion.STRING: str},
    ),
    Kind(
        Column("", "binary", length=16, charset="binary"),
        st.binary(min_size=16, max_size=16),
        None,
        {Conversion.UUID: reference.uuid_text},
    ),
    Kind(Column("", "varbinary", length=9, charset="binary"), st.binary(max_size=4)),
    Kind(Column("", "float"), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    Kind(Column("", "double"), st.floats(-1e200, 1e200)),
    Kind(Column("", "bit", length=1), st.booleans()),
    Kind(
        Column("", "vector", length=4),
        st.lists(st.integers(-4, 4).map(float), min_size=2, max_size=2),
        hashed=False,
    ),
]


def test_every_arrow_type_is_shaped() -> None:
    """Whether an update changed a value depends on its type, and hashes and texts do."""
    length = {"length": 1, "precision": 4, "scale": 2, "charset": "utf8mb4", "members": ("a",)}
    of_all = {arrow_type(Column("", name, False, **length)) for name in FAMILIES}  # type: ignore[arg-type]
    of_kinds = {arrow_type(kind.column) for kind in KINDS}
    integers = {pa.int8(), pa.int16(), pa.int32(), pa.int64()}
    assert {kind.id for kind in of_all - integers} <= {kind.id for kind in of_kinds}


@dataclass(frozen=True, slots=True)
class Case:
    structure: TableStructure
    rules: ShapeRules
    shows: Mapping[str, Show]
    taken: Callable[[reference.Row], bool | None]
    events: Sequence[reference.Event]

    def shown(self, row: reference.Row) -> reference.Row:
        return {name: show(row[name]) for name, show in self.shows.items()}


def _same(value: Any) -> Any:
    return value


def _if_any(show: Show) -> Show:
    return lambda value: None if value is None else show(value)


@st.composite
def treated(draw: st.DrawFn, kind: Kind) -> tuple[str, Any, Show]:
    """What is done to a column: the setting, its value, and what it comes to."""
    choices: list[tuple[str, Any, Show]] = [("", None, _same), ("exclude_columns", None, _same)]
    name = kind.column.type
    if kind.hashed:
        lower = name == "varchar" and draw(st.booleans())
        choices.append(
            (
                "hash_columns",
                Hash.LOWER if lower else Hash.EXACT,
                lambda value: reference.hashed(KEY, name, value, lower=lower),
            )
        )
    choices.append(("mask_columns", Mask("null"), lambda _: None))
    if kind.text is not None:
        side, keep, text = (
            draw(st.sampled_from(["first", "last"])),
            draw(st.integers(1, 4)),
            kind.text,
        )
        choices.append(
            (
                "mask_columns",
                Mask(side, keep),
                _if_any(lambda value: reference.masked(side, keep, text(value))),
            )
        )
    if name in ("date", "datetime", "timestamp"):
        choices.append(("mask_columns", Mask("year"), _if_any(lambda value: value.year)))
    for conversion, show in kind.conversions.items():
        choices.append(("types", conversion, _if_any(show)))
    chosen: tuple[str, Any, Show] = draw(st.sampled_from(choices))
    return chosen


@st.composite
def conditions(
    draw: st.DrawFn,
) -> tuple[str | None, Callable[[reference.Row], bool | None]]:
    """A condition over the columns `k` and `t`, and the same as a function."""
    choice = draw(st.integers(0, 9))
    number, text = draw(st.integers(-3, 3)), draw(st.sampled_from(["a", "b", "it's", "x_y"]))
    quoted = "'" + text.replace("'", "''") + "'"

    def of_text(test: Callable[[str], bool]) -> Callable[[reference.Row], bool | None]:
        return lambda row: None if row["t"] is None else test(row["t"])

    simple: list[tuple[str | None, Callable[[reference.Row], bool | None]]] = [
        (None, lambda _: True),
        (f"k >= {number}", lambda row: row["k"] >= number),
        (f"{number + 0.5} > K", lambda row: row["k"] < number + 0.5),
        ("k", lambda row: row["k"] != 0),
        (f"t = {quoted}", of_text(lambda one: one == text)),
        (f"t in ({quoted}, 'c')", of_text(lambda one: one in (text, "c"))),
        ("t is null", lambda row: row["t"] is None),
        ("t like '%\\_y'", of_text(lambda one: one.endswith("_y"))),
        (f"k between -1 and {number}", lambda row: -1 <= row["k"] <= number),
        (f"not t <> {quoted}", of_text(lambda one: one == text)),
    ]
    first_text, first = simple[choice]
    if first_text is None or draw(st.booleans()):
        return first_text, first
    second_text, second = simple[draw(st.integers(1, 9))]
    both = draw(st.booleans())

    def joined(row: reference.Row) -> bool | None:
        truths = first(row), second(row)
        decisive = not both
        if decisive in truths:
            return decisive
        return None if None in truths else both

    return f"{first_text} {'and' if both else 'or'} ({second_text})", joined


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    columns = [Column("k", "int"), Column("t", "varchar", length=9, charset="utf8mb4")]
    values: dict[str, st.SearchStrategy[Any]] = {
        "k": st.integers(-3, 3),
        "t": st.none() | st.sampled_from(["a", "b", "it's", "x_y", "c"]),
    }
    shows: dict[str, Show] = {"k": _same, "t": _same}
    settings: dict[str, Any] = {}
    excluded: list[str] = []
    for number, kind in enumerate(kinds):
        name = f"c{number}"
        columns.append(replace(kind.column, name=name))
        values[name] = st.none() | kind.values
        setting, value, show = draw(treated(kind))
        if setting == "exclude_columns":
            excluded.append(name.upper())
            continue
        shows[name] = show
        if setting:
            settings.setdefault(setting, {})[name] = value
    if draw(st.booleans()):
        shows["k"] = lambda value: reference.hashed(KEY, "int", value)
        settings.setdefault("hash_columns", {})["k"] = Hash.EXACT
    text, taken = draw(conditions())
    rows = st.fixed_dictionaries(values)
    events = draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("insert"), st.none(), rows),
                st.tuples(st.just("update"), rows, rows),
                st.tuples(st.just("update"), rows, rows).map(_hardly_changed),
                st.tuples(st.just("delete"), rows, st.none()),
            ),
            max_size=6,
        )
    )
    rules = ShapeRules(
        exclude_columns=tuple(excluded) or None,
        rows=text,
        **settings,
    )
    structure = TableStructure(NAME, tuple(columns), ("k",))
    return Case(structure, rules, shows, taken, events)


def _hardly_changed(event: reference.Event) -> reference.Event:
    """An update that changes the last column only."""
    kind, before, after = event
    assert before is not None and after is not None
    last = list(before)[-1]
    return kind, before, {**before, last: after[last]}


_KINDS_OF = {
    "insert": [ChangeType.INSERT],
    "update": [ChangeType.UPDATE_PREIMAGE, ChangeType.UPDATE_POSTIMAGE],
    "delete": [ChangeType.DELETE],
}


def images_of(structure: TableStructure, events: Sequence[reference.Event]) -> RowImages:
    rows: list[reference.Row] = []
    event: list[int] = []
    kinds: list[int] = []
    for number, (kind, before, after) in enumerate(events):
        whole = [one for one in (before, after) if one is not None]
        rows += whole
        event += [number] * len(whole)
        kinds += [CHANGE_TYPES.index(one) for one in _KINDS_OF[kind]]
    return RowImages(
        columns=pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(structure)),
        event=pa.array(event, pa.int32()),
        row=pa.array([0] * len(rows), pa.int32()),
        change_type=pa.array(kinds, pa.int8()),
        nulled_counts={},
    )


@given(cases())
def test_images_and_rows_are_what_a_second_implementation_says(case: Case) -> None:
    """Whatever the types, treatments and condition: the images of a changelog, and the rows of a
    load and a comparison."""
    shape = shape_of(case.rules, case.structure)
    shaper = Shaper(shape, PrivacyKey(KEY))
    shaped = shaper.shape_images(images_of(case.structure, case.events))

    # Where every column is shown an update that changes nothing is the server's affair.
    hides = {*shape.treatments} != {Visibility.SHOWN}
    expected = reference.followed(case.events, case.taken, case.shown, drop_equal=hides)
    kinds = [CHANGE_TYPES[one].value for one in shaped.change_type.to_pylist()]
    got = list(zip(shaped.event.to_pylist(), kinds, shaped.columns.to_pylist(), strict=True))
    assert got == expected
    assert shaped.columns.schema == arrow_schema(shape.structure)
    rows = [after for _, _, after in case.events if after is not None]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(case.structure))
    assert shaper.shape_rows(batch).to_pylist() == [case.shown(r) for r in rows if case.taken(r)]


@given(cases())
def test_nothing_hidden_is_left_in_any_buffer(case: Case) -> None:
    """A text of a hidden column is in no byte of what is handed on, not even behind an offset."""
    hidden = {
        column.name
        for column in case.structure.columns
        if column.type == "varchar" and case.shows.get(column.name) is not _same
    }
    secret = "the secret \u2603"
    events = [
        (kind, *(row and {**row, **dict.fromkeys(hidden, secret)} for row in images))
        for kind, *images in case.events
    ]
    shape = shape_of(case.rules, case.structure)
    shaped = Shaper(shape, PrivacyKey(KEY)).shape_images(images_of(case.structure, events))  # type: ignore[arg-type]
    held = [
        bytes(buffer)
        for column in shaped.columns.columns
        for buffer in column.buffers()
        if buffer is not None
    ]
    assert not any(secret.encode() in data for data in held)


# -- images that leave columns out ---------------------------------------------------------------

_TWO = TableStructure(
    NAME,
    (
        Column("id", "int"),
        Column("country", "varchar", length=8, charset="utf8mb4"),
        Column("email", "varchar", length=40, charset="utf8mb4"),
    ),
    ("id",),
)


def _partial(
    before: Sequence[Any], after: Sequence[Any], there: Sequence[Sequence[bool]]
) -> RowImages:
    schema = arrow_schema(_TWO)
    rows = [dict(zip(schema.names, row, strict=True)) for row in (before, after)]
    bits: npt.NDArray[np.bool_] = np.array(there, np.bool_)
    present = pack_bits(bits, np.all(bits, axis=1, keepdims=False))
    return RowImages(
        columns=pa.RecordBatch.from_pylist(rows, schema=schema),
        event=pa.array([0, 0], pa.int32()),
        row=pa.array([0, 0], pa.int32()),
        change_type=pa.array([1, 2], pa.int8()),
        nulled_counts={},
        present=present,
        logged=present,
    )


def _shaper(**rules: Any) -> Shaper:
    return Shaper(shape_of(ShapeRules(**rules), _TWO), PrivacyKey(KEY))


def test_what_an_image_leaves_out_stays_left_out() -> None:
    """The bits that say which columns an image has are those of the columns that are shown."""
    images = _partial((1, None, None), (1, "DE", None), [(True, False, False), (True, True, False)])
    shaped = _shaper(hash_columns={"email": Hash.EXACT}).shape_images(images)
    assert shaped.columns.column(2).null_count == 2
    assert shaped.present is not None and shaped.present.equals(images.present)
    without = _shaper(exclude_columns=("country",)).shape_images(images)
    assert without.columns.num_rows == 0, "only a hidden column changed"


def test_an_image_without_a_column_of_the_condition_is_refused() -> None:
    images = _partial((1, None, None), (1, "DE", None), [(True, False, False), (True, True, False)])
    with pytest.raises(TableError, match="'country', which an image leaves out"):
        _shaper(rows="country = 'DE'").shape_images(images)


def test_a_row_that_enters_must_be_whole() -> None:
    images = _partial((1, "FR", None), (1, "DE", None), [(True, True, False), (True, True, False)])
    with pytest.raises(TableError, match="leaves columns out"):
        _shaper(rows="country = 'DE'").shape_images(images)
    leaves = _partial((1, "DE", None), (1, "FR", None), [(True, True, False), (True, True, False)])
    shaped = _shaper(rows="country = 'DE'").shape_images(leaves)
    assert shaped.columns.to_pylist() == [{"id": 1, "country": "DE", "email": None}]
    assert [CHANGE_TYPES[one] for one in shaped.change_type.to_pylist()] == [ChangeType.DELETE]


def test_defaults_of_hidden_columns_are_given_as_they_are_shown() -> None:
    """The history has no others; what is left out, or shows nothing, needs none."""
    rules = ShapeRules(exclude_columns=("country",), hash_columns={"email": Hash.EXACT})
    schema = table("create table t (id int primary key, country char(8), email varchar(40))")
    given = [replace(column, default=ValueDefault("de")) for column in schema.columns]
    shaping = Shaping({schema.name: rules}.get, PrivacyKey(KEY), has_rules=True)
    kept, shown_as = shaping.for_history(replace(schema, columns=(schema.columns[0], *given[1:])))
    assert shown_as is not None and "'de'" not in repr(kept)
    images = _partial((1, None, None), (2, None, None), [(True, False, False)] * 2)
    inserts = replace(images, change_type=pa.array([0, 0], pa.int8()))
    shaper = _shaper(exclude_columns=("country",), hash_columns={"email": Hash.EXACT})
    later = with_default_values(inserts, kept, filled_later=shaper.indexes_filled_later)
    whole = with_default_values(shaper.shape_images(later), shown_as.schema)
    hashed = reference.hashed(KEY, "varchar", "de")
    assert whole.columns.to_pylist() == [{"id": n, "email": hashed} for n in (1, 2)]
    assert whole.present is None


@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_zero_with_another_sign_is_another_value(kind: str) -> None:
    columns = (Column("id", "int"), Column("x", kind), Column("hidden", "int"))
    structure = TableStructure(NAME, columns, ("id",))
    shaper = Shaper(shape_of(ShapeRules(exclude_columns=("hidden",)), structure))
    before, after = ({"id": 1, "x": x, "hidden": 1} for x in (0.0, -0.0))
    shaped = shaper.shape_images(images_of(structure, [("update", before, after)]))
    assert [str(one) for one in shaped.columns.column(1).to_pylist()] == ["0.0", "-0.0"]


def test_the_mirrors_values_bound_a_condition_only_where_they_are_the_tables() -> None:
    limits = (Limit("took", 1, 2), Limit("n", 1, 2))
    assert comparable_limits(limits, {"Took": "as microseconds"}) == [Limit("n", 1, 2)]


# -- what is refused -----------------------------------------------------------------------------

_WIDE = TableStructure(
    NAME,
    (
        Column("id", "int"),
        Column("token", "char", length=144, charset="utf8mb4"),
        Column("email", "varchar", length=40, charset="utf8mb4"),
        Column("took", "time", length=0),
        Column("place", "geometry", length=4),
        Column("state", "enum", length=1, charset="utf8mb4", members=("new", "old")),
        Column("born", "date"),
        Column("seen", "timestamp", length=0),
        Column("doc", "json", length=4),
    ),
    ("id", "token"),
)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"exclude_columns": ("ID",)}, "'id'.*belongs to a key"),
        ({"include_columns": ("id", "email")}, "'token'.*belongs to a key"),
        ({"mask_columns": {"id": Mask("last", 2)}}, "'id'.*hash_columns may name it"),
        ({"mask_columns": {"id": Mask("null")}}, "'id'.*hash_columns may name it"),
        ({"types": {"token": Conversion.UUID}}, "'token'.*differ by case would be one"),
        ({"hash_columns": {"token": Hash.LOWER}}, "'token'.*differ by case would be one"),
        ({"hash_columns": {"place": Hash.EXACT}}, "GEOMETRY cannot be hashed"),
        ({"hash_columns": {"state": Hash.EXACT}}, "ENUM cannot be hashed"),
        ({"mask_columns": {"state": Mask("last", 1)}}, "ENUM cannot be shown as"),
        ({"hash_columns": {"born": Hash.LOWER}}, "DATE has no lower case"),
        ({"mask_columns": {"born": Mask("last", 2)}}, "DATE cannot be shown as last:2"),
        ({"mask_columns": {"email": Mask("year")}}, "VARCHAR cannot be shown as year"),
        ({"types": {"email": Conversion.BOOLEAN}}, "VARCHAR is no whole number"),
        ({"types": {"born": Conversion.MICROSECONDS}}, "DATE is not TIME"),
        ({"types": {"email": Conversion.UUID}}, "neither BINARY"),
        ({"types": {"place": Conversion.STRING}}, "GEOMETRY has no text"),
        *(
            ({**hides, "rows": "STATE = 'new'"}, "members are hidden")
            for hides in (
                {"exclude_columns": ("state",)},
                {"mask_columns": {"state": Mask("null")}},
                {"include_columns": ("id", "token")},
            )
        ),
        (
            {"exclude_columns": ("e*",), "hash_columns": {"email": Hash.EXACT}},
            "exclude_columns and hash_columns apply to it",
        ),
        (
            {"mask_columns": {"email": Mask("null"), "em*": Mask("last", 2)}},
            "mask_columns has more than one treatment",
        ),
        ({"rows": "nothing = 1"}, "no column 'nothing'"),
        ({"rows": "state < 'old'"}, "whose order is not that of its texts"),
        ({"rows": "seen < '2020-01-01 00:00:00'"}, "offset from UTC"),
        ({"rows": "id = '1'"}, "'1' is no value of column 'id'"),
        ({"rows": "email = 1"}, "1 is no value of column 'email'"),
        ({"rows": "doc = '{}'"}, "allows only IS NULL"),
        ({"rows": "email"}, "cannot stand alone"),
        ({"rows": "id like '1'"}, "no text, which LIKE needs"),
        ({"rows": "born > '2020-02-30'"}, "is no value of column 'born'"),
        ({"rows": "took > '1:2:3'"}, "is no value of column 'took'"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(rules: dict[str, Any], said: str) -> None:
    with pytest.raises(TableError, match=said):
        shape_of(ShapeRules(**rules), _WIDE)


@pytest.mark.parametrize(
    ("rules", "hint"),
    [
        ({"exclude_columns": ("token",)}, "take 'token' out of exclude_columns"),
        ({"include_columns": ("id",)}, "add 'token' to include_columns"),
        (
            {"include_columns": ("id", "token"), "hash_columns": {"email": Hash.EXACT}},
            "let only one of them apply to it",
        ),
    ],
)
def test_the_hint_names_what_mends_it(rules: dict[str, Any], hint: str) -> None:
    """A column that is left out because include_columns does not name it cannot be taken out of
    it."""
    with pytest.raises(TableError) as refused:
        shape_of(ShapeRules(**rules), _WIDE)
    assert refused.value.hint == hint


def test_a_computed_column_is_no_part_of_a_condition() -> None:
    rules = ShapeRules(rows="Email = 'x'")
    with pytest.raises(TableError, match="computed when it is read"):
        shape_of(rules, _WIDE, virtual_columns={"email"})


def test_a_unique_key_in_place_of_a_primary_one_counts_as_a_key() -> None:
    rules = ShapeRules(exclude_columns=("email",))
    with pytest.raises(TableError, match="belongs to a key"):
        shape_of(rules, _WIDE, key_columns={"email"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1; drop table x",
        "a in (select 1)",
        "a = b",
        "a = null",
        "a in (1, null)",
        "a + 1 = 2",
        "lower(a) = 'x'",
        "a rlike 'x'",
        "a xor b",
        "a <=> 1",
        "t.a = 1",
        "a = 1 -- comment",
        "a = 1 /* comment */",
        "a like 'x' escape '|'",
        "(a, b) in ((1, 2))",
        "a = _latin1'x'",
        "a = @x",
        "a is true",
        "exists (select 1)",
        "a = 'x' collate utf8mb4_bin",
        "case when a then b end",
        "a sounds like 'x'",
        "a member of ('[1]')",
        "a = date '2020-01-01'",
        "a = 'unclosed",
        "a and",
    ],
)
def test_what_is_no_row_condition_is_refused(text: str) -> None:
    with pytest.raises(ConditionUnusable):
        read_condition(text)


def test_a_condition_names_its_columns_once() -> None:
    condition = read_condition("not (b = 1 or a is null) and b in (1, 2)")
    assert condition.columns == ("b", "a")


_INSTANT = datetime(2020, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "text", "values", "truths"),
    [
        (Column("c", "tinyint"), "c < 300", [1, None], [True, None]),
        (Column("c", "tinyint"), "c <> 1.5", [1, None], [True, None]),
        (Column("c", "tinyint"), "c > -129", [-128, None], [True, None]),
        (Column("c", "tinyint"), "c >= 0.5", [0, 1], [False, True]),
        (Column("c", "tinyint"), "c <= -0.5", [0, -1], [False, True]),
        (Column("c", "tinyint"), "c = true", [0, 1, 2], [False, True, False]),
        (
            Column("c", "bigint", unsigned=True),
            "c = 18446744073709551615",
            [Decimal(2**64 - 1), Decimal(2**64 - 2)],
            [True, False],
        ),
        (
            Column("c", "decimal", precision=38, scale=2),
            "c > 1.005 and c < 1e2",
            [Decimal("1.00"), Decimal("1.01"), Decimal("100.00")],
            [False, True, False],
        ),
        (Column("c", "bit", length=1), "c", [True, False, None], [True, False, None]),
        (Column("c", "bit", length=1), "c = 1", [True, False, None], [True, False, None]),
        (Column("c", "float"), "c > 0.1", [_float32(0.1), 0.0], [True, False]),
        (Column("c", "float"), "c = 0.5", [_float32(0.1), 0.5], [False, True]),
        (
            Column("c", "binary", length=3, charset="binary"),
            "c in (X'61', 0x626300)",
            [b"a\0\0", b"bc\0", b"a\0b"],
            [True, True, False],
        ),
        (
            Column("c", "timestamp", length=0),
            "c = '2020-01-01 14:00:00+02:00'",
            [_INSTANT, _INSTANT + timedelta(seconds=1)],
            [True, False],
        ),
        (
            Column("c", "time", length=1),
            "c between '-00:00:01' and '100:00:00.5'",
            ["-00:00:01.0", "100:00:00.5", "100:00:00.6", "-10:00:00.0"],
            [True, True, False, False],
        ),
        (
            Column("c", "varchar", length=9, charset="utf8mb4"),
            "c like 'a%' or c = 'É'",
            ["A", "a\nb", "É", "é"],
            [False, True, True, False],
        ),
        (
            Column("c", "year", unsigned=True, length=1),
            "c > 2000",
            [2000, 2001],
            [False, True],
        ),
    ],
)
def test_comparisons_are_exact(
    column: Column, text: str, values: list[Any], truths: list[bool | None]
) -> None:
    structure = TableStructure(NAME, (Column("id", "int"), column), ("id",))
    shaper = Shaper(shape_of(ShapeRules(rows=text), structure))
    rows = pa.RecordBatch.from_pylist(
        [{"id": number, "c": value} for number, value in enumerate(values)],
        schema=arrow_schema(structure),
    )
    taken = shaper.shape_rows(rows).column(0).to_pylist()
    assert taken == [number for number, truth in enumerate(truths) if truth]


def test_values_that_a_conversion_does_not_hold_are_refused() -> None:
    structure = TableStructure(
        NAME,
        (Column("id", "int"), Column("on", "tinyint"), Column("u", "char", length=144)),
        ("id",),
    )
    schema = arrow_schema(structure)
    rules = ShapeRules(types={"on": Conversion.BOOLEAN, "u": Conversion.UUID})
    shaper = Shaper(shape_of(rules, structure))
    good = {"id": 1, "on": None, "u": "0188A6E8-0000-7000-8000-00000000000A"}
    shown = shaper.shape_rows(pa.RecordBatch.from_pylist([good], schema=schema)).to_pylist()
    assert shown == [{"id": 1, "on": None, "u": "0188a6e8-0000-7000-8000-00000000000a"}]
    for bad in ({"on": 2}, {"u": "not one"}):
        rows = pa.RecordBatch.from_pylist([{**good, **bad}], schema=schema)
        with pytest.raises(TableError, match=f"column '{next(iter(bad))}'"):
            shaper.shape_rows(rows)


def test_equal_values_of_different_types_have_one_hash() -> None:
    """5 is 5 as a number, a decimal, a float and a text; NULL stays NULL."""
    key, five = PrivacyKey(KEY), []
    for column, value in (
        (Column("c", "int"), 5),
        (Column("c", "decimal", precision=5, scale=2), Decimal("5.00")),
        (Column("c", "double"), 5.0),
        (Column("c", "varchar", length=9, charset="utf8mb4"), "5"),
    ):
        structure = TableStructure(NAME, (column,), ())
        rules = ShapeRules(hash_columns={"c": Hash.EXACT})
        rows = pa.RecordBatch.from_pylist(
            [{"c": value}, {"c": None}], schema=arrow_schema(structure)
        )
        one, null = Shaper(shape_of(rules, structure), key).shape_rows(rows).column(0).to_pylist()
        assert null is None
        five.append(one)
    assert five == [reference.hashed(KEY, "int", 5)] * 4


@given(st.binary(min_size=1, max_size=200), st.binary())
def test_hashes_are_hmac_with_sha_256(secret: bytes, data: bytes) -> None:
    assert PrivacyKey(secret).digest(data) == hmac.new(secret, data, "sha256").hexdigest()


def test_a_key_is_told_by_its_fingerprint_and_never_shown() -> None:
    key, other = PrivacyKey(KEY), PrivacyKey(b"another key")
    assert key.fingerprint == PrivacyKey(KEY).fingerprint != other.fingerprint
    assert KEY.decode() not in repr(key) + str(vars(key))


def test_a_later_block_hides_more_and_never_less() -> None:
    """Lists and conditions are united; of two treatments of a name the stricter holds, and neither
    of two that show different things."""
    first = ShapeRules(
        exclude_columns=("*iban*",),
        hash_columns={"email": Hash.EXACT, "name": Hash.EXACT},
        mask_columns={"phone": Mask("last", 4), "born": Mask("year"), "zip": Mask("first", 2)},
        types={"flag": Conversion.BOOLEAN},
        rows="not test",
        keep_clear="once",
    )
    second = ShapeRules(
        exclude_columns=("note", "*iban*"),
        hash_columns={"email": Hash.LOWER, "nick": Hash.LOWER},
        mask_columns={"phone": Mask("last", 9), "born": Mask("null"), "zip": Mask("last", 2)},
        types={"flag": Conversion.STRING},
        rows="country = 'DE' or id = 1",
    )
    assert first | second == ShapeRules(
        exclude_columns=("*iban*", "note"),
        hash_columns={"email": Visibility.LEFT_OUT, "name": Hash.EXACT, "nick": Hash.LOWER},
        mask_columns={
            "phone": Mask("last", 4),
            "born": Mask("null"),
            "zip": Visibility.LEFT_OUT,
        },
        types={"flag": Conversion.STRING},
        rows="(not test) and (country = 'DE' or id = 1)",
        keep_clear="once",
    )
    assert first | NO_RULES == NO_RULES | first == first | first == first


def test_include_columns_of_a_later_block_replaces_that_of_an_earlier_one() -> None:
    """It names what is shown, and shows nothing that another setting hides."""
    first = ShapeRules(include_columns=("id",), exclude_columns=("*iban*",))
    rules = first | ShapeRules(include_columns=("id", "name", "iban"))
    structure = TableStructure(
        TableName("shop", "payouts"),
        tuple(Column(name, "int") for name in ("id", "name", "iban")),
        ("id",),
    )
    shown, out = Visibility.SHOWN, Visibility.LEFT_OUT
    assert shape_of(rules, structure).treatments == (shown, shown, out)


@pytest.mark.parametrize("text", ["last", "last:0", "first:-1", "middle:2", "last:4x", "NULL", ""])
def test_what_is_no_mask_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no mask"):
        read_mask(text)
