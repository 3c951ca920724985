"""The output streams of a command. Its answer goes to standard output, as text or as one JSON
object; progress, notes and errors go to standard error, together with whatever libraries and the
JVM print."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from lockstep.pipeline.values.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Streams:
    """`answer` is standard output, `people` is standard error."""

    people: TextIO
    answer: TextIO

    def write_json(self, payload: Mapping[str, Any]) -> None:
        """Write the object; do nothing if the reader closed the pipe."""
        with suppress(BrokenPipeError):
            json.dump(payload, self.answer, ensure_ascii=False, indent=2)
            self.answer.write("\n")
            self.answer.flush()


@contextmanager
def writing(subject: str, path: str | Path, option: str) -> Iterator[None]:
    """Raise `ConfigurationError` if the file that an option names cannot be written."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{subject} cannot be written to {path}: {error.strerror or error}.",
            hint=f"name another file: {option} FILE",
        ) from error


@contextmanager
def open_streams() -> Iterator[Streams]:
    """Yield streams on duplicates of descriptors 1 and 2. While the context lasts, descriptor 1
    points to standard error, so that nothing a library prints mixes with the answer."""
    sys.stdout.flush()
    sys.stderr.flush()
    stdout = os.dup(1)
    with _opened(os.dup(1)) as answer, _opened(os.dup(2)) as people:
        os.dup2(2, 1)
        try:
            with redirect_stdout(sys.stderr):
                yield Streams(people, answer)
        finally:
            sys.stdout.flush()
            os.dup2(stdout, 1)
            os.close(stdout)


@contextmanager
def _opened(descriptor: int) -> Iterator[TextIO]:
    """Yield a line-buffered text stream. That a reader such as `head` closes the pipe early is no
    error."""
    stream = os.fdopen(descriptor, "w", 1, encoding="utf-8", errors="backslashreplace")
    try:
        yield stream
    finally:
        with suppress(BrokenPipeError):
            stream.close()
