"""Small files in a source's folder: the claim, which names the ledger (the Postgres
database of positions and batches) that the folder belongs to; and table structures to
which commits refer, in files that are named by a hash of their content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Final

from lockstep.pipeline.model.claim import BatchSpan, Claim, Unclaimed
from lockstep.pipeline.model.lake_commit import parse_structures, structures_key, structures_text
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.errors import ForeignCommit
from lockstep.resources.lake.delta.delta_log import commits_newest_first
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import (
    delta_tables,
    lake_errors,
    make_durable_folder,
    move_folder,
    write_durably,
)

CLAIM_NAME: Final = "_lockstep.json"
"""Name of the claim's file; no database's folder begins with `_`."""

_MOST_COMMITS: Final = 50
"""Number of newest commits of each table that are read to find out whether Lockstep
wrote it."""

STRUCTURES_FOLDER: Final = "_structures"
"""Name of the folder with the table structures."""


class FileClaims:
    """`pipeline.ports.Claims` in the lake."""

    def __init__(self, lake: LakePath) -> None:
        self._lake = lake

    def read(self, source: str) -> Claim | Unclaimed:
        folder = self._lake / source
        with lake_errors(folder):
            try:
                text = (folder / CLAIM_NAME).read_bytes()
            except FileNotFoundError:
                has_own_commit = any(
                    commit.is_ours
                    for table in delta_tables(folder)
                    for commit in islice(commits_newest_first(table), _MOST_COMMITS)
                )
                return Unclaimed(is_unwritten=not has_own_commit)
        try:
            content = json.loads(text)
            captured_at = content["captured_at"]
            return Claim(
                source=source,
                ledger=str(content["ledger"]),
                claimed_at=datetime.fromisoformat(content["claimed_at"]),
                batch=content["batch"],
                position=content["place"],
                captured_at=None if captured_at is None else datetime.fromisoformat(captured_at),
                void=tuple(BatchSpan(*map(int, span)) for span in content["void"]),
                is_void_complete=bool(content["void_complete"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ForeignCommit(
                f"{folder / CLAIM_NAME} does not say which ledger the folder belongs to",
                hint="restore the file from a backup; or delete it, then `lockstep recover "
                f"--source {source}`",
            ) from error

    def write(self, claim: Claim) -> None:
        folder = self._lake / claim.source
        captured_at = claim.captured_at
        content = {
            "source": claim.source,
            "ledger": claim.ledger,
            "claimed_at": claim.claimed_at.isoformat(),
            "batch": claim.batch,
            "place": claim.position,
            "captured_at": None if captured_at is None else captured_at.isoformat(),
            "void": [[span.after, span.through] for span in claim.void],
            "void_complete": claim.is_void_complete,
        }
        with lake_errors(folder):
            make_durable_folder(folder)
            write_durably(folder / CLAIM_NAME, (json.dumps(content, indent=2) + "\n").encode())

    def table_folders(self, source: str) -> list[str]:
        folder = self._lake / source
        with lake_errors(folder):
            tables = map(str, delta_tables(folder))
            return [table.removeprefix(f"{self._lake}/") for table in tables]

    def store_structures(self, source: str, structures: Sequence[TableSchema]) -> str:
        text = structures_text(structures)
        key = structures_key(text)
        file = self._lake / source / STRUCTURES_FOLDER / f"{key}.json"
        with lake_errors(file):
            if not file.is_file():
                make_durable_folder(file.parent)
                write_durably(file, text.encode())
        return key

    def structures(self, source: str, key: str) -> list[TableSchema] | None:
        file = self._lake / source / STRUCTURES_FOLDER / f"{key}.json"
        with lake_errors(file), suppress(FileNotFoundError):
            return parse_structures(key, _text_of(file))
        return None

    def clear_structures(self, source: str, cleared: Callable[[TableSchema], TableSchema]) -> None:
        folder = self._lake / source / STRUCTURES_FOLDER
        with lake_errors(folder):
            for file in [*folder.glob("*.json")]:
                key = file.name.removesuffix(".json")
                before = parse_structures(key, _text_of(file)) or []
                after = [cleared(structure) for structure in before]
                if after != before:
                    write_durably(file, structures_text(after, cleared=True).encode())

    def move_away(self, folder: str, name: str) -> str:
        path = self._lake / folder
        target = f"_before/{name}/{folder}"
        with lake_errors(path):
            if path.exists():
                move_folder(path, self._lake / target)
        return target


def _text_of(file: LakePath) -> str:
    """Return a file's text. Damaged characters are replaced, so the text no longer has
    the hash in the file's name."""
    return file.read_bytes().decode(errors="replace")
