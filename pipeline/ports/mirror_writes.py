"""Writes to a mirror (the Delta table with the current rows of a source table) as
values: rows in one commit, or steps that change its columns.

`_sequence` is the number of a change in the source's log; `_change_type` is its kind. A
changelog is the Delta table with all changes of a source table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.stamps import Stamp


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """The origin of a mirror's column in a write. `source`: a column of the write's
    files, whose Arrow type `type` is cast to the mirror's type; or `value`: the value
    that every row gets. With neither, the files lack the column: an existing row keeps
    its value in the mirror, and a new row gets NULL. `present_bit`: the index of the
    bit for `source` in the column `StagedFiles.present_column`."""

    source: str | None = None
    type: pa.DataType | None = None
    value: pa.Scalar | None = None
    present_bit: int | None = None

    @property
    def is_absent(self) -> bool:
        """True if the files lack the column."""
        return self.source is None and self.value is None


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Parquet files of row images, all with one structure. `files`: their absolute
    paths. `columns`: the origin of each column of the write's schema, in the schema's
    order. Only images with `above` < `_sequence` <= `through` are read (None: no upper
    limit). `present_column`: the name of the files' column whose bits say which of the
    table's columns an image has (`RowImages.present`), or None if every image has all
    columns."""

    files: tuple[str, ...]
    columns: tuple[ColumnOrigin, ...]
    above: int = 0
    present_column: str | None = None
    through: int | None = None


@dataclass(frozen=True, slots=True)
class MirrorRows:
    """The rows of another mirror at a Delta version, without those that are marked as
    deleted. `path`: the absolute path of that mirror. `columns`: the origin of each
    column of the write's schema, in the schema's order."""

    path: str
    version: int
    columns: tuple[ColumnOrigin, ...]


Inputs = tuple[StagedFiles | MirrorRows, ...]
"""Rows that a write reads."""


@dataclass(frozen=True, slots=True)
class MirrorTarget:
    """The mirror that is written, and its commit's metadata.

    - `schema`: the mirror's columns, without `_deleted_at`.
    - `app_id`, `txn_version`: the values of Delta's `txn` action.
    - `policies`: the table's policies.
    """

    mirror: str
    schema: pa.Schema
    app_id: str
    txn_version: int
    user_metadata: str
    policies: LakePolicies


@dataclass(frozen=True, slots=True)
class FoldedChanges:
    """The last image of each key, in Parquet files. `files`: their absolute paths.

    The files have the target's columns, spelled as in a changelog
    (`layout.changelog_names`), and `_change_type`: insert, update_postimage and
    `mapping.KEPT_CHANGE_TYPE` write the row, delete removes it. If deletes are "soft",
    the files also have `_committed_at`; a delete where it is NULL removes the row all
    the same.

    `kept_columns`: columns that keep the mirror's value in some rows.
    `lacking_columns`: columns that some rows have in none of their images; the value is
    taken from the mirror's row whose key is in the columns of `layout.origin_names`.
    Each of these columns has a flag column (`layout.keep_flag_names`,
    `layout.lack_flag_names`), which is true in those rows.
    """

    files: tuple[str, ...] = ()
    kept_columns: tuple[str, ...] = ()
    lacking_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Append:
    """Append the inserted row images of `parts` to a mirror that has no rows marked as
    deleted."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """Update, delete and insert rows of the mirror. The write raises `TableError` if a
    change lacks values and its row is not in the mirror.

    `bounds`: leading key columns, each with its least and greatest value as SQL
    literals, as far as these are known. They span the keys of the changes and the keys
    in `layout.origin_names`; files outside of them are skipped. `completion`: rows that
    were read from the source, with the key and some other columns. The write sets these
    columns in rows of the mirror, but not in a row with a change whose `_sequence` is
    above `completion.above`; it inserts no row of the completion. With a completion,
    `changes` has no kept or lacking columns, and its files have the column `_sequence`.
    """

    target: MirrorTarget
    key: tuple[str, ...]
    changes: FoldedChanges
    bounds: tuple[tuple[str, str, str], ...] = ()
    completion: StagedFiles | None = None

    @property
    def completed_columns(self) -> tuple[str, ...]:
        """The mirror's columns that the completion has besides the key."""
        if self.completion is None:
            return ()
        pairs = zip(self.target.schema.names, self.completion.columns, strict=True)
        return tuple(
            name for name, column in pairs if not column.is_absent and name not in self.key
        )


@dataclass(frozen=True, slots=True)
class CountedMerge:
    """Insert and delete the row images of `parts` in a mirror without a key, by
    counting copies."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the mirror's rows by those of `snapshot` with `changes` applied, possibly
    under other columns than before. Without a snapshot and changes, the mirror becomes
    empty. A value that a change lacks is taken from the row of the snapshot.

    If the target keeps deleted rows, these rows stay although they are no longer at the
    source:

    - the rows of `deleted_rows`, which have all values. If deletes are "soft", they are
      marked as deleted, each at its own time.
    - the rows that the mirror had before, unless `drops_earlier_rows`. If deletes are
      "soft", those without a mark are marked as deleted at the time of `emptied_by`, or
      of the write if that is None.
    """

    target: MirrorTarget
    key: tuple[str, ...]
    snapshot: Inputs = ()
    changes: FoldedChanges = FoldedChanges()
    emptied_by: Stamp | None = None
    deleted_rows: FoldedChanges = FoldedChanges()
    drops_earlier_rows: bool = False


@dataclass(frozen=True, slots=True)
class CountedReplace:
    """Replace the rows of a mirror without a key by those of `snapshot` with the row
    images of `parts` applied, by counting copies."""

    target: MirrorTarget
    parts: tuple[StagedFiles, ...] = ()
    snapshot: Inputs = ()


MirrorWrite = Append | Merge | CountedMerge | Replace | CountedReplace
"""One write to a mirror, in one commit; `mirror.strategy` chooses among them."""


def inputs_of(write: MirrorWrite) -> Inputs:
    """Return the inputs of a write whose columns still have to be mapped to the
    mirror's."""
    match write:
        case Append(_, parts) | CountedMerge(_, parts):
            return parts
        case CountedReplace(_, parts, snapshot):
            return (*parts, *snapshot)
        case Merge():
            return () if write.completion is None else (write.completion,)
        case Replace():
            return write.snapshot


def staged_paths(write: MirrorWrite) -> tuple[str, ...]:
    """Return the paths of all staged files that a write reads."""
    paths = [part.files for part in inputs_of(write) if isinstance(part, StagedFiles)]
    if isinstance(write, Merge):
        paths.append(write.changes.files)
    elif isinstance(write, Replace):
        paths += [write.changes.files, write.deleted_rows.files]
    return tuple(chain.from_iterable(paths))


def copied_mirrors(write: MirrorWrite) -> tuple[MirrorRows, ...]:
    """Return the mirrors whose rows a write reads."""
    return tuple(part for part in inputs_of(write) if isinstance(part, MirrorRows))


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Set properties of the mirror's Delta table, such as column mapping."""

    properties: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "set " + ", ".join(f"{name} = {value}" for name, value in self.properties)


@dataclass(frozen=True, slots=True)
class DropColumns:
    """Drop columns and their values."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "drop " + ", ".join(self.names)


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename the column `name` to `to`; its values stay."""

    name: str
    to: str

    def __str__(self) -> str:
        return f"rename {self.name} to {self.to}"


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """Change a column to a wider type; files are not rewritten."""

    name: str
    type: pa.DataType

    def __str__(self) -> str:
        return f"widen {self.name} to {self.type}"


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Add columns after all others, with NULL in every row."""

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
    """Write all rows again with the columns of `schema`. `columns`: the origin of each
    of them, which is a column of the mirror that is cast, or one value for all rows."""

    schema: pa.Schema
    columns: tuple[ColumnOrigin, ...]

    def __str__(self) -> str:
        columns = (
            f"{field.name} {field.type} from {column.source or column.value}"
            for field, column in zip(self.schema, self.columns, strict=True)
        )
        return "rewrite " + ", ".join(columns)


MirrorStep = SetProperties | DropColumns | RenameColumn | WidenColumn | AddColumns | Fill | Rewrite
"""One commit that changes a mirror's columns. `str(step)` describes the step for
people, in the commit's metadata."""
