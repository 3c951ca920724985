"""Whether the lake's file system tells names apart that differ in case only: asked of real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.resources.lake.store.storage import ignores_case
from tests.lake.caseless import caseless_folder


@pytest.fixture
def caseless(tmp_path: Path) -> Iterator[Path]:
    with caseless_folder(tmp_path, 16 << 20) as folder:
        yield folder


def test_a_file_system_is_asked_and_nothing_stays_there(tmp_path: Path, caseless: Path) -> None:
    """Also before the lake's folder is made."""
    answers = {folder: ignores_case(folder) for folder in (caseless, caseless / "lake" / "shop")}
    assert answers == {caseless: True, caseless / "lake" / "shop": True}
    assert not ignores_case(tmp_path / "lake")
    assert [path.name for path in caseless.iterdir()] == []
    assert {path.name for path in tmp_path.iterdir()} == {"image", "mounted"}
