"""The command line in a process that stays, with a Spark that stays: for what is checked
around a run, not for how a process begins or ends.

    python -m tests.e2e.warm

Belongs here: commands of many projects, one after the other, each in its folder and with
its environment, as `python -m lockstep.cli` would find them. Does not: kills, signals, a
missing Java, first starts; those get processes of their own (`tests.e2e.project`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from unittest import mock

REPOSITORY = Path(__file__).resolve().parents[2]


class WarmProcess:
    """A `tests.e2e.warm` to talk to. Started by the first command."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(
        self, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """One command of the command line, like a process of its own."""
        process = self._process or self._start()
        asked = {"arguments": list(arguments), "folder": str(folder), "env": dict(environment)}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"the warm process ended with {process.wait()}"
        told = json.loads(answer)
        return subprocess.CompletedProcess(
            list(arguments), told["code"], told["stdout"], told["stderr"]
        )

    def stop(self) -> None:
        """End it and its Spark."""
        if self._process is not None:
            self._process.communicate(timeout=60)
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.warm"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self._process


def _keep_spark() -> None:
    """One Spark, stopped by nobody, for every command."""
    from resources.lake import room
    from resources.lake.session import SparkProcess

    class KeptSpark(SparkProcess):
        def stop(self) -> None:
            """Not yet."""

    kept: dict[str, SparkProcess] = {}

    def kept_spark(user: Mapping[str, str], **options: Any) -> SparkProcess:
        table = json.dumps(dict(user), sort_keys=True)
        if table not in kept:
            assert not kept, "one Spark per process: this [spark] table needs another"
            kept[table] = KeptSpark(user, **options)
        return kept[table]

    mock.patch.object(room, "SparkProcess", kept_spark).start()


def _perform(asked: Mapping[str, Any]) -> dict[str, Any]:
    from lockstep import cli

    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        kept = [os.dup(1), os.dup(2)]
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            code = cli.main(asked["arguments"])
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in enumerate(kept, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
        return {"code": code, "stdout": _text(out), "stderr": _text(err)}


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def main() -> None:
    """Commands from standard input, answers to it, a line each, until it closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    _keep_spark()
    for line in questions:
        answers.write(json.dumps(_perform(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
