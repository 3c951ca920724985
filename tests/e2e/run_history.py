"""Where Dagster records the runs of commands that begin warm: in memory, unless the project has a
history already, and their events nowhere.

Half of the processor time of a run of few changes goes to the files in which Dagster keeps it, and
a fifth of the rest to its statements in memory. Belongs here: which storage a command gets. Does
not: what is recorded, which is Dagster's and the product's to say either way, and proven in
`tests.dagster`. A project whose runs somebody looks for is made with `Project.with_history`; a
command that begins cold leaves one, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.execution.context.data_version_cache import DataVersionCache
from dagster._core.log_manager import DagsterLogManager

from assets import home
from tests.e2e.warm import HISTORY


def keep_in_memory(instance: dg.DagsterInstance) -> None:
    """Have this process's commands record their runs with `instance`, and in no file; what
    happened in them is forgotten as it is told."""
    in_files = home.open_instance
    vars(instance.event_log_storage)["store_event"] = lambda event: None

    @contextmanager
    def opened(folder: Path) -> Iterator[dg.DagsterInstance]:
        if (folder / HISTORY).exists():
            with in_files(folder) as lasting:
                yield lasting
        else:
            _forget_events()
            yield instance

    vars(home)["open_instance"] = opened


def _forget_events() -> None:
    """From here on in this process: no step asks for the events of others, and only what says how a
    run stands goes through Dagster's log."""
    log: Any = DagsterLogManager.log_dagster_event

    def logged(manager: Any, *, dagster_event: dg.DagsterEvent, **more: Any) -> None:
        if dagster_event.is_job_event:
            log(manager, dagster_event=dagster_event, **more)

    def asked(cache: Any, keys: Sequence[dg.AssetKey]) -> None:
        cache.input_asset_version_info.update(dict.fromkeys(keys))

    log_manager: Any = DagsterLogManager
    versions: Any = DataVersionCache
    log_manager.log_dagster_event = logged
    versions._fetch_input_asset_version_info = asked
