"""Which of a table's files no version needs that was replaced within a time.

Belongs here: what the folder has, and what the log says of it. Does not: deleting, which is
Delta's VACUUM; what was promised (`pipeline.keeping`).

A file is needed if the newest version lists it, or if a commit behind the moment removed it: until
then it was part of a version. Files beside those, of writes that ended without a commit, are needed
by nobody, and count once they are as old as that.
"""

from __future__ import annotations

import os
from datetime import datetime
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from pipeline.keeping import Retention
from pipeline.upkeep.facts import Pile
from resources.lake.commits import read_commit
from resources.lake.paths import LakePath, ObjectPath


def data_files(path: LakePath) -> dict[str, tuple[int, float]]:
    """Files of rows, and of rows marked as deleted, with sizes and times of change (seconds)."""
    if isinstance(path, ObjectPath):
        return {
            name: (facts.st_size, facts.st_mtime)
            for name, facts in path.objects()
            if not name.startswith(("_", "."))
        }
    found = {}
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.name.startswith(("_", ".")) and entry.is_file(follow_symlinks=False):
                told = entry.stat()
                found[entry.name] = (told.st_size, told.st_mtime)
    return found


def unneeded(path: LakePath, table: DeltaTable, moment: datetime) -> tuple[Pile, str | None]:
    """The table's files of rows that no version needs which was the newest at `moment` or is behind
    it; and, where the log cannot tell, why."""
    listed = {unquote(name) for name in _listed(table)}
    old = {
        name: size
        for name, (size, changed) in data_files(path).items()
        if name.endswith(".parquet") and name not in listed and changed < moment.timestamp()
    }
    if not old:
        return Pile(), None
    for version in range(table.version(), -1, -1):
        commit = read_commit(path, version)
        if commit is None:
            return _behind_the_log(table, old, moment, version)
        if commit.committed_at is not None and commit.committed_at < moment:
            break
        for file in commit.removes:
            old.pop(unquote(file.path), None)
        if not old:
            break
    return Pile.of(list(old.values())), None


def _behind_the_log(
    table: DeltaTable, old: dict[str, int], moment: datetime, version: int
) -> tuple[Pile, str | None]:
    """Delta cleans commits up that are older than the log is kept."""
    kept = Retention.of(dict(table.metadata().configuration))
    if kept is not None and kept.log >= kept.files:
        return Pile.of(list(old.values())), None
    return Pile(), (
        f"its log does not reach back to {moment:%Y-%m-%d %H:%M} UTC (version {version} is gone): "
        "nothing tells which files are still needed"
    )


def _listed(table: DeltaTable) -> list[str]:
    actions = pa.table(table.get_add_actions(flatten=True))
    return list(actions["path"].to_pylist()) if actions.num_rows else []
