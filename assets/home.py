"""Where Dagster keeps its runs: DAGSTER_HOME, else `.lockstep/dagster` beside lockstep.toml.

The same home for the command line, the page and the demo, with a dagster.yaml of ours.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import dagster as dg
from dagster._core.instance.ref import InstanceRef

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
    home.mkdir(parents=True, exist_ok=True)
    file = home / "dagster.yaml"
    if not file.exists():
        file.write_text(_YAML, encoding="utf-8")
    return home


def open_instance(home: Path) -> dg.DagsterInstance:
    """Dagster's instance for runs of the command line; to be used with `with`."""
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_FOR_COMMAND_LINE))


if __name__ == "__main__":  # `make ui` prepares the home before Dagster reads it
    config = Path(os.environ.get("LOCKSTEP_CONFIG") or "lockstep.toml").absolute()
    sys.stdout.write(f"{dagster_home(config.parent / '.lockstep')}\n")
