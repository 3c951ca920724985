"""Tables that are built in folders of this machine, beside their final places."""

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

_BUILD_FOLDER: Final = ".lockstep-rebuild"
"""Name of the folder, next to a table's final place, in which the table is written."""


class FolderCopies:
    """`pipeline.ports.Copies` in folders of this machine. A Delta table is written next
    to its final place, so that both are in one file system and a rename moves the
    complete table. `lake`: the lake with the files from which a table is built.
    `staging`: the folder for temporary files of writes."""

    def __init__(self, lake: LakePath, *, staging: Path, spark: Spark) -> None:
        self._lake = lake
        self._staging = staging
        self._spark = spark

    @contextmanager
    def build(self, name: str, target: str) -> Iterator[SparkMirrors]:
        target_path = Path(target)
        build_folder = target_path.parent / _BUILD_FOLDER
        with lake_errors(target_path):
            _require_absent(target_path)
            target_path.parent.mkdir(parents=True, exist_ok=True)
        staging = Staging(build_folder)
        try:
            with staging.new_folder() as folder:
                yield SparkMirrors(
                    Path(folder), input_lake=self._lake, staging=self._staging, spark=self._spark
                )
                with lake_errors(target_path):
                    _require_absent(target_path)
                    (Path(folder) / name).rename(target_path)
                    sync_folder(target_path.parent)
        finally:
            staging.end()
            with suppress(OSError):
                build_folder.rmdir()


def _require_absent(path: Path) -> None:
    """Raise `ConfigurationError` if the path exists, except as an empty folder, which a
    rename replaces."""
    is_empty_folder = path.is_dir() and not any(path.iterdir())
    if path.exists() and not is_empty_folder:
        raise ConfigurationError(
            f"{path} exists already", hint="name another place with `--into`, or remove it"
        )
