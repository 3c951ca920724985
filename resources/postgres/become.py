"""Executes a program as another account: `become.py UID GID FOLDER PROGRAM ARGUMENT…`.

The option `user=` of `subprocess` does the same, but forks instead of using `vfork`. If
other threads use gRPC, as Spark Connect's client does, a fork takes up to a minute.

The folder is opened first, while this process is still root, and stays open as
descriptor `FOLDER_DESCRIPTOR`. The program can use it as `/proc/self/fd/N` even if the
account may not enter the folders above.
"""

from __future__ import annotations

import os
import sys
from typing import Final

FOLDER_DESCRIPTOR: Final = 9
"""A descriptor that scripts rarely use; shells use those above 9 themselves."""


def main() -> None:
    uid, gid, folder, program, *arguments = sys.argv[1:]
    os.dup2(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), FOLDER_DESCRIPTOR)
    os.chdir("/")
    # The user comes last: only root may change the groups.
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
    os.execv(program, [program, *arguments])  # noqa: S606 - executing it is the purpose


if __name__ == "__main__":
    main()
