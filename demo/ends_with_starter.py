"""Execute a program that is killed when its starter ends: `ends_with_starter.py PROGRAM
ARGUMENT…`. Standard input is a pipe whose writing end only the starter has, so that it closes
however the starter ends, also by SIGKILL.

A child process waits for that. It is forked before the program is executed, so that the program
never runs unwatched and keeps the process number that its starter knows. Linux could send a signal
instead (`PR_SET_PDEATHSIG`), but sends it when the starting thread ends, and tests also start
servers in threads that end before them.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    program = os.getpid()
    if os.fork() == 0:
        _kill_after_starter(program)
        os._exit(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # A shell makes jobs that it starts with `&` ignore SIGINT, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - that is what it is for


def _kill_after_starter(program: int) -> None:
    """Wait until the pipe closes, then kill the program, whose child this process is. A starter
    that has ended the program closes the pipe, too; this process has another parent by then."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.read(0, 1)
    if os.getppid() == program:
        os.kill(program, signal.SIGKILL)


if __name__ == "__main__":
    main()
