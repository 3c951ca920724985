"""What hostile trials of the lake are given: a lake on disk."""

from __future__ import annotations

from tests.lake.conftest import disk, folder

__all__ = ["disk", "folder"]
