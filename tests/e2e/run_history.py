"""Where Dagster records the runs of commands that begin warm: in memory, unless the project has a
history already, and their events nowhere.

Half of the processor time of a run of few changes goes to the files in which Dagster keeps it, and
a fifth of the rest to its statements in memory. Belongs here: which storage a command gets. Does
not: what is recorded, which is Dagster's and the product's to say either way, and proven in
`tests.dagster`. A project whose runs somebody looks for is made with `Project.with_history`; a
command that begins cold leaves one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from assets import home

HISTORY = "history"
"""What Dagster calls the folder of its runs, below its home."""


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
            yield instance

    vars(home)["open_instance"] = opened
