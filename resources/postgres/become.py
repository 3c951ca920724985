"""Become another account, then another program: `become.py UID GID PROGRAM ARGUMENT…`.

Belongs here: what Python's `subprocess` does for `user=`, in a process of its own. Does not: which
account (`account`).

A process that starts a program as another account has to fork for it, where it can do without
otherwise; and forks wait for what gRPC, which Spark Connect's client uses, has under way in other
threads: up to a minute.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    user, group, program, *arguments = sys.argv[1:]
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))
    os.execv(program, [program, *arguments])  # noqa: S606 - that is what it is for


if __name__ == "__main__":
    main()
