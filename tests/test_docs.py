"""Pages that repeat what the code says, say it."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.binlog.diagram import rewritten
from pipeline.binlog.table_map import TYPE_NAMES
from pipeline.binlog.values.table import DECODED_BY

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/binlog.md").read_text()


def test_the_buffers_picture_is_its_table() -> None:
    """`python -m pipeline.binlog.diagram docs/binlog.md` renews it."""
    assert rewritten(PAGE) == PAGE


def test_every_type_of_a_table_map_is_decoded_somewhere() -> None:
    """A type code has a name, and the name a function."""
    named = {*TYPE_NAMES, "binary", "varbinary", "blob"}
    assert named == set(DECODED_BY)


def test_every_module_the_page_names_is_there() -> None:
    """Whoever looks for a type finds the file."""
    named = set(re.findall(r"`((?:values/)?[a-z_]+\.py)`", PAGE))
    missing = {name for name in named if not list(ROOT.glob(f"**/{name}"))}
    assert len(named) > 10
    assert missing == set()
