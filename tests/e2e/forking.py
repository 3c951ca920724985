"""A process that has imported everything, opened nothing, and forks a child for each command.

    python -m tests.e2e.forking SOCKET FOLDER

Belongs here: one child at a time, told of in lines of JSON: its `pid`, that it `stopped`, how it
`ended`; and a twin, which has a socket, a folder and children of its own. A child is as good as a
process of its own: its folder, its environment, its standard streams and its session are, and it
may be killed. What it does not do is import and start Java, which is nine tenths of a short run,
collect garbage, nor wait for the disk. Does not: the Java that it is lent (`lent_java`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import socket
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import lockstep
from lockstep.assets import run_page
from lockstep.pipeline.values.errors import JavaMissing
from lockstep.resources.lake.spark.java import require_java
from tests.e2e import lent_java

IMPORTED = "imported"


def import_everything() -> None:
    """All of the product, and the compiled engine, which is read from its cache."""
    for module in pkgutil.walk_packages(lockstep.__path__, "lockstep."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("lockstep.resources.mysql.decoder_compilation").compile_decoders()
    importlib.import_module("lockstep.grammar").make_parser()
    run_page._template()
    with suppress(JavaMissing):
        require_java(os.environ)  # which asks a Java for its version, once a process


def import_too(folder: Path) -> None:
    """What the child before had imported besides: no other child has to."""
    listed = folder / IMPORTED
    if listed.exists():
        for name in listed.read_text().splitlines():
            with suppress(ImportError):
                importlib.import_module(name)
        listed.unlink()


def wait_for_no_disk() -> None:
    """What these processes prove is that they may be killed, not that power may fail."""
    connect = sqlite3.connect

    def connected(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.execute("pragma synchronous = off")
        return connection

    vars(sqlite3.dbapi2)["connect"] = vars(sqlite3)["connect"] = connected
    vars(os)["fsync"] = lambda _: None


def perform(asked: dict[str, Any], streams: list[int], folder: Path) -> None:
    """In the child: become the command, and end with it."""
    os.setsid()
    gc.disable()  # a third of what a short run takes; it ends before anything grows
    random.seed()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, *streams)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    sys.argv = [asked["module"], *asked["arguments"]]
    lent_java.compile_nothing()
    if asked["lend"]:
        lent_java.lend(folder)
    wait_for_no_disk()
    before, code = set(sys.modules), cast("Any", 1)
    try:
        code = importlib.import_module(asked["module"]).main()
    except SystemExit as left:
        code = left.code or 0
    except BaseException:  # noqa: BLE001 - the last words of a process
        sys.excepthook(*sys.exc_info())
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    (folder / IMPORTED).write_text("\n".join(sys.modules.keys() - before))
    os._exit(code if isinstance(code, int) else 1)


def watch(child: int, channel: socket.socket, folder: Path) -> None:
    """Tell how it goes with the child until it ended. What Java still did for one that was killed
    is over then."""
    tell(channel, pid=child)
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            tell(channel, stopped=os.WSTOPSIG(status))
            continue
        code = os.waitstatus_to_exitcode(status)
        if lent_java.is_borrowed(folder):
            reclaimer = os.fork()
            if not reclaimer:
                lent_java.reclaim(folder)
                os._exit(0)
            _, reclaimed = os.waitpid(reclaimer, 0)
            assert reclaimed == 0, "the Java was not given back"
        tell(channel, ended=code)
        return


def tell(channel: socket.socket, **told: int) -> None:
    channel.send(json.dumps(told).encode())


def serve(channel: socket.socket, folder: Path) -> None:
    """Commands from the socket until it closes."""
    with lent_java.kept(folder):
        while True:
            message, streams, _, _ = socket.recv_fds(channel, 1 << 20, 2)
            if not message:
                return
            asked = json.loads(message)
            import_too(folder)
            child = os.fork()
            if not child:
                channel.close()
                if "twin" in asked:
                    serve(socket.socket(fileno=streams[0]), Path(asked["twin"]))
                    os._exit(0)
                perform(asked, streams, folder)
            for descriptor in streams:
                os.close(descriptor)
            if "twin" not in asked:
                watch(child, channel, folder)


def main() -> None:
    """Prepare, then serve."""
    channel, folder = socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])
    import_everything()
    gc.freeze()  # else each child copies what it only looks at
    serve(channel, folder)


if __name__ == "__main__":
    main()
