"""Where Dagster keeps its runs: DAGSTER_HOME, else `.lockstep/dagster` beside lockstep.toml.

The same home for the command line, the page and the demo, with a dagster.yaml of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from sqlalchemy.exc import SQLAlchemyError

from assets.storage import kept_open, make_storage_cheap
from pipeline.errors import ConfigurationError
from resources.file_lock import alone
from resources.full_disk import disk_full
from resources.private import make_private

_YAML = """\
# Written by Lockstep once; change it as you like.
telemetry:
  enabled: false
nux:
  enabled: false
"""

# Capturing output starts helper processes at every step; the command line shows its own.
_FOR_COMMAND_LINE = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}


def dagster_home(state_folder: Path) -> Path:
    """The home's folder, made with a dagster.yaml (telemetry off) if it is not there."""
    home = Path(os.environ.get("DAGSTER_HOME") or state_folder / "dagster").absolute()
    make_private(home)
    file = home / "dagster.yaml"
    with alone(home / ".opening"):
        if not file.exists():
            file.write_text(_YAML, encoding="utf-8")
    return home


@contextmanager
def open_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster's instance for runs of the command line. `ConfigurationError` where its storage
    cannot be opened or worked with: which one that is stands in dagster.yaml.

    One process at a time opens it: Dagster makes the tables of a new storage without a lock,
    so that of two first runs one would fail on what the other has just made.
    """
    make_storage_cheap()
    try:
        with alone(home / ".opening"):
            reference = InstanceRef.from_dir(str(home), overrides=_FOR_COMMAND_LINE)
            instance = dg.DagsterInstance.from_ref(reference)
    except Exception as error:
        raise disk_full(error, [home]) or _storage(home, error) from error
    with instance, kept_open(instance):
        try:
            yield instance
        except Exception as error:
            if not isinstance(error, SQLAlchemyError) and not _of_postgres(error):
                raise
            raise disk_full(error, [home]) or _storage(home, error) from error


def _of_postgres(error: Exception) -> bool:
    """Whether Dagster's storage on Postgres raised it, which is imported where it is used: that
    takes a quarter of a second."""
    postgres = sys.modules.get("dagster_postgres.utils")
    return postgres is not None and isinstance(error, postgres.DagsterPostgresException)


def _storage(home: Path, error: Exception) -> ConfigurationError:
    """The driver's own words, without a statement or its values."""
    raised = error.__cause__ or error  # Dagster tries a connection some times, and says so alone
    cause = getattr(raised, "orig", None) or raised
    words = next(iter(str(cause).splitlines()), "")
    return ConfigurationError(
        f"Dagster's storage does not work: {type(cause).__name__}: {words}",
        hint=f"correct {home / 'dagster.yaml'}, or start the database that it names",
    )


if __name__ == "__main__":  # `make ui` prepares the home before Dagster reads it
    config = Path(os.environ.get("LOCKSTEP_CONFIG") or "lockstep.toml").absolute()
    sys.stdout.write(f"{dagster_home(config.parent / '.lockstep')}\n")
