"""A mirror that Spark's queries and commits without one wrote in turn, while its columns changed.

The queries take seconds, so that it is written once: a test that changes it takes a copy.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa

from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY, WIDENING_PROPERTY
from lockstep.pipeline.mirror.strategy import FEW, NO_FEW_ROWS
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    MirrorStep,
    RenameColumn,
    SetProperties,
    WidenColumn,
)
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import disk_lake, memory_lake
from tests.lake.made import Row, a_write, content

MIRROR: Final = "shop/shop/people"
BEFORE: Final = pa.schema(
    [("id", pa.int64()), ("n", pa.int32()), ("name", pa.string()), ("gone", pa.bool_())]
)
BEHIND: Final = pa.schema(
    [("id", pa.int64()), ("n", pa.int64()), ("called", pa.string()), ("m", pa.int16())]
)
STEPS: Final[tuple[MirrorStep, ...]] = (
    SetProperties((MAPPING_PROPERTY,)),
    RenameColumn("name", "called"),
    DropColumns(("gone",)),
    AddColumns(pa.schema([BEHIND.field("m")])),
    SetProperties((WIDENING_PROPERTY,)),
    WidenColumn("n", pa.int64()),
)
MARKED: Final = 1
"""The version behind a query, which marked rows as deleted."""
RENAMED: Final = 6
"""That of columns under other names, whose types are those of before."""
WIDER: Final = 10
"""That of a query behind all steps."""
_VALUES: Final = {"n": -1, "name": "é", "gone": True, "called": "ü", "m": 77}


@dataclass(frozen=True, slots=True)
class BothWays:
    """`lake`: its folder; `shown`: by version, columns and rows of one in memory that was written
    likewise."""

    lake: Path
    shown: Mapping[int, tuple[pa.Schema, list[Row]]]

    @property
    def path(self) -> Path:
        return self.lake / MIRROR

    def copied(self, folder: Path, *, at: int = 1000) -> None:
        """A copy, which ends at a version."""

        def beyond(folder: str, names: list[str]) -> set[str]:
            if Path(folder).name != "_delta_log":  # others are named by chance, also by digits
                return set()
            numbers = {name: name.partition(".")[0] for name in names}
            later = {name for name, one in numbers.items() if one.isdigit() and int(one) > at}
            return {*later, "_last_checkpoint"}

        shutil.copytree(self.path, folder, ignore=beyond)


def write_both_ways(folder: Path, spark: SparkProcess) -> BothWays:
    """Three writes, the steps, and three more."""
    chance = Random(7)
    memory = memory_lake().mirrors
    ways = [disk_lake(folder, spark, few).mirrors for few in (FEW, NO_FEW_ROWS)]
    number, shown = 0, dict[int, tuple[pa.Schema, list[Row]]]()
    for schema, steps in ((BEFORE, STEPS), (BEHIND, ())):
        for way, mode in enumerate(("append", "merge", "merge")):
            number += 1
            rows = _rows(chance, schema, mode, 10 * number)
            for mirrors in (memory, ways[way % 2]):
                done = mirrors.write(a_write(mirrors, number, mode, rows, schema=schema))
            shown[done.delta_version] = schema, content(memory, MIRROR, schema, done.delta_version)
        number += 1
        after = done.delta_version
        for mirrors in (memory, ways[0]):
            mirrors.evolve(
                MIRROR, steps, app_id=f"app/{MIRROR}", txn_version=number, after_version=after
            )
    return BothWays(folder / "lake", shown)


def _rows(chance: Random, schema: pa.Schema, mode: str, first: int) -> list[dict[str, Any]]:
    """Six at most, one of a key; those of a merge change, take away and repeat earlier ones."""
    kinds = ["insert"] if mode == "append" else ["insert", "delete", "update_postimage"]
    rows = [
        {
            "_change_type": chance.choice(kinds),
            **{name: chance.choice([None, _VALUES[name]]) for name in schema.names[1:]},
            "id": one if mode == "append" else chance.choice([one - 10, one - 20, one]),
        }
        for one in range(first, first + 6)
    ]
    return list({row["id"]: row for row in rows}.values())
