"""Executes a program as another account: `become.py UID GID FOLDER PROGRAM ARGUMENT…`.

The option `user=` of `subprocess` does the same, but forks instead of using `vfork`, and
a fork waits up to a minute for what gRPC, which Spark Connect's client uses, is doing in
other threads.

The folder is opened first, while this process is still root, and stays open as
descriptor `FOLDER_DESCRIPTOR`: Linux resolves `/proc/self/fd/N` without checking the
folders above, so they need not be opened to other accounts.
"""

from __future__ import annotations

import os
import sys

FOLDER_DESCRIPTOR = 9
"""Shells redirect descriptors below this one, and reserve those above it."""


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
