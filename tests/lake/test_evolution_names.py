"""Names that a mirror's columns are to have, and Delta cannot hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.errors import TableError
from pipeline.ports.mirror_writes import AddColumns, MirrorStep, PartColumn, RenameColumn, Rewrite
from tests.lake.conftest import Lake

NEW = pa.schema([("order items", pa.int32())])


@pytest.mark.parametrize(
    "step",
    [
        AddColumns(NEW),
        RenameColumn("id", "order items"),
        Rewrite(NEW, (PartColumn("id", pa.int32()),)),
    ],
    ids=["added", "renamed", "rewritten"],
)
def test_they_set_the_table_aside_and_spark_is_not_asked(disk: Lake, step: MirrorStep) -> None:
    """There it would fail, and so would every run after it."""
    with pytest.raises(TableError, match="'order items'"):
        disk.mirrors.evolve("shop/shop/people", (step,), app_id="a", txn_version=1, after=0)
    assert disk.mirrors.version("shop/shop/people") is None
