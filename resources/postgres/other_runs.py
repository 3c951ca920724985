"""What runs did that Dagster does not record, on Postgres: `pipeline.ports.other_runs`."""

from __future__ import annotations

from pipeline.ports.other_runs import RunsElsewhere, WriteElsewhere
from pipeline.table import TableName
from resources.postgres.session import Books
from resources.postgres.writes import settled_write


class PostgresOtherRuns(Books):
    def runs_elsewhere(self, source: str, after: int, through: int) -> RunsElsewhere:
        row = self._first("runs_elsewhere", source=source, after=after, through=through)
        assert row is not None, "a count has one row"
        return RunsElsewhere(row["runs"], tuple(row["batches"]))

    def written_elsewhere(
        self, source: str, after: int, through: int, beyond: TableName | None, most: int
    ) -> list[WriteElsewhere]:
        rows = self._all(
            "written_elsewhere",
            source=source,
            after=after,
            through=through,
            database="" if beyond is None else beyond.database,
            name="" if beyond is None else beyond.name,
            most=most,
        )
        return [WriteElsewhere(settled_write(row), row["since"]) for row in rows]
