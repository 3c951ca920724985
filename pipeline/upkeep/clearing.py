"""What stands in clear of a table of which less is shown than before, and who keeps it. Pure.

A setting that shows less of a table holds for what is captured from then on. What was captured
before stands in clear in older files of its changelog, older versions of its mirror, texts of
statements and structures. All of that goes once nobody needs it:

| what holds it | because |
|---|---|
| the table itself | its mirror does not show rows that were read again yet |
| a consumer that has not acknowledged it | its unread changes |
| a batch of the source that is not acknowledged | its merge may fold earlier changes |
| a replay that is not settled | its revision replaces files |
| the mirror of a table that was dropped or has another name now | nobody can read it again |
| a person, with `keep_clear` | a reason that they gave |

Versions of before are promised for a time; less being shown is a reason to break that promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.schema.history import SchemaStatement, SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.segment import SegmentFile, SourceTable
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class Tightening:
    """What settings came to show less of. `columns`: those of which less is shown; `rows`: whether
    fewer rows are taken; `rehashed`: whether values are hashed with another key; `kept_because`:
    why a person has what was captured before stay in clear."""

    table: TableName
    through: int
    columns: tuple[str, ...] = ()
    rows: bool = False
    rehashed: bool = False
    kept_because: str | None = None

    @property
    def shows_less(self) -> bool:
        return bool(self.columns) or self.rows or self.rehashed

    @property
    def told(self) -> str:
        """Of what less is shown, in words."""
        parts = [", ".join(self.columns)] if self.columns else []
        parts += ["rows that a condition leaves out"] if self.rows else []
        parts += ["hashes made with another key"] if self.rehashed else []
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class InClear:
    """A tightening whose values of before are not cleared yet. `begun`: whether clearing them has
    begun, so that nobody is given them any more; `holders`: who keeps them, each in a sentence;
    `stale`: whether the table's mirror does not show rows that were read again yet; `gone`: the
    mirror of a table that was dropped before it did, which shows them for good."""

    id: int
    tightening: Tightening
    noted_at: datetime
    begun: bool = False
    holders: tuple[str, ...] = ()
    stale: bool = False
    gone: str | None = None

    @property
    def held(self) -> bool:
        """Whether anything but the mirror of a dropped table keeps them."""
        return self.kept_because is not None or len(self.holders) > (self.gone is not None)

    @property
    def table(self) -> TableName:
        return self.tightening.table

    @property
    def kept_because(self) -> str | None:
        return self.tightening.kept_because

    @property
    def until(self) -> str:
        """Until when they stand in clear, in words."""
        if self.kept_because is not None:
            return f"they stay, as `keep_clear` says: {self.kept_because}"
        if self.holders:
            return self.holders[0]
        return "the next `lockstep run` or `lockstep upkeep` clears them"

    @property
    def sentence(self) -> str:
        batch = self.tightening.through
        return f"{self.tightening.told} stand in clear in what was captured up to batch {batch}"

    @property
    def told(self) -> str:
        return f"{self.sentence}: {self.until}"


_HOLDS = {
    "consumer": "the consumer {0} has not acknowledged them; `lockstep status` shows how far it is",
    "batch": "batch {0} is not acknowledged yet; `lockstep run` goes on with it",
    "table": "{0} still has to merge what came after them; `lockstep status` says what keeps it",
    "replay": "a replay is not settled; `lockstep run` takes it up",
    "reload": "{0} was not read from the source since; `lockstep run` reads it, if `tables` has it",
    "gone": "the table is gone at the source, and its mirror shows them for good: delete the "
    "folder {0} of the lake (`rm -r`, or the store's command); then `lockstep run` clears the rest",
}
GONE: Final = "gone"


def holder_told(kind: str, name: str) -> str:
    return _HOLDS[kind].format(name)


@dataclass(frozen=True, slots=True)
class ClearedFile:
    """A file of a batch in one of the source's own tables, and the one without values in its
    place."""

    batch: int
    table: SourceTable
    before: str
    after: SegmentFile


@dataclass(frozen=True, slots=True)
class ClearedBooks:
    """Rows of the ledger as they are without the values: structures, statements, and structures
    that loads which ended were begun with."""

    versions: Sequence[SchemaVersion]
    statements: Sequence[SchemaStatement]
    loads: Sequence[tuple[int, TableSchema]]
