"""A run of the source `shop` that is Dagster's, of the project in this folder.

    python -m tests.e2e.dagster_run

Its events are in Dagster's home of the project, as those of a run that a schedule starts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

DAGSTER: Final = "dagster"
"""What `tests.e2e.killer` and `tests.e2e.impatient` take for a command that is such a run."""


def main() -> int:
    """Carry out the source's job in this process."""
    import dagster as dg  # a command that is none of Dagster's imports none

    from lockstep.assets.definitions import definitions_of
    from lockstep.assets.home import dagster_home
    from lockstep.assets.names import job_name

    os.environ["DAGSTER_HOME"] = str(dagster_home(Path(".lockstep")))
    job = definitions_of(Path("lockstep.toml").absolute()).resolve_job_def(job_name("shop"))
    with dg.DagsterInstance.get() as instance:
        done = job.execute_in_process(instance=instance, raise_on_error=False)
    return 0 if done.success else 1


if __name__ == "__main__":
    sys.exit(main())
