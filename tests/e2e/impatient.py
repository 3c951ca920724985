"""Runs the command line so that it waits for no sign of life of a source's holder.

    python -m tests.e2e.impatient run

Nobody wants to wait a minute in a test; the product has no such switch.
"""

from __future__ import annotations

import importlib
import sys

from lockstep import cli


def main() -> int:
    """Hand over to the command line."""
    vars(importlib.import_module("resources.postgres.leases"))["SILENT_SECONDS"] = 0.0
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
