"""The order of treatments, what statements do under it, and what a change of settings comes to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.history import (
    Knowledge,
    SchemaVersion,
    ShownAs,
    VersionOrigin,
)
from lockstep.pipeline.schema.history_check import RecordedBatch, follow_again
from lockstep.pipeline.schema.model import TableSchema, WrittenDefault
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.table_effects import TableEffect, reason_shape_changed
from lockstep.pipeline.schema.tracker import SchemaTracker, StructuresInMemory
from lockstep.pipeline.schema.treatments import Conversion, Hash, Mask, Treatment, Visibility
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import (
    Shape,
    ShapeRules,
    shape_of,
    shows_no_more,
    stricter,
    stricter_shape,
)
from lockstep.pipeline.shape.shaper import Shaper
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.snapshot.chunks import Bound, Range, chunk_key
from lockstep.pipeline.upkeep.clearing import Tightening
from lockstep.pipeline.values.errors import StructureMoved, TableError
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import Column, TableName, TablePatterns, TableStructure
from lockstep.resources.mysql.shaped import BoundCipher, ShapedTable
from tests.schema.schemas_made import table

TREATMENTS: list[Treatment] = [
    *Visibility,
    *Hash,
    *Conversion,
    Mask("null"),
    Mask("year"),
    *(Mask(kind, keep) for kind in ("first", "last") for keep in (1, 2)),
]
ANY = st.sampled_from(TREATMENTS)

STRUCTURE = TableStructure(
    TableName("shop", "customers"),
    (Column("id", "int"), *(Column(name, "varchar", charset="utf8mb4") for name in "abc")),
    ("id",),
)


@given(ANY, ANY, ANY)
def test_treatments_are_ordered(one: Treatment, two: Treatment, three: Treatment) -> None:
    assert shows_no_more(one, one)
    if shows_no_more(one, two) and shows_no_more(two, three):
        assert shows_no_more(one, three)


@given(ANY, ANY)
def test_the_stricter_shows_no_more_than_either(one: Treatment, two: Treatment) -> None:
    both = stricter(one, two)
    assert shows_no_more(both, one) and shows_no_more(both, two)
    assert shows_no_more(stricter(two, one), both)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (Visibility.LEFT_OUT, Mask("null")),
        (Mask("null"), Hash.EXACT),
        (Hash.EXACT, Visibility.SHOWN),
        (Mask("last", 2), Mask("last", 4)),
        (Mask("year"), Conversion.STRING),
    ],
)
def test_one_shows_less_than_the_other(less: Treatment, more: Treatment) -> None:
    assert shows_no_more(less, more) and not shows_no_more(more, less)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Hash.EXACT, Mask("last", 4)),
        (Mask("first", 1), Mask("last", 1)),
        (Hash.EXACT, Hash.LOWER),
    ],
)
def test_what_shows_something_else_is_left_out(one: Treatment, other: Treatment) -> None:
    assert stricter(one, other) is stricter(other, one) is Visibility.LEFT_OUT


def _shape(**rules: object) -> Shape:
    return shape_of(ShapeRules(**rules), STRUCTURE)  # type: ignore[arg-type]


def test_of_two_shapes_both_conditions_hold() -> None:
    one = _shape(rows="a = 'x'", hash_columns={"b": Hash.EXACT})
    other = _shape(rows="b = 'y' or c = 'z'", exclude_columns=("c",))
    both = stricter_shape(one, other)
    assert both.row_condition == "(a = 'x') and (b = 'y' or c = 'z')"
    assert both.treatments == (Visibility.SHOWN, Visibility.SHOWN, Hash.EXACT, Visibility.LEFT_OUT)
    assert stricter_shape(one, one) == one


# -- through statements ---------------------------------------------------------------------------

_HIDING = ShapeRules(
    exclude_columns=("ssn",),
    hash_columns={"email": Hash.EXACT},
    mask_columns={"phone": Mask("last", 4)},
    rows="id > 0",
)
_CUSTOMERS = """create table customers (
  id int primary key, ssn char(9) default 'a secret', email varchar(50), phone varchar(20)
)"""
_KEY = PrivacyKey(b"a key of a test")
_SHOP = TablePatterns(("shop.*",))


def _followed(*statements: str, folding: int = 0) -> SchemaTracker:
    """Of a shop whose customers hide something; tables of `scratch` are not captured."""
    facts = ServerDialect(lower_case_table_names=folding)
    context = StatementContext(facts, "shop", server_collation="utf8mb4_0900_ai_ci")
    rules = {TableName("shop", "customers"): _HIDING, TableName("shop", "clients"): _HIDING}
    shaping = Shaping(rules.get, _KEY, has_rules=True, is_captured=_SHOP.matches)
    tracker = SchemaTracker(StructuresInMemory(), lower_case_table_names=folding, shaping=shaping)
    databases = "create database shop", "create database scratch"
    for number, text in enumerate([*databases, _CUSTOMERS, *statements]):
        begin, end = (Coordinates(LogFile("binlog", 1), 100 * (number + n)) for n in (1, 2))
        tracker.follow(LoggedStatement(text, context, begin, end, "", _MOMENT, _MOMENT))
    return tracker


_MOMENT = datetime(2026, 1, 31, tzinfo=UTC)


def test_a_new_table_is_compared_once_with_tables_that_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each tenant has a database of its own with the same tables, of which one hides more."""
    rules = {
        TableName(f"shop_{number}", "customers"): ShapeRules(
            exclude_columns=("ssn", "note") if number == 30 else ("ssn",)
        )
        for number in range(60)
    }
    shaping = Shaping(rules.get, _KEY, has_rules=True, is_captured=lambda _: True)
    at = Coordinates(LogFile("binlog", 1), 4)
    schema = table("create table customers (id int primary key, ssn char(9), note text)")
    versions = []
    for name in rules:
        redacted, shown_as = shaping.for_history(replace(schema, name=name))
        versions.append(
            SchemaVersion(
                name,
                1,
                at,
                Knowledge.KNOWN,
                VersionOrigin.BASELINE,
                schema=redacted,
                shown_as=shown_as,
            )
        )
    new = TableName("shop_60", "customers")
    rules[new] = ShapeRules(exclude_columns=("ssn",))
    version = replace(versions[0], table=new, schema=replace(schema, name=new), shown_as=None)
    compared: list[str] = []
    for_history = Shaping.for_history

    def noted(
        shaping: Shaping,
        schema: TableSchema,
        before: SchemaVersion | None = None,
        *args: Any,
        **kw: Any,
    ) -> tuple[TableSchema, ShownAs | None]:
        compared.extend([] if before is None else [str(before.table)])
        return for_history(shaping, schema, before, *args, **kw)

    monkeypatch.setattr(Shaping, "for_history", noted)
    tracker = SchemaTracker(StructuresInMemory(), shaping=shaping)
    tracker.record_initial_versions([version], (), versions)
    assert set(compared) == {"shop_0.customers", "shop_30.customers"}
    error = tracker.shape_error(new)
    assert error is not None
    assert "shop_30.customers" in error.reason


@pytest.mark.parametrize(
    "statements",
    [
        ["alter table customers rename column ssn to note, rename to clients"],
        ["alter table customers change ssn note char(20), rename to clients"],
        [
            "alter table customers rename column ssn to note, rename to scratch.c",
            "rename table scratch.c to clients",
        ],
        ["rename table customers to scratch.c", "rename table scratch.c to archive"],
        [
            "alter table customers rename column ssn to note, rename to scratch.c",
            "alter table scratch.c rename column note to more",
            "rename table scratch.c to archive",
        ],
        ["create table _customers_new like customers", "rename table _customers_new to archive"],
        [
            "rename table customers to scratch.c",
            "alter table scratch.c drop primary key, add primary key (ssn)",
            "rename table scratch.c to archive",
        ],
        [
            "rename table customers to scratch.c",
            "alter table scratch.c drop email, modify phone blob, drop primary key, drop id",
            "rename table scratch.c to archive",
        ],
    ],
)
def test_what_is_hidden_stays_hidden_under_every_name(statements: list[str]) -> None:
    tracker = _followed(*statements)
    named = {version.table.name: version for version in tracker.history.versions}
    found = named.get("archive") or named["clients"]
    assert found.knowledge is Knowledge.UNKNOWN
    assert "settings of" in (found.reason or "")
    assert "secret" not in repr(tracker.history)


def test_what_is_hidden_stays_hidden_where_settings_do_not_fit_the_server() -> None:
    """The condition on rows needs a column that the read structure lacks and that the next
    statement adds, under which the hidden column gets another name."""
    context = StatementContext(ServerDialect(), "shop", server_collation="utf8mb4_0900_ai_ci")
    rules = ShapeRules(exclude_columns=("ssn",), rows="active = 1")
    customers = TableName("shop", "customers")
    shaping = Shaping({customers: rules}.get, _KEY, has_rules=True, is_captured=_SHOP.matches)
    tracker = SchemaTracker(StructuresInMemory(), shaping=shaping)
    places = [Coordinates(LogFile("binlog", 1), 100 * number) for number in range(1, 6)]
    texts = (
        "create database shop",
        "create table customers (id int primary key, ssn char(9), active int)",
        "alter table customers that nobody understands",
        "alter table customers rename column ssn to note, add active int",
    )
    for text, (begin, end) in zip(texts, pairwise(places), strict=True):
        if text == texts[-1]:
            schema = table("create table customers (id int primary key, ssn char(9))")
            tracker.record_server_schema(replace(schema, name=customers), begin)
        tracker.follow(LoggedStatement(text, context, begin, end, "", _MOMENT, _MOMENT))
    versions = tracker.history.versions
    assert [version.knowledge for version in versions] == [
        Knowledge.KNOWN,
        Knowledge.UNKNOWN,
        Knowledge.UNKNOWN,
    ]
    statements = (replace(each, id=n) for n, each in enumerate(tracker.history.statements))
    batch = RecordedBatch(1, tuple(statements), versions, databases=(), has_all_tables=True)
    assert list(follow_again([batch], lower_case_table_names=0)) == []


@pytest.mark.parametrize(
    "statements",
    [
        ["rename table customers to clients"],
        ["rename table customers to scratch.c", "rename table scratch.c to clients"],
        [
            "create table _customers_new like customers",
            "alter table _customers_new add more int, modify phone varchar(30)",
            "rename table customers to _customers_old, _customers_new to clients",
        ],
    ],
)
def test_what_shows_no_more_is_followed(statements: list[str]) -> None:
    clients = _followed(*statements).version(TableName("shop", "clients"))
    assert clients is not None and clients.shown_schema is not None
    assert [column.name for column in clients.shown_schema.columns][:3] == ["id", "email", "phone"]


@pytest.mark.parametrize("folding", [1, 2])
def test_texts_of_statements_have_no_values_however_names_are_spelled(folding: int) -> None:
    statement = "alter table Customers alter ssn set default 'another secret'"
    assert "secret" not in repr(_followed(statement, folding=folding).history)


def _shaping(**rules: object) -> Shaping:
    return Shaping(lambda _: ShapeRules(**rules), _KEY, has_rules=True)  # type: ignore[arg-type]


def _version(schema: TableSchema, shaping: Shaping) -> SchemaVersion:
    kept, shown_as = shaping.for_history(schema)
    since = Coordinates(LogFile("binlog", 1), 4)
    return SchemaVersion(
        kept.name, 1, since, Knowledge.KNOWN, VersionOrigin.BASELINE, kept, shown_as=shown_as
    )


def test_columns_of_a_condition_that_change_names_have_the_table_read_again() -> None:
    shaping = _shaping(rows="a = 1 or b = 2")
    before = table("create table t (id int primary key, a int, b int)")
    both = shaping.column_uses(before)
    same = TableEffect(
        before.name, "changed", "", before, before, ("id", "a", "b"), column_uses=both
    )
    swapped = replace(same, columns_from=("id", "b", "a"))
    assert reason_shape_changed(same) is None
    assert reason_shape_changed(swapped) == "the condition on rows uses a, which was called b"


def test_a_redefined_column_has_the_table_read_again_if_the_settings_use_its_values() -> None:
    shaping = _shaping(rows="a = 1", hash_columns={"b": Hash.EXACT}, exclude_columns=("c",))
    before = table("create table t (id int primary key, a int, b int, c int)")
    effect = TableEffect(
        before.name,
        "changed",
        "",
        before,
        before,
        before.names,
        column_uses=shaping.column_uses(before),
    )
    reasons = {}
    for name in before.names:
        columns = [replace(c, type="bigint") if c.name == name else c for c in before.columns]
        after = replace(before, columns=tuple(columns))
        reasons[name] = reason_shape_changed(replace(effect, after=after))
    redefined = "was redefined, and it is hidden, converted or used by the condition on rows"
    assert reasons == {
        "id": None,
        "a": f"column a {redefined}",
        "b": f"column b {redefined}",
        "c": None,
    }


def test_a_default_that_its_shown_type_does_not_hold_is_known_to_the_server_alone() -> None:
    shaping = _shaping(types={"u": Conversion.UUID, "on": Conversion.BOOLEAN})
    schema = table(
        "create table t (id int primary key, u char(36) not null, `on` tinyint not null default 2)"
    )
    _, shown_as = shaping.for_history(schema)
    assert shown_as is not None
    assert [type(one.default) for one in shown_as.schema.columns[1:]] == [WrittenDefault] * 2


@pytest.mark.parametrize(
    "rules", [{"exclude_columns": ("g",)}, {"hash_columns": {"g": Hash.EXACT}}]
)
def test_the_expression_of_a_hidden_column_is_not_stored(rules: dict[str, object]) -> None:
    """Even if it names no hidden column: its literals are values of the column."""
    schema = table("create table t (id int primary key, g char(9) as (concat('secret', id)))")
    kept, shown_as = _shaping(**rules).for_history(schema)
    assert "secret" not in repr((kept, shown_as))


@pytest.mark.parametrize("name", ["n", "n`o"])
def test_an_expression_keeps_the_name_of_a_hidden_column_alone(name: str) -> None:
    column = f"`{name.replace('`', '``')}`"
    expression = f"{column} char(9), g char(9) as (concat({column}, 'secret'))"
    redacted = _shaping(exclude_columns=(name,)).redact(
        table(f"create table t (id int primary key, {expression})")
    )
    assert redacted.columns[2].generated == f"*** {column}"


def test_keys_of_what_is_shown_tell_its_rows_apart() -> None:
    """A UNIQUE key may be over NULL, and so over columns that are masked."""
    shaping = _shaping(
        hash_columns={"h": Hash.EXACT, "l": Hash.LOWER},
        mask_columns={"m": Mask("last", 2)},
        types={"u": Conversion.UUID},
    )
    _, shown_as = shaping.for_history(
        table(
            "create table t (id int primary key, s char(3) unique, h char(3) unique, "
            "l char(3) unique, m char(3) unique, u char(36) unique)"
        )
    )
    assert shown_as is not None
    assert {key.columns for key in shown_as.schema.keys} == {("id",), ("s",), ("h",)}


@pytest.mark.parametrize("key", ["unique a (id), unique z (n)", "unique z (n), unique a (id)"])
def test_bounds_are_hidden_with_the_key_that_chunks_are_cut_by(key: str) -> None:
    """The first by name, whatever the order of the keys."""
    schema = table(f"create table t (id int not null, n int not null, {key})")
    shapers = (
        _shaper(schema, hash_columns={"id": Hash.EXACT}),
        _shaper(schema, exclude_columns=("other",)),
    )
    assert chunk_key(schema) == ("id",)
    shaped_tables = [ShapedTable(schema, row_structure(schema), shaper) for shaper in shapers]
    assert [shaped_table.hides_bounds for shaped_table in shaped_tables] == [True, False]


def test_a_sealed_bound_opens_only_for_its_table_and_key() -> None:
    """Otherwise the table is read from its beginning, as one whose structure moved."""
    schema, other = table("create table t (id int primary key)"), PrivacyKey(b"another key")
    bound = Bound(("id",), ("7",))
    sealed = BoundCipher(schema.name, _KEY).encrypt(bound)
    assert "7" not in sealed.literals
    assert BoundCipher(schema.name, _KEY).decrypt(sealed) == bound
    for cipher in (BoundCipher(schema.name, other), BoundCipher(TableName("shop", "u"), _KEY)):
        with pytest.raises(StructureMoved, match="encrypted by another key"):
            cipher.decrypt(sealed)
    with pytest.raises(StructureMoved, match="encrypted by another key"):
        BoundCipher(schema.name, _KEY).decrypt(bound)
    shaper = _shaper(schema, hash_columns={"id": Hash.EXACT})
    without_key = ShapedTable(schema, row_structure(schema), shaper)
    with pytest.raises(StructureMoved, match="there is no key"):
        without_key.decrypt_bounds(Range(after=sealed))


def _shaper(schema: TableSchema, **rules: object) -> Shaper:
    return Shaper(shape_of(ShapeRules(**rules), row_structure(schema)), _KEY)  # type: ignore[arg-type]


def test_no_version_is_hashed_with_two_keys() -> None:
    rules = {"hash_columns": {"a": Hash.EXACT}}
    (version,) = _followed().history.versions
    other = PrivacyKey(b"another key of a test", replaces=_KEY.fingerprint)
    assert replace(_shaping(**rules), key=_KEY).shaper(version) is not None
    with pytest.raises(TableError, match="the key that is replaced"):
        replace(_shaping(**rules), key=other).shaper(version)


# -- settings that change -------------------------------------------------------------------------


_TABLE = table("create table t (id int primary key, a char(9), b char(9), c char(9))")


@pytest.mark.parametrize(
    ("before", "after", "columns"),
    [
        ({}, {}, ()),
        ({"exclude_columns": ("a",)}, {}, ()),
        ({}, {"exclude_columns": ("a",)}, ("a",)),
        ({}, {"hash_columns": {"a": Hash.EXACT}}, ("a",)),
        ({"hash_columns": {"a": Hash.EXACT}}, {}, ()),
        (
            {"mask_columns": {"a": Mask("last", 4)}},
            {"mask_columns": {"a": Mask("last", 2)}},
            ("a",),
        ),
        ({"rows": "a = 'x'"}, {}, ()),
        # Another condition takes fewer rows, also if nobody knows whether it does.
        ({"rows": "a = 'x'"}, {"rows": "a = 'y'"}, None),
    ],
)
def test_what_settings_show_less_of(
    before: dict[str, object], after: dict[str, object], columns: tuple[str, ...] | None
) -> None:
    version = _version(_TABLE, _shaping(**before))
    expected = Tightening(_TABLE.name, 0, columns or (), has_fewer_rows=columns is None)
    assert _shaping(**after).tightening(version) == expected


def test_a_key_that_is_replaced_makes_other_hashes() -> None:
    hashing, plain = _shaping(hash_columns={"a": Hash.EXACT}), _shaping()
    replaced = replace(hashing, key=PrivacyKey(b"another key", replaces=_KEY.fingerprint))
    expected = Tightening(_TABLE.name, 0, is_rehashed=True)
    assert replaced.tightening(_version(_TABLE, hashing)) == expected
    assert not hashing.tightening(_version(_TABLE, hashing)).shows_less
    assert (
        not replace(replaced, rules_of=plain.rules_of)
        .tightening(_version(_TABLE, plain))
        .shows_less
    )


def test_the_settings_of_a_hint_name_columns_literally() -> None:
    """They are patterns, whether a treatment is given with them or not."""
    schema = table(
        "create table t (id int primary key, `a[1]` char(9), `b*` char(9), `c?` char(9))"
    )
    hiding = _shaping(
        hash_columns={"a*": Hash.LOWER}, mask_columns={"b*": Mask("null")}, exclude_columns=("c*",)
    )
    with pytest.raises(TableError) as refused:
        Shaping().for_history(schema, _version(schema, hiding))
    assert (
        'add hash_columns = { "a[[]1]" = "lower" }, mask_columns = { "b[*]" = "null" }, '
        'exclude_columns = ["c[?]"] to'
    ) in refused.value.hint


def test_a_version_that_is_hashed_is_cleared_without_its_key() -> None:
    """The key may be gone once no column is hashed any more, before older values are cleared."""
    schema = table("create table t (id int primary key, email varchar(50), ssn char(9))")
    hashed = _version(schema, _shaping(hash_columns={"email": Hash.EXACT}))
    shaping = replace(_shaping(exclude_columns=("ssn",)), key=None)
    cleared = shaping.cleared_version(hashed, ["ssn"])
    assert cleared.shown_as is not None
    assert cleared.shown_as.treatments == (Visibility.SHOWN, Hash.EXACT, Visibility.LEFT_OUT)
    assert cleared.key_fingerprint == _KEY.fingerprint
