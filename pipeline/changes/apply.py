"""Folded changes applied to the rows of a table, all in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.coalescing import HINT, LOST
from pipeline.changes.layout import (
    DELETED_AT,
    changelog_names,
    keep_names,
    lack_names,
    origin_names,
)
from pipeline.changes.mapping import KEPT, comparable, is_present
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import FoldedChanges

_AT = "_sequence"
"""Where a row is; no column of a table is called so where changelogs spell it."""

_ASKED = "_row"
"""The same of the rows that are looked for."""


def apply(
    rows: pa.Table,
    changes: pa.Table,
    key: Sequence[str],
    told: FoldedChanges = FoldedChanges(),  # noqa: B008 - a frozen value
    *,
    soft: bool = False,
    anew: bool = False,
) -> pa.Table:
    """The rows after the changes, in no particular order.

    `changes`: one image per key, `_change_type` telling upsert from delete, the columns of
    `rows` as a changelog spells them, and the marks that `told` speaks of. A change of a row that
    is not there adds it, unless it is a delete that is not ignored. With `soft`, `rows` have
    `_deleted_at`, and a deleted row stays as its last image shows it, with that image's
    `_committed_at`.

    `TableError` for a change whose row is looked up and is not there; `anew`: that row was read
    from the source, so that a delete of one that is not there is none.
    """
    names = [name for name in rows.schema.names if not soft or name != DELETED_AT.name]
    spelled = dict(zip(names, changelog_names(names), strict=True))
    changes = _looked_up(rows, changes, key, names, told, anew=anew)
    changed = [changes.column(spelled[name]) for name in key]
    changes = _kept(rows, changes, places(changed, _columns(rows, key)), names, told)
    stays = pc.is_null(places(_columns(rows, key), changed))
    present = is_present(changes.column("_change_type"))
    if soft:
        stays_marked = pc.or_(present, pc.is_valid(changes.column("_committed_at")))
        changes, present = changes.filter(stays_marked), present.filter(stays_marked)
        moment = changes.column("_committed_at").cast(DELETED_AT.type)
        marked = pc.if_else(present, pa.scalar(None, DELETED_AT.type), moment)
        brought = changes.select(list(spelled.values())).append_column(DELETED_AT, marked)
    else:
        brought = changes.filter(present).select(list(spelled.values()))
    brought = brought.rename_columns([*names, *([DELETED_AT.name] if soft else [])])
    after = brought.select(rows.schema.names).cast(rows.schema)
    return pa.concat_tables([rows.filter(stays), after])


def completed(
    rows: pa.Table,
    read: pa.Table,
    behind: pa.Table,
    key: Sequence[str],
    columns: Sequence[str],
) -> pa.Table:
    """The rows with `columns` as `read` has them for their key, unless that key is in `behind`
    too (the key's columns, in its order): it brings no row."""
    there = _columns(rows, key)
    at = places(there, _columns(read, key))
    taken = pc.and_(pc.is_valid(at), pc.is_null(places(there, behind.columns)))
    for name in columns:
        own = rows.column(name)
        value = pc.if_else(taken, read.column(name).take(at).cast(own.type), own)
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), value)
    return rows


def places(asked: Sequence[pa.ChunkedArray], there: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """For each key of `asked` where it is in `there`, which has each once (int64, NULL for
    nowhere). Both: the columns of a key."""
    names = [str(number) for number in range(len(asked))]
    wanted = _numbered(asked, names, _ASKED)
    found = wanted.join(_numbered(there, names, _AT), keys=names, join_type="left outer")
    return found.sort_by(_ASKED).column(_AT)


def _numbered(columns: Sequence[pa.ChunkedArray], names: Sequence[str], number: str) -> pa.Table:
    keys = pa.table([comparable(column) for column in columns], names=list(names))
    return keys.append_column(number, pa.array(range(keys.num_rows), pa.int64()))


def _columns(rows: pa.Table, key: Sequence[str]) -> list[pa.ChunkedArray]:
    return [rows.column(name) for name in key]


def _looked_up(
    rows: pa.Table,
    changes: pa.Table,
    key: Sequence[str],
    names: list[str],
    told: FoldedChanges,
    *,
    anew: bool,
) -> pa.Table:
    """The changes with what images left out, from the rows of before."""
    if not told.lacking:
        return changes
    spelled = dict(zip(names, changelog_names(names), strict=True))
    marks = dict(zip(names, lack_names(names), strict=True))
    origins = dict(zip(names, origin_names(names), strict=True))
    at = places([changes.column(origins[name]) for name in key], _columns(rows, key))
    lost = pa.chunked_array([pa.repeat(False, changes.num_rows)])
    for name in told.lacking:
        mark = changes.column(marks[name])
        column = changes.column(spelled[name])
        value = pc.if_else(mark, rows.column(name).take(at).cast(column.type), column)
        changes = changes.set_column(
            changes.schema.get_field_index(spelled[name]), spelled[name], value
        )
        lost = pc.or_(lost, pc.and_(mark, pc.is_null(at)))
    if anew:
        kind = changes.column("_change_type")
        gone = pc.and_(lost, pc.or_(pc.invert(is_present(kind)), pc.equal(kind, KEPT)))
        changes, lost = changes.filter(pc.invert(gone)), pc.and_(lost, pc.invert(gone))
    if pc.any(lost).as_py():
        raise TableError(LOST, hint=HINT)
    return changes


def _kept(
    rows: pa.Table,
    changes: pa.Table,
    at: pa.ChunkedArray,
    names: list[str],
    told: FoldedChanges,
) -> pa.Table:
    """The changes with what the rows of before keep."""
    spelled = dict(zip(names, changelog_names(names), strict=True))
    marks = dict(zip(names, keep_names(names), strict=True))
    for name in told.kept:
        column = changes.column(spelled[name])
        there = rows.column(name).take(at).cast(column.type)
        value = pc.if_else(changes.column(marks[name]), there, column)
        changes = changes.set_column(
            changes.schema.get_field_index(spelled[name]), spelled[name], value
        )
    return changes
