"""All tables of a source as of one place, in Python.

Belongs here: `lockstep.read_at`, and what it gives. Does not: which versions those are
(`pipeline.runs.inspecting.version_sets`), opening one (`resources.lake.versions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockstep.consuming import CONFIG, open_site
from pipeline.errors import ConfigurationError, VersionSetUnknown
from pipeline.places import Place, parse_place
from pipeline.position import Position
from pipeline.runs.inspecting.version_sets import MissingVersion, ShownVersions, version_set_at
from resources.lake.paths import LakePath
from resources.lake.versions import MirrorVersion, opened, version_frame, version_rows


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A mirror at a Delta version. Each way to read it first requires that the folder holds the
    table that was written, by its `table_id` where that is known, that the version shows no batch
    behind `batch`, and that its log and files are there: `VersionGone` where not."""

    table: str
    path: LakePath
    version: int
    table_id: str | None
    batch: int

    def arrow(self) -> pa.Table:
        """All its rows in memory, in no particular order. `ConfigurationError` for a mirror
        with widened columns and rows marked as deleted: only Spark reads both."""
        return version_rows(self._opens)

    def to_delta(self) -> Any:
        """As delta-rs opens it: a `deltalake.DeltaTable`."""
        return opened(self._opens)

    def spark(self, session: Any) -> Any:
        """As a DataFrame of the SparkSession `session`, which knows Delta. Switches the session's
        refusal of old commits off."""
        return version_frame(session, self._opens)

    @property
    def _opens(self) -> MirrorVersion:
        return MirrorVersion(self.path, self.version, self.table_id, self.batch)


class VersionSet(Mapping[str, TableVersion]):
    """Tables by `database.table`, all of them as of `position`.

    `missing` has the tables of the source that cannot be read so, each with its reason and cure;
    to ask for one is `VersionSetUnknown`, for any other name a KeyError.
    """

    def __init__(self, shown: ShownVersions, lake: LakePath) -> None:
        self._shown = shown
        self._tables = {
            str(entry.table): TableVersion(
                str(entry.table),
                lake / entry.mirror,
                entry.delta_version,
                entry.table_id,
                shown.batch.id,
            )
            for entry in shown.entries
        }
        self.missing: dict[str, MissingVersion] = {str(gap.table): gap for gap in shown.missing}

    @property
    def source(self) -> str:
        return self._shown.source

    @property
    def batch(self) -> int:
        """The batch whose end they show; as in the changelogs' column `_batch`."""
        return self._shown.batch.id

    @property
    def position(self) -> Position:
        """The place in the log, with the GTIDs executed up to it and the commit time."""
        return self._shown.position

    def __getitem__(self, table: str) -> TableVersion:
        if table in self.missing:
            lacks = self.missing[table]
            raise VersionSetUnknown(
                f"{table} cannot be read as of {self.position}: {lacks.reason}", hint=lacks.hint
            )
        return self._tables[table]

    def __contains__(self, table: object) -> bool:
        return table in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def read_at(source: str, at: str | None = None, *, config: str | Path = CONFIG) -> VersionSet:
    """The versions that show a source as of a place, written as `lockstep versions --at` takes
    it; without one, as of the newest acknowledged batch. `VersionSetUnknown` where none do."""
    place = None if at is None else _place(at)
    with open_site(source, config) as (adapters, lake):
        return VersionSet(version_set_at(adapters.ledger(), source, place), lake)


def _place(text: str) -> Place:
    try:
        return parse_place(text, as_start=False)
    except ValueError as error:
        raise ConfigurationError(f"{error}", hint="`lockstep versions --help`") from None
