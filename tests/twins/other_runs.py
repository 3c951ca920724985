"""What runs did that Dagster does not record, in memory: `pipeline.ports.other_runs`."""

from __future__ import annotations

from pipeline.intent import SettledWrite
from pipeline.ports.other_runs import RunsElsewhere, WriteElsewhere
from pipeline.table import TableName
from tests.twins.books import ENDED, MemorySubject


class MemoryOtherRuns(MemorySubject):
    def runs_elsewhere(self, source: str, after: int, through: int) -> RunsElsewhere:
        tokens = self._tokens(source, after, through)
        batches = [one.id for one in self.books.of_source(source, *ENDED) if one.token in tokens]
        return RunsElsewhere(sum(run is not None for run in tokens.values()), tuple(batches))

    def written_elsewhere(
        self, source: str, after: int, through: int, beyond: TableName | None, most: int
    ) -> list[WriteElsewhere]:
        tokens = self._tokens(source, after, through)
        found: dict[TableName, list[SettledWrite]] = {}
        for number, write in sorted(self.books.settled.items()):
            of, intent = self.books.intents[number]
            if of == source and self.books.wrote[number] in tokens:
                found.setdefault(intent.table, []).append(write)
        tables = sorted(table for table in found if beyond is None or table > beyond)[:most]
        return [
            WriteElsewhere(found[t][-1], min(one.intent.first_batch for one in found[t]))
            for t in tables
        ]

    def _tokens(self, source: str, after: int, through: int) -> dict[int, str | None]:
        """Of leases that Dagster does not record, with the id of the run, if it was one."""
        return {
            token: run
            for (of, token), (run, in_dagster) in self.books.runs.items()
            if of == source and after < token <= through and not in_dagster
        }
