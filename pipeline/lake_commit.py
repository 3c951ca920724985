"""Commits of Delta tables in the lake: what a log's entries say, and what ours say of themselves.

Not here: reading a log (`resources.lake`), judging what it shows (`pipeline.foreign_commits`).
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

from pipeline.schema.model import TableSchema
from pipeline.schema.model_json import schema_from_json, schema_to_json

APPLICATION: Final = "lockstep/"
"""How the Delta application ids of all our writes begin."""

FORMAT: Final = 1
"""The format of what a commit says of itself."""

_SAME: Final = ("ledger", "source", "table", "batches", "position", "files")
"""What two tries of one write say alike. All else may have become different between them."""

STATISTICS: Final = "COMPUTE STATS"
"""Spark's operation that adds files a second time, with other statistics."""

RESTORED: Final = "RESTORE"
"""The operation after which a table shows an earlier version again."""


class WriteKind(StrEnum):
    """What a commit of ours does."""

    PUBLISH = "publish"
    """A batch's files become part of a changelog, or of a table of the source's own."""
    MERGE = "merge"
    REWRITE = "rewrite"
    """The mirror holds other rows from here on: it was read again, rebuilt or repaired."""
    ALTER = "alter"
    """A step before a write: columns, properties, values of new columns."""
    REVISE = "revise"
    """Batches of the past were captured again: a changelog lists other files for them."""
    FORGET = "forget"
    """Changes that are kept no longer: a changelog lists no file of these batches, nor of any
    before them."""
    RESTATE = "restate"
    """A changelog lists what a ledger recorded, and no more."""
    RESTORE = "restore"
    """A mirror shows an earlier version once more."""
    UPKEEP = "upkeep"
    """A mirror shows the same rows in other files. It repeats what the write said whose version
    `shows` names, so that a log which was cleaned up still tells it."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file that a commit adds or removes. `rows`: less those deleted in it, None where
    nobody says; `deleted`: how many those are; `size`: in bytes."""

    path: str
    rows: int | None
    data_change: bool
    deleted: int = 0
    size: int | None = None


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """What a commit changed of a table besides its files: whether its columns, and the names
    of properties. `columns` None: nobody can tell."""

    columns: bool | None
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LakeCommit:
    """One commit. `transactions`: application id → version, as it recorded them."""

    delta_version: int
    operation: str = ""
    committed_at: datetime | None = None
    user_metadata: str | None = None
    transactions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    adds: tuple[FileAction, ...] = ()
    removes: tuple[FileAction, ...] = ()
    altered: MetadataChange | None = None

    @property
    def said(self) -> Mapping[str, Any] | None:
        return said_of(self.user_metadata)

    @property
    def repeats(self) -> int | None:
        """The version whose rows it shows in other files; None for any other commit."""
        said = self.said or {}
        shows = said.get("shows") if said.get("kind") == WriteKind.UPKEEP else None
        return shows if isinstance(shows, int) else None

    @property
    def relists(self) -> bool:
        """Whether the table lists other files from here on. A commit that only gives a file other
        statistics adds it a second time."""
        added = {file.path for file in self.adds}
        removed = {file.path for file in self.removes}
        return self.operation != STATISTICS and added != removed

    @property
    def ours(self) -> bool:
        return self.said is not None or any(
            app_id.startswith(APPLICATION) for app_id in self.transactions
        )


@dataclass(frozen=True, slots=True)
class LogAbove:
    """A table's log above a version. `newest`: None where there is no table. `base`: the
    commit of that version, if the log still has it. `commits`: those above, ascending, without
    a hole; `missing`: the first one that the log has no file of, although later ones exist."""

    newest: int | None
    base: LakeCommit | None = None
    commits: tuple[LakeCommit, ...] = ()
    missing: int | None = None


def said_of(user_metadata: str | None) -> Mapping[str, Any] | None:
    try:
        found = json.loads(user_metadata or "")["lockstep"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def same_write(user_metadata: str | None, told: str) -> bool:
    ours = said_of(told)
    found = said_of(user_metadata)
    if ours is None or found is None:
        return user_metadata == told
    return all(found.get(name) == ours[name] for name in _SAME if name in ours)


def restamped(user_metadata: str, kind: WriteKind, **more: Any) -> str:
    """What a commit of another kind says that belongs to the write that says this. Words that
    are not ours stay as they are, unless there is more to say."""
    said = said_of(user_metadata)
    if said is None and not more:
        return user_metadata
    return stamp({**(said or {}), "format": FORMAT, "kind": kind.value, **more})


def stamp(said: Mapping[str, Any]) -> str:
    return json.dumps({"lockstep": dict(said)}, sort_keys=True)


def same_files(user_metadata: str | None, listed: Collection[str], told: Collection[str]) -> bool:
    """Whether a commit of ours that lists these files published those: all of them, or what
    was left of them, where it says which ones there were."""
    said = said_of(user_metadata) or {}
    return set(listed) == set(told) or ("files" in said and set(listed) < set(told))


def digest(checksums: Iterable[str]) -> str:
    """A short name for the content of files, whatever their order."""
    return hashlib.sha256("\n".join(sorted(checksums)).encode()).hexdigest()[:16]


def structures_text(structures: Iterable[TableSchema], *, cleared: bool = False) -> str:
    """`cleared`: values went from them since they were given their key."""
    ordered = sorted(structures, key=lambda one: one.name)
    told = {"format": 1, "structures": [schema_to_json(schema) for schema in ordered]}
    return json.dumps({**told, "cleared": True} if cleared else told) + "\n"


def structures_key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def structures_of(key: str, text: str) -> list[TableSchema] | None:
    """What the file of that key has; None where its content is not what it was."""
    same = structures_key(text) == key
    if not same and '"cleared": true' not in text:
        return None
    found = json.loads(text)
    if not same and found.get("cleared") is not True:
        return None
    return [schema_from_json(load) for load in found["structures"]]
