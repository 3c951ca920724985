"""Decides about clearing: values are deleted from the lake after a table's settings
were changed to hide them. Pure.

Such a change applies to what is captured from then on. Values that were captured
earlier are still in plaintext in older files of its changelog (all changes), older
versions of its mirror (the current rows), texts of statements, and structures. They are
deleted once nothing needs them:

| they are needed by | because |
|---|---|
| the table itself | its mirror does not show newly read rows yet |
| a consumer that has not acknowledged them | the consumer has not read these changes |
| a batch that is not acknowledged | its merge may fold earlier changes |
| a replay that is not settled | its revision replaces files |
| the mirror of a table that was dropped or renamed | its rows cannot be read again |
| a person, with `keep_clear` | the reason that the person gave |

Versions of a mirror are otherwise kept for a promised time; clearing deletes them
earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lockstep.pipeline.schema.history import SchemaStatement, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.segment import SegmentFile, SystemTable
from lockstep.pipeline.values.table import TableName

_FORMER_HASHES: Final = "hashes made with another key"


@dataclass(frozen=True, slots=True)
class Tightening:
    """A change of settings that shows less of a table in batches after `last_batch`.
    `columns`: columns of which less is shown; `has_fewer_rows`: fewer rows are
    captured; `is_rehashed`: values are hashed with another key. `kept_because`: a
    person's reason to keep earlier values in plaintext."""

    table: TableName
    last_batch: int
    columns: tuple[str, ...] = ()
    has_fewer_rows: bool = False
    is_rehashed: bool = False
    kept_because: str | None = None

    @property
    def shows_less(self) -> bool:
        """True if the change hides anything."""
        return bool(self.columns) or self.has_fewer_rows or self.is_rehashed

    @property
    def hidden_in_words(self) -> str:
        """The values that the change hides, as part of a sentence."""
        nouns = [", ".join(self.columns)] if self.columns else []
        nouns += ["rows that a condition leaves out"] if self.has_fewer_rows else []
        nouns += [_FORMER_HASHES] if self.is_rehashed else []
        return " and ".join(nouns)

    @property
    def plaintext_clause(self) -> str:
        """The beginning of a sentence: "a, b are in plaintext", or "hashes made with
        another key are", since hashes are not plaintext."""
        if not self.is_rehashed:
            is_one_column = len(self.columns) == 1 and not self.has_fewer_rows
            return f"{self.hidden_in_words} {'is' if is_one_column else 'are'} in plaintext"
        plain_values = replace(self, is_rehashed=False).hidden_in_words
        prefix = f"{plain_values} in plaintext and " if plain_values else ""
        return f"{prefix}{_FORMER_HASHES} are"


@dataclass(frozen=True, slots=True)
class UnclearedValues:
    """A tightening whose earlier values are still in the lake. `has_begun`: their
    clearing has begun, so they are no longer delivered. `held_by`: kind and name of
    each thing that needs them (`holder_sentence`). `has_stale_mirror`: the table's
    mirror does not show newly read rows yet."""

    id: int
    tightening: Tightening
    noted_at: datetime
    has_begun: bool = False
    held_by: tuple[tuple[str, str], ...] = ()
    has_stale_mirror: bool = False

    @property
    def holders(self) -> tuple[str, ...]:
        """A sentence on each thing that needs the values."""
        return tuple(holder_sentence(kind, name) for kind, name in self.held_by)

    @property
    def dropped_mirror(self) -> str | None:
        """The folder of a mirror that still shows the values because its table was
        dropped before its rows were read again; None if there is no such mirror."""
        return next((name for kind, name in self.held_by if kind == _DROPPED_MIRROR), None)

    @property
    def is_needed(self) -> bool:
        """True if anything except the mirror of a dropped table needs the values."""
        is_held = any(kind != _DROPPED_MIRROR for kind, _ in self.held_by)
        return is_held or self.kept_because is not None

    @property
    def table(self) -> TableName:
        return self.tightening.table

    @property
    def kept_because(self) -> str | None:
        return self.tightening.kept_because

    @property
    def hint(self) -> str:
        """A sentence on when the values are cleared."""
        if self.kept_because is not None:
            return f"they stay, as `keep_clear` says: {self.kept_because}"
        if self.holders:
            return self.holders[0]
        return "the next `lockstep run` or `lockstep upkeep` clears them"

    @property
    def sentence(self) -> str:
        batch = self.tightening.last_batch
        return f"{self.tightening.plaintext_clause} in what was captured up to batch {batch}"


_DROPPED_MIRROR: Final = "gone"
_HOLDER_SENTENCES: Final = {
    "consumer": "the consumer {0} has not acknowledged them yet",
    "batch": "batch {0} is not acknowledged yet; `lockstep run` continues it",
    "table": "{0} still has to merge later changes; `lockstep status` says what keeps it",
    "replay": "a replay is not settled; `lockstep run` continues it",
    "recovery": "a new ledger would continue after one of the eight newest batches",
    "reload": "{0} was not read from the source since; `lockstep run` reads it if `tables` has it",
    _DROPPED_MIRROR: "the source has no such table any more, and its mirror still shows them: "
    "delete the folder {0} of the lake (`rm -r`, or the store's command); then `lockstep run` "
    "clears the rest",
}


def holder_sentence(kind: str, name: str) -> str:
    """Return a sentence on something that needs old changes, or values in them. `kind`:
    a key of `_HOLDER_SENTENCES`."""
    return _HOLDER_SENTENCES[kind].format(name)


@dataclass(frozen=True, slots=True)
class ClearedFile:
    """A batch's file in a system table (`_transactions`, `_ddl`), and the file without
    hidden values that replaces it."""

    batch: int
    table: SystemTable
    old_path: str
    new_file: SegmentFile


@dataclass(frozen=True, slots=True)
class ClearedLedgerRows:
    """Rows of the ledger from which hidden values are removed: versions of structures,
    statements, and structures of loads that have ended, by the load's id."""

    versions: Sequence[SchemaVersion]
    statements: Sequence[SchemaStatement]
    loads: Sequence[tuple[int, TableSchema]]
