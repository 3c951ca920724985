"""Conditions that a person gives: what is sent, and what follows from it for the mirror's rows."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.snapshot.condition import Limit, read_condition
from lockstep.pipeline.values.errors import ConditionRefused

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
