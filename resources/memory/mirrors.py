"""Mirrors in memory, row by row: what a mirror is, said as plainly as Python can.

Belongs here: the answer to each kind of write and step. Does not: speed, and what only a
Delta table can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.layout import DELETED_AT, changelog_names, keep_names
from pipeline.changes.mapping import cast_column, folded, kept_columns
from pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    Fill,
    MirrorStep,
    MirrorWrite,
    Part,
    PartColumn,
    RenameColumn,
    Rewrite,
    WidenColumn,
)

Row = dict[str, Any]
Files = Mapping[str, pa.Table]


def written(files: Files, before: pa.Table | None, write: MirrorWrite) -> pa.Table:
    """What a mirror holds after a write."""
    soft = write.deletes == "soft"
    schema = pa.schema([*write.schema, *([DELETED_AT] if soft else [])])
    old = [] if before is None else before.to_pylist()
    if write.mode == "replace":
        rows = _replaced(files, old, write)
    elif write.mode == "append":
        rows = [*old, *_images(files, write, lambda kind: kind == "insert")]
    elif not write.key:
        rows = _counted(files, old, write)
    else:
        rows = _merged(old, _changes(files, write), write)
    return pa.Table.from_pylist(rows, schema=schema)


def evolved(before: pa.Table, step: MirrorStep) -> pa.Table:
    """What a mirror holds after a step."""
    match step:
        case DropColumns(names):
            return before.drop_columns(list(names))
        case RenameColumn(name, to):
            taken = {one.lower() for one in before.column_names}
            if to.lower() in taken:
                raise ValueError(f"column {to!r} is there")
            return before.rename_columns({name: to})
        case WidenColumn(name, kind):
            at = before.schema.get_field_index(name)
            return before.set_column(at, name, cast_column(before.column(name), kind))
        case AddColumns(fields):
            for field in fields:
                before = before.append_column(field, pa.nulls(len(before), field.type))
            return before
        case Fill(values):
            for name, value in values:
                at = before.schema.get_field_index(name)
                before = before.set_column(at, name, pa.repeat(value, len(before)))
            return before
        case Rewrite(schema, columns):
            pairs = zip(schema, columns, strict=True)
            found = [_column(before, column, field.type) for field, column in pairs]
            return pa.table(found, schema=schema)
    return before


def _column(rows: pa.Table, column: PartColumn, kind: pa.DataType) -> Any:
    if column.source is not None:
        return cast_column(rows.column(column.source), kind)
    value = pa.scalar(None, kind) if column.value is None else column.value
    return pa.repeat(value, len(rows)) if value.is_valid else pa.nulls(len(rows), kind)


def _parts(write: MirrorWrite) -> Iterable[Part]:
    if write.files:
        names = changelog_names(write.schema.names)
        own = (PartColumn(n, f.type) for n, f in zip(names, write.schema, strict=True))
        yield Part(write.files, tuple(own))
    yield from write.parts


def _mapped(files: Files, write: MirrorWrite) -> list[tuple[pa.Table, Sequence[PartColumn]]]:
    return [
        (_above(pa.concat_tables([files[path] for path in part.files]), part.above), part.columns)
        for part in _parts(write)
        if part.files
    ]


def _above(images: pa.Table, number: int) -> pa.Table:
    return images.filter(pc.greater(images.column("_sequence"), number)) if number else images


def _named(rows: pa.Table, columns: Sequence[PartColumn], schema: pa.Schema) -> list[Row]:
    pairs = zip(schema, columns, strict=True)
    found = [_column(rows, column, field.type) for field, column in pairs]
    named: list[Row] = pa.table(found, schema=schema).to_pylist()
    return named


def _images(files: Files, write: MirrorWrite, wanted: Callable[[str], bool]) -> list[Row]:
    """The images of the kinds that are wanted, in the order of the files."""
    found: list[Row] = []
    for images, columns in _mapped(files, write):
        kinds = images.column("_change_type").to_pylist()
        rows = _named(images, columns, write.schema)
        found += [row for kind, row in zip(kinds, rows, strict=True) if wanted(kind)]
    return found


def _changes(files: Files, write: MirrorWrite) -> pa.Table | None:
    parts = _mapped(files, write)
    if not parts:
        return None
    if write.mode == "merge":
        return pa.concat_tables([images for images, _ in parts])
    marks = ["_committed_at"] if write.deletes == "soft" else []
    return folded(parts, write.schema, write.key, marks)


def _merged(old: Sequence[Row], changes: pa.Table | None, write: MirrorWrite) -> list[Row]:
    """One image per key on top of a mirror's rows."""
    names = write.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    kept = write.kept or kept_columns((part.columns for part in _parts(write)), write.schema)
    keeps = {name: keep_names(names)[names.index(name)] for name in kept}
    rows = {tuple(row[name] for name in write.key): row for row in old}
    for change in [] if changes is None else changes.to_pylist():
        identity = tuple(change[spelled[name]] for name in write.key)
        before = rows.pop(identity, None)
        gone = change["_change_type"] == "delete"
        if gone and write.deletes != "soft":
            continue
        row = {
            name: (before or {}).get(name)
            if name in keeps and change[keeps[name]]
            else change[spelled[name]]
            for name in names
        }
        if write.deletes == "soft":
            row[DELETED_AT.name] = change["_committed_at"] if gone else None
        rows[identity] = row
    return list(rows.values())


def _counted(files: Files, old: Sequence[Row], write: MirrorWrite) -> list[Row]:
    """Copies come and go, told apart bit for bit."""
    rows: dict[str, list[Row]] = {}
    for row in [*old, *_images(files, write, lambda kind: kind in ("insert", "update_postimage"))]:
        rows.setdefault(repr(row), []).append(row)
    for row in _images(files, write, lambda kind: kind in ("delete", "update_preimage")):
        if rows.get(repr(row)):
            rows[repr(row)].pop()
    return [row for copies in rows.values() for row in copies]


def _replaced(files: Files, old: Sequence[Row], write: MirrorWrite) -> list[Row]:
    rows = [
        row
        for part in write.snapshot
        for path in part.files
        for row in _named(files[path], part.columns, write.schema)
    ]
    if not write.key:
        return _counted(files, rows, write)
    if write.deletes != "soft":
        return _merged(rows, _changes(files, write), write)
    marked = [{**row, DELETED_AT.name: None} for row in rows]
    found = _merged(marked, _changes(files, write), write)
    there = {tuple(row[name] for name in write.key) for row in found}
    for row in old:
        if tuple(row.get(name) for name in write.key) not in there:
            moment = row.get(DELETED_AT.name) or write.moment
            found.append({n: row.get(n) for n in write.schema.names} | {DELETED_AT.name: moment})
    return found
