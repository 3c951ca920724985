"""The policies of a source in lockstep.toml: where its runs start, and how the lake
follows the source's changes. A mirror is the Delta table with a table's current rows.

Here: the words of each policy, their meaning, and the default, which never loses data.
Not here: the consequences of a policy (`pipeline.schema.consequences`,
`pipeline.start.rules`, `pipeline.mirror`), reading the file (`resources.config`),
settings for files (`pipeline.upkeep.decide`) and for proofs (`pipeline.source_plan`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Final


class Policy(StrEnum):
    """The words that one key of a source may have. A policy's docstring is its sentence
    in the documentation."""


# -- where a run starts ----------------------------------------------------------------


class OnPositionLost(Policy):
    """The log was purged before it was read: refuse; or re-read the tables."""

    REFUSE = "refuse"
    RESNAPSHOT = "resnapshot"


class OnSourceChanged(Policy):
    """Another server answers, and no GTIDs say where to go on: refuse, or search by
    commit time."""

    REFUSE = "refuse"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class StartPolicies:
    """The policies for the start of a source's runs. `fallback_interval`: a search by
    commit time begins to read this long before the last commit time that was read."""

    on_position_lost: OnPositionLost = OnPositionLost.REFUSE
    on_source_changed: OnSourceChanged = OnSourceChanged.REFUSE
    fallback_interval: timedelta = timedelta(seconds=60)


# -- how the lake follows the source ---------------------------------------------------


class OnRewrite(Policy):
    """Stored values may have changed without row events: quarantine the table, or
    re-read it from MySQL."""

    QUARANTINE = "quarantine"
    RESNAPSHOT = "resnapshot"


class DroppedColumns(Policy):
    """A dropped column stays in the mirror with its old values and is no longer filled;
    or it is removed. A later column of that name replaces the kept one. A write that
    replaces all rows (a TRUNCATE, a re-read, `lockstep reload`) removes the kept column,
    also from rows that `deletes` keeps; earlier versions of the mirror still have its
    values."""

    KEEP = "keep"
    DROP = "drop"


class DroppedTables(Policy):
    """The mirror of a table that was dropped or renamed away stays, marked dropped; or
    its folder is removed, with all its versions, once the batch with that statement is
    acknowledged. The changelog stays either way. A later table of that name starts with
    a new mirror."""

    KEEP = "keep"
    DROP = "drop"


class Deletes(Policy):
    """A deleted row is removed from the mirror; or it stays, with the moment in
    `_deleted_at`; or it stays as if nothing had happened. With `soft` and `ignore`, a
    table without a key is quarantined. When a table is re-read from MySQL, the mirror
    keeps the rows that MySQL no longer has; if a column's type has changed, those of
    their values that do not fit the new type become NULL."""

    REMOVE = "remove"
    SOFT = "soft"
    IGNORE = "ignore"


class Truncates(Policy):
    """A TRUNCATE deletes all rows, and `deletes` says what becomes of them; or the rows
    stay, and the changelog has no truncate row either. A change of this setting applies
    to statements that are read after it. With `ignore`, a table without a key is
    quarantined. When a table is re-read from MySQL, rows that MySQL no longer has stay,
    since a TRUNCATE may have deleted them."""

    DELETE = "delete"
    IGNORE = "ignore"


class Readers(Policy):
    """Mirrors may use deletion vectors, column mapping and type widening; or they use
    none of these features, so that every Delta reader can open the mirrors, and renames
    and widenings rewrite the table."""

    SPARK = "spark"
    ANY = "any"


class ForeignKeys(Policy):
    """A foreign key changed rows, which the server does not log (MariaDB; MySQL with
    `innodb_native_foreign_keys=ON`; MySQL versions that never log them): quarantine the
    tables of these rows, or re-read them from MySQL."""

    QUARANTINE = "quarantine"
    RESNAPSHOT = "resnapshot"


MOST_CLUSTERING_COLUMNS: Final = 4
"""Largest number of columns by which Delta can cluster a table."""


@dataclass(frozen=True, slots=True)
class LakePolicies:
    """The policies by which the lake follows a source. `updated_columns`: a changelog
    lists the columns that an update changed. `stamps`: columns of
    `pipeline.values.stamps` that a mirror has in addition to the table's. `cluster_by`:
    the columns by which upkeep clusters a mirror's files.
    """

    on_rewrite: OnRewrite = OnRewrite.QUARANTINE
    dropped_columns: DroppedColumns = DroppedColumns.KEEP
    dropped_tables: DroppedTables = DroppedTables.KEEP
    deletes: Deletes = Deletes.REMOVE
    truncates: Truncates = Truncates.DELETE
    readers: Readers = Readers.SPARK
    foreign_keys: ForeignKeys = ForeignKeys.QUARANTINE
    updated_columns: bool = False
    stamps: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()

    @property
    def toml(self) -> str:
        """The policies that differ from the default, as `to_toml` writes them."""
        return to_toml(
            {
                field.name: value
                for field in fields(self)
                if (value := getattr(self, field.name)) != field.default
            }
        )

    @property
    def keeps_rows(self) -> bool:
        """True if rows that were deleted at the source stay in the mirror."""
        return self.deletes is not Deletes.REMOVE or self.truncates is Truncates.IGNORE

    @property
    def marks_deleted(self) -> bool:
        """True if deleted rows stay, with the moment of the delete in `_deleted_at`."""
        return self.deletes is Deletes.SOFT

    @property
    def keeps_unmarked_rows(self) -> bool:
        """True if rows that a DELETE or TRUNCATE removed stay without a mark. Then the
        mirror does not show which of its rows the source still has."""
        return self.deletes is Deletes.IGNORE or self.truncates is Truncates.IGNORE


def to_toml(policies: Mapping[str, object]) -> str:
    """Return the policies in one line, with the keys and values of lockstep.toml."""
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in policies.items())
