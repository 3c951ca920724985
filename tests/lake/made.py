"""Changes and writes made for tests of the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lockstep.pipeline.mirror.fold import Fold
from lockstep.pipeline.mirror.layout import MARKS, changelog_names
from lockstep.pipeline.mirror.mapping import images_within
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    FoldedChanges,
    Merge,
    MirrorTarget,
    MirrorWrite,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.values.policies import Deletes, LakePolicies

PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string())])

Row = Mapping[str, Any]


def changes(schema: pa.Schema, rows: Sequence[Row], *, first: int = 1) -> pa.Table:
    """Images of `rows` as a changelog holds them, inserts unless a row has another
    `_change_type`; marks nobody asks about are NULL."""
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
    bounds: tuple[tuple[str, str, str], ...] = (),
    **more: Any,
) -> MirrorWrite:
    """Transaction `number` of a mirror, "append" or "merge", its changes staged; `more` of its
    target."""
    target = a_target(number, schema, mirror, **more)
    staged = mirrors.stage(f"staged {number}", folded(schema, rows))
    if mode == "append":
        return Append(target, (own_part((staged,), target.schema),))
    return Merge(target, key, FoldedChanges((staged,)), bounds)


def a_target(
    number: int,
    schema: pa.Schema = PEOPLE,
    mirror: str = "shop/shop/people",
    *,
    app_id: str = "",
    user_metadata: str = "",
    **policies: Any,
) -> MirrorTarget:
    return MirrorTarget(
        mirror,
        schema,
        app_id or f"app/{mirror}",
        number,
        user_metadata or f"write {number} of {mirror}",
        LakePolicies(**policies),
    )


def own_part(files: tuple[str, ...], schema: pa.Schema, above: int = 0) -> StagedFiles:
    """Files with the mirror's own columns, as a changelog spells them."""
    spelled = changelog_names(schema.names)
    columns = (ColumnOrigin(name, field.type) for name, field in zip(spelled, schema, strict=True))
    return StagedFiles(files, tuple(columns), above)


def a_fold(
    mirrors: Mirrors,
    target: MirrorTarget,
    images: Sequence[tuple[pa.Table, StagedFiles]],
    key: tuple[str, ...] = ("id",),
    completion: StagedFiles | None = None,
) -> Merge:
    """The images of each part, folded and staged."""
    changes = folded_changes(mirrors, target, images, key, numbered=completion is not None)
    return Merge(target, key, changes, completion=completion)


def folded_changes(
    mirrors: Mirrors,
    target: MirrorTarget,
    images: Sequence[tuple[pa.Table, StagedFiles]],
    key: tuple[str, ...] = ("id",),
    *,
    numbered: bool = False,
) -> FoldedChanges:
    parts = tuple(part for _, part in images)
    marks = ("_committed_at",) if target.policies.marks_deleted else ()
    ignored = target.policies.deletes is Deletes.IGNORE
    fold = Fold(target.schema, key, parts, marks, numbered, ignores_deletes=ignored)
    table, lacking = fold.table([images_within(one, part) for one, part in images])
    return FoldedChanges((mirrors.stage("folded", table),), fold.kept_columns, lacking)


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
