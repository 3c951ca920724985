"""Commits of Delta tables in the lake, and the user metadata that Lockstep writes into
its own.

Not here: reading a log (`resources.lake`), judging what it shows
(`pipeline.model.foreign_commits`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from lockstep.pipeline.schema.model import TableSchema, schema_from_json, schema_to_json
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName

APP_ID_PREFIX: Final = "lockstep/"
"""The prefix of the Delta application ids of all of Lockstep's writes."""

METADATA_FORMAT: Final = 1
"""The version of the user metadata's format."""

_SAME_AT_EACH_TRY: Final = (
    "ledger",
    "source",
    "table",
    "batches",
    "place",
    "captured_at",
    "files",
)
"""Keys of the user metadata that have the same values at each try of one write. The
values of other keys may differ."""

NOT_CAPTURED: Final = "not captured"
"""The condition that a commit to `_transactions` records for a table that a batch did
not capture, although the table is complete in the lake."""

BEING_READ: Final = "being read"
"""The condition that such a commit records for a followed table whose rows are still being
read from the source."""

NEEDS_CONSENT: Final = "stopped until somebody consents"
"""The condition that such a commit records for a waiting table: the settings would show
more of it than before. In a ledger that is made from the lake, the table must
wait, too."""

STATISTICS_OPERATION: Final = "COMPUTE STATS"
"""Spark's operation that adds files again with new statistics."""

RESTORE_OPERATION: Final = "RESTORE"
"""The operation that sets a table back to an earlier version."""


class WriteKind(StrEnum):
    """The purpose of one of Lockstep's commits. A changelog is the Delta table with all
    changes of a source table, a mirror the one with its current rows."""

    PUBLISH = "publish"
    """It adds a batch's files to a changelog, or to a system table (`_transactions`,
    `_ddl`)."""
    MERGE = "merge"
    """It applies the changes of batches to a mirror."""
    REWRITE = "rewrite"
    """It replaces a mirror's rows: they were read again, rebuilt or repaired."""
    ALTER = "alter"
    """It changes columns, properties, or values of new columns before a write."""
    REVISE = "revise"
    """It replaces files of past batches in a changelog, because these were captured
    again, or because the settings now hide values of theirs."""
    FORGET = "forget"
    """It removes from a changelog the files of these and all earlier batches, because
    their retention has ended, or because the settings now hide values of theirs."""
    RESTATE = "restate"
    """It makes a changelog list exactly the files that a ledger recorded."""
    RESTORE = "restore"
    """It sets a mirror back to an earlier version."""
    UPKEEP = "upkeep"
    """It puts a mirror's rows into other files. Its metadata repeats the metadata of
    the write that made these rows, because that write's commit is deleted from the log
    earlier. The key `shows` has the number of the version that the write made."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file that a commit adds or removes. `row_count`: number of its rows without
    deleted ones, or None if unknown; `deleted_rows`: number of rows that its deletion
    vector deletes; `data_change`: the action's `dataChange`; `size`: in bytes."""

    path: str
    row_count: int | None
    data_change: bool
    deleted_rows: int = 0
    size: int | None = None

    @property
    def as_unrecorded_segment(self) -> SegmentFile:
        """The file as one that no ledger recorded. Not every program writes the size of
        a file that it removes."""
        return SegmentFile(self.path, size=self.size or 0)


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A commit's change of a table's metadata. `columns`: whether it changed the
    columns, or None if unknown. `properties`: the names of changed properties."""

    columns: bool | None
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LakeCommit:
    """One commit of a Delta table. `transactions`: the versions of its `txn` actions,
    by application id. `metadata_change`: its change of the table's metadata, or
    None."""

    delta_version: int
    operation: str = ""
    committed_at: datetime | None = None
    user_metadata: str | None = None
    transactions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    adds: tuple[FileAction, ...] = ()
    removes: tuple[FileAction, ...] = ()
    metadata_change: MetadataChange | None = None

    @property
    def metadata(self) -> Mapping[str, Any] | None:
        """Lockstep's own part of the user metadata, or None if the commit has none."""
        return read_metadata(self.user_metadata)

    @property
    def table(self) -> TableName | None:
        """The source table that the commit names; None if it names none."""
        try:
            database, name = (self.metadata or {})["name"]
        except (KeyError, TypeError, ValueError):
            return None
        return TableName(str(database), str(name))

    @property
    def copied_version(self) -> int | None:
        """The version whose rows a commit of upkeep put into other files, or None."""
        metadata = self.metadata or {}
        shows = metadata.get("shows") if metadata.get("kind") == WriteKind.UPKEEP else None
        return shows if isinstance(shows, int) else None

    @property
    def changes_files(self) -> bool:
        """True if the commit changes which files the table lists. A commit that only
        changes the statistics of a file adds it again."""
        added = {file.path for file in self.adds}
        removed = {file.path for file in self.removes}
        return self.operation != STATISTICS_OPERATION and added != removed

    @property
    def is_ours(self) -> bool:
        """True if a Lockstep made the commit."""
        return self.metadata is not None or any(
            app_id.startswith(APP_ID_PREFIX) for app_id in self.transactions
        )


@dataclass(frozen=True, slots=True)
class LogSince:
    """A table's log from a given version on. `base`: the commit of that version, or
    None if the log no longer has it. `commits`: the commits after it, ascending and
    without a hole. `newest`: the table's newest version, or None if there is no table.
    `missing_version`: the first version that the log lacks although it has later ones, or
    None."""

    newest: int | None
    base: LakeCommit | None = None
    commits: tuple[LakeCommit, ...] = ()
    missing_version: int | None = None


def table_of(commits: Iterable[LakeCommit]) -> TableName | None:
    """Return the source table of a Delta table, which the first of these commits with a
    table names; None if none does."""
    return next((table for commit in commits if (table := commit.table) is not None), None)


def read_metadata(user_metadata: str | None) -> Mapping[str, Any] | None:
    """Return Lockstep's part of a commit's user metadata, or None if it has none."""
    try:
        metadata = json.loads(user_metadata or "")["lockstep"]
    except (ValueError, KeyError, TypeError):
        return None
    return metadata if isinstance(metadata, dict) else None


def is_same_write(user_metadata: str | None, intended: str) -> bool:
    """Return whether a commit is a try of the write whose metadata is `intended`."""
    ours = read_metadata(intended)
    metadata = read_metadata(user_metadata)
    if ours is None or metadata is None:
        return user_metadata == intended
    return all(metadata.get(name) == ours[name] for name in _SAME_AT_EACH_TRY if name in ours)


def metadata_of_kind(user_metadata: str, kind: WriteKind, **more: Any) -> str:
    """Return the metadata of a write's additional commit of another `kind`: the write's
    metadata with that kind and `more`. Metadata of another program is returned
    unchanged, unless `more` is given."""
    metadata = read_metadata(user_metadata)
    if metadata is None and not more:
        return user_metadata
    return metadata_text(
        {**(metadata or {}), "format": METADATA_FORMAT, "kind": kind.value, **more}
    )


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Return the user metadata that holds these values, the inverse of
    `read_metadata`."""
    return json.dumps({"lockstep": dict(metadata)}, sort_keys=True)


def has_published(
    user_metadata: str | None, listed: Collection[str], recorded: Collection[str]
) -> bool:
    """Return whether one of our commits, which adds the files `listed`, published the
    `recorded` files. A commit whose metadata has a digest of all these files may add
    only some of them, because the table listed the others already."""
    metadata = read_metadata(user_metadata) or {}
    return set(listed) == set(recorded) or ("files" in metadata and set(listed) < set(recorded))


def files_digest(checksums: Iterable[str]) -> str:
    """Return a short hash of files' contents, which does not depend on their order."""
    return hashlib.sha256("\n".join(sorted(checksums)).encode()).hexdigest()[:16]


def structures_text(structures: Iterable[TableSchema], *, cleared: bool = False) -> str:
    """Return the text of a file with these structures. The file's name is the hash of
    its first text. `cleared`: values were removed from it later, so the hash no longer
    matches."""
    ordered = sorted(structures, key=lambda schema: schema.name)
    content = {"format": 1, "structures": [schema_to_json(schema) for schema in ordered]}
    return json.dumps({**content, "cleared": True} if cleared else content) + "\n"


def structures_key(text: str) -> str:
    """Return the key of a file of structures: 32 hex digits of the SHA-256 of its text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def parse_structures(key: str, text: str) -> list[TableSchema] | None:
    """Return the structures in the text of the file with that key, or None if somebody
    other than Lockstep changed the text."""
    try:
        content = json.loads(text)
        is_ours = structures_key(text) == key or content["cleared"] is True
    except (ValueError, KeyError, TypeError):
        return None
    if not is_ours:
        return None
    return [schema_from_json(structure) for structure in content["structures"]]
