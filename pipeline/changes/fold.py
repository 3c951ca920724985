"""The last image per key: the one fold there is, of all images at once or of a part of the keys.

Images of one key must be folded together, in one part. Where images leave columns out, so must
images of keys that a row was moved between (`key_hashes.KeyChains`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.coalescing import coalesced, lacking_columns
from pipeline.changes.key_hashes import Hashes, key_hashes
from pipeline.changes.layout import changelog_names
from pipeline.changes.mapping import folded, is_present, kept_columns, latest, mapped
from pipeline.ports.mirror_writes import PartColumn, StagedFiles
from pipeline.segment import ChangeType


@dataclass(frozen=True, slots=True)
class Fold:
    """How a table's images are folded to rows of a mirror with `schema` and `key`.

    `parts`: a kind of images each, in the order in which they are given; their files do not
    matter here. `marks`: further columns of each image that stay, such as `_committed_at`.
    `numbered`: whether `_sequence` stays. `doubtful`: see `coalesced`. `emptied`: numbers of
    changes behind which no row was there any more, ascending, each with its moment, of which the
    last is behind all images: then every image that is left is a delete, whose `_committed_at` is
    the moment at which the row went. These images leave no columns out.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    parts: tuple[StagedFiles, ...]
    marks: tuple[str, ...] = ()
    numbered: bool = False
    doubtful: int = 0
    emptied: tuple[tuple[int, datetime], ...] = ()

    @property
    def partial(self) -> bool:
        """Whether images leave columns out."""
        return any(part.present is not None for part in self.parts)

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns whose value in the mirror may stay."""
        return kept_columns((part.columns for part in self.parts), self.schema)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Columns whose value may have to be looked up."""
        return lacking_columns(self.parts, self.schema)

    def table(self, images: Sequence[pa.Table]) -> tuple[pa.Table, tuple[str, ...]]:
        """The images of each part, folded; and the columns that some row lacks."""
        if self.partial:
            pairs = list(zip(images, self.parts, strict=True))
            return coalesced(pairs, self.schema, self.key, self.marks, doubtful=self.doubtful)
        whole = [(one, part.columns) for one, part in zip(images, self.parts, strict=True)]
        if self.emptied:
            return self._gone(folded(whole, self.schema, self.key, self.marks, numbered=True)), ()
        return folded(whole, self.schema, self.key, self.marks, numbered=self.numbered), ()

    @property
    def in_steps(self) -> Fold:
        """What is left to do for what `step` made."""
        if not self._by_steps:
            return self
        names = changelog_names(self.schema.names)
        own = tuple(PartColumn(n, f.type) for n, f in zip(names, self.schema, strict=True))
        return replace(self, parts=(StagedFiles((), own),))

    def step(self, number: int, images: pa.Table) -> tuple[int, pa.Table]:
        """Some images of a part, folded as far as that can be done without the others; and the
        part of `in_steps` that they belong to."""
        if not self._by_steps:
            return number, images
        names = ["_change_type", "_sequence", *self.marks]
        whole = mapped(images, self.parts[number].columns, self.schema, names)
        spelled = dict(zip(self.schema.names, changelog_names(self.schema.names), strict=True))
        return 0, latest(whole, [spelled[name] for name in self.key], numbered=True)

    @property
    def _by_steps(self) -> bool:
        """The last image is all that counts."""
        return not self.partial and not self.kept

    def hashes(self, number: int, images: pa.Table) -> Hashes:
        """A number for the key of each of a part's row images."""
        places = [self.schema.get_field_index(name) for name in self.key]
        columns = [self.parts[number].columns[at] for at in places]
        fields = pa.schema([self.schema.field(at) for at in places])
        return key_hashes(mapped(images, columns, fields, ()))

    def _gone(self, changes: pa.Table) -> pa.Table:
        """The last image per key as a delete: of a row that was there behind it, at the moment at
        which the table was emptied next."""
        numbers = np.array([number for number, _ in self.emptied], np.int64)
        at = numbers.searchsorted(changes.column("_sequence").to_numpy())
        place = changes.schema.get_field_index("_committed_at")
        own = changes.column(place)
        moments = pa.array([moment for _, moment in self.emptied], own.type).take(pa.array(at))
        there = is_present(changes.column("_change_type"))
        kinds = pa.repeat(ChangeType.DELETE.value, changes.num_rows)
        changes = changes.set_column(place, "_committed_at", pc.if_else(there, moments, own))
        changes = changes.set_column(0, "_change_type", kinds)
        return changes.drop_columns(["_sequence"])
