"""docs/reading.md: the examples of the chapter about consumers run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lockstep
from lockstep.resources.lake.spark.session import SparkProcess
from tests.consumers.shop import ORDERS, Shop
from tests.typed_pages import blocks, chapter

pytestmark = pytest.mark.acceptance

PAGE = Path(__file__).resolve().parents[2] / "docs/reading.md"


def test_the_examples_run(
    shop: Shop,
    spark: SparkProcess,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From top to bottom, in a folder with a lockstep.toml, twice."""
    told = chapter(PAGE.read_text(), "Consumers: every change once")
    make, by_arrow, by_spark, whole = (
        block.replace('"shop"', f'"{shop.source}"') for block in blocks(told, "python")
    )
    monkeypatch.chdir(shop.folder)
    names: dict[str, object] = {"spark": spark.session()}
    exec(make, names)
    for number, block in enumerate((by_arrow, by_spark, by_arrow)):
        rows = [("insert", {"id": 10 * number + one}) for one in range(3)]
        shop.batch({ORDERS: rows})
        exec(block, names)
    exec(whole, names)
    said = capsys.readouterr().out
    assert "9 changes in 1 generations" in said
    assert said.count("3 changes of orders") == 2
    assert re.search(r"insert\s*\|\s*3", said)
    (view,) = lockstep.list_consumers(shop.source)
    assert (view.batches_behind, view.deliveries_out) == (0, 0)
