"""Where each column of a mirror comes from, in every version of its table.

Two columns are one if the statements between say so, never because they share a name.

What the mirror shall show: the last version's columns in their order, then those that were
dropped at the source and stay in the mirror (`dropped_columns="keep"`): old rows keep their
values, rows that come later have NULL, and an update leaves the value alone. A later column
of the same name retires a kept one, which is dropped from the mirror. Without a key nothing
is kept: rows are told apart by the columns there are. A column that came and went between
the two versions never appears.

Behind the table's columns are the stamps that `LakePolicies.stamps` asks for. Their values are the
marks of the row images, whatever the version. A mirror that had rows before it had stamps has NULL
in them until a row changes. Stamps that nobody asks for any more go by `dropped_columns` as well:
one that stays is NULL in each row that changes from then on, so that no row shows the stamp of a
change that was not its last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from pipeline.binlog.text.twins import may_stray
from pipeline.changes.layout import (
    DELETED_AT,
    changelog_names,
    mirror_columns,
    present_name,
)
from pipeline.changes.mapping import cast_value
from pipeline.changes.widening import TypeChange, type_change
from pipeline.errors import TableError
from pipeline.policies import Deletes, DroppedColumns, LakePolicies
from pipeline.ports.mirror_writes import PartColumn, StagedFiles
from pipeline.schema.column_names import folded
from pipeline.schema.fills import StatementMoment, fill_of
from pipeline.schema.history import SchemaVersion, VersionOrigin
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import key_candidates, merge_key, row_structure
from pipeline.stamps import STAMPS, Stamp


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """`schema`: the mirror's columns once it is evolved, without `_deleted_at`; `kept` are
    those that the last version does not have. `mirror`: a `PartColumn` for each, from the
    columns that the mirror has before; empty where there is no mirror yet. `dropped`: of
    those, the ones that go; `marked`: whether `_deleted_at` is one. `versions`: the same
    for the rows of each version, under the table's own names, which are `names`. `keys`:
    by version, what its rows can be told by, in the names of `schema`; `key` is the last
    version's best. `reread`: sentences on what only the source can tell; unless empty, the
    mirror can only be replaced. `asked`: columns that are NULL in the mirror and in images of
    before they came, because they are read from the source by key. `stamps`: the columns of
    `schema` that are of the row's last change.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    mirror: tuple[PartColumn, ...]
    versions: Mapping[int, tuple[PartColumn, ...]]
    names: Mapping[int, tuple[str, ...]]
    keys: Mapping[int, tuple[tuple[str, ...], ...]]
    unproven: frozenset[frozenset[str]] = frozenset()
    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    reread: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    marked: bool = False
    stamps: tuple[str, ...] = ()
    policies: LakePolicies = field(default_factory=LakePolicies)

    def key_of(self, versions: Collection[int]) -> tuple[str, ...] | None:
        """The key by which images of these versions are merged together; () counts copies,
        None: the table must be read again. What matters are versions that have images: the
        rows a mirror shows were told apart by every later key when the server made it, if all
        of its values have a text of their own: not by `unproven` ones."""
        asked = {*versions, max(self.keys)}
        if not any(self.keys[version] for version in asked):
            return ()
        shared = [{frozenset(key) for key in self.keys[version]} for version in asked]
        best = self.keys[max(self.keys)]
        told = (key for key in best if frozenset(key) not in self.unproven)
        return next((key for key in told if all(frozenset(key) in one for one in shared)), None)

    def part(
        self,
        version: int,
        files: tuple[str, ...] = (),
        *,
        read: Stamp | None = None,
        stamp: Stamp | None = None,
        above: int = 0,
        through: int | None = None,
        partial: bool = False,
    ) -> StagedFiles:
        """Files of a version's segments, whose images have their own stamps unless `stamp` is that
        of all; or of a snapshot, which has the table's own names, and whose rows have the stamp
        `read`. `above`, `through`: as in `StagedFiles`; `partial`: the images leave columns out."""
        own = self.names[version]
        spelled = changelog_names(list(own)) if read is None else own
        names = dict(zip(own, spelled, strict=True))

        def column_of(name: str, column: PartColumn) -> PartColumn:
            if column.source is None or name in self.stamps:
                return column
            bit = own.index(column.source) if partial else None
            return PartColumn(names[column.source], column.type, bit=bit)

        columns = tuple(map(column_of, self.schema.names, self.versions[version]))
        if (changed := read or stamp) is not None:
            columns = self.stamped(columns, changed)
        present = present_name(list(own)) if partial else None
        return StagedFiles(files, columns, above, present, through)

    def stamped(self, columns: Sequence[PartColumn], stamp: Stamp) -> tuple[PartColumn, ...]:
        """The columns of `schema` for rows whose last change is that one."""
        pairs = zip(self.schema.names, columns, strict=True)
        return tuple(
            PartColumn(value=stamp.value(name)) if name in self.stamps else column
            for name, column in pairs
        )

    def completion(self, version: int, files: tuple[str, ...], above: int) -> StagedFiles:
        """Files of the key and the columns that are asked for, as the source had them."""
        told = {*self.key, *self.asked}
        pairs = zip(self.schema.names, self.versions[version], strict=True)
        columns = (column if name in told else PartColumn() for name, column in pairs)
        return StagedFiles(files, tuple(columns), above)


_NO_MOMENTS: Mapping[int, StatementMoment] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ColumnsRead:
    """Columns that are read from the source by key, as a version names them; `names` None:
    whichever are asked for."""

    version: int
    names: tuple[str, ...] | None = None

    def has(self, life: Life) -> bool:
        name = life.names.get(self.version)
        return name is not None and (self.names is None or name in self.names)


def lineage(
    versions: Sequence[SchemaVersion],
    policies: LakePolicies | None = None,
    *,
    mirror: pa.Schema | None = None,
    moments: Mapping[int, StatementMoment] = _NO_MOMENTS,
    read: ColumnsRead | None = None,
) -> ColumnLineage:
    """From the version that the mirror shows (the first) to the one it shall show.

    `versions` are consecutive, KNOWN, and of one table. `mirror`: the columns it has now;
    None where there is none yet. `moments`: when the statement of a version ran, for
    CURRENT_TIMESTAMP. `read`: what the mirror need not be replaced for. `TableError` for
    columns that the lake cannot hold, or that the mirror should have.
    """
    policies = policies or LakePolicies()
    trail = Trail(versions, moments)
    key = merge_key(trail.schemas[trail.last])
    first = {folded(life.names[trail.first]) for life in trail.of(trail.first)}
    own, marked, stamped = _own(mirror, first)
    final = trail.of(trail.last)
    kept = _kept(trail, own, keep=bool(key), drop=policies.dropped_columns == DroppedColumns.DROP)
    lives = [*final, *kept]
    columns = pa.schema([(life.name, life.type) for life in lives])
    _refuse_own_names(columns, policies)
    keeps = bool(key) and policies.dropped_columns == DroppedColumns.KEEP
    unasked = _unasked(trail, stamped, policies) if keeps else []
    stamps = [STAMPS.field(name) for name in policies.stamps]
    schema = pa.schema([*columns, *stamps, *unasked])
    brought = (*map(_of_image, stamps), *map(_nothing, unasked))
    keys = {number: tuple(_keys(trail, number, lives)) for number in trail.schemas}
    asked = [life for life in lives if read is not None and _is_owed(life) and read.has(life)]
    return ColumnLineage(
        schema=schema,
        key=key,
        mirror=(
            *_from_mirror(lives, columns, trail.first, own),
            *(
                _of_image(stamp) if stamp in stamped else _nothing(stamp)
                for stamp in ([] if own is None else [*stamps, *unasked])
            ),
        ),
        versions={
            number: (*_origins(lives, columns, number), *brought) for number in trail.schemas
        },
        names={n: tuple(c.name for c in one.columns) for n, one in trail.schemas.items()},
        keys=keys,
        unproven=frozenset() if mirror is None else frozenset(_unproven(trail, keys)),
        kept=tuple(life.name for life in kept),
        dropped=(
            *_dropped(lives, trail.first, own),
            *(stamp.name for stamp in stamped if stamp not in [*stamps, *unasked]),
        ),
        reread=tuple(_reread(trail, lives, asked, marked and policies.deletes != Deletes.SOFT)),
        asked=tuple(life.name for life in asked),
        marked=marked,
        stamps=policies.stamps,
        policies=policies,
    )


def _unasked(trail: Trail, stamped: Sequence[pa.Field], policies: LakePolicies) -> list[pa.Field]:
    """The stamps of a mirror that nobody asks for any more, and whose names no column took."""
    taken = {folded(name) for life in trail.lives for name in life.names.values()}
    return [one for one in stamped if one.name not in policies.stamps and one.name not in taken]


def _of_image(stamp: pa.Field) -> PartColumn:
    return PartColumn(stamp.name, stamp.type)


def _nothing(stamp: pa.Field) -> PartColumn:
    return PartColumn(value=pa.scalar(None, stamp.type))


_BEFORE = 0
"""Stands for the versions before the first one: they are numbered from 1."""


def _own(
    mirror: pa.Schema | None, first: Collection[str]
) -> tuple[pa.Schema | None, bool, list[pa.Field]]:
    """The mirror's columns without those that no table has; whether the one that marks deleted
    rows is there, and the stamps that are."""
    if mirror is None:
        return None, False, []
    mark = DELETED_AT.name
    marked = mark in mirror.names and mark not in first
    stamped = [column for column in mirror if is_stamp(column) and column.name not in first]
    others = {column.name for column in stamped} | ({mark} if marked else set())
    return pa.schema([one for one in mirror if one.name not in others]), marked, stamped


def is_stamp(column: pa.Field) -> bool:
    """Return whether a column of a mirror that is none of its table's is a stamp."""
    name = column.name
    return name in STAMPS.names and column.type == STAMPS.field(name).type


def _kept(trail: Trail, own: pa.Schema | None, *, keep: bool, drop: bool) -> list[Life]:
    """Columns that the mirror has and the last version has not, in the order they went: what
    was kept already, and what goes now unless it is to be dropped."""
    if own is None or not keep:
        return []
    first = {folded(life.names[trail.first]) for life in trail.of(trail.first)}
    before = [
        Life({_BEFORE: field.name}, {_BEFORE: field.type})
        for field in own
        if folded(field.name) not in first
    ]
    gone = [life for life in trail.of(trail.first) if life.end != trail.last]
    going = [] if drop else sorted(gone, key=lambda life: life.end)
    return [life for life in [*before, *going] if not _retired(life, trail)]


def _retired(life: Life, trail: Trail) -> bool:
    """Whether a later column had its name, if only for a while: the answer is the same
    however the versions are cut into runs."""
    return any(
        folded(name) == folded(life.name)
        for other in trail.lives
        for version, name in other.names.items()
        if version > life.end
    )


def _origins(lives: Sequence[Life], schema: pa.Schema, version: int) -> tuple[PartColumn, ...]:
    return tuple(
        _origin(life, kind, version) for life, kind in zip(lives, schema.types, strict=True)
    )


def _origin(life: Life, kind: pa.DataType, version: int) -> PartColumn:
    if version in life.names:
        return PartColumn(life.names[version], life.types[version])
    if version > life.end:
        return PartColumn()
    return PartColumn(
        value=pa.scalar(None, kind) if life.fill is None else cast_value(life.fill, kind)
    )


def _from_mirror(
    lives: Sequence[Life], schema: pa.Schema, first: int, own: pa.Schema | None
) -> Iterator[PartColumn]:
    have = {} if own is None else {folded(field.name): field for field in own}
    for life, kind in zip(lives, schema.types, strict=True):
        name = _name_before(life, first)
        if own is None:
            return
        if name is None:
            yield _origin(life, kind, first)
        elif folded(name) in have:
            there = have[folded(name)]
            yield PartColumn(there.name, there.type)
        else:
            raise TableError(
                f"column {name!r} is not in the lake's table",
                hint="compare the table at the source and in the lake",
            )


def _name_before(life: Life, first: int) -> str | None:
    return life.names.get(first, life.names.get(_BEFORE))


def _dropped(lives: Sequence[Life], first: int, own: pa.Schema | None) -> tuple[str, ...]:
    stay = {folded(_name_before(life, first) or "") for life in lives}
    return tuple(one.name for one in own or () if folded(one.name) not in stay)


def _unproven(
    trail: Trail, keys: Mapping[int, tuple[tuple[str, ...], ...]]
) -> Iterator[frozenset[str]]:
    """Keys of the last version with a column in which two values may have one text, and by
    which the mirror's rows were not told apart before: nothing was asked of those then."""
    names = {life.names[trail.last]: life.name for life in trail.of(trail.last)}
    columns = row_structure(trail.schemas[trail.last]).columns
    stray = {names[column.name] for column in columns if column.name in names and may_stray(column)}
    before = frozenset(next(iter(keys[trail.first]), ()))
    for key in map(frozenset, keys[trail.last]):
        if key != before and not stray.isdisjoint(key):
            yield key


def _keys(trail: Trail, version: int, lives: Sequence[Life]) -> Iterator[tuple[str, ...]]:
    shown = {id(life) for life in lives}
    for key in trail.keys(version):
        if all(id(life) in shown for life in key):
            yield tuple(life.name for life in key)


def _is_owed(life: Life) -> bool:
    return life.added and life.fill is None


def _reread(
    trail: Trail, lives: Sequence[Life], asked: Sequence[Life], unmark: bool
) -> Iterator[str]:
    yield from trail.broken
    if unmark:
        yield "rows that are deleted at the source are in the mirror, marked"
    for life in lives:
        if _is_owed(life) and life not in asked:
            yield f"column {life.name!r} was added with values that only the source knows"
        if not life.followed:
            yield f"column {life.name!r} changed to a type that only the source converts to"


def _refuse_own_names(schema: pa.Schema, policies: LakePolicies) -> None:
    for name, why, instead in taken_names(schema.names, policies):
        raise TableError(
            f"column {name!r} has the name of {why}",
            hint=f"rename the column at the source, or {instead}",
        )


_OWN_COMMENTS: Final = {
    DELETED_AT.name: "when the row was deleted at the source; NULL in each that is there",
    "_committed_at": "when the row's last change was committed at the source",
    "_sequence": "the number of the row's last change among all changes of the source",
    "_gtid": "the transaction of the row's last change",
}


def own_comments(policies: LakePolicies) -> dict[str, str]:
    """Return what the columns are that a mirror has besides its table's."""
    marks = [DELETED_AT.name] if policies.deletes == Deletes.SOFT else []
    return {name: _OWN_COMMENTS[name] for name in (*marks, *policies.stamps)}


def taken_names(columns: Collection[str], policies: LakePolicies) -> Iterator[tuple[str, str, str]]:
    """Yield the columns of a table that are called as one of the mirror's own: the name, what the
    mirror's own column is for, and which setting does without it."""
    own = {
        name: ("the column of the last change", f"leave {name!r} out of `stamps`")
        for name in policies.stamps
    }
    if policies.deletes == Deletes.SOFT:
        own[DELETED_AT.name] = ("the column that marks deleted rows", 'set deletes = "remove"')
    for name in columns:
        if folded(name) in own:
            yield (name, *own[folded(name)])


_FOUND: Final = (VersionOrigin.CARRIED, VersionOrigin.BASELINE)
"""Recorded where a start goes back, or on elsewhere: the table is what it was before unless
its rows are built in another way. A table that is made anew says so by an event."""


@dataclass(slots=True, eq=False)
class Life:
    """A column as it goes through the versions: its name and lake type in each. `added`:
    it came after the first version, with `fill` for the rows there were, None where only
    the server can tell. `followed`: no change of its type needs the source."""

    names: dict[int, str] = field(default_factory=dict)
    types: dict[int, pa.DataType] = field(default_factory=dict)
    added: bool = False
    fill: pa.Scalar | None = None
    followed: bool = True

    @property
    def begin(self) -> int:
        return next(iter(self.names))

    @property
    def end(self) -> int:
        """The last version that has it."""
        return next(reversed(self.names))

    @property
    def name(self) -> str:
        return self.names[self.end]

    @property
    def type(self) -> pa.DataType:
        return self.types[self.end]


class Trail:
    """The lives of all columns that consecutive, KNOWN versions of one table have.
    `broken`: a sentence for each version that does not go on with the rows of before."""

    def __init__(
        self, versions: Sequence[SchemaVersion], moments: Mapping[int, StatementMoment]
    ) -> None:
        self.schemas = {version.version: _known(version) for version in versions}
        if list(self.schemas) != sorted(self.schemas) or len(self.schemas) != len(versions):
            raise ValueError(f"versions {[version.version for version in versions]}")
        self.lives: list[Life] = []
        self.broken: list[str] = []
        now: dict[str, Life] = {}
        for before, version in zip([None, *versions], versions, strict=False):
            columns_from = self._columns_from(version, before)
            now = self._enter(version, columns_from, now, moments.get(version.version))

    @property
    def first(self) -> int:
        return next(iter(self.schemas))

    @property
    def last(self) -> int:
        return next(reversed(self.schemas))

    def of(self, version: int) -> list[Life]:
        """A version's columns in their order."""
        by_name = {life.names[version]: life for life in self.lives if version in life.names}
        return [by_name[column.name] for column in self.schemas[version].columns]

    def keys(self, version: int) -> Iterator[tuple[Life, ...]]:
        """What a version's rows can be told by, the best first."""
        by_name = {life.names[version]: life for life in self.of(version)}
        for key in key_candidates(self.schemas[version]):
            yield tuple(by_name[name] for name in key)

    def _columns_from(
        self, version: SchemaVersion, before: SchemaVersion | None
    ) -> Sequence[str | None]:
        schema = self.schemas[version.version]
        if before is None:
            return [None] * len(schema.columns)
        if version.shown_from is not None:
            return version.shown_from
        old = self.schemas[before.version]
        if version.origin in _FOUND and row_structure(old) == row_structure(schema):
            return [column.name for column in schema.columns]
        self.broken.append(f"version {version.version} does not go on with the rows of before")
        return [None] * len(schema.columns)

    def _enter(
        self,
        version: SchemaVersion,
        columns_from: Sequence[str | None],
        before: Mapping[str, Life],
        moment: StatementMoment | None,
    ) -> dict[str, Life]:
        schema, number = self.schemas[version.version], version.version
        kinds = mirror_columns(schema).types
        now = {}
        for column, kind, source in zip(schema.columns, kinds, columns_from, strict=True):
            # A column that was left out until now has values that only the source knows.
            life = None if source is None else before.get(source.lower())
            if life is None:
                added = number != self.first
                life = Life(added=added, fill=fill_of(column, kind, moment) if added else None)
                self.lives.append(life)
            elif type_change(life.type, kind) is TypeChange.REREAD:
                life.followed = False
            life.names[number] = column.name
            life.types[number] = kind
            now[column.name.lower()] = life
        return now


def _known(version: SchemaVersion) -> TableSchema:
    if version.shown is None:
        raise ValueError(f"{version.table}: version {version.version} is {version.knowledge}")
    return version.shown
