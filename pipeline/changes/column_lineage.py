"""Where each column of a mirror comes from: what `lineage` finds, as values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pipeline.changes.layout import changelog_names, present_name
from pipeline.policies import LakePolicies
from pipeline.ports.mirror_writes import PartColumn, StagedFiles


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
    before they came, because they are read from the source by key.
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
        snapshot: bool = False,
        above: int = 0,
        through: int | None = None,
        partial: bool = False,
    ) -> StagedFiles:
        """Files of a version's segments; or of a snapshot, which has the table's own names.
        `above`, `through`: as in `StagedFiles`; `partial`: the images leave columns out."""
        own = self.names[version]
        spelled = own if snapshot else changelog_names(list(own))
        names = dict(zip(own, spelled, strict=True))
        columns = (
            column
            if column.source is None
            else PartColumn(
                names[column.source], column.type, bit=own.index(column.source) if partial else None
            )
            for column in self.versions[version]
        )
        present = present_name(list(own)) if partial else None
        return StagedFiles(files, tuple(columns), above, present, through)

    def completion(self, version: int, files: tuple[str, ...], above: int) -> StagedFiles:
        """Files of the key and the columns that are asked for, as the source had them."""
        told = {*self.key, *self.asked}
        pairs = zip(self.schema.names, self.versions[version], strict=True)
        columns = (column if name in told else PartColumn() for name, column in pairs)
        return StagedFiles(files, tuple(columns), above)
