"""The folder in which Dagster keeps its runs: DAGSTER_HOME or, if that is not set,
`.lockstep/dagster` beside lockstep.toml. `make ui` and the demo share it. This module
does not import Dagster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lockstep.resources.file_lock import exclusive_lock
from lockstep.resources.private import make_private

_DAGSTER_YAML = """\
# Written by Lockstep once; change it as you like.
telemetry:
  enabled: false
nux:
  enabled: false
"""


def dagster_home(state_folder: Path) -> Path:
    """Return the folder; create it with a dagster.yaml (telemetry off) if it is
    missing."""
    home = Path(os.environ.get("DAGSTER_HOME") or state_folder / "dagster").absolute()
    make_private(home)
    file = home / "dagster.yaml"
    with exclusive_lock(home / ".opening"):
        if not file.exists():
            file.write_text(_DAGSTER_YAML, encoding="utf-8")
    return home


if __name__ == "__main__":  # `make ui` prepares the home before Dagster reads it
    config = Path(os.environ.get("LOCKSTEP_CONFIG") or "lockstep.toml").absolute()
    sys.stdout.write(f"{dagster_home(config.parent / '.lockstep')}\n")
