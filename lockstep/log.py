"""The reports of a command while it works: progress as bars on a terminal; progress, notes and
errors as JSON lines, on standard error for a log collector or in a rotated file."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TextIO

from lockstep.pipeline.model.json_values import to_json
from lockstep.streams import writing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from lockstep.pipeline.run.context import StepProgress

_FILE_SIZE: Final = 10 << 20
_FILES: Final = 5
_SECONDS: Final = 10.0
"""Shortest time between two lines about the same step and table."""


class JsonLog:
    """Writes JSON lines with `time` (ISO 8601, UTC), `level`, `message` and further fields.
    `replaces_text` is true if they go to standard error, where no text is printed then."""

    def __init__(self) -> None:
        self._handlers: list[logging.Handler] = []
        self.replaces_text = False

    def open(self, stream: TextIO | None, file: str | None) -> None:
        """Write to the stream, and to the file, which is rotated at 10 MiB and keeps five older
        files. `ConfigurationError` if the file cannot be written."""
        if stream is not None:
            self.replaces_text = True
            self._handlers.append(logging.StreamHandler(stream))
        if file is not None:
            from logging.handlers import RotatingFileHandler

            with writing("The log", file, "--log-file"):
                self._handlers.append(
                    RotatingFileHandler(
                        file, maxBytes=_FILE_SIZE, backupCount=_FILES, encoding="utf-8"
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
    """Implements `pipeline.run.context.Progress` by log lines: at most one in ten seconds for each
    step and table."""

    def __init__(self, log: JsonLog, source: str, clock: Callable[[], float] = monotonic) -> None:
        self._log, self._source, self._clock = log, source, clock
        self._last_lines: dict[tuple[str, object], float] = {}

    def tell(self, step: StepProgress) -> None:
        now, name = self._clock(), step.step
        message = "merged" if name == "merge" else name
        for figures in step.figures:
            subject = name, figures.get("table")
            if now - self._last_lines.get(subject, float("-inf")) >= _SECONDS:
                self._last_lines[subject] = now
                self._log.write("info", message, source=self._source, step=name, **figures)

    def note(self, sentence: str) -> None:
        self._log.write("warning", sentence, source=self._source)


def bars_on(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class LiveProgress:
    """Implements `pipeline.run.context.Progress` by bars, and passes it on to the log."""

    def __init__(self, bars: Progress, source: str, log_lines: ProgressLines) -> None:
        self._bars, self._source, self._log_lines = bars, source, log_lines
        self._tasks: dict[str, TaskID] = {}

    def tell(self, step: StepProgress) -> None:
        self._log_lines.tell(step)
        if step.step not in self._tasks:
            description = f"{self._source}: {step.step}"
            self._tasks[step.step] = self._bars.add_task(description, figures="")
        task, total = self._tasks[step.step], max(step.total, 1)
        self._bars.update(task, completed=step.done, total=total, figures=step.words)

    def note(self, sentence: str) -> None:
        self._log_lines.note(sentence)
        self._bars.console.print(f"{self._source}: {sentence}", markup=False)
