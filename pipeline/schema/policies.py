"""How a source's lake follows its schema changes, and what it tells besides, as a person chose it.

Belongs here: the policies as values. Does not: their names in lockstep.toml
(`resources.config`), what follows from them (`consequences`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LakePolicies:
    """How a source's lake follows; the first word of each is the default. `updated_columns`:
    changelogs say which columns an update changed."""

    on_rewrite: str = "set-aside"
    dropped_columns: str = "keep"
    dropped_tables: str = "keep"
    renames: str = "rewrite"
    foreign_keys: str = "set-aside"
    deletes: str = "remove"
    readers: str = "spark"
    updated_columns: bool = False
