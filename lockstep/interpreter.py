"""Which Python a virtual environment is made from: how one was built decides how long each command
takes.

Runs before there is an environment (`python3 -m lockstep.interpreter .venv`), so it needs the
standard library only. Belongs here: finding those of PATH, and the choice. Does not: how to install
one.

One that was compiled without profile-guided optimization, or into a shared library, as version
managers do unless told otherwise, takes up to two thirds longer for a loop than what distributions
ship (`--enable-optimizations` in "Configure Python" of its documentation). None of its settings
tells for certain, so a loop is timed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

OLDEST: Final = (3, 11)
QUICKER: Final = 1.2
"""Times; what differs by less may be chance, and the first on PATH is what was meant."""
ROUNDS: Final = 9
"""Each of them times all in turn: a machine is not as quick at one moment as at another, so that
only what is timed side by side is compared."""

_NAME: Final = re.compile(r"python3(\.\d+)?")
_PROBE: Final = """
import ensurepip, json, os, sys, time, venv

class Item:
    def __init__(self, number):
        self.number = number

def loop():
    begun = time.process_time()
    total = 0
    for number in range(30000):
        total += Item(number).number & 3
    return time.process_time() - begun

seconds = min(loop() for _ in range(10))
print(json.dumps([os.path.realpath(sys.executable), list(sys.version_info[:3]), seconds]))
"""
"""A Python without `venv` ends with an error."""


@dataclass(frozen=True)
class Python:
    """One that environments can be made of; `seconds` is what the loop took, in each round."""

    path: str
    version: tuple[int, int, int]
    seconds: tuple[float, ...]

    @property
    def minor(self) -> tuple[int, int]:
        return self.version[:2]

    def times(self, other: Python) -> float:
        """So many times what the other takes: the median of all rounds."""
        return median(
            ours / theirs for ours, theirs in zip(self.seconds, other.seconds, strict=True)
        )


def choose(first: Python, others: Sequence[Python]) -> Python:
    """The first on PATH, or one of the others, of the same version, that is much quicker."""
    quickest = max((first, *others), key=first.times)
    return quickest if first.times(quickest) > QUICKER else first


def probe(program: Path) -> Python | None:
    """None: it does not run, or has no `venv`."""
    try:
        told = subprocess.run([program, "-c", _PROBE], capture_output=True, timeout=30, check=True)
        path, version, seconds = json.loads(told.stdout)
        return Python(path, tuple(version), (seconds,))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def timed(found: Sequence[Python]) -> list[Python]:
    """The same, with the seconds of all rounds; one by itself needs no more of them."""
    for _ in range(ROUNDS - 1 if len(found) > 1 else 0):
        again = [probe(Path(python.path)) or python for python in found]
        found = [
            replace(python, seconds=(*python.seconds, once.seconds[-1]))
            for python, once in zip(found, again, strict=True)
        ]
    return list(found)


def programs(path: str) -> Iterator[Path]:
    """Those of PATH, in its order: `python3` of each folder before its `python3.N`."""
    for folder in dict.fromkeys(Path(part) for part in path.split(os.pathsep) if part):
        try:
            names = sorted(entry.name for entry in folder.iterdir() if _NAME.fullmatch(entry.name))
        except OSError:
            continue
        yield from (folder / name for name in names)


def made_from(environment: Path) -> str | None:
    """What an environment was made from, if both are there: it is never given another one."""
    try:
        told = (environment / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^executable = (.+)$", told, re.M)
    return found[1] if found and os.access(found[1], os.X_OK) else None


def main(path: str, environment: Path) -> int:
    """Print what an environment is to be made from, and why if it is not the first on PATH; 1 if
    there is none."""
    if (kept := made_from(environment)) is not None:
        sys.stdout.write(f"{kept}\n")
        return 0
    probed = {python.path: python for python in map(probe, programs(path)) if python is not None}
    fitting = [python for python in probed.values() if python.minor >= OLDEST]
    if not fitting:
        return 1
    first, *others = timed([python for python in fitting if python.minor == fitting[0].minor])
    chosen = choose(first, others)
    if chosen != first:
        times = first.times(chosen)
        sys.stderr.write(
            f"Python: {chosen.path}; {first.path} takes {times:.1f} times as long for a loop, "
            f"because of how it was built. To use it all the same: make setup PYTHON={first.path}\n"
        )
    sys.stdout.write(f"{chosen.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ.get("PATH", os.defpath), Path(sys.argv[1])))
