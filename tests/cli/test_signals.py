"""A process that is told to end does so, whatever its threads do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Final

import pytest

HANGING: Final = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from lockstep import cli

def hang(*_):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 600)
        print("hangs", file=sys.stderr, flush=True)
        time.sleep(600)

cli._perform, cli.EXIT_SECONDS = hang, 1
sys.argv = ["lockstep", "status", *sys.argv[1:]]
cli.program()
"""


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")],
)
def test_a_thread_that_hangs_does_not_keep_it(number: signal.Signals, code: int, word: str) -> None:
    """It exits after its time, with the code, the message and the object of any other end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "hangs\n"
    process.send_signal(number)
    answer, messages = process.communicate(timeout=30)
    assert (process.returncode, json.loads(answer)["exit_code"]) == (code, code)
    assert messages.splitlines() == [
        word,
        "hint: nothing is lost: repeat the command, or let the next run repair what was begun",
    ]
