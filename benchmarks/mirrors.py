"""Mirrors that benchmarks write by Spark: their inserts, and merges by the key `id`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    FoldedChanges,
    Merge,
    MirrorTarget,
    StagedFiles,
)
from lockstep.resources.lake.spark.session import SparkProcess


@contextmanager
def spark_process(
    console: Console, conf: Mapping[str, str] | None = None, **more: Any
) -> Iterator[SparkProcess]:
    """Yield a Spark of this process, which is stopped afterwards."""
    process = SparkProcess(conf or {}, on_warning=console.print, **more)
    try:
        yield process
    finally:
        process.stop()


def append(target: MirrorTarget, *files: str) -> Append:
    """Return the write that inserts the rows of staged files."""
    columns = tuple(ColumnOrigin(field.name, field.type) for field in target.schema)
    return Append(target, (StagedFiles(files, columns),))


def merge(target: MirrorTarget, file: str, keys: Sequence[int]) -> Merge:
    """Return the write that merges a staged file of changes, whose keys ascend."""
    bounds = (("id", str(keys[0]), str(keys[-1])),)
    return Merge(target, ("id",), FoldedChanges((file,)), bounds)
