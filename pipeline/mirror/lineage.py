"""The lineage of a mirror (the Delta table with a table's current rows): where each of
its columns comes from, in every version of the table's structure.

Columns of two versions are the same column if the DDL statements between the versions
say so; equal names are not enough.

A mirror shows the last version's columns in their order. They are followed by kept
columns, which were dropped at the source (`dropped_columns = "keep"`): old rows keep
their values, even when they are updated, and new rows have NULL. If the table later
gets a column with the name of a kept column, the kept column is dropped from the
mirror. A mirror without a key keeps no columns, since its rows are identified by all
columns. A column that was added and dropped between the two versions never appears.

Last come the stamps (`LakePolicies.stamps`): columns that describe a row's last change,
such as `_committed_at`. Row images of all versions have them. Rows that are older than
the mirror's stamps have NULL there until they change. `dropped_columns` also applies to
a stamp that the setting no longer names. If the stamp is kept, it becomes NULL in each
row that changes, because the old value would describe an earlier change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from lockstep.pipeline.binlog.values.charsets import may_be_ambiguous
from lockstep.pipeline.mirror.layout import (
    DELETED_AT,
    changelog_names,
    mirror_columns,
    present_name,
)
from lockstep.pipeline.mirror.mapping import cast_value
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, StagedFiles
from lockstep.pipeline.schema.fills import StatementMoment, fill_of
from lockstep.pipeline.schema.history import SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import key_candidates, merge_key, row_structure
from lockstep.pipeline.schema.types import comparable_name
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.policies import DroppedColumns, LakePolicies
from lockstep.pipeline.values.stamps import STAMPS, Stamp


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """The columns of a mirror, and where each comes from.

    `schema`: the mirror's columns after its evolution, without `_deleted_at`.
    `dropped_columns`: columns that the mirror has now and loses. `has_deleted_at`:
    whether the mirror has `_deleted_at` now. `policies`: those of the table.

    `mirror_origins`: for each column of `schema` its origin in the present mirror;
    empty if there is no mirror yet. `versions`: for each version of the table, the
    origin of each column of `schema` in its images; `table_names`: for each version,
    the table's column names. `keys`: the keys of each version, best first, in the names
    of `schema`. `key`: the best key of the last version. `unproven_keys`: keys whose
    values may occur twice among the rows of the mirror.

    `reasons_to_reread`: sentences on values that only the source knows; if there are
    any, the mirror can only be replaced. `columns_by_key`: new columns that are read
    from the source by key; they are NULL in older images, and in the mirror until they
    are read.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    mirror_origins: tuple[ColumnOrigin, ...]
    versions: Mapping[int, tuple[ColumnOrigin, ...]]
    table_names: Mapping[int, tuple[str, ...]]
    keys: Mapping[int, tuple[tuple[str, ...], ...]]
    unproven_keys: frozenset[frozenset[str]] = frozenset()
    dropped_columns: tuple[str, ...] = ()
    reasons_to_reread: tuple[str, ...] = ()
    columns_by_key: tuple[str, ...] = ()
    has_deleted_at: bool = False
    policies: LakePolicies = field(default_factory=LakePolicies)

    def key_of(self, versions: Collection[int]) -> tuple[str, ...] | None:
        """Return the key by which images of these versions are merged together. Return
        () if the versions have no key, so that copies of rows are counted. Return None
        if they have no common key, so that the table must be read again.

        `versions`: those with images to merge. Other versions do not matter: MySQL
        checked that a later key is unique in all current rows when it created the key.
        """
        numbers = {*versions, max(self.keys)}
        if not any(self.keys[version] for version in numbers):
            return ()
        shared = [{frozenset(key) for key in self.keys[version]} for version in numbers]
        best = self.keys[max(self.keys)]
        proven = (key for key in best if frozenset(key) not in self.unproven_keys)
        return next((key for key in proven if all(frozenset(key) in keys for keys in shared)), None)

    def part(
        self,
        version: int,
        files: tuple[str, ...] = (),
        *,
        snapshot_stamp: Stamp | None = None,
        stamp: Stamp | None = None,
        above: int = 0,
        through: int | None = None,
        partial: bool = False,
    ) -> StagedFiles:
        """Return files of a version's segments, or of a snapshot, as a part of a write.

        `snapshot_stamp`: given for a snapshot. Its columns have the table's names, and
        all its rows get this stamp. `stamp`: given for images that all get this stamp
        instead of their own. `above`, `through`: as in `StagedFiles`. `partial`: the
        images leave columns out.
        """
        names = self.table_names[version]
        spelled_names = changelog_names(names) if snapshot_stamp is None else names
        spelled = dict(zip(names, spelled_names, strict=True))

        def column_of(name: str, column: ColumnOrigin) -> ColumnOrigin:
            if column.source is None or name in self.policies.stamps:
                return column
            bit = names.index(column.source) if partial else None
            return ColumnOrigin(spelled[column.source], column.type, present_bit=bit)

        columns = tuple(map(column_of, self.schema.names, self.versions[version]))
        if (common_stamp := snapshot_stamp or stamp) is not None:
            columns = self.with_stamp(columns, common_stamp)
        present = present_name(names) if partial else None
        return StagedFiles(files, columns, above, present, through)

    def with_stamp(self, columns: Sequence[ColumnOrigin], stamp: Stamp) -> tuple[ColumnOrigin, ...]:
        """Return the columns of `schema` for rows whose last change has that stamp."""
        pairs = zip(self.schema.names, columns, strict=True)
        return tuple(
            ColumnOrigin(value=stamp.value(name)) if name in self.policies.stamps else column
            for name, column in pairs
        )

    def completion(self, version: int, files: tuple[str, ...], above: int) -> StagedFiles:
        """Return files with the key and the `columns_by_key` columns, as read from the
        source."""
        names = {*self.key, *self.columns_by_key}
        pairs = zip(self.schema.names, self.versions[version], strict=True)
        columns = (column if name in names else ColumnOrigin() for name, column in pairs)
        return StagedFiles(files, tuple(columns), above)


_NO_MOMENTS: Mapping[int, StatementMoment] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ColumnsRead:
    """A reading of columns from the source by key. `names`: the columns, as `version`
    names them; None for all columns that are needed."""

    version: int
    names: tuple[str, ...] | None = None

    def has(self, track: ColumnTrack) -> bool:
        name = track.names.get(self.version)
        return name is not None and (self.names is None or name in self.names)


def lineage(
    versions: Sequence[SchemaVersion],
    policies: LakePolicies | None = None,
    *,
    mirror: pa.Schema | None = None,
    moments: Mapping[int, StatementMoment] = _NO_MOMENTS,
    columns_read: ColumnsRead | None = None,
) -> ColumnLineage:
    """Return the lineage from the first of `versions`, which the mirror shows, to the
    last.

    `versions` are consecutive, KNOWN, and of one table. `mirror`: the mirror's present
    columns; None if there is no mirror yet. `moments`: for each version, when its
    statement ran, which is the value of CURRENT_TIMESTAMP. `columns_read`: new columns
    whose values are read by key, so that the mirror need not be replaced for them.
    Raise `TableError` for a column that the lake cannot hold or that is missing from
    the mirror.
    """
    policies = policies or LakePolicies()
    history = ColumnHistory(versions, moments)
    key = merge_key(history.schemas[history.last])
    first_names = {comparable_name(name) for name in history.schemas[history.first].names}
    lockstep_columns = [
        column
        for column in mirror or ()
        if (is_stamp(column) or column.name == DELETED_AT.name) and column.name not in first_names
    ]
    old_stamps = [column for column in lockstep_columns if is_stamp(column)]
    has_deleted_at = any(column.name == DELETED_AT.name for column in lockstep_columns)
    old_columns = {
        comparable_name(column.name): column
        for column in mirror or ()
        if column not in lockstep_columns
    }
    keeps_dropped = bool(key) and policies.dropped_columns == DroppedColumns.KEEP
    kept: list[ColumnTrack] = []
    if key and mirror is not None:
        kept_before = [column for name, column in old_columns.items() if name not in first_names]
        kept = _kept_columns(history, kept_before, keeps_dropped=keeps_dropped)
    tracks = [*history.of(history.last), *kept]
    _refuse_taken_names([track.name for track in tracks], policies)
    kept_stamps = _kept_stamps(history, old_stamps, policies) if keeps_dropped else []
    stamps = [*map(STAMPS.field, policies.stamps), *kept_stamps]
    schema = pa.schema([*((track.name, track.type) for track in tracks), *stamps])
    image_stamps = [_null(stamp) if stamp in kept_stamps else _copied(stamp) for stamp in stamps]
    keys = {number: tuple(_keys(history, number, tracks)) for number in history.schemas}
    by_key = [
        track
        for track in tracks
        if columns_read is not None and _needs_source(track) and columns_read.has(track)
    ]
    reasons_to_reread = [*history.reasons_broken]
    if has_deleted_at and not policies.marks_deleted:
        reasons_to_reread.append(
            "the mirror has rows that were deleted at the source and are marked as deleted"
        )
    reasons_to_reread += _reasons_to_reread(tracks, by_key)
    mirror_origins: tuple[ColumnOrigin, ...] = ()
    if mirror is not None:
        stamp_origins = [_copied(s) if s in old_stamps else _null(s) for s in stamps]
        mirror_origins = (*_from_mirror(tracks, history.first, old_columns), *stamp_origins)
    return ColumnLineage(
        schema=schema,
        key=key,
        mirror_origins=mirror_origins,
        versions={
            number: (*(_origin(track, number) for track in tracks), *image_stamps)
            for number in history.schemas
        },
        table_names={number: structure.names for number, structure in history.schemas.items()},
        keys=keys,
        unproven_keys=frozenset() if mirror is None else frozenset(_unproven(history, keys)),
        dropped_columns=(
            *_dropped(tracks, history.first, old_columns),
            *(stamp.name for stamp in old_stamps if stamp not in stamps),
        ),
        reasons_to_reread=tuple(reasons_to_reread),
        columns_by_key=tuple(track.name for track in by_key),
        has_deleted_at=has_deleted_at,
        policies=policies,
    )


def _kept_stamps(
    history: ColumnHistory, old_stamps: Sequence[pa.Field], policies: LakePolicies
) -> list[pa.Field]:
    """Return the mirror's stamps that the setting no longer names, except those whose
    name a column of the table has."""
    names = {comparable_name(name) for track in history.tracks for name in track.names.values()}
    return [stamp for stamp in old_stamps if stamp.name not in names.union(policies.stamps)]


def _copied(stamp: pa.Field) -> ColumnOrigin:
    return ColumnOrigin(stamp.name, stamp.type)


def _null(stamp: pa.Field) -> ColumnOrigin:
    return ColumnOrigin(value=pa.scalar(None, stamp.type))


_BEFORE = 0
"""The version number that stands for all versions before the first; versions begin with
1."""


def is_stamp(column: pa.Field) -> bool:
    """Return whether a mirror's column has the name and the type of a stamp. It is one
    unless its table has a column of that name."""
    name = column.name
    return name in STAMPS.names and column.type == STAMPS.field(name).type


def _kept_columns(
    history: ColumnHistory, kept_before: Iterable[pa.Field], *, keeps_dropped: bool
) -> list[ColumnTrack]:
    """Return the columns that the mirror keeps although the last version does not have
    them, in the order in which they were dropped at the source: first those that it
    keeps already, then, with `keeps_dropped`, those that are dropped between the first
    and the last version."""
    tracks = [ColumnTrack({_BEFORE: column.name}, {_BEFORE: column.type}) for column in kept_before]
    if keeps_dropped:
        dropped = (track for track in history.of(history.first) if track.end != history.last)
        tracks += sorted(dropped, key=lambda track: track.end)
    return [track for track in tracks if not _retired(track, history)]


def _retired(track: ColumnTrack, history: ColumnHistory) -> bool:
    """Return whether a later column had the track's name. A column that had the name
    only for a while counts, since the result must not depend on how versions are
    divided among runs."""
    return any(
        comparable_name(name) == comparable_name(track.name)
        for other in history.tracks
        for version, name in other.names.items()
        if version > track.end
    )


def _origin(track: ColumnTrack, version: int) -> ColumnOrigin:
    if version in track.names:
        return ColumnOrigin(track.names[version], track.types[version])
    if version > track.end:
        return ColumnOrigin()
    fill = track.fill
    return ColumnOrigin(
        value=pa.scalar(None, track.type) if fill is None else cast_value(fill, track.type)
    )


def _from_mirror(
    tracks: Sequence[ColumnTrack], first: int, old_columns: Mapping[str, pa.Field]
) -> Iterator[ColumnOrigin]:
    """Yield the origin of each column in the present mirror."""
    for track in tracks:
        name = _name_before(track, first)
        if name is None:
            yield _origin(track, first)
        elif (column := old_columns.get(comparable_name(name))) is not None:
            yield ColumnOrigin(column.name, column.type)
        else:
            raise TableError(
                f"column {name!r} is not in the lake's table",
                hint="compare the table at the source and in the lake",
            )


def _name_before(track: ColumnTrack, first: int) -> str | None:
    return track.names.get(first, track.names.get(_BEFORE))


def _dropped(
    tracks: Sequence[ColumnTrack], first: int, old_columns: Mapping[str, pa.Field]
) -> Iterator[str]:
    names = {comparable_name(_name_before(track, first) or "") for track in tracks}
    return (column.name for name, column in old_columns.items() if name not in names)


def _unproven(
    history: ColumnHistory, keys: Mapping[int, tuple[tuple[str, ...], ...]]
) -> Iterator[frozenset[str]]:
    """Yield the keys of the last version that are new to the mirror and have a column
    whose text is ambiguous: two different values become the same text in the lake, so
    that two of the mirror's rows could have the same key."""
    names = {track.names[history.last]: track.name for track in history.of(history.last)}
    columns = row_structure(history.schemas[history.last]).columns
    ambiguous = {
        names[column.name]
        for column in columns
        if column.name in names and may_be_ambiguous(column)
    }
    mirror_key = frozenset(next(iter(keys[history.first]), ()))
    for key in map(frozenset, keys[history.last]):
        if key != mirror_key and not ambiguous.isdisjoint(key):
            yield key


def _keys(
    history: ColumnHistory, version: int, tracks: Sequence[ColumnTrack]
) -> Iterator[tuple[str, ...]]:
    shown = {id(track) for track in tracks}
    for key in history.keys(version):
        if all(id(track) in shown for track in key):
            yield tuple(track.name for track in key)


def _needs_source(track: ColumnTrack) -> bool:
    """Return whether only the source knows the column's values in rows that existed
    before it."""
    return track.is_added and track.fill is None


def _reasons_to_reread(
    tracks: Iterable[ColumnTrack], by_key: Collection[ColumnTrack]
) -> Iterator[str]:
    for track in tracks:
        if _needs_source(track) and track not in by_key:
            yield f"column {track.name!r} was added with values that only the source knows"
        if not track.is_convertible:
            yield f"column {track.name!r} changed to a type to which only the source can convert"


def _refuse_taken_names(columns: Collection[str], policies: LakePolicies) -> None:
    for name, owner, alternative in taken_names(columns, policies):
        raise TableError(
            f"column {name!r} has the name of {owner}",
            hint=f"rename the column at the source, or {alternative}",
        )


_OWN_COMMENTS: Final = {
    DELETED_AT.name: "when the row was deleted at the source; NULL if it was not",
    "_committed_at": "when the row's last change was committed at the source",
    "_sequence": "the number of the row's last change among all changes of the source",
    "_gtid": "the transaction of the row's last change",
}


def own_comments(policies: LakePolicies) -> dict[str, str]:
    """Return the comment of each column that the mirror has besides its table's
    columns."""
    marks = [DELETED_AT.name] if policies.marks_deleted else []
    return {name: _OWN_COMMENTS[name] for name in (*marks, *policies.stamps)}


def taken_names(columns: Collection[str], policies: LakePolicies) -> Iterator[tuple[str, str, str]]:
    """Yield the columns of a table that have the name of one of the mirror's own
    columns: the name, a description of the mirror's column, and how to set up the
    mirror without it."""
    reserved = {
        name: ("the column of the last change", f"leave {name!r} out of `stamps`")
        for name in policies.stamps
    }
    if policies.marks_deleted:
        reserved[DELETED_AT.name] = ("the column that marks deleted rows", 'set deletes = "remove"')
    for name in columns:
        if comparable_name(name) in reserved:
            yield (name, *reserved[comparable_name(name)])


_WITHOUT_STATEMENT: Final = (VersionOrigin.CARRIED, VersionOrigin.BASELINE)
"""Origins of versions that have no statement, because a run started at an earlier place
of the log or on another server. If such a version has the structure of the version
before it, it has the same columns. (A table that was created again in between is
recognized by its event.)"""


@dataclass(slots=True, eq=False)
class ColumnTrack:
    """One column in all versions that have it: its name and its lake type in each.
    `is_added`: the column was added after the first version. `fill`: the value of an
    added column in the rows that existed when it was added; None if only the server
    knows it. `is_convertible`: old values can be converted to each later type without
    the source."""

    names: dict[int, str] = field(default_factory=dict)
    types: dict[int, pa.DataType] = field(default_factory=dict)
    is_added: bool = False
    fill: pa.Scalar | None = None
    is_convertible: bool = True

    @property
    def end(self) -> int:
        """The last version that has the column."""
        return next(reversed(self.names))

    @property
    def name(self) -> str:
        return self.names[self.end]

    @property
    def type(self) -> pa.DataType:
        return self.types[self.end]


class ColumnHistory:
    """The tracks of all columns of consecutive, KNOWN versions of one table. `schemas`:
    the structure of each version. `reasons_broken`: a sentence for each version in
    which the table did not keep its earlier rows."""

    def __init__(
        self, versions: Sequence[SchemaVersion], moments: Mapping[int, StatementMoment]
    ) -> None:
        self.schemas = {version.version: _shown_schema(version) for version in versions}
        if list(self.schemas) != sorted(self.schemas) or len(self.schemas) != len(versions):
            raise ValueError(f"versions {[version.version for version in versions]}")
        self.tracks: list[ColumnTrack] = []
        self.reasons_broken: list[str] = []
        tracks: dict[str, ColumnTrack] = {}
        for before, version in zip([None, *versions], versions, strict=False):
            columns_from = self._columns_from(version, before)
            tracks = self._add_version(version, columns_from, tracks, moments.get(version.version))

    @property
    def first(self) -> int:
        return next(iter(self.schemas))

    @property
    def last(self) -> int:
        return next(reversed(self.schemas))

    def of(self, version: int) -> list[ColumnTrack]:
        """Return a version's columns in their order."""
        by_name = {track.names[version]: track for track in self.tracks if version in track.names}
        return [by_name[column.name] for column in self.schemas[version].columns]

    def keys(self, version: int) -> Iterator[tuple[ColumnTrack, ...]]:
        """Yield the keys that identify a version's rows, the best first."""
        by_name = {track.names[version]: track for track in self.of(version)}
        for key in key_candidates(self.schemas[version]):
            yield tuple(by_name[name] for name in key)

    def _columns_from(
        self, version: SchemaVersion, before: SchemaVersion | None
    ) -> Sequence[str | None]:
        """Return for each column its name in the version before; None for a new column."""
        schema = self.schemas[version.version]
        if before is None:
            return [None] * len(schema.columns)
        if version.shown_columns_from is not None:
            return version.shown_columns_from
        old = self.schemas[before.version]
        if version.origin in _WITHOUT_STATEMENT and row_structure(old) == row_structure(schema):
            return [column.name for column in schema.columns]
        self.reasons_broken.append(
            f"version {version.version} does not continue with the earlier rows"
        )
        return [None] * len(schema.columns)

    def _add_version(
        self,
        version: SchemaVersion,
        columns_from: Sequence[str | None],
        earlier_tracks: Mapping[str, ColumnTrack],
        moment: StatementMoment | None,
    ) -> dict[str, ColumnTrack]:
        """Add a version to the tracks of its columns. Return the tracks by the columns'
        names in lower case; `earlier_tracks` has those of the previous version."""
        number = version.version
        schema = self.schemas[number]
        kinds = mirror_columns(schema).types
        tracks = {}
        for column, kind, source in zip(schema.columns, kinds, columns_from, strict=True):
            # A column that was not shown until now begins a track: only the source has
            # its values.
            track = None if source is None else earlier_tracks.get(source.lower())
            if track is None:
                added = number != self.first
                track = ColumnTrack(
                    is_added=added, fill=fill_of(column, kind, moment) if added else None
                )
                self.tracks.append(track)
            elif type_change(track.type, kind) is TypeChange.REREAD:
                track.is_convertible = False
            track.names[number] = column.name
            track.types[number] = kind
            tracks[column.name.lower()] = track
        return tracks


def _shown_schema(version: SchemaVersion) -> TableSchema:
    if version.shown_schema is None:
        raise ValueError(f"{version.table}: version {version.version} is {version.knowledge}")
    return version.shown_schema
