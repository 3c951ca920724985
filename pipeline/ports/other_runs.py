"""What runs did that Dagster does not record: runs of the command line, on any host.

Belongs here: the port that Dagster's sensor asks. Does not: the leases of these runs
(`ports.leases`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pipeline.intent import SettledWrite
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class RunsElsewhere:
    """The number of runs, and the batches that they captured, in order."""

    runs: int
    batches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteElsewhere:
    """The last write of a table's mirror; `first_batch` is the first that any of its writes in the
    span covers."""

    last: SettledWrite
    first_batch: int


class OtherRuns(Protocol):
    """Leases of a source that Dagster does not record, with tokens after `after` and up to
    `through`. Nothing more is recorded under a lease that has ended."""

    def runs_elsewhere(self, source: str, after: int, through: int) -> RunsElsewhere:
        """Runs are counted, other commands are not."""

    def written_elsewhere(
        self, source: str, after: int, through: int, beyond: TableName | None, most: int
    ) -> list[WriteElsewhere]:
        """Tables whose mirrors were written, by name, one entry each; the first `most` of those
        that come after `beyond`."""
