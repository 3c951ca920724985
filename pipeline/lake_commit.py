"""Commits of Delta tables in the lake: what a log's entries say, and what ours say of themselves.

Belongs here: the values. Does not: reading a log (`resources.lake`), judging what it shows
(`pipeline.foreign_commits`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

APPLICATION: Final = "lockstep/"
"""How the Delta application ids of all our writes begin."""

_TOLD_LATER: Final = ("ledger", "files")
"""What commits of versions before this one do not say."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file that a commit adds or removes. `rows`: less those deleted in it, None where
    nobody says; `deleted`: how many those are."""

    path: str
    rows: int | None
    data_change: bool
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Altered:
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
    altered: Altered | None = None

    @property
    def said(self) -> Mapping[str, Any] | None:
        """What it says of itself, if it is a Lockstep's."""
        return said_of(self.user_metadata)

    @property
    def ours(self) -> bool:
        """Whether some Lockstep made it."""
        return self.said is not None or any(
            app_id.startswith(APPLICATION) for app_id in self.transactions
        )


@dataclass(frozen=True, slots=True)
class Look:
    """A table's log above a version. `newest`: None where there is no table. `base`: the
    commit of that version, if the log still has it. `commits`: those above, ascending, without
    a hole; `missing`: the first one that the log has no file of, although later ones exist."""

    newest: int | None
    base: LakeCommit | None = None
    commits: tuple[LakeCommit, ...] = ()
    missing: int | None = None


def said_of(user_metadata: str | None) -> Mapping[str, Any] | None:
    """What a commit's userMetadata says, if a Lockstep wrote it."""
    try:
        found = json.loads(user_metadata or "")["lockstep"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def same_write(user_metadata: str | None, told: str) -> bool:
    """Whether a commit says what a write of ours would say. Commits of before say less."""
    ours = said_of(told)
    found = said_of(user_metadata)
    if ours is None or found is None:
        return user_metadata == told
    return all(
        found.get(name) == value
        for name, value in ours.items()
        if name in found or name not in _TOLD_LATER
    )


def same_files(user_metadata: str | None, listed: Collection[str], told: Collection[str]) -> bool:
    """Whether a commit of ours that lists these files published those: all of them, or what
    was left of them, where it says which ones there were."""
    said = said_of(user_metadata) or {}
    return set(listed) == set(told) or ("files" in said and set(listed) < set(told))


def digest(checksums: Iterable[str]) -> str:
    """A short name for the content of files, whatever their order."""
    return hashlib.sha256("\n".join(sorted(checksums)).encode()).hexdigest()[:16]
