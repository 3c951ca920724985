"""Runs the command line with a log store that waits in the middle of one commit.

    python -m tests.hostile.held_commit CLASSES GATE COMMIT -- run

Java waits before it gives the file COMMIT its name, until somebody writes into the pipe GATE.
CLASSES is the folder of the compiled `HeldLogStore`. The product has no such switch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lockstep import cli
from lockstep.resources.lake.spark import log_store, session
from lockstep.resources.lake.spark.settings import SparkSettings
from tests.uncompiled import UNCOMPILED

_CLASS = "lockstep.hostile.HeldLogStore"


def main() -> int:
    """Put the class in front, then hand over to the command line."""
    classes, gate, commit, divider, *arguments = sys.argv[1:]
    assert divider == "--"
    held = Path(classes) / "held.jar"
    vars(log_store)["FILE_LOG_STORE"] = _CLASS
    log_store.LOG_STORE_SETTINGS[log_store.FILE_LOG_STORE_SETTING] = _CLASS
    options = f'"-Dheld.gate={gate}" "-Dheld.commit={commit}"'
    # After all other jars: the class-data archive holds.
    os.environ["SPARK_DIST_CLASSPATH"] = str(held)
    original = session.settings_in

    def settings_in(scratch: Path, user: Mapping[str, str], *more: Any) -> SparkSettings:
        asked = {**UNCOMPILED, **user, "spark.driver.extraJavaOptions": options}
        return original(scratch, asked, *more)

    vars(session)["settings_in"] = settings_in
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
