"""A statement is shown by its words: no literal of it, whatever its quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.values.shown import first_words, name_list

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ALTER TABLE shop.orders\n\tADD  a INT", "ALTER TABLE shop.orders ADD a INT"),
        ("alter /* why */ table `a b` force -- so", "alter table `a b` force"),
        ("/*!80000 DROP */ TABLE a, b", "DROP TABLE a, b"),
        ("CREATE TABLE t (a VARCHAR(9) DEFAULT 'x')", "CREATE TABLE t(a VARCHAR(?) DEFAULT ?)"),
        ("a b c d e f g h i j k l m", "a b c d e f g h i j k l …"),
        ('SET PASSWORD FOR x = "its"', "SET PASSWORD FOR x = ?"),
        ("GRANT ALL TO x IDENTIFIED BY 'open", "GRANT ALL …"),
        ("DROP TABLE `a\nb\x1b[2J`", "DROP TABLE `a\\nb\\x1b[2J`"),
        ("INSERT INTO t VALUES ('a\\', 'secret #')", "INSERT INTO t VALUES(? …"),
        ("INSERT INTO t VALUES ('a\\b', 1)", "INSERT INTO t VALUES(?, ?)"),
        ("", ""),
    ],
)
def test_first_words(text: str, shown: str) -> None:
    """One line, so many words, each literal a question mark; where quotes do not pair,
    nothing after the first two words; nothing after a quote that the SQL mode may have
    escaped or not."""
    assert shown == first_words(text)


@given(
    st.sampled_from(["'{}'", '"{}"', "N'{}'", "'a''{}'", "'a\\'{}'", '"\\"{}"', "{}'", "'{}"]),
    st.text(st.sampled_from("ab ,()*;=\n"), max_size=9),
)
def test_no_literal_is_shown(quoted: str, before: str) -> None:
    """Whatever stands in front of it, and whether or not its quotes pair."""
    assert SECRET not in first_words(f"{before} IDENTIFIED BY {quoted.format(SECRET)}")


def test_the_number_of_further_differences_stands_apart_from_the_last_one() -> None:
    """Each has commas of its own, as in `a: int, bigint`."""
    differences = [f"{name}: int, bigint" for name in "abcdefg"]
    assert name_list(differences[:5], "; ") == "; ".join(differences[:5])
    assert name_list(differences, "; ").endswith("; e: int, bigint; and 2 more")
    assert name_list("abcdefg") == "a, b, c, d, e and 2 more"
