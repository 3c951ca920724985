"""The preflight's rules over tables: what would be set aside, what would collide."""

from __future__ import annotations

from pipeline.errors import KeylessTable, NothingMatches
from pipeline.ports import SourceTable
from pipeline.preflight import name_findings, table_findings, type_findings
from pipeline.table import Column, TableName, TableStructure
from pipeline.tables import TablePatterns


def table(name: str, *columns: Column) -> TableStructure:
    return TableStructure(TableName("shop", name), columns, ("id",))


def test_types_that_are_not_read_are_warned_of() -> None:
    """The table is named, with the reason it would be set aside for."""
    key, odd = Column("id", "int"), Column("c", "compressed text")
    found = list(type_findings([table("a", key), table("b", key, odd)]))
    assert [(f.level, f.subject, "COMPRESSED TEXT" in f.sentence) for f in found] == [
        ("warning", "shop.b", True)
    ]


def test_names_that_differ_in_case_only_are_refused_by_check() -> None:
    """A run goes on, so the finding carries no error."""
    found = list(name_findings([table("T"), table("t"), table("other")]))
    assert [(f.level, f.subject, f.error) for f in found] == [("refusal", "shop.T, shop.t", None)]


def test_patterns_and_keys() -> None:
    """An idle pattern and a keyless table stop a run; one set aside does not again."""
    patterns = TablePatterns(("shop.*", "gone.*"))
    keyless = SourceTable(TableName("shop", "a"), "InnoDB", 0, ())
    found = list(table_findings([keyless], patterns, [], []))
    kinds = [type(f.error) for f in found if f.level == "refusal"]
    assert kinds == [NothingMatches, KeylessTable]
    aside = list(table_findings([keyless], TablePatterns(("shop.*",)), [], [keyless.name]))
    assert [f.level for f in aside] == ["warning", "ok"]
