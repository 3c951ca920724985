"""What is written to a mirror: rows in one commit, or a step that changes its columns."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pipeline.policies import Deletes, LakePolicies, Readers, Truncates, keeps_rows
from pipeline.stamps import Stamp

_DEFAULTS = LakePolicies()


@dataclass(frozen=True, slots=True)
class PartColumn:
    """Where files get a mirror's column from: their column `source`, of Arrow type `type`,
    which is cast; or `value` for every row. Neither: the files do not know the column.
    A row then keeps what the mirror has, and a new row has NULL. `bit`: the place of
    `source` in the bits of `StagedFiles.present`."""

    source: str | None = None
    type: pa.DataType | None = None
    value: pa.Scalar | None = None
    bit: int | None = None

    @property
    def absent(self) -> bool:
        return self.source is None and self.value is None


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Parquet files of one structure: absolute paths, and a column for each of the
    write's schema, in its order. Of row images only those count whose `_sequence` is above
    `above`, and not above `through` (None: no end). `present`: the files' column of bits that say
    what an image has of the table's columns (`RowImages.present`); None where images have all."""

    files: tuple[str, ...]
    columns: tuple[PartColumn, ...]
    above: int = 0
    present: str | None = None
    through: int | None = None


@dataclass(frozen=True, slots=True)
class MirrorRows:
    """The rows that a mirror has at a Delta version, without those that are marked as deleted: its
    absolute path, and a column for each of the write's schema, in its order."""

    path: str
    version: int
    columns: tuple[PartColumn, ...]


Snapshot = tuple[StagedFiles | MirrorRows, ...]
"""The rows that a mirror begins with."""


@dataclass(frozen=True, slots=True)
class MirrorTarget:
    """The mirror that is written, and what the commit says of itself.

    `schema`: the mirror's columns, without `_deleted_at`; `stamps`: those of them that are of the
    row's last change. `app_id`, `txn_version`: the transaction that Delta records. `deletes`
    "soft": rows that are gone stay, with the moment in `_deleted_at`. `deletes` and `truncates`
    "ignore": they stay as they were. `readers` "any": a mirror that this write creates has no
    deletion vectors. `cluster`: the columns that the mirror's files are to be clustered by from
    then on; None leaves that as it is.
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
        """Whether rows stay that are gone at the source."""
        return keeps_rows(self.deletes, self.truncates)


@dataclass(frozen=True, slots=True)
class FoldedChanges:
    """One image per key over all `files`, absolute paths of Parquet files: the target's columns
    as a changelog spells them (`layout.changelog_names`), `_change_type` telling upsert (insert,
    update_postimage, `mapping.KEPT`) from delete, and `_committed_at` where deletes are "soft".

    `kept`: columns with a mark of their own there, true where the mirror's value stays
    (`layout.keep_names`). `lacking`: columns with a mark, true where every image left the value
    out (`layout.lack_names`): it is that of the row whose key is in `layout.origin_names`. A delete
    without `_committed_at` leaves no row, also where deletes are "soft".
    """

    files: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether they have every value that they bring."""
        return not self.kept and not self.lacking


@dataclass(frozen=True, slots=True)
class Append:
    """The inserted row images of `parts` become new rows of a mirror without marked ones."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """Rows of the mirror are updated, deleted and inserted. `TableError` where a change lacks
    values, and its row is not in the mirror.

    `bounds`: the least and greatest value of leading key columns, the origins' too, where known,
    as SQL literals. `completion`: rows of the source that have the key and some columns, the
    others absent. In those columns, rows of the mirror that have no image above
    `completion.above` get what it has for their key; it brings no row. The changes are whole and
    have `_sequence` then.
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
class Count:
    """The row images of `parts` come to and go from a mirror without a key: copies are counted."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """The mirror holds the rows of `snapshot` with the changes on top, and nothing else; also with
    other columns than before. Nothing of either: no rows. What changes lack is in the snapshot's
    row. Where the target keeps rows that are gone, those of `gone` stay, which lack nothing, and
    all others that the mirror had: where deletes are "soft", the former are deletes and marked with
    their own moments, the latter as `emptied` says. None stays that the mirror had if it `forgets`
    them."""

    target: MirrorTarget
    key: tuple[str, ...]
    snapshot: Snapshot = ()
    changes: FoldedChanges = FoldedChanges()
    emptied: Stamp | None = None
    gone: FoldedChanges = FoldedChanges()
    forgets: bool = False


@dataclass(frozen=True, slots=True)
class Recount:
    """The same without a key: the copies of `snapshot` are counted, and the row images on top."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...] = ()
    snapshot: Snapshot = ()


MirrorWrite = Append | Merge | Count | Replace | Recount
"""One write to a mirror, in one commit (which of them, `changes.strategy` decides)."""


def parts_of(write: MirrorWrite) -> Snapshot:
    """What a write reads whose columns are not the mirror's yet."""
    match write:
        case Append(_, parts) | Count(_, parts):
            return parts
        case Recount(_, parts, snapshot):
            return (*parts, *snapshot)
        case Merge():
            return () if write.completion is None else (write.completion,)
        case Replace():
            return write.snapshot


def staged(write: MirrorWrite) -> tuple[str, ...]:
    """Every file that a write reads."""
    read: list[FoldedChanges | StagedFiles]
    read = [part for part in parts_of(write) if isinstance(part, StagedFiles)]
    if isinstance(write, Merge):
        read.append(write.changes)
    elif isinstance(write, Replace):
        read += [write.changes, write.gone]
    return tuple(file for part in read for file in part.files)


def copied(write: MirrorWrite) -> tuple[MirrorRows, ...]:
    """The mirrors that a write reads rows of."""
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
