"""What mirrors are called, and where they lie: no two tables meet unless that is told by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.mirror.layout import free_place, is_folder_of, mirror_path, no_place
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.source_plan import SourcePlan, TableSettings
from lockstep.pipeline.values.mirror_names import MirrorNames, MirrorNameTemplate
from lockstep.pipeline.values.table import TableName, TablePatterns

LETTERS = "abA_.@/ =é%{}-"
"""Few, so that names meet."""

NAMES = st.text(LETTERS, min_size=1, max_size=3) | st.text("xé", min_size=60, max_size=64)
TABLES = st.lists(st.builds(TableName, NAMES, NAMES), min_size=1, max_size=8, unique=True)
PARTS = st.lists(
    st.sampled_from(["{source}", "{database}", "{table}", "a", "b", "A", "-", "x_"]),
    min_size=1,
    max_size=3,
).map("".join)
INTO = st.builds("{}.{}".format, PARTS, PARTS).filter(lambda text: "._" not in text)
RULES = st.lists(st.tuples(st.sampled_from(["*", "a*.*", "*.*b*", "*.*a*"]), INTO), max_size=3)


def names_of(*rules: tuple[str, str]) -> MirrorNames:
    return MirrorNames(
        "shop",
        tuple((TablePatterns((match,)), MirrorNameTemplate.parse(into)) for match, into in rules),
    )


@given(TABLES, RULES)
def test_tables_have_places_of_their_own_or_are_told_to_meet(
    tables: list[TableName], rules: list[tuple[str, str]]
) -> None:
    """By folder as by name, also where large letters are not told from small ones; a table that
    has no `into` may differ from another such one in case alone. The first keeps its place."""
    names = names_of(*rules)
    met = names.collisions(tables)
    kept = [table for table in tables if table not in met]
    given_names = [table for table in kept if names.is_configured(table)]
    paths = {table: mirror_path("shop", names.of(table)) for table in kept}
    assert len({*paths.values()}) == len(kept)
    for table in given_names:
        others = [path.lower() for other, path in paths.items() if other != table]
        assert paths[table].lower() not in others
    for table, other in met.items():
        assert tables.index(other) < tables.index(table)
        assert {*names.folder_names(table)} & {*names.folder_names(other)}


@given(TABLES, RULES, st.integers(1, 3), st.integers(1, 3))
def test_a_folder_is_known_by_its_name(
    tables: list[TableName], rules: list[tuple[str, str]], generation: int, number: int
) -> None:
    """Of each generation and successor; no other name has it, and it is no changelog's."""
    names = names_of(*rules)
    for table in tables:
        name = names.of(table)
        path = mirror_path("shop", name, generation, number)
        assert not path.startswith("shop/_")
        for other in tables:
            assert is_folder_of(path, "shop", names.of(other)) == (names.of(other) == name)
        assert free_place("shop", name, generation, {path}, number) != path
        assert not is_folder_of(no_place("shop", table), "shop", table)


@pytest.mark.parametrize(
    "text",
    [
        *("customers", ".customers", "crm.", "crm..", "../crm.customers", "crm/x.customers"),
        *("crm.a/b", "crm.a@2", "crm.a\nb", "crm.a b", "_changes.a", "crm._delta_log"),
        *("crm.{what}", "crm.{table", "crm.{{table}}", f"crm.{'a' * 129}", "crm.ä"),
    ],
)
def test_names_that_no_lake_takes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"mirror|lake"):
        MirrorNameTemplate.parse(text)


def test_a_later_block_counts() -> None:
    names = names_of(("shop.*", "crm.{table}"), ("shop.carts", "{source}_{database}.{table}"))
    assert [str(names.of(TableName("shop", name))) for name in ("a", "carts")] == [
        "crm.a",
        "shop_shop.carts",
    ]
    assert names.of(TableName("other", "a")) == TableName("other", "a")


def test_a_name_means_a_table_or_its_mirror() -> None:
    names, a, b = names_of(("shop.a", "shop.b")), TableName("shop", "a"), TableName("shop", "b")
    assert names.tables_named(b, [a]) == [a]
    assert names.tables_named(b, [a, b]) == [a, b]
    assert names.tables_named(a, [a, b]) == [a]


@pytest.mark.parametrize(
    ("mirror", "into", "moves"),
    [
        ("shop/shop/a", None, False),
        ("shop/shop/a@2-3", None, False),
        ("shop/shop/a", "crm.a", True),
        ("shop/crm/a", "crm.a", False),
        ("shop/crm/a", None, True),
        ("shop/shop/a@0", None, True),
    ],
)
def test_when_a_mirror_moves(mirror: str, into: str | None, moves: bool) -> None:
    """Where the settings say another place, also of one that a ledger found in the lake."""
    table, every = TableName("shop", "a"), TablePatterns(("*",))
    settings = (
        () if into is None else (TableSettings(every, {}, into=MirrorNameTemplate.parse(into)),)
    )
    plan = SourcePlan("shop", every, None, table_settings=settings)
    state = TableState(table, TableCondition.FOLLOWING, 1, mirror, "", adopted_version=3)
    assert (plan.new_mirror_name(state) is not None) is moves
