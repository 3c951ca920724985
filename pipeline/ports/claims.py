"""Which ledger a source's folder in the lake belongs to, and the structures that commits name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lockstep.pipeline.model.claim import Claim, Unclaimed
from lockstep.pipeline.schema.model import TableSchema


class Claims(Protocol):
    """What the folders of sources say of themselves."""

    def read(self, source: str) -> Claim | Unclaimed:
        """Return the claim in a source's folder."""

    def write(self, claim: Claim) -> None:
        """Write the claim durably and atomically; create the folder."""

    def tables(self, source: str) -> list[str]:
        """Return the folders of all Delta tables of a source, relative to the lake."""

    def move_away(self, folder: str, name: str) -> str:
        """Move a folder of the lake to `_before/<name>/<folder>` and return that path, relative to
        the lake. A folder that does not exist is no error."""

    def keep_structures(self, source: str, structures: Sequence[TableSchema]) -> str:
        """Keep structures durably, and return the key by which commits name them
        (`lake_commit.structures_key`). A key that exists keeps what it has."""

    def structures(self, source: str, key: str) -> list[TableSchema] | None:
        """Return what is kept under a key; None if it is missing or cannot be read."""

    def clear_structures(self, source: str, cleared: Callable[[TableSchema], TableSchema]) -> None:
        """Replace each kept structure by `cleared` of it, under the key it had."""
