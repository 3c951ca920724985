"""A made-up table, changed at random, and the row images that a server would log of it.

Belongs here: what `binlog_row_image` leaves out of each image. Does not: folding them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, StagedFiles
from lockstep.pipeline.values.row_images import pack_bits

SCHEMA: Final = pa.schema(
    [("id", pa.int32()), ("a", pa.int32()), ("text", pa.string()), ("c", pa.int32())]
)
NAMES: Final = tuple(SCHEMA.names)
PRESENT: Final = "_present"
PART: Final = StagedFiles(
    ("images",),
    tuple(ColumnOrigin(one.name, one.type, present_bit=at) for at, one in enumerate(SCHEMA)),
    present_column=PRESENT,
)
"""A part of a write; its file is called so."""

Row = dict[str, Any]


@dataclass(slots=True)
class Workload:
    """`rows`: the table by its key; `images`: what was logged, with the names of the columns
    that each has. `whole_moves`: a change of a key is logged with every column."""

    random: Random
    whole_moves: bool = False
    rows: dict[int, Row] = field(default_factory=dict)
    images: list[tuple[str, Row, frozenset[str]]] = field(default_factory=list)

    def fill(self, count: int) -> list[Row]:
        self.rows = {key: self._row(key) for key in range(count)}
        return list(self.rows.values())

    def change(self) -> None:
        """One statement on one row."""
        kind = self.random.choice(("insert", "delete", "update", "update", "update", "move"))
        free = [key for key in range(12) if key not in self.rows]
        if kind == "insert" and free:
            row = self._row(self.random.choice(free))
            self.rows[row["id"]] = row
            self._log("insert", row, frozenset(NAMES))
        elif kind == "delete" and self.rows:
            row = self.rows.pop(self.random.choice(list(self.rows)))
            self._log("delete", row, self._before())
        elif self.rows:
            self._update(self.random.choice(free) if kind == "move" and free else None)

    def _update(self, key: int | None) -> None:
        old = self.rows.pop(self.random.choice(list(self.rows)))
        changed = set(self.random.sample(NAMES[1:], self.random.randint(1, 2)))
        new = {**old, **{name: self._row(0)[name] for name in changed}}
        if key is not None:
            new["id"], changed = key, {*changed, "id"}
        self.rows[new["id"]] = new
        before = frozenset(NAMES) if key is not None and self.whole_moves else self._before()
        self._log("update_preimage", old, before)
        self._log("update_postimage", new, before | changed)

    def _before(self) -> frozenset[str]:
        """Of FULL, MINIMAL and NOBLOB."""
        return frozenset(self.random.choice((NAMES, ("id",), ("id", "a", "c"))))

    def _row(self, key: int) -> Row:
        text = self.random.choice((None, "x", "y", "z"))
        return {
            "id": key,
            "a": self.random.choice((None, 1, 2, 3)),
            "text": text,
            "c": self.random.randrange(1000),
        }

    def _log(self, kind: str, row: Row, there: frozenset[str]) -> None:
        self.images.append((kind, row, there))

    def table(self) -> pa.Table:
        """The images as a segment's file has them, NULL where they leave a column out."""
        return images_table(self.images)


def images_table(images: Sequence[tuple[str, Row, frozenset[str]]], first: int = 1) -> pa.Table:
    there = np.array([[name in has for name in NAMES] for _, _, has in images], bool)
    columns = {
        name: pa.array([row[name] if name in has else None for _, row, has in images], kind)
        for name, kind in zip(NAMES, SCHEMA.types, strict=True)
    }
    marks = {
        "_change_type": pa.array([kind for kind, _, _ in images], pa.string()),
        "_sequence": pa.array(range(first, first + len(images)), pa.int64()),
        "_derived": pa.repeat(False, len(images)),
    }
    present = pack_bits(there, np.asarray(there.all(axis=1))) if images else []
    return pa.table({**marks, **columns, PRESENT: pa.array(present, pa.binary())})
