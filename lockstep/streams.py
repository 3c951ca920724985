"""Where output goes: what a command was asked for on standard output, as text or as one JSON
object, clean of what libraries and the JVM print; progress, notes and refusals on standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any, TextIO

_ESCAPED = "backslashreplace"


@dataclass(frozen=True, slots=True)
class Streams:
    """`people` takes progress and notes, `answer` what was asked for: text, or exactly one
    JSON object."""

    people: TextIO
    answer: TextIO

    def write_json(self, payload: Mapping[str, Any]) -> None:
        """Nothing where the reader went away."""
        with suppress(BrokenPipeError):
            json.dump(payload, self.answer, ensure_ascii=False, indent=2)
            self.answer.write("\n")
            self.answer.flush()


@contextmanager
def open_streams() -> Iterator[Streams]:
    """Duplicates of descriptors 1 and 2; until the end, 1 leads where 2 does, so that
    what anybody prints cannot mix with the answer."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1)
    with (
        _opened(os.dup(1)) as answer,
        _opened(os.dup(2)) as people,
    ):
        os.dup2(2, 1)
        try:
            with redirect_stdout(sys.stderr):
                yield Streams(people, answer)
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)


@contextmanager
def _opened(descriptor: int) -> Iterator[TextIO]:
    """Text, line by line. A reader who went away, as `head` does, is nobody's fault."""
    stream = os.fdopen(descriptor, "w", 1, encoding="utf-8", errors=_ESCAPED)
    try:
        yield stream
    finally:
        with suppress(BrokenPipeError):
            stream.close()
