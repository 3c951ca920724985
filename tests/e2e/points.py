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
    ROWS_TAKEN = "lockstep.pipeline.run.dump.segmenter:Segmenter.put"
    SEGMENT_OPENED = "lockstep.resources.lake.changelog.segments:ParquetSegments.open"

    # What it records.
    BATCH_BEGUN = "lockstep.resources.postgres.ledger:PostgresLedger.begin_batch"
    CAPTURE_RECORDED = "lockstep.resources.postgres.ledger:PostgresLedger.record_capture"
    WRITE_INTENDED = "lockstep.resources.postgres.ledger:PostgresLedger.intend"
    WRITE_SETTLED = "lockstep.resources.postgres.ledger:PostgresLedger.settle"
    BATCH_MERGED = "lockstep.resources.postgres.ledger:PostgresLedger.mark_merged"
    BATCH_ACKNOWLEDGED = "lockstep.resources.postgres.ledger:PostgresLedger.acknowledge"
    TABLE_QUARANTINED = "lockstep.resources.postgres.ledger:PostgresLedger.quarantine"
    LOAD_BEGUN = "lockstep.resources.postgres.ledger:PostgresLedger.begin_load"
    CHUNK_PLANNED = "lockstep.resources.postgres.ledger:PostgresLedger.plan_chunk"
    CHUNK_RECORDED = "lockstep.resources.postgres.ledger:PostgresLedger.record_chunk"

    # What it asks the ledger.
    CURSOR_ASKED = "lockstep.resources.postgres.ledger:PostgresLedger.cursors"
    STATES_ASKED = "lockstep.resources.postgres.ledger:PostgresLedger.table_states"
    PREPARED_ASKED = "lockstep.resources.postgres.ledger:PostgresLedger.open_prepared"
    HOLDER_ASKED = "lockstep.resources.postgres.ledger:PostgresLedger.require_held"

    # What it writes to changelogs.
    CHANGES_PUBLISHED = "lockstep.resources.lake.changelog.changelog:DeltaChangelog.publish"
    CHANGELOG_COMMITTED = "lockstep.resources.lake.changelog.changelog:commit_files"
    CHANGELOG_WIDENED = "lockstep.resources.lake.changelog.changelog:_add_columns"
    CHANGELOG_RESTATED = "lockstep.resources.lake.changelog.changelog:DeltaChangelog.restate"
    CHANGES_REVISED = "lockstep.resources.lake.changelog.changelog:DeltaChangelog.revise"

    # What it writes to mirrors.
    CHANGES_STAGED = "lockstep.resources.lake.mirror.mirror:SparkMirrors.stage"
    MIRROR_EVOLVED = "lockstep.resources.lake.mirror.mirror:SparkMirrors.evolve"
    MIRROR_STEP = "lockstep.resources.lake.mirror.mirror:SparkMirrors._commit_step"
    MIRROR_WRITTEN = "lockstep.resources.lake.mirror.mirror:SparkMirrors.write"
    MIRROR_ROWS = "lockstep.resources.lake.mirror.mirror:SparkMirrors._commit_write"
    MIRROR_RESTORED = "lockstep.resources.lake.mirror.mirror:SparkMirrors.restore"
    MIRROR_PINNED = "lockstep.resources.lake.delta.pin:Head.pin_settings"
    STATEMENT_SENT = "pyspark.sql.connect.client.core:SparkConnectClient.execute_command"

    # What it puts in order.
    ROWS_FORGOTTEN = "lockstep.resources.lake.changelog.spool:FileSpool.delete_file"
    UPKEEP_STEP = "lockstep.resources.lake.mirror.upkeep:SparkUpkeep.carry_out"
