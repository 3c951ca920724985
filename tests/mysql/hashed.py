"""Hashes of rows by the server, of what SELECT says, and of what the log says."""

from __future__ import annotations

import pyarrow as pa

from pipeline.proof.hashes import RowHasher, RowShare, RowSum
from pipeline.table import TableStructure
from resources.mysql.server import MySqlServer
from tests.mysql.logged import Logged

SIGNS = {"insert": 1, "update_preimage": -1, "update_postimage": 1, "delete": -1}


def rolled(hasher: RowHasher, log: Logged) -> RowSum:
    """What all images of a log leave of a table that was empty."""
    found = RowSum()
    for kind, sign in SIGNS.items():
        for batch in pa.Table.from_pylist(log.rows(kind), hasher.schema).to_batches():
            one = hasher.summed(batch)
            found = found + one if sign > 0 else found - one
    return found


def pairs(hasher: RowHasher, source: MySqlServer) -> tuple[list[int], list[int]]:
    """Both hashes of each row, sorted: the server's, and ours of what SELECT says."""
    structure = hasher.structure
    with source.row_hashes(structure, RowShare()) as found:
        theirs = [
            key << 64 | row
            for keys, rows in found.batches
            for key, row in zip(keys.tolist(), rows.tolist(), strict=True)
        ]
    with source.rows(structure) as batches:
        ours = [
            key << 64 | row
            for batch in batches
            for key, row in zip(
                hasher.keys(batch).tolist(), hasher.rows(batch).tolist(), strict=True
            )
        ]
    return sorted(theirs), sorted(ours)


def unequal_hashes(
    source: MySqlServer, structure: TableStructure, flavour: str, log: Logged
) -> str:
    """How the three differ; nothing where they do not."""
    hasher = RowHasher(structure, flavour)
    asked = source.row_sum(structure).sum
    ours = rolled(hasher, log)
    if asked != ours:
        return f"{asked} by the server, {ours} from the log"
    theirs, own = pairs(hasher, source)
    return "" if theirs == own else f"{len(set(theirs) - set(own))} rows"
