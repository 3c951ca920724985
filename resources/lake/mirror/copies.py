"""`pipeline.ports.mirrors` on folders of this machine: Delta tables written outside the lake.

A table is written next to its final place, so that a rename brings it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.spark import Spark
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import lake_errors, sync_folder

_ASIDE: Final = ".lockstep-rebuild"
"""Folder next to the final place of tables, in which they are written."""


class FolderCopies:
    """`pipeline.ports.Copies`. `staging`: the folder in which writes are staged."""

    def __init__(self, lake: LakePath, *, staging: Path, spark: Spark) -> None:
        self._lake = lake
        self._staging = staging
        self._spark = spark

    @contextmanager
    def begun(self, name: str, into: str) -> Iterator[SparkMirrors]:
        place = Path(into)
        beside = place.parent / _ASIDE
        with lake_errors(place):
            _require_free(place)
            place.parent.mkdir(parents=True, exist_ok=True)
        staging = Staging(beside)
        try:
            with staging.folder() as folder:
                yield SparkMirrors(
                    Path(folder), files=self._lake, staging=self._staging, spark=self._spark
                )
                with lake_errors(place):
                    _require_free(place)
                    (Path(folder) / name).rename(place)
                    sync_folder(place.parent)
        finally:
            staging.end()
            with suppress(OSError):
                beside.rmdir()


def _require_free(place: Path) -> None:
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise ConfigurationError(
            f"{place} exists already", hint="name another place with `--into`, or remove it"
        )
