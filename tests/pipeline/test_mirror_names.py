"""Names: what mirrors are called, and where they lie; which tables patterns capture; and characters
that would do something, wherever names are shown."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown

from lockstep.commands.check import finding_lines
from lockstep.pipeline.check import Finding
from lockstep.pipeline.mirror.layout import (
    free_mirror_path,
    is_folder_of,
    mirror_path,
    no_mirror_path,
)
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.source_plan import SourcePlan, TableSettings
from lockstep.pipeline.values.errors import ConfigurationError, TableError
from lockstep.pipeline.values.mirror_names import MirrorNames, MirrorNameTemplate
from lockstep.pipeline.values.shown import in_markdown, printable
from lockstep.pipeline.values.table import TableName, TablePatterns, has_wildcard, is_helper

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
        assert free_mirror_path("shop", name, generation, {path}, number) != path
        assert not is_folder_of(no_mirror_path("shop", table), "shop", table)


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


HELPERS = [
    "_orders_gho",
    "_orders_ghc",
    "_orders_ghk",
    "_orders_del",
    "_orders_20261121180000_del",
    "_orders_rev_del",
    "_orders_new",
    "__orders_new",
    "_orders_old",
    "__________orders_old",
    "_orders_old_20261121_180000",
    "_orders_chkpnt",
    "__private_new",
    "_spirit_checkpoint",
    "_spirit_sentinel",
]
ORDINARY = [
    "orders",
    "orders_new",
    "orders_old",
    "_orders",
    "_new",
    "__new",
    "_orders_news",
    "_orders_old_2026",
    "_orders_NEW",
    "_spirit",
    "_orders_gho_",
]


def named(name: str) -> TableName:
    return TableName("shop", name)


@pytest.mark.parametrize("name", HELPERS)
def test_helpers_of_online_schema_changes_are_left_out(name: str) -> None:
    """Whatever a pattern for all tables, or for many, says; a pattern that begins as their
    names do asks for them."""
    table = named(name)
    assert is_helper(table)
    for pattern in ("shop.*", "*.*", "shop.?*", "shop.[_]*", "shop.*" + name[-4:]):
        patterns = TablePatterns((pattern,))
        assert patterns.exclusion_reason(table) == (
            "a helper table of online schema changes; only a pattern such as *._* matches it"
        )
        assert patterns.unmatched_patterns([table]) == [pattern]
    for pattern in (f"shop.{name}", "shop._*", "*._*", f"shop.{name[:-1]}[{name[-1]}]"):
        patterns = TablePatterns(("shop.*", pattern))
        assert patterns.matches(table)
        assert patterns.unmatched_patterns([table]) == ["shop.*"]
        assert patterns.unmatched_patterns([]) == (
            ["shop.*"] if has_wildcard(pattern) else ["shop.*", pattern]
        )
        assert not TablePatterns(("shop.*", pattern), exclude=(pattern,)).matches(table)


@pytest.mark.parametrize("name", ORDINARY)
def test_other_tables_are_not_taken_for_helpers(name: str) -> None:
    assert TablePatterns(("shop.*",)).matches(named(name))


def test_why_a_table_is_left_out() -> None:
    patterns = TablePatterns(("shop.*", "mysql.*"), exclude=("shop.tmp_*",))
    assert patterns.exclusion_reason(TableName("mysql", "user")) == "a system database"
    assert patterns.exclusion_reason(TableName("other", "orders")) == "no pattern matches"
    assert patterns.exclusion_reason(named("tmp_1")) == "excluded by 'shop.tmp_*'"
    assert patterns.exclusion_reason(named("orders")) is None


def test_a_name_to_exclude_that_no_table_has_is_found() -> None:
    """A pattern with a wildcard, and a helper table, may match a later table."""
    exclude = ("shop.othr", "shop.kept", "shop.tmp_*", "shop.?", "shop.[ab]", "shop._a_old")
    patterns = TablePatterns(("shop.*",), exclude)
    assert patterns.unmatched_exclusions({TableName("shop", "kept")}) == ["shop.othr"]


FORGED = "t\n2026-01-01 all is well\x1b[2J\u202e\r"


@given(st.text())
def test_nothing_in_a_name_does_something(name: str) -> None:
    """Neither a line break, nor a terminal's command, nor another direction; and two names that
    are shown alike differ by a backslash at most."""
    said = printable(name)
    assert [c for c in said if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")] == []
    assert said == name or not name.isprintable()


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1))
def test_markdown_shows_a_name_as_it_is(name: str) -> None:
    """As a Markdown reader renders a line with it: no markup, no link, no table."""
    page = io.StringIO()
    Console(file=page, width=10_000, no_color=True).print(Markdown(f"x{in_markdown(name)}x"))
    assert page.getvalue().strip() == f"x{name}x"


@pytest.mark.parametrize(
    "said",
    [
        f"{TableName('shop', FORGED)}",
        str(ConfigurationError(f"The table {FORGED} is not there.", hint="")),
        ConfigurationError(f"The table {FORGED} is not there.", hint="").message,
        TableError(f"its column {FORGED} is not there", hint="").reason,
        *finding_lines([Finding("warning", FORGED, FORGED, FORGED, topic="a")]),
    ],
)
def test_a_name_breaks_no_line_and_gives_no_command(said: str) -> None:
    """Of a screen or a log, whoever puts it into a sentence."""
    assert said.isprintable()
    assert str(TableName("shop", FORGED)) == f"shop.{FORGED}"
