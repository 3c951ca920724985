"""Commits of Delta tables in the lake, and the user metadata that Lockstep writes into its own.

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

APPLICATION: Final = "lockstep/"
"""The prefix of the Delta application ids of all our writes."""

FORMAT: Final = 1
"""The version of the user metadata's format."""

_SAME: Final = ("ledger", "source", "table", "batches", "position", "captured_at", "files")
"""Keys whose values are the same at each try of one write. Others may differ."""

STATISTICS: Final = "COMPUTE STATS"
"""Spark's operation that adds files again with new statistics."""

RESTORED: Final = "RESTORE"
"""The operation that sets a table back to an earlier version."""


class WriteKind(StrEnum):
    """The purpose of a commit of ours."""

    PUBLISH = "publish"
    """It adds a batch's files to a changelog, or to one of the source's own tables."""
    MERGE = "merge"
    REWRITE = "rewrite"
    """It replaces a mirror's rows: they were read again, rebuilt or repaired."""
    ALTER = "alter"
    """It changes columns, properties, or values of new columns before a write."""
    REVISE = "revise"
    """It replaces a changelog's files of past batches, which were captured again."""
    FORGET = "forget"
    """It removes from a changelog the files of these and all earlier batches, whose time to be
    kept is over."""
    RESTATE = "restate"
    """It makes a changelog list exactly the files that a ledger recorded."""
    RESTORE = "restore"
    """It sets a mirror back to an earlier version."""
    UPKEEP = "upkeep"
    """It puts a mirror's rows into other files. Its metadata repeats that of the write whose
    version is `shows`, so that a log without that write still has it."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file that a commit adds or removes. `rows`: without those that its deletion vector
    deletes, or None if unknown; `deleted`: number of these; `size`: in bytes."""

    path: str
    rows: int | None
    data_change: bool
    deleted: int = 0
    size: int | None = None


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A commit's change of a table's metadata: whether of its `columns`, None if unknown, and the
    names of changed `properties`."""

    columns: bool | None
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LakeCommit:
    """One commit. `transactions`: the versions that it recorded, by application id."""

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
        return metadata_of(self.user_metadata)

    @property
    def repeats(self) -> int | None:
        """The version whose rows this commit put into other files; None for other commits."""
        said = self.said or {}
        shows = said.get("shows") if said.get("kind") == WriteKind.UPKEEP else None
        return shows if isinstance(shows, int) else None

    @property
    def relists(self) -> bool:
        """True if the commit changes which files the table lists. A commit that only changes the
        statistics of a file adds it again."""
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
    """A table's log after a version, `base`. `newest`: the newest version, or None if there is no
    table. `base`: the commit of that version, or None if the log no longer has it. `commits`: the
    commits after it, ascending and without a hole. `missing`: the first version that the log lacks
    although it has later ones, or None."""

    newest: int | None
    base: LakeCommit | None = None
    commits: tuple[LakeCommit, ...] = ()
    missing: int | None = None


def metadata_of(user_metadata: str | None) -> Mapping[str, Any] | None:
    try:
        said = json.loads(user_metadata or "")["lockstep"]
    except (ValueError, KeyError, TypeError):
        return None
    return said if isinstance(said, dict) else None


def same_write(user_metadata: str | None, intended: str) -> bool:
    """Return whether a commit is a try of the write whose metadata is `intended`."""
    ours = metadata_of(intended)
    said = metadata_of(user_metadata)
    if ours is None or said is None:
        return user_metadata == intended
    return all(said.get(name) == ours[name] for name in _SAME if name in ours)


def metadata_for_kind(user_metadata: str, kind: WriteKind, **more: Any) -> str:
    """Return the metadata of a commit of another kind that belongs to a write with this metadata.
    Metadata that is not ours is returned unchanged, unless `more` is given."""
    said = metadata_of(user_metadata)
    if said is None and not more:
        return user_metadata
    return stamp({**(said or {}), "format": FORMAT, "kind": kind.value, **more})


def stamp(said: Mapping[str, Any]) -> str:
    return json.dumps({"lockstep": dict(said)}, sort_keys=True)


def same_files(
    user_metadata: str | None, listed: Collection[str], recorded: Collection[str]
) -> bool:
    """Return whether a commit of ours that lists these files published the recorded ones. It may
    list fewer if its metadata has a digest of all of them."""
    said = metadata_of(user_metadata) or {}
    return set(listed) == set(recorded) or ("files" in said and set(listed) < set(recorded))


def digest(checksums: Iterable[str]) -> str:
    """Return a short hash of files' contents, which does not depend on their order."""
    return hashlib.sha256("\n".join(sorted(checksums)).encode()).hexdigest()[:16]


def structures_text(structures: Iterable[TableSchema], *, cleared: bool = False) -> str:
    """Return the text of a file with these structures. `cleared`: values were removed from them
    after the file got its name, which is the key of its first text."""
    ordered = sorted(structures, key=lambda schema: schema.name)
    content = {"format": 1, "structures": [schema_to_json(schema) for schema in ordered]}
    return json.dumps({**content, "cleared": True} if cleared else content) + "\n"


def structures_key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def structures_of(key: str, text: str) -> list[TableSchema] | None:
    """Return the structures in the file of that key, or None if its content was changed."""
    same = structures_key(text) == key
    if not same and '"cleared": true' not in text:
        return None
    content = json.loads(text)
    if not same and content.get("cleared") is not True:
        return None
    return [schema_from_json(structure) for structure in content["structures"]]
