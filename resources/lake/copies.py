"""Tables that are made aside: `pipeline.ports.copies` on folders of this machine.

A table is made beside the place where it is to be, so that it gets there by a rename.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.errors import ConfigurationError
from resources.lake.mirror import SparkMirrors
from resources.lake.paths import LakePath
from resources.lake.spark import Spark
from resources.lake.staging import Staging
from resources.lake.storage import lake_errors, sync_folder

_ASIDE: Final = ".lockstep-rebuild"
"""Beside the place where tables are to be, while they are made."""


@dataclass(frozen=True, slots=True)
class FolderCopy:
    """`pipeline.ports.Copy`."""

    mirrors: SparkMirrors
    folder: Path
    into: Path | None

    def finish(self, name: str) -> None:
        assert self.into is not None, "it goes somewhere"
        with lake_errors(self.into):
            _require_free(self.into)
            (self.folder / name).rename(self.into)
            sync_folder(self.into.parent)


class FolderCopies:
    """`pipeline.ports.Copies`. `staging`: where tables are made that go nowhere."""

    def __init__(self, lake: LakePath, *, staging: Path, spark: Spark) -> None:
        self._lake = lake
        self._staging = staging
        self._spark = spark

    @contextmanager
    def begun(self, into: str | None) -> Iterator[FolderCopy]:
        place = None if into is None else Path(into)
        beside = self._staging if place is None else place.parent / _ASIDE
        if place is not None:
            with lake_errors(place):
                _require_free(place)
                place.parent.mkdir(parents=True, exist_ok=True)
        staging = Staging(beside)
        try:
            with staging.folder() as folder:
                aside = SparkMirrors(
                    Path(folder), files=self._lake, staging=self._staging, spark=self._spark
                )
                yield FolderCopy(aside, Path(folder), place)
        finally:
            staging.end()
            if place is not None:
                with suppress(OSError):
                    beside.rmdir()


def _require_free(place: Path) -> None:
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise ConfigurationError(
            f"{place} is there already", hint="name another place with `--into`, or remove it"
        )
