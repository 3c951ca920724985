"""What `lockstep spark serve` starts beside Spark, by a process that has imported everything.

Belongs here: a program for `tests.e2e.warm`, in a project's folder; it lasts until it is killed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from lockstep.cli import forked
from lockstep.forkserver.server import start_beside


def main() -> int:
    # Modules are where they are for a process that begins here: Python's own behind those told.
    own = next(place for place, path in enumerate(sys.path) if path.endswith(".zip"))
    sys.path[1:own] = os.environ["PYTHONPATH"].split(os.pathsep)
    start_beside(Path(".lockstep/spark"), forked)
    signal.pause()
    return 0
