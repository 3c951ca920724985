"""What the tests of `lockstep.forkserver` run as processes.

    python -m tests.cli.forks serve FOLDER       until its standard input closes
    python -m tests.cli.forks ask FOLDER DOING   as a command does; DOING is done in the fork
    python -m tests.cli.forks interrupted FOLDER DOING    … at once, by Ctrl-C

Belongs here: a server and a command that import next to nothing, and what a fork does. Does not:
what is true of them (`test_forkserver`).
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

from lockstep.forkserver import client
from lockstep.forkserver.client import ForkDeclined, ForkEnded, ForkLost, ask_for_run
from lockstep.forkserver.server import serve

LOST = 77
DECLINED = 78
NOBODY = 79


def doing() -> int:
    """The run: what it was told on its command line."""
    what = sys.argv[-1]
    if what == "tell":
        sys.stdout.write(
            json.dumps(
                {
                    "arguments": sys.argv,
                    "folder": str(Path.cwd()),
                    "variable": os.environ.get("OF_THE_COMMAND"),
                    "others": os.environ.get("OF_THE_SERVER"),
                    "given": sys.stdin.read(),
                    "open": sorted(int(one.name) for one in Path("/proc/self/fd").iterdir()),
                    "ignored": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
                }
            )
        )
        Path("made").touch(0o666)
        sys.stdout.flush()
        return 3
    if what == "import":
        known = "wave" in sys.modules
        importlib.import_module("wave")
        return int(known)
    try:
        sys.stdout.write(f"{os.getpid()}\n")
        sys.stdout.flush()
        if what == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(60)
    except KeyboardInterrupt:
        return 130
    return 1


def main() -> None:
    """Either side."""
    side, folder = sys.argv[1], Path(sys.argv[2])
    if side == "serve":
        serve(folder / "spark", 0, doing)
        return
    if side == "interrupted":
        send = client._send_command

        def send_and_interrupt(connection: socket.socket) -> None:
            send(connection)
            os.kill(os.getpid(), signal.SIGINT)

        vars(client)["_send_command"] = send_and_interrupt
    match ask_for_run(folder):
        case ForkEnded(code):
            sys.exit(code)
        case ForkLost():
            sys.exit(LOST)
        case ForkDeclined(reason):
            sys.stdout.write(reason)
            sys.exit(DECLINED)
        case None:
            sys.exit(NOBODY)


if __name__ == "__main__":
    main()
