"""Loads of tables that are read from the source, on Postgres: `pipeline.ports.loads`.

Belongs here: loads, their chunks and the files of those; what a capture tells of loads. Does not:
the state of their tables (`tables`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipeline.batch import CaptureRecord
from pipeline.decisions import Lease
from pipeline.json_values import to_json
from pipeline.load import Chunk, ChunkRows, FollowedFrom, Load, LoadBasis
from pipeline.position import Coordinates
from pipeline.schema.model_json import schema_from_json, schema_to_json
from pipeline.segment import SegmentFile
from pipeline.snapshot.bounds import Bound, Range
from pipeline.table import TableName
from resources.postgres.rows import Row, coordinates, of_coordinates, of_table, table
from resources.postgres.session import Books, Step


class PostgresLoads(Books):
    def order_load(self, lease: Lease, table: TableName, *, author: str, reason: str) -> Load:
        with self._step(lease) as step:
            of = {"source": lease.source, **of_table(table)}
            rows = step.all("ordered_load", **of)
            if not rows:
                values = {"token": lease.token, "author": author, "reason": reason}
                rows = step.all("order_load", **of, **values)
            number = rows[0]["id"]
            return _load(step.only("the_load", source=lease.source, load=number), ())

    def open_loads(self, source: str) -> list[Load]:
        rows = self._all("open_loads", source=source)
        chunks: dict[int, list[Chunk]] = {row["id"]: [] for row in rows}
        if rows:
            for row in self._all("load_chunks", loads=list(chunks)):
                chunks[row["load"]].append(_chunk(row))
        return [_load(row, chunks[row["id"]]) for row in rows]

    def begin_load(self, lease: Lease, load: int, reading: LoadBasis) -> None:
        with self._step(lease) as step:
            step.must(
                "begin_load",
                "loads_known",
                source=lease.source,
                load=load,
                schema=json.dumps(schema_to_json(reading.schema)),
                server_uuid=reading.server_uuid,
                estimated_rows=reading.estimated_rows,
                **of_coordinates(reading.low),
            )

    def plan_chunk(self, lease: Lease, load: int, number: int, range: Range) -> None:
        with self._step(lease) as step:
            ends = {"after": _of_bound(range.after), "through": _of_bound(range.through)}
            step.run("plan_chunk", load=load, number=number, **ends)

    def record_chunk(self, lease: Lease, load: int, number: int, read: ChunkRows) -> None:
        with self._step(lease) as step:
            step.must(
                "record_chunk",
                "load_chunks_known",
                load=load,
                number=number,
                **_named("low", read.low),
                **_named("high", read.high),
                rows=read.rows,
                seconds=read.seconds,
            )
            for ordinal, file in enumerate(read.files):
                step.run(
                    "record_load_file",
                    load=load,
                    number=number,
                    ordinal=ordinal,
                    path=file.path,
                    images=file.images,
                    size=file.size,
                    sha256=file.sha256,
                )

    def void_load(self, lease: Lease, load: int, why: str) -> None:
        with self._step(lease) as step:
            step.must("void_load", "loads_known", source=lease.source, load=load, why=why)


def record_loads(step: Step, source: str, batch: int, record: CaptureRecord) -> None:
    """What a capture tells of loads; their tables and versions are recorded."""
    for begun in record.followed:
        values = {"batch": batch, "sequence": begun.sequence, "version": begun.version}
        step.must("follow_load", "loads_known", source=source, load=begun.load, **values)
    for ended in record.joined:
        step.must("join_load", "loads_known", source=source, load=ended.load, batch=batch)


# -- rows ------------------------------------------------------------------------------------


def _load(row: Row, chunks: Sequence[Chunk]) -> Load:
    reading = followed = None
    if row["schema"] is not None:
        reading = LoadBasis(
            schema_from_json(row["schema"]),
            row["server_uuid"],
            coordinates(row, "low"),
            row["estimated_rows"],
        )
    if row["followed_batch"] is not None:
        followed = FollowedFrom(
            row["followed_batch"], row["followed_sequence"], row["followed_version"]
        )
    return Load(
        row["id"],
        table(row),
        row["author"],
        row["reason"],
        row["ordered_at"],
        reading,
        followed,
        tuple(chunks),
    )


def _chunk(row: Row) -> Chunk:
    read = None
    if row["rows"] is not None:
        read = ChunkRows(
            coordinates(row, "low"),
            coordinates(row, "high"),
            row["rows"],
            row["seconds"],
            _files(row),
        )
    return Chunk(row["number"], Range(_bound(row["after"]), _bound(row["through"])), read)


def _named(which: str, value: Coordinates) -> dict[str, Any]:
    return {f"{which}_{part}": told for part, told in of_coordinates(value).items()}


def _files(row: Row) -> tuple[SegmentFile, ...]:
    found = zip(row["paths"], row["images"], row["sizes"], row["digests"], strict=True)
    return tuple(SegmentFile(*file) for file in found)


def _bound(told: list[str] | None) -> Bound | None:
    return None if told is None else Bound.from_json(told)


def _of_bound(value: Bound | None) -> str | None:
    return None if value is None else json.dumps(to_json(value))
