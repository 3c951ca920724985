"""What a process has from its start: a fork of another process would have that one's instead.

Belongs here: reading and comparing it. Does not: what a fork takes over from the command that asks
for it (`child`): its folder, its variables, its streams.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_READ_AT_START: Final = (
    "ARROW_",
    "GLIBC_",
    "GRPC_",
    "LD_",
    "MALLOC_",
    "MKL_",
    "NUMBA_",
    "OMP_",
    "OPENBLAS_",
    "PYTHONHASHSEED",
    "PYTHONMALLOC",
)
"""Variables that the system, Python or a library reads when it is loaded, and not again."""

_OF_ONE_PROCESS: Final = frozenset(
    {"dont_write_bytecode", "inspect", "interactive", "quiet", "verbose"}
)
"""Python's flags that change nothing of what a command does."""


def surroundings(*folders: str) -> dict[str, str]:
    """By a name that people know; and what these folders are, seen from here."""
    flags = {name: getattr(sys.flags, name) for name in dir(sys.flags) if name[0] != "_"}
    return {
        "Python": f"{sys.version} {sys.prefix}",
        "Python's options": repr(
            [
                {
                    name: value
                    for name, value in flags.items()
                    if not callable(value) and name not in _OF_ONE_PROCESS
                },
                sys.warnoptions,
            ]
        ),
        "the path of Python's modules": repr(sys.path[1:]),
        "the encoding of files' names": sys.getfilesystemencoding(),
        "the account": repr((os.getresuid(), os.getresgid(), sorted(os.getgroups()))),
        **{f"the folder {folder}": _identity(Path(folder)) for folder in ("/", *folders)},
        "the namespaces": repr(_namespaces()),
        **{key: value for key, value in os.environ.items() if key.startswith(_READ_AT_START)},
    }


def first_difference(own: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """The name of what is not the same; None where all is."""
    names = sorted({*own, *other})
    return next((name for name in names if own.get(name) != other.get(name)), None)


def _namespaces() -> list[str]:
    """A container has its own; numbers are the kernel's. That of mounts says nothing, as services
    of systemd's may each have one: so folders are looked at."""
    return [str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("net", "pid", "user")]


def _identity(folder: Path) -> str:
    try:
        told = folder.stat()
    except OSError:
        return "none"
    return f"{told.st_dev}:{told.st_ino}"
