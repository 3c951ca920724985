"""Made results read, for tests that need no server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lockstep.pipeline.resultset.column_arrays import ResultBatches
from tests.pipeline.results_made import Kind, pieces


def batches(
    kinds: Sequence[Kind], data: bytes, borders: Sequence[int] = (), **options: Any
) -> ResultBatches:
    columns = [replace(kind.column, name=f"c{number}") for number, kind in enumerate(kinds)]
    definitions = [kind.definition for kind in kinds]
    options = {"sequence": 0, **options}
    return ResultBatches(columns, definitions, pieces(data, borders), **options)


def values(found: ResultBatches) -> list[list[Any]]:
    return [list(row.values()) for batch in found for row in batch.to_pylist()]
