"""A process that is told to end does so, whatever its threads do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Final

HANGING: Final = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from lockstep import cli

def hang(*_):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 600)
        print("hangs", file=sys.stderr, flush=True)
        time.sleep(600)

cli._perform, cli.EXIT_SECONDS = hang, int(sys.argv.pop())
sys.argv = ["lockstep", "status", *sys.argv[1:]]
cli.program()
"""
ENDS: Final = {signal.SIGTERM: (143, "terminated"), signal.SIGINT: (130, "interrupted")}
HINT: Final = "hint: nothing is lost: repeat the command, or let the next run repair what was begun"


def hanging(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "hangs\n"
    return process


def announced(seconds: int) -> str:
    return (
        f"waiting for the writes that have begun, for {seconds} seconds at most; a second Ctrl-C "
        "ends at once"
    )


def test_a_thread_that_hangs_does_not_keep_it() -> None:
    """It says that it waits, and exits after its time, with the code, the message and the object of
    any other end. A signal that is sent twice counts once."""
    processes = {number: hanging("--json", "1") for number in ENDS}
    for number, process in processes.items():
        for _ in range(2):
            process.send_signal(number)
    for number, (code, word) in ENDS.items():
        answer, messages = processes[number].communicate(timeout=30)
        assert (processes[number].returncode, json.loads(answer)["exit_code"]) == (code, code)
        assert messages.splitlines() == [announced(1), word, HINT]


def test_a_second_signal_ends_it_at_once() -> None:
    """Once it said that it waits."""
    processes = {number: hanging("600") for number in ENDS}
    for number, process in processes.items():
        process.send_signal(number)
    for number, (code, word) in ENDS.items():
        process = processes[number]
        assert process.stderr is not None
        assert process.stderr.readline() == f"{announced(600)}\n"
        while process.poll() is None:
            process.send_signal(number)
            time.sleep(0.1)
        messages = process.communicate()[1]
        assert (process.returncode, messages.splitlines()) == (code, [word, HINT])
