"""A tool's process: started, held in the middle, let go on, waited for."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE_SECONDS: Final = 180


class Tool:
    """One process, whose output goes to `log`. Left behind, it is killed."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def hold(self, reached: Callable[[], bool]) -> None:
        """Stop it as soon as `reached` is true, which is asked again and again."""
        while not reached():
            assert self._process.poll() is None, self._said()
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def require_done(self) -> None:
        """It ends by itself, and well."""
        code = self._process.wait(PATIENCE_SECONDS)
        assert code == 0, self._said()

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]
