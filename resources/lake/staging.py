"""Folders of staged files: what Spark reads more than once is computed once.

Belongs here: making them, and that they go.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.lake.storage import lake_errors


@contextmanager
def staged_folder(staging: Path) -> Iterator[str]:
    """A folder for staged files that goes when it is done with."""
    with lake_errors(staging):
        staging.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="folded-", dir=staging)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
