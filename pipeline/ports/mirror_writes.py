"""Writes to a mirror as values: rows in one commit, or steps that change its columns."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lockstep.pipeline.values.policies import Deletes, LakePolicies, Readers, Truncates, keeps_rows
from lockstep.pipeline.values.stamps import Stamp

_DEFAULTS = LakePolicies()


@dataclass(frozen=True, slots=True)
class PartColumn:
    """The origin of a mirror's column in files: their column `source`, of Arrow type `type`,
    which is cast; or `value` for every row. With neither, the files lack the column: a row keeps
    the mirror's value, and a new row gets NULL. `bit`: the place of `source` in the bits of
    `StagedFiles.present`."""

    source: str | None = None
    type: pa.DataType | None = None
    value: pa.Scalar | None = None
    bit: int | None = None

    @property
    def absent(self) -> bool:
        return self.source is None and self.value is None


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Parquet files of one structure: absolute paths, and a column for each column of the
    write's schema, in its order. Only row images with `above` < `_sequence` <= `through` count
    (None: no end). `present`: the files' column of bits that say which of the table's columns an
    image has (`RowImages.present`); None if images have all."""

    files: tuple[str, ...]
    columns: tuple[PartColumn, ...]
    above: int = 0
    present: str | None = None
    through: int | None = None


@dataclass(frozen=True, slots=True)
class MirrorRows:
    """The rows of another mirror at a Delta version, without those that are marked as deleted: its
    absolute path, and a column for each column of the write's schema, in its order."""

    path: str
    version: int
    columns: tuple[PartColumn, ...]


Snapshot = tuple[StagedFiles | MirrorRows, ...]
"""The rows that a mirror begins with, before changes are applied."""


@dataclass(frozen=True, slots=True)
class MirrorTarget:
    """The mirror that is written, and its commit's metadata.

    `schema`: the mirror's columns, without `_deleted_at`; `stamps`: those that describe the row's
    last change. `app_id`, `txn_version`: the transaction that Delta records. `deletes` "soft":
    deleted rows stay, with the moment in `_deleted_at`. `deletes` and `truncates` "ignore": they
    stay as they were. `readers` "any": a mirror that this write creates has no deletion vectors.
    `cluster`: the columns by which the mirror's files are clustered from then on; None changes
    nothing.
    """

    mirror: str
    schema: pa.Schema
    app_id: str
    txn_version: int
    user_metadata: str
    deletes: Deletes = _DEFAULTS.deletes
    readers: Readers = _DEFAULTS.readers
    truncates: Truncates = _DEFAULTS.truncates
    stamps: tuple[str, ...] = ()
    cluster: tuple[str, ...] | None = None

    @property
    def soft(self) -> bool:
        return self.deletes == Deletes.SOFT

    @property
    def keeps(self) -> bool:
        """Whether rows stay that were deleted at the source."""
        return keeps_rows(self.deletes, self.truncates)


@dataclass(frozen=True, slots=True)
class FoldedChanges:
    """One image per key over all `files`, absolute paths of Parquet files: the target's columns
    as a changelog spells them (`layout.changelog_names`); `_change_type`, which tells upserts
    (insert, update_postimage, `mapping.KEPT`) from deletes; `_committed_at` if deletes are "soft".

    `kept`: columns with a marker column, which is true where the mirror's value stays
    (`layout.keep_names`). `lacking`: columns with a marker column, which is true where every image
    left the value out (`layout.lack_names`): the value is that of the row whose key is in
    `layout.origin_names`. A delete without `_committed_at` removes the row even if deletes are
    "soft".
    """

    files: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether they have every value that they write."""
        return not self.kept and not self.lacking


@dataclass(frozen=True, slots=True)
class Append:
    """Append the inserted row images of `parts` to a mirror without rows that are marked."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """Update, delete and insert rows of the mirror. `TableError` if a change lacks values and its
    row is not in the mirror.

    `bounds`: the least and greatest values of leading key columns, those of `origin_names`
    included, as SQL literals, as far as they are known. `completion`: rows of the source with the
    key and some columns. Rows of the mirror without an image above `completion.above` get its
    values of these columns; it inserts no row. The changes are then whole and have `_sequence`.
    """

    target: MirrorTarget
    key: tuple[str, ...]
    changes: FoldedChanges
    bounds: tuple[tuple[str, str, str], ...] = ()
    completion: StagedFiles | None = None

    @property
    def completed(self) -> tuple[str, ...]:
        """The mirror's columns that the completion has beside the key."""
        if self.completion is None:
            return ()
        pairs = zip(self.target.schema.names, self.completion.columns, strict=True)
        return tuple(name for name, column in pairs if not column.absent and name not in self.key)


@dataclass(frozen=True, slots=True)
class CountedMerge:
    """Insert and delete the row images of `parts` in a mirror without a key, by counting copies."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the mirror's rows by those of `snapshot` with the changes applied, possibly under
    other columns than before. Without either, the mirror is empty. Values that changes lack are in
    the snapshot's row. If the target keeps deleted rows, those of `gone`, which have all values,
    stay, and so do all other rows that the mirror had: if deletes are "soft", the former are marked
    with their own moments, the latter as `emptied` says. With `forgets`, no row of before stays."""

    target: MirrorTarget
    key: tuple[str, ...]
    snapshot: Snapshot = ()
    changes: FoldedChanges = FoldedChanges()
    emptied: Stamp | None = None
    gone: FoldedChanges = FoldedChanges()
    forgets: bool = False


@dataclass(frozen=True, slots=True)
class CountedReplace:
    """The same without a key, by counting copies in `snapshot` and in the row images."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...] = ()
    snapshot: Snapshot = ()


MirrorWrite = Append | Merge | CountedMerge | Replace | CountedReplace
"""One write to a mirror, in one commit; `changes.strategy` chooses among them."""


def parts_of(write: MirrorWrite) -> Snapshot:
    """Return the inputs of a write whose columns are not those of the mirror yet."""
    match write:
        case Append(_, parts) | CountedMerge(_, parts):
            return parts
        case CountedReplace(_, parts, snapshot):
            return (*parts, *snapshot)
        case Merge():
            return () if write.completion is None else (write.completion,)
        case Replace():
            return write.snapshot


def staged(write: MirrorWrite) -> tuple[str, ...]:
    """Return every file that a write reads."""
    read: list[FoldedChanges | StagedFiles]
    read = [part for part in parts_of(write) if isinstance(part, StagedFiles)]
    if isinstance(write, Merge):
        read.append(write.changes)
    elif isinstance(write, Replace):
        read += [write.changes, write.gone]
    return tuple(file for part in read for file in part.files)


def copied(write: MirrorWrite) -> tuple[MirrorRows, ...]:
    """Return the mirrors whose rows a write reads."""
    return tuple(part for part in parts_of(write) if isinstance(part, MirrorRows))


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
    """Set columns to one value each in all rows of the mirror."""

    values: tuple[tuple[str, pa.Scalar], ...]

    def __str__(self) -> str:
        return "fill " + ", ".join(f"{name} with {value}" for name, value in self.values)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Write all rows again under `schema`: each column is cast from a column of the mirror, or has
    a value."""

    schema: pa.Schema
    columns: tuple[PartColumn, ...]

    def __str__(self) -> str:
        columns = (
            f"{field.name} {field.type} from {column.source or column.value}"
            for field, column in zip(self.schema, self.columns, strict=True)
        )
        return "rewrite " + ", ".join(columns)


MirrorStep = SetProperties | DropColumns | RenameColumn | WidenColumn | AddColumns | Fill | Rewrite
"""One commit of a mirror that changes its columns; `str` says what it does, in words by which a
repeated try finds it in the history."""
