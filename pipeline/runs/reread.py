"""Tables that are read from the source: how they are left to the next run, and what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.errors import Remedy, TableBusy, TableError
from pipeline.load import Load
from pipeline.position import Coordinates
from pipeline.schema.model import TableSchema
from pipeline.segment import SegmentFile
from pipeline.table import TableName

_HINTS: Final = {
    Remedy.RESNAPSHOT: "the next run reads it from the source",
    Remedy.BACKFILL: "the next run reads its new columns from the source",
}


@dataclass(frozen=True, slots=True)
class Reread:
    """A table as it was read: `schema` None where the source has it no more, `error` where
    it cannot be read. The rows belong between `low` and `high`. `why` it was read. `columns`:
    those that were read beside the key of a table that goes on through the log, as `version`
    names them; None: all, or what was read of `load` so far."""

    table: TableName
    why: str
    schema: TableSchema | None
    low: Coordinates
    high: Coordinates
    files: tuple[SegmentFile, ...] = ()
    error: TableError | None = None
    columns: tuple[str, ...] | None = None
    version: int = 0
    load: Load | None = None

    @property
    def complete(self) -> bool:
        return self.load is None or self.load.complete


def owed(reason: str, remedy: Remedy = Remedy.RESNAPSHOT) -> TableError:
    """What a table is quarantined with only to be read from the source by the next run, which
    is told in the hint's words and knows it by the remedy."""
    return TableError(reason, hint=_HINTS[remedy], remedy=remedy)


def in_vain(error: TableError, columns: Sequence[str] | None = None) -> TableError:
    """What a table is quarantined with that could not be read, or those `columns` of it."""
    if isinstance(error, TableBusy):
        return owed(error.reason, Remedy.RESNAPSHOT if columns is None else Remedy.BACKFILL)
    if error.remedy is Remedy.RELEASED_RESNAPSHOT:
        return error
    return TableError(
        str(error),
        hint=f"{error.hint}; a release reads it from the source",
        remedy=Remedy.RELEASED_RESNAPSHOT,
    )
