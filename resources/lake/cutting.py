"""A mirror whose versions of before are gone: its log begins at its newest one, and files that this
one does not list are deleted.

A log has more than the names of files: statistics of those that a commit adds are values of rows,
and checkpoints repeat them. Of files that it removes a commit has the number of rows alone, so that
the commit which wrote all rows anew may stay.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from resources.lake.paths import LakePath
from resources.lake.spark import stamped
from resources.lake.statement import quoted
from resources.lake.storage import delta_table, lake_errors, remove_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_FILES: Final = 10_000
"""Up to which a session for few rows is the sooner one to vacuum with."""

_HOUR: Final = timedelta(hours=1)
_DELTA: Final = "spark.databricks.delta"
_OF_VERSION: Final = re.compile(r"\.?(\d{20})\..+")
"""What a log calls its files by: commits, checkpoints and their parts, checksum files, commits put
together up to a second version, and the checksums that Hadoop has beside each of them."""


def cut_log(path: LakePath, version: int) -> None:
    """Let the log of a table begin at its newest version, with a checkpoint. Nothing happens if
    that is another one: what was read of it no longer holds."""
    log = path / "_delta_log"
    with lake_errors(path):
        table = delta_table(path)
        if table.version() != version:
            return
        names = [file.name for file in log.iterdir()]
        if f"{version:020d}.checkpoint.parquet" not in names:
            table.create_checkpoint()
        for name in names:
            named = _OF_VERSION.fullmatch(name)
            if named is not None and int(named[1]) < version:
                (log / name).unlink(missing_ok=True)
        # Parts of checkpoints of another kind, which that one replaces.
        remove_folder(log / "_sidecars")


def vacuum(session: SparkSession, path: LakePath, keep: timedelta) -> None:
    """Delete the files that no version needs which was replaced within `keep`."""
    stamps = {
        f"{_DELTA}.retentionDurationCheck.enabled": "false",  # the time is ours, not a person's
        f"{_DELTA}.vacuum.logging.enabled": "false",
    }
    hours = f"{keep / _HOUR:.6f}"
    with stamped(session, stamps):
        session.sql(f"VACUUM delta.{quoted(str(path))} RETAIN {hours} HOURS").collect()
