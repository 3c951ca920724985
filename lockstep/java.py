"""Java, the one thing pip cannot bring: found, or the command that installs it.

Runs before the virtual environment exists (`python3 -m lockstep.java`), so it imports
the standard library only. Starting Spark belongs to resources.lake.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NEEDED = 17
_INSTALL = ("apt-get", "install", "-y", "-qq", "openjdk-17-jre-headless")
_VERSION = re.compile(r'version "(?P<major>\d+)(?:\.(?P<minor>\d+))?')


def major_version(text: str) -> int | None:
    """The major version in what `java -version` prints (`1.8.0_x` is 8), or None."""
    match = _VERSION.search(text)
    if match is None:
        return None
    major = int(match["major"])
    return int(match["minor"] or 0) if major == 1 else major


def java_program(environment: Mapping[str, str]) -> str | None:
    """The `java` of JAVA_HOME if that is set, else the one on PATH; None without either."""
    home = environment.get("JAVA_HOME")
    if home:
        program = Path(home, "bin", "java")
        return str(program) if program.exists() else None
    return shutil.which("java", path=environment.get("PATH"))


def installed_version(environment: Mapping[str, str]) -> int | None:
    """The major version of the Java that Spark would be started with, or None."""
    program = java_program(environment)
    if program is None:
        return None
    asked = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    return major_version(asked.stderr + asked.stdout)


def cure(platform: str) -> str:
    """What a person types to get Java on this platform (`sys.platform`)."""
    if platform == "darwin":
        return "brew install openjdk@17"
    if shutil.which("apt-get"):
        return "apt-get update && " + " ".join(_INSTALL)
    return "install OpenJDK 17 or newer with your system's package manager"


def _may_install(environment: Mapping[str, str]) -> bool:
    # A JAVA_HOME that leads to an old Java is a choice; a second Java would not mend it.
    root = os.geteuid() == 0
    return root and "JAVA_HOME" not in environment and shutil.which("apt-get") is not None


def _install(environment: Mapping[str, str]) -> bool:
    quiet = {**environment, "DEBIAN_FRONTEND": "noninteractive"}
    steps = (("apt-get", "update", "-qq"), _INSTALL)
    return all(
        subprocess.run(step, check=False, env=quiet, stdout=subprocess.DEVNULL).returncode == 0
        for step in steps
    )


def main(environment: Mapping[str, str]) -> int:
    """0 if Java fits or could be installed; 2, with the cure on standard error, if not."""
    found = installed_version(environment)
    if found is not None and found >= NEEDED:
        return 0
    state = "Java is missing" if found is None else f"Java {found} is too old"
    if _may_install(environment):
        sys.stderr.write(f"{state}; installing it: {cure(sys.platform)}\n")
        if _install(environment):
            return 0
    home = environment.get("JAVA_HOME")
    at_home = f" (JAVA_HOME is {home})" if home else ""
    sys.stderr.write(
        f"{state}{at_home}: Spark needs Java {NEEDED} or newer.\n  {cure(sys.platform)}\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(os.environ))
