"""Become another account, then another program: `become.py UID GID FOLDER PROGRAM ARGUMENT…`.
It does what Python's `subprocess` does for `user=`, in a process of its own.

The folder is opened before, and stays open as the descriptor `FOLDER`: Linux follows
`/proc/self/fd/N` to a folder without looking at those above it, so none of them has to be opened
to other accounts.

A process that starts a program as another account has to fork for it, where it can do without
otherwise; and forks wait for what gRPC, which Spark Connect's client uses, has under way in other
threads: up to a minute.
"""

from __future__ import annotations

import os
import sys

FOLDER = 9
"""Above what a shell redirects, below what it keeps for itself."""


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
