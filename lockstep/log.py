"""What a command says while it works, as lines of JSON: for a log collector, or in a file that
rotates."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TextIO

from pipeline.errors import ConfigurationError
from pipeline.json_values import to_json

if TYPE_CHECKING:
    from pipeline.runs.context import StepProgress

_FILE_SIZE: Final = 10 << 20
_FILES: Final = 5
_SECONDS: Final = 10.0
"""Between two lines about the same step."""


class JsonLog:
    """Lines of JSON to each of its handlers: `time` (ISO 8601, UTC), `level`, `message`, and
    what else is known. `instead`: what a person would read is left out."""

    def __init__(self) -> None:
        self._handlers: list[logging.Handler] = []
        self.instead = False

    def open(self, stream: TextIO | None, file: str | None) -> None:
        """To a stream, to a file that is kept below 10 MiB with five older ones beside it, to both
        or to neither. `ConfigurationError` where the file cannot be written."""
        if stream is not None:
            self.instead = True
            self._handlers.append(logging.StreamHandler(stream))
        if file is not None:
            from logging.handlers import RotatingFileHandler

            try:
                self._handlers.append(
                    RotatingFileHandler(
                        file, maxBytes=_FILE_SIZE, backupCount=_FILES, encoding="utf-8"
                    )
                )
            except OSError as error:
                raise ConfigurationError(
                    f"The log cannot be written to {file}: {error.strerror or error}.",
                    hint="name another file: --log-file FILE",
                ) from error

    def close(self) -> None:
        for handler in self._handlers:
            handler.close()

    def tell(self, level: str, message: str, **fields: Any) -> None:
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
        told |= {name: value for name, value in fields.items() if value is not None}
        line = json.dumps(to_json({**told, "message": message}), ensure_ascii=False)
        record = logging.makeLogRecord({"msg": line, "levelno": logging.INFO})
        for handler in self._handlers:
            handler.handle(record)


class ProgressLines:
    """`pipeline.runs.context.Progress` as lines: each step, and each table of it, once in ten
    seconds."""

    def __init__(self, log: JsonLog, source: str, clock: Callable[[], float] = monotonic) -> None:
        self._log, self._source, self._clock = log, source, clock
        self._told: dict[tuple[str, object], float] = {}

    def tell(self, step: StepProgress) -> None:
        now, name = self._clock(), step.step
        message = "merged" if name == "merge" else name
        for figures in step.figures:
            about = name, figures.get("table")
            if now - self._told.get(about, float("-inf")) >= _SECONDS:
                self._told[about] = now
                self._log.tell("info", message, source=self._source, step=name, **figures)

    def note(self, sentence: str) -> None:
        self._log.tell("warning", sentence, source=self._source)
