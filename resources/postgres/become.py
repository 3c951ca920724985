"""Execute a program as another account: `become.py UID GID FOLDER PROGRAM ARGUMENT…`.
It does what `subprocess` does for `user=`, but in a new process.

It opens the folder first and keeps it open as descriptor `FOLDER`: Linux resolves
`/proc/self/fd/N` without checking the folders above, so they need not be opened to
other accounts.

With `user=`, `subprocess` forks instead of using `vfork`, and a fork waits up to a
minute for what gRPC, which Spark Connect's client uses, is doing in other threads.
"""

from __future__ import annotations

import os
import sys

FOLDER = 9
"""A descriptor above those that a shell redirects, and below those that it reserves."""


def main() -> None:
    user, group, folder, program, *arguments = sys.argv[1:]
    os.dup2(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), FOLDER)
    os.chdir("/")
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))
    os.execv(program, [program, *arguments])  # noqa: S606 - that is what it is for


if __name__ == "__main__":
    main()
