"""Mirrors in memory, row by row: what a mirror is, said as plainly as Python can.

Belongs here: the answer to each kind of write and step. Does not: speed, and what only a
Delta table can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.coalescing import HINT, LOST, OTHER_KEY, coalesced
from pipeline.changes.layout import (
    DELETED_AT,
    changelog_names,
    keep_names,
    lack_names,
    origin_names,
)
from pipeline.changes.mapping import cast_column, folded, kept_columns
from pipeline.changes.widening import TypeChange, type_change
from pipeline.errors import TableError
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
    completed_columns,
)

Row = dict[str, Any]
Files = Mapping[str, pa.Table]


def written(files: Files, before: pa.Table | None, write: MirrorWrite) -> pa.Table:
    """What a mirror holds after a write."""
    soft = write.deletes == "soft"
    if soft and not write.key:
        raise TableError("deleted rows cannot be marked in a table without a key", hint="a key")
    schema = pa.schema([*write.schema, *([DELETED_AT] if soft else [])])
    old = [] if before is None else before.to_pylist()
    if write.mode == "replace":
        rows = _replaced(files, before, write)
    elif write.mode == "append":
        rows = [*old, *_images(files, write, lambda kind: kind == "insert")]
    elif not write.key:
        rows = _counted(files, old, write)
    else:
        rows = _completed(files, _merged(old, _changes(files, write), write), write)
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


def _mapped(files: Files, write: MirrorWrite) -> list[tuple[pa.Table, Part]]:
    return [
        (_above(pa.concat_tables([files[path] for path in part.files]), part.above), part)
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
    for images, part in _mapped(files, write):
        kinds = images.column("_change_type").to_pylist()
        rows = _named(images, part.columns, write.schema)
        found += [row for kind, row in zip(kinds, rows, strict=True) if wanted(kind)]
    return found


def _changes(files: Files, write: MirrorWrite) -> tuple[pa.Table | None, tuple[str, ...]]:
    """Folded changes, and the columns that some of them lack."""
    parts = _mapped(files, write)
    if not parts:
        return None, ()
    if write.mode == "merge" or write.folded:
        return pa.concat_tables([images for images, _ in parts]), write.lacking
    marks = ["_committed_at"] if write.deletes == "soft" else []
    if any(part.present is not None for _, part in parts):
        return coalesced(parts, write.schema, write.key, marks)
    whole = [(images, part.columns) for images, part in parts]
    numbered = write.completion is not None
    return folded(whole, write.schema, write.key, marks, numbered=numbered), ()


def _looked_up(
    rows: Mapping[tuple[Any, ...], Row],
    changes: pa.Table | None,
    lacking: Sequence[str],
    write: MirrorWrite,
) -> list[Row]:
    """Folded changes with what they lack, from the rows of before by their keys."""
    names = write.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    marks = {name: lack_names(names)[names.index(name)] for name in lacking}
    origin = [origin_names(names)[names.index(name)] for name in write.key]
    found = []
    for change in [] if changes is None else changes.to_pylist():
        asked = [name for name, mark in marks.items() if change[mark]]
        there = rows.get(tuple(change[name] for name in origin)) if asked else None
        if asked and there is None:
            if write.mode == "replace" and change["_change_type"] == "delete":
                continue
            raise TableError(LOST, hint=HINT)
        found.append({**change, **{spelled[name]: (there or {})[name] for name in asked}})
    return found


def _merged(
    old: Sequence[Row], folds: tuple[pa.Table | None, Sequence[str]], write: MirrorWrite
) -> list[Row]:
    """One image per key on top of a mirror's rows."""
    names = write.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    kept = write.kept or kept_columns((part.columns for part in _parts(write)), write.schema)
    keeps = {name: keep_names(names)[names.index(name)] for name in kept}
    rows = {tuple(row[name] for name in write.key): row for row in old}
    for change in _looked_up(rows, *folds, write):
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


def _completed(files: Files, rows: list[Row], write: MirrorWrite) -> list[Row]:
    """With columns that were read from the source, but for rows that changed behind that."""
    part = write.completion
    if part is None:
        return rows
    changes, _ = _changes(files, write)
    spelled = dict(zip(write.schema.names, changelog_names(write.schema.names), strict=True))
    behind = {
        tuple(change[spelled[name]] for name in write.key)
        for change in ([] if changes is None else changes.to_pylist())
        if change["_sequence"] > part.above
    }
    read = {
        tuple(row[name] for name in write.key): row
        for path in part.files
        for row in _named(files[path], part.columns, write.schema)
    }
    for row in rows:
        key = tuple(row[name] for name in write.key)
        if key in read and key not in behind:
            row.update({name: read[key][name] for name in completed_columns(write)})
    return rows


def _counted(files: Files, old: Sequence[Row], write: MirrorWrite) -> list[Row]:
    """Copies come and go, told apart bit for bit."""
    if any(part.present is not None for part in write.parts):
        raise TableError(OTHER_KEY, hint=HINT)
    rows: dict[str, list[Row]] = {}
    for row in [*old, *_images(files, write, lambda kind: kind in ("insert", "update_postimage"))]:
        rows.setdefault(_bits(row, write), []).append(row)
    for row in _images(files, write, lambda kind: kind in ("delete", "update_preimage")):
        if rows.get(_bits(row, write)):
            rows[_bits(row, write)].pop()
    return [row for copies in rows.values() for row in copies]


def _bits(row: Row, write: MirrorWrite) -> str:
    """What tells a row from others: its values, in whatever order a mirror has its columns."""
    return repr([row[name] for name in write.schema.names])


def _replaced(files: Files, before: pa.Table | None, write: MirrorWrite) -> list[Row]:
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
    for row in _left(before, write):
        if tuple(row[name] for name in write.key) not in there:
            found.append({**row, DELETED_AT.name: row[DELETED_AT.name] or write.moment})
    return found


def _left(before: pa.Table | None, write: MirrorWrite) -> list[Row]:
    """A mirror's rows in the write's columns, NULL in those that cannot hold what is there;
    none where they lack the key."""
    if before is None:
        return []
    schema = pa.schema([*write.schema, DELETED_AT])
    have = {field.name.lower(): field for field in before.schema}
    stays = {
        field.name: have[field.name.lower()].name
        for field in schema
        if field.name.lower() in have
        and type_change(have[field.name.lower()].type, field.type) is not TypeChange.REREAD
    }
    if not stays.keys() >= {*write.key}:
        return []
    columns = [_column(before, PartColumn(stays.get(field.name)), field.type) for field in schema]
    rows: list[Row] = pa.table(columns, schema=schema).to_pylist()
    return rows
