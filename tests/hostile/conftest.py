"""What hostile trials of the lake are given: a Spark, and a lake on disk."""

from __future__ import annotations

from tests.lake.conftest import disk, folder, spark

__all__ = ["disk", "folder", "spark"]
