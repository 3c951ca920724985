"""Whether segments' files are what the ledger recorded.

Belongs here: sizes and checksums of single files. Does not: what is done about a damaged one
(`pipeline.runs.rejoining`).
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.errors import SegmentsLost
from pipeline.segment import SegmentFile
from resources.lake.paths import LakePath
from resources.lake.storage import (
    lake_errors,
    sha256_of,
)


def damaged_files(folder: LakePath, files: Iterable[SegmentFile]) -> list[str]:
    """What is wrong with files that should be in `folder`, a sentence each. Of a file whose
    checksum nobody knows, the size counts."""
    found = []
    for file in files:
        path = folder / file.path
        with lake_errors(path):
            wrong = _wrong(path, file)
        if wrong is not None:
            found.append(f"{path} {wrong}")
    return found


def refuse_damaged(folder: LakePath, files: Iterable[SegmentFile]) -> None:
    """`SegmentsLost` if a file is missing or is not what the ledger recorded."""
    wrong = damaged_files(folder, files)
    if wrong:
        raise SegmentsLost(
            wrong[0],
            hint="restore the file from a copy of the lake, or run again: a batch of which nothing "
            "is merged is captured again",
        )


def _wrong(path: LakePath, file: SegmentFile) -> str | None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return "is missing"
    if size != file.size:
        return f"has {size} bytes instead of {file.size}"
    if file.sha256 and sha256_of(path) != file.sha256:
        return "has another checksum than when it was written"
    return None
