"""Pages that repeat what the code says, say it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.binlog.rows.table_map import TYPE_NAMES
from pipeline.binlog.values.table import DECODED_BY

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/binlog.md").read_text()


def test_every_test_that_a_page_names_is_there() -> None:
    """Whoever reads a name finds the proof."""
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/canal.md").read_text()))
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) > 20
    assert named - there == set()


def test_every_type_of_a_table_map_is_decoded_somewhere() -> None:
    """A type code has a name, and the name a function."""
    named = {*TYPE_NAMES, "binary", "varbinary", "blob"}
    assert named == set(DECODED_BY)


def test_every_module_the_page_names_is_there() -> None:
    """Whoever looks for a type finds the file."""
    named = set(re.findall(r"`((?:[a-z]+/)*[a-z_]+\.py)`", PAGE))
    missing = {name for name in named if not list(ROOT.glob(f"**/{name}"))}
    assert len(named) > 10
    assert missing == set()


GUIDES = (
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests/README.md",
    *sorted((ROOT / "docs/decisions").glob("*.md")),
)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_file_a_guide_names_is_there(page: Path) -> None:
    """In backticks from the repository's root, in links from the page; `*` stands for some."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    quoted = re.findall(r"`([\w*.]+/[\w/*.-]*)`", text)
    linked = re.findall(r"\]\((?!https:)([^)#]+)", text)
    assert quoted
    missing = [name for name in quoted if not list(ROOT.glob(name.rstrip("/")))]
    missing += [name for name in linked if not (page.parent / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_test_a_guide_names_is_there(page: Path) -> None:
    """Whoever leaves a step out knows which test will say so."""
    there = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    assert [name for name in named if f"def {name}(" not in there] == []


def test_every_decision_is_in_the_index() -> None:
    """A page that nobody links to is not read."""
    index = (ROOT / "docs/README.md").read_text()
    pages = [page.name for page in sorted((ROOT / "docs/decisions").glob("*.md"))]
    assert pages
    assert [name for name in pages if f"(decisions/{name})" not in index] == []
