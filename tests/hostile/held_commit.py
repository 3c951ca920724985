"""Runs the command line with a log store that waits in the middle of one commit.

    python -m tests.hostile.held_commit CLASSES GATE COMMIT -- run

Java waits before it gives the file COMMIT its name, until somebody writes into the pipe GATE.
CLASSES is the folder of the compiled `HeldLogStore`. The product has no such switch.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lockstep import cli
from resources.lake import log_store, settings

_CLASS = "lockstep.hostile.HeldLogStore"


def main() -> int:
    """Put the class in front, then hand over to the command line."""
    classes, gate, commit, divider, *arguments = sys.argv[1:]
    assert divider == "--"
    held = Path(classes) / "held.jar"
    vars(log_store)["CLASS"] = _CLASS
    log_store.SETTINGS[log_store.SETTING] = _CLASS
    original = settings.SparkSettings.launch

    def launch(self: settings.SparkSettings) -> dict[str, str]:
        told = original(self)
        options = f'"-Dheld.gate={gate}" "-Dheld.commit={commit}"'
        told["spark.driver.extraClassPath"] += f":{held}"
        told["spark.driver.extraJavaOptions"] += f" {options}"
        return told

    type.__setattr__(settings.SparkSettings, "launch", launch)
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
