"""The list of tables: tables keep their places, and nothing in the file can stop a load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.assets.table_list import FILE, read_table_list, update_table_list
from tests.dagster.place import entry

A, B, C = entry("shop", "a"), entry("shop", "b"), entry("shop", "c")


def test_new_tables_are_appended(tmp_path: Path) -> None:
    """A table keeps its number when others come before it by name."""
    update_table_list(tmp_path, "shop", [B], complete=False)
    update_table_list(tmp_path, "shop", [A, B, C], complete=False)
    assert read_table_list(tmp_path, "shop") == (B, A, C)


def test_a_table_gone_stays_marked(tmp_path: Path) -> None:
    """Only who saw all tables marks one as dropped; seen again, it is not."""
    update_table_list(tmp_path, "shop", [A, B], complete=True)
    update_table_list(tmp_path, "shop", [B], complete=False)
    assert read_table_list(tmp_path, "shop") == (A, B)
    update_table_list(tmp_path, "shop", [B], complete=True)
    assert read_table_list(tmp_path, "shop") == (replace(A, dropped=True), B)
    update_table_list(tmp_path, "shop", [A, B], complete=True)
    assert read_table_list(tmp_path, "shop") == (A, B)


def test_sources_do_not_touch_each_other(tmp_path: Path) -> None:
    """Updating one source leaves the other's entries as they were."""
    update_table_list(tmp_path, "shop", [A], complete=True)
    update_table_list(tmp_path, "books", [B], complete=True)
    assert read_table_list(tmp_path, "shop") == (A,)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"sources": 3}', '{"sources": {"shop": {"tables": [7, {"name": "x"}]}}}'],
)
def test_a_file_that_is_none_of_ours_is_no_error(tmp_path: Path, text: str) -> None:
    """Broken, old or foreign: no tables, no exception; the next update replaces it."""
    (tmp_path / FILE).write_text(text)
    assert read_table_list(tmp_path, "shop") == ()
    update_table_list(tmp_path, "shop", [A], complete=False)
    assert read_table_list(tmp_path, "shop") == (A,)


def test_an_unchanged_list_is_not_written(tmp_path: Path) -> None:
    """An idle run leaves the file alone."""
    update_table_list(tmp_path, "shop", [A], complete=False)
    before = (tmp_path / FILE).stat()
    update_table_list(tmp_path, "shop", [A], complete=False)
    assert (tmp_path / FILE).stat().st_ino == before.st_ino
