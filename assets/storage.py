"""Dagster's storage in files of SQLite, at less cost.

A run of few changes spends most of its time there. Dagster reads its hundred migrations once for
each file that it opens, makes an engine for each statement, which compiles it anew, and whoever
closes a file of SQLite's last writes its journal back and deletes it, a hundred times a run. Here
the migrations are read once in a process, an engine is kept for each file, and a file stays open
for as long as it is used. Belongs here: those three. Does not: where the storage is (`home`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage import sql
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from sqlalchemy.engine import Engine

_FILES = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")

_read = ScriptDirectory.from_config
_engines: dict[str, Engine] = {}
_MOST_ENGINES = 8


def make_storage_cheap() -> None:
    """From here on in this process; repeating it changes nothing."""
    vars(sqlite_event_log)["create_engine"] = _engine
    ScriptDirectory.from_config = _migrations  # type: ignore[method-assign]


@contextmanager
def kept_open(instance: dg.DagsterInstance, *names: str) -> Iterator[None]:
    """The files of SQLite that are there below Dagster's home: those with these names, or those of
    all runs."""
    with ExitStack() as stack:
        for name in names or _FILES:
            path = Path(instance.root_directory) / name
            if path.exists():
                connection = stack.enter_context(closing(sqlite3.connect(path)))
                # It opens a file when it first reads.
                connection.execute("select count(*) from sqlite_master").fetchone()
        yield


def file_of_run(run_id: str) -> str:
    """The file of a run's events, below Dagster's home."""
    return f"history/runs/{run_id}.db"


def _engine(place: str, **options: Any) -> Engine:
    if place not in _engines:
        if len(_engines) == _MOST_ENGINES:
            del _engines[next(iter(_engines))]
        _engines[place] = sql.create_engine(place, **options)
    return _engines[place]


def _migrations(config: Config) -> ScriptDirectory:
    """Dagster's, read once; others' as ever."""
    ours = config.get_main_option("script_location") == sql.ALEMBIC_SCRIPTS_LOCATION
    return _dagsters() if ours else _read(config)


@cache
def _dagsters() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", sql.ALEMBIC_SCRIPTS_LOCATION)
    return _read(config)
