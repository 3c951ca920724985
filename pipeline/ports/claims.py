"""The port to small files in the folders of sources: the claim, which names the ledger
(Lockstep's database) that owns a folder, and structures to which commits refer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lockstep.pipeline.model.claim import Claim, Unclaimed
from lockstep.pipeline.schema.model import TableSchema


class Claims(Protocol):
    """The claims and the structures in the folders of sources, and the folders
    themselves."""

    def read(self, source: str) -> Claim | Unclaimed:
        """Return the claim in a source's folder. Raise `ForeignCommit` if it cannot be
        parsed."""

    def write(self, claim: Claim) -> None:
        """Write the claim durably and atomically; create the folder."""

    def table_folders(self, source: str) -> list[str]:
        """Return the folders of all Delta tables of a source, relative to the lake."""

    def move_away(self, folder: str, name: str) -> str:
        """Move a folder of the lake to `_before/<name>/<folder>` and return that path,
        relative to the lake. A folder that does not exist is no error."""

    def store_structures(self, source: str, structures: Sequence[TableSchema]) -> str:
        """Write a file with the structures durably, and return the key by which commits
        name it (`lake_commit.structures_key`). A file that exists under the key is not
        changed."""

    def structures(self, source: str, key: str) -> list[TableSchema] | None:
        """Return the structures in the file of that key; None if it is missing or
        unreadable."""

    def clear_structures(self, source: str, cleared: Callable[[TableSchema], TableSchema]) -> None:
        """Replace each structure in the files by the result of `cleared`; the keys
        stay."""
