"""A lake and a ledger that a version before left behind go on under this one."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from psycopg2.extensions import make_dsn

from pipeline.batch import BatchState
from pipeline.runs.acknowledge import acknowledge
from pipeline.runs.context import Unwatched, Workplace
from pipeline.runs.merge import merge
from pipeline.runs.repair import repair
from pipeline.source_plan import SourcePlan
from pipeline.tables import TablePatterns
from resources.lake.changelog import DeltaChangelog
from resources.lake.claims import FileClaims
from resources.lake.mirror import SparkMirrors
from resources.lake.segments import ParquetSegments
from resources.lake.session import SparkProcess
from resources.lake.spool import FileSpool
from resources.postgres.connection import LedgerAddress, connect
from resources.postgres.ledger import PostgresLedger, open_ledger
from resources.postgres.migrate import migrate, migrations
from tests.e2e.kept_lake import TABLES, kept
from tests.ledger.servers import embedded_server, run


@pytest.fixture
def unpacked(tmp_path: Path, number: int) -> Path:
    with tarfile.open(kept()[number]) as archive:
        # Which 3.11.4 brought; before it, the attribute is read by nobody.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    return tmp_path


@pytest.fixture
def ledger(unpacked: Path, number: int) -> Iterator[PostgresLedger]:
    with embedded_server(unpacked / "postgres") as server:
        run(server, "create database kept")
        dsn = make_dsn(server, dbname="kept")
        target = LedgerAddress(dsn, "a ledger that was kept")
        with closing(connect(target)) as connection:
            migrate(target, connection, migrations()[:number])
        run(dsn, (unpacked / "ledger.sql").read_text())
        with open_ledger(dsn, unpacked) as opened:
            yield opened


@pytest.mark.parametrize("number", kept())
def test_what_a_version_before_captured_is_merged(
    unpacked: Path, ledger: PostgresLedger, spark: SparkProcess
) -> None:
    """A write that it had begun is finished, the others are made, nothing is done twice: all
    mirrors have MySQL's rows, and the batches are acknowledged."""
    lake = unpacked / "lake"
    work = Workplace(
        source=SourcePlan("shop", TablePatterns(("kept.*",)), None),
        server=cast("Any", None),  # what was captured is merged without the source
        ledger=ledger,
        segments=ParquetSegments(lake),
        spool=FileSpool(lake, unpacked / "scratch"),
        changelog=DeltaChangelog(lake),
        mirrors=SparkMirrors(lake, staging=unpacked / "staging", spark=spark),
        claims=FileClaims(lake),
        progress=Unwatched(),
        clock=lambda: datetime.now(UTC),
    )
    (intent,) = ledger.open_intents("shop")
    with ledger.lock("shop", "a test", None) as lease:
        assert repair(work, lease) == ()
        report = merge(work, lease)
        acknowledge(work, lease)
    merged = {one.table.name: one for one in report.merged}
    assert set(merged) == set(TABLES)
    assert ledger.open_intents("shop") == []
    states = [batch.state for batch in ledger.batches("shop")]
    assert states == [BatchState.ACKNOWLEDGED, BatchState.ACKNOWLEDGED]
    expected = json.loads((unpacked / "rows.json").read_text())
    assert {table: _rows(spark, lake, table) for table in TABLES} == expected
    settled = ledger.last_settled("shop", intent.app_id)
    assert settled is not None
    assert settled.intent == intent


def _rows(spark: SparkProcess, lake: Path, table: str) -> list[list[str]]:
    read = spark.session().read.format("delta").load(str(lake / "shop" / "kept" / table))
    return sorted([str(one) for one in row] for row in read.collect())
