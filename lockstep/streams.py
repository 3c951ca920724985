"""The output of a command. Its answer goes to standard output, as text or as one JSON
object. Progress, notes and errors go to standard error, together with everything that
libraries and the JVM print. Progress is shown as bars on a terminal, or as JSON lines
for a log collector; JSON lines can also go to a rotated file."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TextIO

from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.shown import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from lockstep.pipeline.run.progress import StepProgress


@dataclass(frozen=True, slots=True)
class Streams:
    """`answer` is standard output, `messages` is standard error."""

    messages: TextIO
    answer: TextIO

    def write_json(self, payload: Mapping[str, Any]) -> None:
        """Write the object; do nothing if the reader closed the pipe."""
        with suppress(BrokenPipeError):
            json.dump(payload, self.answer, ensure_ascii=False, indent=2)
            self.answer.write("\n")
            self.answer.flush()


@contextmanager
def file_errors(subject: str, path: str | Path, option: str) -> Iterator[None]:
    """Turn OSError into a `ConfigurationError` that names the option with the file's
    path."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{subject} cannot be written to {path}: {error.strerror or error}.",
            hint=f"name another file: {option} FILE",
        ) from error


@contextmanager
def open_streams() -> Iterator[Streams]:
    """Yield streams on duplicates of descriptors 1 and 2. While the context lasts,
    descriptor 1 points to standard error, so that nothing a library prints mixes with
    the answer."""
    sys.stdout.flush()
    sys.stderr.flush()
    original_stdout = os.dup(1)
    with _text_stream(os.dup(1)) as answer, _text_stream(os.dup(2)) as messages:
        os.dup2(2, 1)
        try:
            with redirect_stdout(sys.stderr):
                yield Streams(messages, answer)
        finally:
            sys.stdout.flush()
            os.dup2(original_stdout, 1)
            os.close(original_stdout)


@contextmanager
def _text_stream(descriptor: int) -> Iterator[TextIO]:
    """Yield a line-buffered text stream. Close it without an error even if the pipe's
    reader, such as `head`, has closed the pipe."""
    stream = os.fdopen(descriptor, "w", 1, encoding="utf-8", errors="backslashreplace")
    try:
        yield stream
    finally:
        with suppress(BrokenPipeError):
            stream.close()


# -- reports while a command works -----------------------------------------------------

_LOG_FILE_BYTES: Final = 10 << 20
"""Size in bytes at which the log file is rotated."""

_OLD_LOG_FILES: Final = 5
"""Number of older log files that are kept."""

_PAUSE_SECONDS: Final = 10.0
"""Shortest time between two lines about the same step and table."""


class JsonLog:
    """A log of JSON lines with `time` (ISO 8601, UTC), `level`, `message` and further
    fields. `replaces_text` is true if the lines go to standard error in place of
    text."""

    def __init__(self) -> None:
        self._handlers: list[logging.Handler] = []
        self.replaces_text = False

    def open(self, stream: TextIO | None, file: str | None) -> None:
        """Write to the stream, and to the file, which is rotated at 10 MiB and keeps
        five older files. Raise `ConfigurationError` if the file cannot be written."""
        if stream is not None:
            self.replaces_text = True
            self._handlers.append(logging.StreamHandler(stream))
        if file is not None:
            from logging.handlers import RotatingFileHandler

            with file_errors("The log", file, "--log-file"):
                self._handlers.append(
                    RotatingFileHandler(
                        file, maxBytes=_LOG_FILE_BYTES, backupCount=_OLD_LOG_FILES, encoding="utf-8"
                    )
                )

    def close(self) -> None:
        for handler in self._handlers:
            handler.close()

    def write(self, level: str, message: str, **fields: Any) -> None:
        entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
        entry |= {name: value for name, value in fields.items() if value is not None}
        line = json.dumps(to_json({**entry, "message": message}), ensure_ascii=False)
        record = logging.makeLogRecord({"msg": line, "levelno": logging.INFO})
        for handler in self._handlers:
            handler.handle(record)


class ProgressLines:
    """A `pipeline.run.progress.Progress` that writes log lines: at most one in ten
    seconds for each step and table."""

    def __init__(self, log: JsonLog, source: str, clock: Callable[[], float] = monotonic) -> None:
        self._log, self._source, self._clock = log, source, clock
        self._last_line_times: dict[tuple[str, object], float] = {}

    def tell(self, step: StepProgress) -> None:
        now = self._clock()
        name = step.step
        message = "merged" if name == "merge" else name
        for figures in step.figures:
            subject = name, figures.get("table")
            if now - self._last_line_times.get(subject, float("-inf")) >= _PAUSE_SECONDS:
                self._last_line_times[subject] = now
                self._log.write("info", message, source=self._source, step=name, **figures)

    def note(self, sentence: str) -> None:
        self._log.write("warning", sentence, source=self._source)


def progress_bars(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[figures]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class LiveProgress:
    """A `pipeline.run.progress.Progress` that shows bars and also writes to the log."""

    def __init__(self, bars: Progress, source: str, log_lines: ProgressLines) -> None:
        self._bars, self._source, self._log_lines = bars, source, log_lines
        self._tasks: dict[str, TaskID] = {}

    def tell(self, step: StepProgress) -> None:
        self._log_lines.tell(step)
        if step.step not in self._tasks:
            description = f"{self._source}: {step.step}"
            self._tasks[step.step] = self._bars.add_task(description, figures="")
        task = self._tasks[step.step]
        total = max(step.total, 1)
        self._bars.update(task, completed=step.done, total=total, figures=printable(step.text))

    def note(self, sentence: str) -> None:
        self._log_lines.note(sentence)
        text = printable(f"{self._source}: {sentence}", keep="\n\t")
        self._bars.console.print(text, markup=False)
