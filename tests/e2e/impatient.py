"""Runs the command line so that it waits for no sign of life of a source's holder.

    python -m tests.e2e.impatient run

Nobody wants to wait a minute in a test; the product has no such switch.
"""

from __future__ import annotations

import importlib
import sys

from lockstep.cli import main

if __name__ == "__main__":
    vars(importlib.import_module("resources.postgres.leases"))["SILENT_SECONDS"] = 0.0
    sys.exit(main(sys.argv[1:]))
