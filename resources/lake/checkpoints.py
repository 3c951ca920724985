"""Checkpoints of a table's log: how many there are, and deleting those that others replace.

Belongs here: the files (protocol, "Checkpoints", those of one file). Does not: which of them go
(`pipeline.upkeep.checkpoints`); those of several files, which stay.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from pipeline.upkeep.checkpoints import Checkpoint, superfluous
from pipeline.upkeep.facts import Pile
from resources.lake.needed import data_files
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.storage import lake_errors

_NAME: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")


def thinned(path: LakePath, now: datetime, *, delete: bool) -> Pile:
    """Those that go from a table's log, or would; none where there is no table."""
    log = path / "_delta_log"
    with lake_errors(path):
        if not isinstance(log, ObjectPath) and not log.is_dir():
            return Pile()
        checkpoints = [
            Checkpoint(int(named[1]), datetime.fromtimestamp(changed, UTC), size)
            for file, (size, changed) in data_files(log).items()
            if (named := _NAME.fullmatch(file)) is not None
        ]
        gone = superfluous(checkpoints, now)
        for one in gone if delete else ():
            name = f"{one.version:020d}.checkpoint.parquet"
            (log / name).unlink(missing_ok=True)
            (log / f".{name}.crc").unlink(missing_ok=True)
    return Pile.of([checkpoint.size for checkpoint in gone])
