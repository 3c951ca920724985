"""The chain of batches, on Postgres: `pipeline.ports.batches`."""

from __future__ import annotations

from typing import Any

from pipeline.batch import Batch, BatchKind, BatchState, Cursor, Requests
from pipeline.decisions import Continuity, Lease
from pipeline.position import Coordinates, Position, Reign, ServerLife, ServerLineage, Witness
from pipeline.table import TableName
from resources.postgres.life_events import forget
from resources.postgres.rows import Row, of_coordinates, of_position, of_table, position
from resources.postgres.session import Books

_ENDED = (BatchState.CAPTURED, BatchState.MERGED, BatchState.ACKNOWLEDGED)


class PostgresBatches(Books):
    def captured_cursor(self, source: str) -> Cursor | None:
        return self._cursor(source, *_ENDED)

    def acknowledged_cursor(self, source: str) -> Cursor | None:
        return self._cursor(source, BatchState.ACKNOWLEDGED)

    def _cursor(self, source: str, *states: BatchState) -> Cursor | None:
        """The end of the newest batch in one of these states."""
        row = self._first("cursor_at", source=source, states=[str(state) for state in states])
        return None if row is None else _cursor(row)

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        return self._batches("batches", source=source, limit=limit)

    def unfinished(self, source: str) -> list[Batch]:
        return self._batches("unfinished", source=source)

    def live_batches(self, source: str, first: int, last: int) -> list[Batch]:
        return self._batches("live_batches", source=source, first=first, last=last)

    def first_batch(self, source: str) -> Batch | None:
        return self._batch("first_batch", source=source)

    def batches_of(self, source: str, table: TableName) -> list[Batch]:
        return self._batches("batches_of", source=source, **of_table(table))

    def overlaps(self, source: str) -> list[Batch]:
        return self._batches("overlaps", source=source)

    def _batches(self, query: str, /, **values: Any) -> list[Batch]:
        return [batch_of(row) for row in self._all(query, **values)]

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        return self._batch("captured_by", source=source, dagster_run=dagster_run)

    def batch_covering(self, source: str, server_uuid: str, at: Coordinates) -> Batch | None:
        values = {"server_uuid": server_uuid, **of_coordinates(at)}
        return self._batch("batch_covering", source=source, **values)

    def _batch(self, query: str, /, **values: Any) -> Batch | None:
        row = self._first(query, **values)
        return None if row is None else batch_of(row)

    def lineage(self, source: str) -> ServerLineage:
        rows = self._all("reigns", source=source)
        return ServerLineage(tuple(Reign(row["server_uuid"], row["since"]) for row in rows))

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        with self._step(lease) as step:
            row = step.only(
                "begin_batch",
                source=lease.source,
                token=lease.token,
                predecessor=predecessor,
                start_decision=start_decision,
                kind=kind.value,
                **of_position(start),
            )
            return batch_of(row)

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        with self._step(lease) as step:
            values = {"source": lease.source, "batch": batch, "reason": reason}
            step.must("abandon", "batches_known", **values)
            forget(step, lease, batch)

    def mark_merged(self, lease: Lease) -> list[int]:
        with self._step(lease) as step:
            return sorted(row["id"] for row in step.all("mark_merged", source=lease.source))

    def acknowledge(self, lease: Lease, batch: int, requests: Requests | None = None) -> None:
        with self._step(lease) as step:
            values = {"source": lease.source, "batch": batch}
            own, spark = (requests.own, requests.spark) if requests else (None, None)
            step.must("acknowledge", "batches_known", **values, own=own, spark=spark)
            step.run("record_version_set", **values)


def batch_of(row: Row) -> Batch:
    captured = row["captured_at"] is not None
    return Batch(
        id=row["id"],
        source=row["source"],
        state=BatchState(row["state"]),
        start=position(row, "start"),
        predecessor=row["predecessor"] or row["forgotten_predecessor"],
        start_decision=row["start_decision"],
        base=row["base"],
        token=row["token"],
        dagster_run=row["dagster_run"],
        created_at=row["created_at"],
        end=position(row, "end") if captured else None,
        witness=_witness(row) if captured else None,
        changes=row["changes"],
        transactions=row["transactions"],
        log_bytes=row["log_bytes"],
        passed_statements=row["passed_statements"],
        captured_at=row["captured_at"],
        merged_at=row["merged_at"],
        acknowledged_at=row["acknowledged_at"],
        follows=row["forgotten_predecessor"] or row["follows"],
        by_gtid=row["by_gtid"],
        continuity=Continuity(row["continuity"]) if row["continuity"] else None,
        kind=BatchKind(row["kind"]),
        life=_life(row),
        requests=_requests(row),
    )


def _requests(row: Row) -> Requests | None:
    own = row["own_requests"]
    return None if own is None else Requests(own, row["spark_requests"])


def _life(row: Row) -> ServerLife | None:
    if row["server_started_at"] is None:
        return None
    return ServerLife(row["server_started_at"], row["server_resets"])


def _witness(row: Row) -> Witness:
    return Witness(
        offset=row["witness_offset"],
        length=row["witness_length"],
        crc32=row["witness_crc32"],
        gtid=row["witness_gtid"],
        file_created=row["witness_file_created"],
    )


def _cursor(row: Row) -> Cursor:
    lapsed = row["once"] and not row["resumable"]
    return Cursor(row["id"], position(row, "end"), _witness(row), row["resumable"], lapsed)
