"""The contract of a catalog of Spark's over Spark Connect, beside others that share its server."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.lake.remote import RemoteSpark
from resources.lake.spark_catalog import SparkCatalog
from tests.catalogs.test_contract import (
    test_an_entry_is_made_changed_renamed_and_dropped as test_an_entry,
)

__all__ = ["test_an_entry"]


@pytest.fixture
def catalog(connect: RemoteSpark, tmp_path: Path) -> SparkCatalog:
    """Of a lake in `tmp_path`."""
    return SparkCatalog(connect, "spark_catalog", lambda mirror: (tmp_path / mirror).as_uri())
