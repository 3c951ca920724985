"""The table of character sets and collations, held against live servers."""

from __future__ import annotations

import re

import pytest

from lockstep.pipeline.schema.collations import (
    charset_by_number,
    charset_of,
    collation_name,
    default_collation,
    max_character_bytes,
)
from tests.fix_mysql import MySqlStand


def _full(name: str) -> str:
    return re.sub(r"^utf8(?=_|$)", "utf8mb3", name)


@pytest.mark.servers("newest", "8.0")
def test_mysql(mysql: MySqlStand) -> None:
    """Numbers, names, character sets, widths and defaults are MySQL's."""
    rows = mysql.rows(
        "select id, collation_name, character_set_name from information_schema.collations"
    )
    assert {int(one): (_full(name), _full(charset)) for one, name, charset in rows} == {
        int(one): (collation_name(int(one)), charset_of(collation_name(int(one)) or ""))
        for one, _, _ in rows
    }
    assert {one: charset_by_number(one) for one, *_ in rows} == {
        one: _full(charset) for one, _, charset in rows
    }
    sets = mysql.rows(
        "select character_set_name, default_collate_name, maxlen"
        " from information_schema.character_sets"
    )
    assert {_full(name): (_full(default), int(most)) for name, default, most in sets} == {
        _full(name): (
            default_collation(_full(name), "utf8mb4_0900_ai_ci"),
            max_character_bytes(_full(name)),
        )
        for name, _, _ in sets
    }


def test_mariadb(mariadb: MySqlStand) -> None:
    """MariaDB's numbers, names and character sets, those of UCA 14.0.0 among them."""
    rows = mariadb.rows(
        "select id, full_collation_name, character_set_name"
        " from information_schema.collation_character_set_applicability"
    )
    assert len(rows) > 1000
    wrong = {
        (int(one), _full(name), collation_name(int(one), "mariadb"))
        for one, name, _ in rows
        if _full(name) != collation_name(int(one), "mariadb")
    }
    assert set() == wrong
    assert {one: charset_by_number(one) for one, *_ in rows} == {
        one: charset for one, _, charset in rows
    }
