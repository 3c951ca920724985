"""The contract of a catalog of Spark's over Spark Connect, beside others that share its server."""

from __future__ import annotations

from uuid import uuid4

import pytest

from lockstep.pipeline.catalog import CatalogEntry, EntryName
from lockstep.resources.lake.spark.remote import RemoteSpark
from lockstep.resources.lake.spark_catalog import SparkCatalog
from tests.catalogs.test_contract import (
    test_an_entry_is_made_changed_renamed_and_dropped as test_an_entry,
)

pytestmark = pytest.mark.acceptance

__all__ = ["test_an_entry"]


@pytest.fixture
def catalog(connect: RemoteSpark) -> SparkCatalog:
    return SparkCatalog(connect, "spark_catalog")


def test_a_view_has_no_place(connect: RemoteSpark, catalog: SparkCatalog) -> None:
    """So that nobody takes it for Lockstep's."""
    name = EntryName(f"shop_{uuid4().hex}", "seen")
    session = connect.session()
    for statement in (f"create schema {name.schema}", f"create view {name} as select 1 as one"):
        session.sql(statement).collect()
    assert catalog.find(name) == CatalogEntry(None)
