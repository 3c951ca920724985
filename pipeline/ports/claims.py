"""Whose a source's folder in the lake is, and which structures its commits name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pipeline.claim import Claim, Unclaimed
from pipeline.schema.model import TableSchema


class Claims(Protocol):
    """What the folders of sources say of themselves."""

    def read(self, source: str) -> Claim | Unclaimed:
        """The claim in a source's folder."""

    def write(self, claim: Claim) -> None:
        """Durable, and whole or not at all; makes the folder."""

    def tables(self, source: str) -> list[str]:
        """The folders of all Delta tables of a source, relative to the lake."""

    def move_away(self, folder: str, name: str) -> str:
        """A folder of the lake is at `_before/<name>/<folder>` from here on, with all that is
        in it: that path, relative to the lake. None there is no error."""

    def keep_structures(self, source: str, structures: Sequence[TableSchema]) -> str:
        """Durable under the key by which commits call them (`lake_commit.structures_key`), which is
        returned; what is there already stays."""

    def structures(self, source: str, key: str) -> list[TableSchema] | None:
        """What is kept under a key; None where that is not there, or cannot be read."""

    def clear_structures(self, source: str, cleared: Callable[[TableSchema], TableSchema]) -> None:
        """Each structure that is kept is what this makes of it, under the key it had."""
