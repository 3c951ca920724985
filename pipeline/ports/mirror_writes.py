"""What is written to a mirror: rows in one commit, or a step that changes its columns.

Belongs here: the values that say it. Does not: who decides them (`pipeline.changes`) or
carries them out (`ports.mirrors`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PartColumn:
    """Where files get a mirror's column from: their column `source`, of Arrow type `type`,
    which is cast; or `value` for every row. Neither: the files do not know the column.
    A row then keeps what the mirror has, and a new row has NULL. `bit`: the place of
    `source` in the bits of `Part.present`."""

    source: str | None = None
    type: pa.DataType | None = None
    value: pa.Scalar | None = None
    bit: int | None = None

    @property
    def absent(self) -> bool:
        return self.source is None and self.value is None


@dataclass(frozen=True, slots=True)
class Part:
    """Parquet files of one structure: absolute paths, and a column for each of the
    write's schema, in its order. Of row images only those count whose `_sequence` is above
    `above`. `present`: the files' column of bits that say what an image has of the table's
    columns (`RowImages.present`); None where images have all."""

    files: tuple[str, ...]
    columns: tuple[PartColumn, ...]
    above: int = 0
    present: str | None = None


@dataclass(frozen=True, slots=True)
class MirrorWrite:
    """One write to a mirror: rows to append, changes to merge, or all it shall hold.

    `files` are absolute paths of Parquet files whose columns are `schema`'s, spelled as a
    changelog spells them (`layout.changelog_names`); `parts` are files of other structures.
    `mode`

    - "append": row images whose table columns become new rows.
    - "merge": one image per key, `_change_type` telling upsert (insert,
      update_postimage) from delete; `files` only. `kept`: columns with a mark of their own
      there, true where the mirror's value stays (`layout.keep_names`). `lacking`: columns
      with a mark, true where every image left the value out (`layout.lack_names`): it is
      that of the mirror's row whose key is in `layout.origin_names`. `TableError` if there
      is no such row.
    - "fold": row images, any number per key, which the lake folds to the last one in the
      order of `_sequence` before it merges. Without a `key`: copies are counted.
    - "replace": the mirror holds the rows of `snapshot` with the row images folded on top,
      and nothing else; also with other columns than before. Nothing of either: no rows.
      `folded`: `files` are as for "merge", and the snapshot's row is looked up.

    `completion`, for "merge" and "fold" with a key and whole images: rows of the source that
    have the key and some columns, the others absent. In those columns, rows of the mirror
    that have no image above `completion.above` get what it has for their key; it brings no
    row. Files of "merge" have `_sequence` then.

    `schema`: the mirror's columns, without `_deleted_at`. `key` () is a table without one:
    "append", "fold" and "replace" only. `bounds`: the least and greatest value of leading key
    columns, the origins' too, where known, as SQL literals for the ON clause. `deletes` "soft":
    the row of a delete stays, with the commit's moment in `_deleted_at` (files of "merge" have
    `_committed_at` then); "append" is for mirrors that hold no such row; a "replace" marks rows
    that are gone with `moment`. `readers` "any": a mirror that this write creates has no deletion
    vectors.
    """

    mirror: str
    mode: str
    files: tuple[str, ...]
    schema: pa.Schema
    key: tuple[str, ...]
    app_id: str
    txn_version: int
    user_metadata: str
    bounds: tuple[tuple[str, str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    snapshot: tuple[Part, ...] = ()
    completion: Part | None = None
    kept: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    folded: bool = False
    deletes: str = "remove"
    moment: datetime | None = None
    readers: str = "spark"

    @property
    def staged(self) -> tuple[str, ...]:
        """Every file it reads."""
        parts = [*self.parts, *self.snapshot]
        if self.completion is not None:
            parts.append(self.completion)
        return (*self.files, *(file for part in parts for file in part.files))


def completed_columns(write: MirrorWrite) -> tuple[str, ...]:
    """The mirror's columns that a write's completion has beside the key."""
    if write.completion is None:
        return ()
    pairs = zip(write.schema.names, write.completion.columns, strict=True)
    return tuple(name for name, column in pairs if not column.absent and name not in write.key)


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Switch properties of the mirror's Delta table on."""

    properties: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "set " + ", ".join(f"{name} = {value}" for name, value in self.properties)


@dataclass(frozen=True, slots=True)
class DropColumns:
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "drop " + ", ".join(self.names)


@dataclass(frozen=True, slots=True)
class RenameColumn:
    name: str
    to: str

    def __str__(self) -> str:
        return f"rename {self.name} to {self.to}"


@dataclass(frozen=True, slots=True)
class WidenColumn:
    name: str
    type: pa.DataType

    def __str__(self) -> str:
        return f"widen {self.name} to {self.type}"


@dataclass(frozen=True, slots=True)
class AddColumns:
    """New columns at the end, NULL in every row."""

    fields: pa.Schema

    def __str__(self) -> str:
        return "add " + ", ".join(f"{field.name} {field.type}" for field in self.fields)


@dataclass(frozen=True, slots=True)
class Fill:
    """One value per column for all rows there are."""

    values: tuple[tuple[str, pa.Scalar], ...]

    def __str__(self) -> str:
        return "fill " + ", ".join(f"{name} with {value}" for name, value in self.values)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """All rows once more, under `schema`: per column the mirror's column it is cast from,
    or a value."""

    schema: pa.Schema
    columns: tuple[PartColumn, ...]

    def __str__(self) -> str:
        told = (
            f"{field.name} {field.type} from {column.source or column.value}"
            for field, column in zip(self.schema, self.columns, strict=True)
        )
        return "rewrite " + ", ".join(told)


MirrorStep = SetProperties | DropColumns | RenameColumn | WidenColumn | AddColumns | Fill | Rewrite
"""One commit of a mirror that changes its columns; `str` says what it does, in words that
a repeated try finds in the history."""
