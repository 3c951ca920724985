"""Hashes of rows by the server, of what SELECT says, and of what the log says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from lockstep.pipeline.proof.hashes import MODULUS, RowHasher, RowSum
from lockstep.pipeline.values.table import TableStructure
from lockstep.resources.mysql.connection import Dialect
from lockstep.resources.mysql.reader import reading_cursor
from lockstep.resources.mysql.row_hashes import ComparedRead, HashSql
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import Logged
from tests.mysql.reading import settings

SIGNS = {"insert": 1, "update_preimage": -1, "update_postimage": 1, "delete": -1}
_ANY = Dialect(is_mariadb=False, version=0)
"""No mark is asked for."""


def rolled(hasher: RowHasher, log: Logged) -> RowSum:
    """What all images of a log leave of a table that was empty."""
    found = RowSum()
    for kind, sign in SIGNS.items():
        for batch in pa.Table.from_pylist(log.rows(kind), hasher.schema).to_batches():
            one = hasher.row_sum(batch)
            found = found + one if sign > 0 else found - one
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """What a server says of a table: the sum of its rows' hashes, and of each row the key's and
    its own, sorted."""

    sum: RowSum
    pairs: list[int]


def asked_of(source: MySqlServer, structure: TableStructure) -> Asked:
    """As a comparison asks."""
    with source.row_hashes(structure) as found:
        pairs = [
            key << 64 | row
            for keys, rows in found.batches
            for key, row in zip(keys.tolist(), rows.tolist(), strict=True)
        ]
    return Asked(source.row_sum(structure).sum, sorted(pairs))


@contextmanager
def asking(stand: MySqlStand, flavour: str) -> Iterator[Callable[[TableStructure], Asked]]:
    """The same statements about one table after the other, in one session and without marks."""
    with reading_cursor(settings(stand)) as cursor:

        def answer(structure: TableStructure) -> Asked:
            statement = HashSql(structure, flavour)
            read = ComparedRead(cursor, cursor, statement, _ANY, has_snapshot=True, is_ordered=True)
            cursor.execute(statement.sum_query())
            [(rows, total)] = cursor.fetchall()
            read.require_no_warnings()
            cursor.execute(statement.hashes_query())
            pairs = [int.from_bytes(both) for (both,) in cursor.fetchall()]
            read.require_no_warnings()
            return Asked(RowSum(int(rows), int(total or 0) % MODULUS), sorted(pairs))

        yield answer


def unequal_hashes(
    asked: Asked,
    structure: TableStructure,
    flavour: str,
    log: Logged,
    batches: Iterable[pa.RecordBatch],
) -> str:
    """How server, log and the rows that SELECT says differ; nothing where they do not."""
    hasher = RowHasher(structure, flavour)
    rolled_up = rolled(hasher, log)
    if asked.sum != rolled_up:
        return f"{asked.sum} by the server, {rolled_up} from the log"
    own = [
        key << 64 | row
        for batch in batches
        for key, row in zip(
            hasher.key_hashes(batch).tolist(), hasher.row_hashes(batch).tolist(), strict=True
        )
    ]
    return "" if asked.pairs == sorted(own) else f"{len(set(asked.pairs) - set(own))} rows"
