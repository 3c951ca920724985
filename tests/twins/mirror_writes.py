"""Mirrors in memory, row by row: what a mirror is, said as plainly as Python can.

Belongs here: the answer to each kind of write and step. Does not: folding (`mirror.fold`), speed,
and what only a Delta table can show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.coalescing import LOST_ROW_REASON, RESUME_HINT
from lockstep.pipeline.mirror.layout import (
    DELETED_AT,
    changelog_names,
    keep_flag_names,
    lack_flag_names,
    origin_names,
)
from lockstep.pipeline.mirror.mapping import KEPT_CHANGE_TYPE, cast_column, images_within
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    Append,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    DropColumns,
    Fill,
    Inputs,
    Merge,
    MirrorRows,
    MirrorStep,
    MirrorWrite,
    RenameColumn,
    Replace,
    Rewrite,
    StagedFiles,
    WidenColumn,
)
from lockstep.pipeline.values.errors import TableError

Row = dict[str, Any]
Files = Mapping[str, pa.Table]
Keyed = Mapping[tuple[Any, ...], Row]

_COMES = ("insert", "update_postimage")
_GOES = ("delete", "update_preimage")


def written(files: Files, before: pa.Table | None, write: MirrorWrite) -> pa.Table:
    """What a mirror holds after a write."""
    schema = write.target.schema
    old: list[Row] = [] if before is None else before.to_pylist()
    match write:
        case Append(_, parts):
            rows = [*old, *_images(files, parts, schema, ("insert",))]
        case Merge():
            rows = _completed(files, _merged(files, old, write), write)
        case CountedMerge(_, parts):
            rows = _counted(files, old, parts, schema)
        case CountedReplace(_, parts, snapshot):
            rows = _counted(files, _read(files, snapshot, schema), parts, schema)
        case Replace():
            rows = _replaced(files, before, write)
        case _:
            assert_never(write)
    shown = [DELETED_AT] if write.target.policies.marks_deleted else []
    return pa.Table.from_pylist(rows, schema=pa.schema([*schema, *shown]))


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
                assert field.name not in before.column_names, "Delta refuses it"
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


def _column(rows: pa.Table, column: ColumnOrigin, kind: pa.DataType) -> Any:
    if column.source is not None:
        return cast_column(rows.column(column.source), kind)
    value = pa.scalar(None, kind) if column.value is None else column.value
    return pa.repeat(value, len(rows)) if value.is_valid else pa.nulls(len(rows), kind)


def _named(rows: pa.Table, columns: Sequence[ColumnOrigin], schema: pa.Schema) -> list[Row]:
    pairs = zip(schema, columns, strict=True)
    found = [_column(rows, column, field.type) for field, column in pairs]
    named: list[Row] = pa.table(found, schema=schema).to_pylist()
    return named


def _read(files: Files, parts: Inputs, schema: pa.Schema) -> list[Row]:
    """The rows of a snapshot or a completion; those of a mirror are told apart from files by their
    version, and have no column of the lake's own that marks them."""
    found: list[Row] = []
    for part in parts:
        if isinstance(part, MirrorRows):
            rows = files[f"{part.path}@{part.version}"]
            own = any(column.source == DELETED_AT.name for column in part.columns)
            if DELETED_AT.name in rows.column_names and not own:
                rows = rows.filter(pc.is_null(rows.column(DELETED_AT.name)))
            found += _named(rows, part.columns, schema)
        else:
            for path in part.files:
                found += _named(files[path], part.columns, schema)
    return found


def _images(
    files: Files, parts: Sequence[StagedFiles], schema: pa.Schema, kinds: Sequence[str]
) -> list[Row]:
    """The row images of these kinds, in the order of the files."""
    found: list[Row] = []
    for part in parts:
        for path in part.files:
            images = images_within(files[path], part)
            images = images.filter(pc.is_in(images.column("_change_type"), pa.array(kinds)))
            found += _named(images, part.columns, schema)
    return found


def _changes(files: Files, write: Merge | Replace) -> list[Row]:
    return [row for path in write.changes.files for row in files[path].to_pylist()]


def _looked_up(files: Files, rows: Keyed, write: Merge | Replace) -> list[Row]:
    """Folded changes with what they lack, from the rows of before by their keys."""
    names = write.target.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    marks = {name: lack_flag_names(names)[name] for name in write.changes.lacking_columns}
    origin = [origin_names(names)[name] for name in write.key]
    found = []
    for change in _changes(files, write):
        asked = [name for name, mark in marks.items() if change[mark]]
        there = rows.get(tuple(change[name] for name in origin)) if asked else None
        if asked and there is None:
            if isinstance(write, Replace) and change["_change_type"] in (
                "delete",
                KEPT_CHANGE_TYPE,
            ):
                continue
            raise TableError(LOST_ROW_REASON, hint=RESUME_HINT)
        found.append({**change, **{spelled[name]: (there or {})[name] for name in asked}})
    return found


def _merged(files: Files, old: Sequence[Row], write: Merge | Replace) -> list[Row]:
    """One image per key on top of a mirror's rows."""
    names = write.target.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    keeps = {name: keep_flag_names(names)[name] for name in write.changes.kept_columns}
    rows = {tuple(row[name] for name in write.key): row for row in old}
    for change in _looked_up(files, rows, write):
        identity = tuple(change[spelled[name]] for name in write.key)
        before = rows.pop(identity, None)
        gone = change["_change_type"] == "delete"
        if gone and not (write.target.policies.marks_deleted and change["_committed_at"]):
            continue
        row = {
            name: (before or {}).get(name)
            if name in keeps and change[keeps[name]]
            else change[spelled[name]]
            for name in names
        }
        if write.target.policies.marks_deleted:
            row[DELETED_AT.name] = change["_committed_at"] if gone else None
        rows[identity] = row
    return list(rows.values())


def _completed(files: Files, rows: list[Row], write: Merge) -> list[Row]:
    """With columns that were read from the source, but for rows that changed behind that."""
    part = write.completion
    if part is None:
        return rows
    names = write.target.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    behind = {
        tuple(change[spelled[name]] for name in write.key)
        for change in _changes(files, write)
        if change["_sequence"] > part.above
    }
    read = {
        tuple(row[name] for name in write.key): row
        for row in _read(files, (part,), write.target.schema)
    }
    for row in rows:
        key = tuple(row[name] for name in write.key)
        if key in read and key not in behind:
            row.update({name: read[key][name] for name in write.completed_columns})
    return rows


def _counted(
    files: Files, old: Sequence[Row], parts: Sequence[StagedFiles], schema: pa.Schema
) -> list[Row]:
    """Copies come and go, told apart bit for bit, in whatever order a mirror has its columns."""

    def bits(row: Row) -> str:
        return repr([row[name] for name in schema.names])

    rows: dict[str, list[Row]] = {}
    for row in [*old, *_images(files, parts, schema, _COMES)]:
        rows.setdefault(bits(row), []).append(row)
    for row in _images(files, parts, schema, _GOES):
        if rows.get(bits(row)):
            rows[bits(row)].pop()
    return [row for copies in rows.values() for row in copies]


def _replaced(files: Files, before: pa.Table | None, write: Replace) -> list[Row]:
    rows = _read(files, write.snapshot, write.target.schema)
    if not write.target.policies.keeps_rows:
        return _merged(files, rows, write)
    soft = write.target.policies.marks_deleted
    found = _merged(files, [{**row, DELETED_AT.name: None} for row in rows], write)
    there = {tuple(row[name] for name in write.key) for row in found}
    if not soft:
        names = write.target.schema.names
        key = [changelog_names(names)[names.index(name)] for name in write.key]
        there |= {
            tuple(change[name] for name in key)
            for change in _changes(files, write)
            if change["_change_type"] == "delete"
        }
    left = [
        _went(row, write) if soft else {**row, DELETED_AT.name: None}
        for row in _left(None if write.drops_earlier_rows else before, write)
    ]
    gone = _merged(files, left, replace(write, changes=write.deleted_rows))
    return found + [row for row in gone if tuple(row[name] for name in write.key) not in there]


def _went(row: Row, write: Replace) -> Row:
    """A row that was there, or went before."""
    if row[DELETED_AT.name] is not None or write.emptied_by is None:
        return row
    stamps = {name: write.emptied_by.value(name).as_py() for name in write.target.policies.stamps}
    return {**row, **stamps, DELETED_AT.name: write.emptied_by.committed_at}


def _left(before: pa.Table | None, write: Replace) -> list[Row]:
    """A mirror's rows in the write's columns, NULL in those that cannot hold what is there;
    none where they lack the key."""
    if before is None:
        return []
    schema = pa.schema([*write.target.schema, DELETED_AT])
    have = {field.name.lower(): field for field in before.schema}
    stays = {
        field.name: have[field.name.lower()].name
        for field in schema
        if field.name.lower() in have
        and type_change(have[field.name.lower()].type, field.type) is not TypeChange.REREAD
    }
    if not stays.keys() >= {*write.key}:
        return []
    columns = [_column(before, ColumnOrigin(stays.get(field.name)), field.type) for field in schema]
    rows: list[Row] = pa.table(columns, schema=schema).to_pylist()
    return rows
