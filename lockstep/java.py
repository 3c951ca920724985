"""Java at set-up: found, installed where that is allowed, or the cure is printed.

Runs before the virtual environment exists (`python3 -m lockstep.java`), so it and all it
imports need the standard library only. What a usable Java is, is `resources.lake.java`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

from pipeline.errors import JavaMissing
from resources.lake.java import java_or_refuse

_STEPS = (
    ("apt-get", "update", "-qq"),
    ("apt-get", "install", "-y", "-qq", "openjdk-17-jre-headless"),
)


def main(environment: Mapping[str, str]) -> int:
    """0 if Java fits or could be installed; 2, with the cure on standard error, if not."""
    try:
        java_or_refuse(environment)
    except JavaMissing as missing:
        if _may_install(environment):
            sys.stderr.write(f"{missing.message}; installing it with apt-get\n")
            if _install(environment):
                return 0
        sys.stderr.write(f"{missing.message}\nhint: {missing.hint}\n")
        return 2
    return 0


def _may_install(environment: Mapping[str, str]) -> bool:
    # A JAVA_HOME that leads to an old Java is a choice; a second Java would not mend it.
    root = os.geteuid() == 0
    return root and not environment.get("JAVA_HOME") and shutil.which("apt-get") is not None


def _install(environment: Mapping[str, str]) -> bool:
    quiet = {**environment, "DEBIAN_FRONTEND": "noninteractive"}
    return all(
        subprocess.run(step, check=False, env=quiet, stdout=subprocess.DEVNULL).returncode == 0
        for step in _STEPS
    )


if __name__ == "__main__":
    sys.exit(main(os.environ))
