"""Runs the command line so that it waits for no sign of life of a source's holder.

    python -m tests.e2e.impatient run

`dagster` instead of a command is a run that is Dagster's (`tests.e2e.dagster_run`).

Nobody wants to wait a minute in a test; the product has no such switch.
"""

from __future__ import annotations

import importlib
import sys

from lockstep import cli
from tests.e2e import dagster_run
from tests.e2e.dagster_run import DAGSTER


def main() -> int:
    """Hand over to the command line or to Dagster."""
    vars(importlib.import_module("lockstep.resources.postgres.leases"))["SILENT_SECONDS"] = 0.0
    return dagster_run.main() if sys.argv[1:] == [DAGSTER] else cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
