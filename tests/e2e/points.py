"""Places in a run, by what happens there: where tests kill it, stop it or put it to sleep.

Belongs here: which function of the product each of them is, and nothing else knows that. Does not:
what is done to a run there (`killer`). A test says `Point.WRITE_SETTLED` and `before` or `after`;
where the product does it in another function, its line here is another.
"""

from __future__ import annotations

from enum import StrEnum


class Point(StrEnum):
    """`MODULE:FUNCTION`, or `MODULE:CLASS.METHOD`."""

    # What a run reads of the log.
    ROWS_TAKEN = "pipeline.runs.capturing.segment_builder:Segmenter.put"
    SEGMENT_OPENED = "resources.lake.segments:ParquetSegments.open"

    # What it records.
    BATCH_BEGUN = "resources.postgres.ledger:PostgresLedger.begin_batch"
    CAPTURE_RECORDED = "resources.postgres.ledger:PostgresLedger.record_capture"
    WRITE_INTENDED = "resources.postgres.ledger:PostgresLedger.intend"
    WRITE_SETTLED = "resources.postgres.ledger:PostgresLedger.settle"
    BATCH_MERGED = "resources.postgres.ledger:PostgresLedger.mark_merged"
    BATCH_ACKNOWLEDGED = "resources.postgres.ledger:PostgresLedger.acknowledge"
    TABLE_QUARANTINED = "resources.postgres.ledger:PostgresLedger.quarantine"
    LOAD_BEGUN = "resources.postgres.ledger:PostgresLedger.begin_load"
    CHUNK_PLANNED = "resources.postgres.ledger:PostgresLedger.plan_chunk"
    CHUNK_RECORDED = "resources.postgres.ledger:PostgresLedger.record_chunk"

    # What it asks the ledger.
    CURSOR_ASKED = "resources.postgres.ledger:PostgresLedger.cursors"
    STATES_ASKED = "resources.postgres.ledger:PostgresLedger.table_states"
    PREPARED_ASKED = "resources.postgres.ledger:PostgresLedger.open_prepared"
    HOLDER_ASKED = "resources.postgres.ledger:PostgresLedger.require_held"

    # What it writes to changelogs.
    CHANGES_PUBLISHED = "resources.lake.changelog:DeltaChangelog.publish"
    CHANGELOG_COMMITTED = "resources.lake.changelog:commit_files"
    CHANGELOG_WIDENED = "resources.lake.changelog:_add_columns"
    CHANGELOG_RESTATED = "resources.lake.changelog:DeltaChangelog.restate"
    CHANGES_REVISED = "resources.lake.changelog:DeltaChangelog.revise"

    # What it writes to mirrors.
    CHANGES_STAGED = "resources.lake.mirror:SparkMirrors.stage"
    MIRROR_EVOLVED = "resources.lake.mirror:SparkMirrors.evolve"
    MIRROR_STEP = "resources.lake.mirror:SparkMirrors._step"
    MIRROR_WRITTEN = "resources.lake.mirror:SparkMirrors.write"
    MIRROR_ROWS = "resources.lake.mirror:SparkMirrors._apply"
    MIRROR_RESTORED = "resources.lake.mirror:SparkMirrors.restore"
    MIRROR_PINNED = "resources.lake.pin:Head.pin"
    STATEMENT_SENT = "pyspark.sql.connect.client.core:SparkConnectClient.execute_command"

    # What it puts in order.
    ROWS_FORGOTTEN = "resources.lake.spool:FileSpool.remove"
    UPKEEP_STEP = "resources.lake.upkeep:SparkUpkeep.carry_out"
