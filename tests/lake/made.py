"""Changes and writes made for tests of the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.changes.layout import MARKS
from pipeline.ports.mirror_writes import MirrorWrite
from pipeline.ports.mirrors import Mirrors

PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string())])

Row = Mapping[str, Any]


def changes(schema: pa.Schema, rows: Sequence[Row], *, first: int = 1) -> pa.Table:
    """Insert images of `rows` as a changelog holds them; marks nobody asks about are NULL."""
    full = pa.schema([*MARKS, *schema])
    images = [
        {"_change_type": "insert", "_sequence": first + number, "_derived": False, **row}
        for number, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(images, schema=full)


def folded(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    """Folded changes: `_change_type` of each row, "insert" unless it says so."""
    full = pa.schema([("_change_type", pa.string()), *schema])
    return pa.Table.from_pylist([{"_change_type": "insert", **row} for row in rows], schema=full)


def a_write(
    mirrors: Mirrors,
    number: int,
    mode: str,
    rows: Sequence[Row],
    *,
    schema: pa.Schema = PEOPLE,
    mirror: str = "shop/shop/people",
    key: tuple[str, ...] = ("id",),
    metadata: str | None = None,
    bounds: tuple[tuple[str, str, str], ...] = (),
) -> MirrorWrite:
    """Transaction `number` of a mirror, its changes staged."""
    return MirrorWrite(
        mirror=mirror,
        mode=mode,
        files=(mirrors.stage(f"staged {number}", folded(schema, rows)),),
        schema=schema,
        key=key,
        app_id=f"app/{mirror}",
        txn_version=number,
        user_metadata=metadata or f"write {number} of {mirror}",
        bounds=bounds,
    )


def content(mirrors: Mirrors, mirror: str, schema: pa.Schema, version: int) -> list[Row]:
    """A mirror's rows at a version, ordered by the first column."""
    batches = mirrors.rows(mirror, schema.names, version)
    table = pa.Table.from_batches(batches, schema=schema)
    rows: list[Row] = table.sort_by(schema.names[0]).to_pylist()
    return rows


def delete(**row: Any) -> dict[str, Any]:
    return {"_change_type": "delete", **row}


def update(**row: Any) -> dict[str, Any]:
    return {"_change_type": "update_postimage", **row}
