"""The entry point of `lockstep`: it parses the command line, calls one command, and
turns errors and signals into messages and exit codes.

Dagster, Spark and database drivers are imported only by the command that needs them.
"""

from __future__ import annotations

import argparse
import atexit
import os
import platform
import signal
import sys
import threading
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import parse
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.shown import printable
from lockstep.streams import JsonLog, Streams, open_streams

Command = Callable[[argparse.Namespace, CommandContext], Outcome]

_SHARED_MODULES: Final = {
    **dict.fromkeys(("pause", "resume", "start-at"), "orders"),
    **dict.fromkeys(("spark", "completion"), "setup"),
}
"""Commands that share a module; every other command has a module of its own name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `--help` and `--version` raise
    SystemExit."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if {"-h", "--help", "--version"} & set(argv):
        parse(argv)  # prints to the real standard output and exits
    log = JsonLog()
    wants_json = "--json" in argv
    with open_streams() as streams, catch_signals() as signals:
        config: Path | None = None
        signals.announce = partial(_announce_end, streams, log)
        signals.report = lambda last_signal: _answer(
            _report_interruption(last_signal, streams, log), streams, wants_json=wants_json
        )
        try:
            parsed = parse(argv)
            path = getattr(parsed, "config", None) or os.environ.get("LOCKSTEP_CONFIG")
            config = Path(path or "lockstep.toml").absolute()
            logs_json = getattr(parsed, "log_format", "text") == "json"
            log.open(streams.messages if logs_json else None, getattr(parsed, "log_file", None))
            context = CommandContext(config, streams, wants_json, signals.raise_if_caught, log)
            outcome = _perform(parsed, context)
        except LockstepError as error:
            outcome = _report_refusal(error, streams, log)
        except KeyboardInterrupt:
            outcome = _report_interruption(signals.last_signal, streams, log)
        except Exception as error:  # noqa: BLE001 - the last line of defence
            from lockstep.resources.full_disk import disk_full_error

            disk_error = disk_full_error(error, [_state_folder(config)])
            if disk_error is not None:
                outcome = _report_refusal(disk_error, streams, log)
            else:
                outcome = _report_defect(error, argv, config, streams, log)
        finally:
            log.close()
        return _answer(outcome, streams, wants_json=wants_json)


def _state_folder(config: Path | None) -> Path:
    return (config.parent if config else Path.cwd()) / ".lockstep"


def _answer(outcome: Outcome, streams: Streams, *, wants_json: bool) -> int:
    if wants_json:
        streams.write_json({**outcome.payload, "exit_code": outcome.code})
    return outcome.code


_SILENT_SECONDS: Final = 0.5
"""Seconds from SIGINT or SIGTERM until a process that still runs says what it waits
for. Until then it ignores further signals, because programs such as timeout(1) send the
same signal twice."""

EXIT_SECONDS: Final = 20
"""Seconds from SIGINT or SIGTERM until the process exits even if a thread hangs. This
is less than the grace period of Kubernetes and systemd, after which they send
SIGKILL."""


class CaughtSignals:
    """The last SIGINT or SIGTERM that this process received, or None. `announce` is
    called if the process waits before it ends, `report` if it exits at once."""

    def __init__(self) -> None:
        self.last_signal: signal.Signals | None = None
        self.announce: Callable[[], object] = lambda: None
        self.report: Callable[[signal.Signals], object] = lambda _: None

    def raise_if_caught(self) -> None:
        """Raise KeyboardInterrupt if a signal was caught: a library's callback may have
        swallowed the first KeyboardInterrupt."""
        if self.last_signal is not None:
            raise KeyboardInterrupt


@contextmanager
def catch_signals() -> Iterator[CaughtSignals]:
    """Raise KeyboardInterrupt in the main thread on SIGINT and SIGTERM while the
    context lasts. If it still lasts `_SILENT_SECONDS` later, because the main thread
    waits for another thread, announce the end. Then exit at a second signal, or after
    `EXIT_SECONDS`: that is as safe as being killed."""
    caught = CaughtSignals()
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    is_announced = False

    def interrupt(number: int, _: FrameType | None) -> None:
        is_first, caught.last_signal = caught.last_signal is None, signal.Signals(number)
        if is_announced:
            exit_at_once()
        if is_first:
            signal.setitimer(signal.ITIMER_REAL, _SILENT_SECONDS)
            raise KeyboardInterrupt

    def announce_or_exit(_: int, __: FrameType | None) -> None:
        nonlocal is_announced
        if is_announced:
            exit_at_once()
        signal.alarm(EXIT_SECONDS)
        with suppress(OSError, RuntimeError):  # the stream may be in the middle of a write
            caught.announce()
        is_announced = True

    def exit_at_once() -> NoReturn:
        assert caught.last_signal is not None, "a signal was caught"
        try:
            caught.report(caught.last_signal)
            _flush()
        finally:
            os._exit(128 + caught.last_signal)

    # A shell starts jobs (`&`) with SIGINT ignored; Lockstep then ignores it, too.
    handlers = {
        number: signal.signal(number, interrupt)
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    # `interrupt` sets an alarm, because a signal handler cannot start a thread safely.
    handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, announce_or_exit)
    try:
        yield caught
    finally:
        signal.alarm(0)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def program() -> NoReturn:
    """Run `main` and exit without the interpreter's clean-up, which takes a sixth of a
    short command's time."""
    # gRPC reads this at import; otherwise it prints each attempt to reach Spark on the
    # terminal.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    code = main()
    atexit._run_exitfuncs()
    _flush()
    os._exit(code)


def _flush() -> None:
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()


def _perform(parsed: argparse.Namespace, context: CommandContext) -> Outcome:
    module = _SHARED_MODULES.get(parsed.command, parsed.command.replace("-", "_"))
    perform: Command = import_module(f"lockstep.commands.{module}").perform
    outcome = perform(parsed, context)
    return Outcome(outcome.code, to_json(outcome.payload)) if context.wants_json else outcome


def _report_refusal(error: LockstepError, streams: Streams, log: JsonLog) -> Outcome:
    kind, code = type(error).__name__, error.recovery.exit_code
    return _report_failure(streams, log, code, kind, error.message, error.hint)


def _announce_end(streams: Streams, log: JsonLog) -> None:
    sentence = (
        f"waiting for the writes that have begun, for {EXIT_SECONDS} seconds at most; a second "
        "Ctrl-C ends at once"
    )
    log.write("warning", sentence)
    if not log.replaces_text:
        streams.messages.write(f"{sentence}\n")


def _report_interruption(
    last_signal: signal.Signals | None, streams: Streams, log: JsonLog
) -> Outcome:
    """Report the interruption. `last_signal`: None if KeyboardInterrupt was raised
    without a signal that we caught."""
    is_terminated = last_signal is signal.SIGTERM
    kind = "Terminated" if is_terminated else "Interrupted"
    code = exits.TERMINATED if is_terminated else exits.INTERRUPTED
    hint = "nothing is lost: repeat the command, or let the next run repair what was begun"
    return _report_failure(streams, log, code, kind, kind.lower(), hint)


def _report_failure(
    streams: Streams, log: JsonLog, code: int, kind: str, message: str, hint: str
) -> Outcome:
    log.write("error", message, kind=kind, hint=hint)
    if not log.replaces_text:
        streams.messages.write(printable(f"{message}\nhint: {hint}\n", keep="\n\t"))
    return Outcome(code, {"error": {"kind": kind, "message": message, "hint": hint}})


def _report_defect(
    error: BaseException,
    argv: Sequence[str],
    config: Path | None,
    streams: Streams,
    log: JsonLog,
) -> Outcome:
    """Write a report that the user can send. A failure to write it never hides the
    defect."""
    folder = _state_folder(config) / "reports"
    message = f"Lockstep failed because of a defect of its own: {type(error).__name__}."
    hint = "send us what you did"
    with suppress(OSError):
        report = write_report(folder, error, " ".join(argv), _secrets(config), datetime.now(UTC))
        hint = f"send us {report}"
    return _report_failure(streams, log, exits.DEFECT, "Defect", message, hint)


_REPORTED_PACKAGES = (
    "lockstep",
    "dagster",
    "pyspark",
    "delta-spark",
    "deltalake",
    "pyarrow",
    "PyMySQL",
)


def write_report(
    folder: Path, error: BaseException, command: str, secrets: Iterable[str], now: datetime
) -> Path:
    """Write a report with versions, the command and the traceback, in which `secrets`
    are masked; return the file's path. Raise OSError if it cannot be written."""
    from lockstep.resources.private import make_private

    make_private(folder)
    text = "\n".join(
        (
            f"`lockstep {command}`, {now:%Y-%m-%d %H:%M:%S} UTC",
            f"Python {platform.python_version()}, {platform.platform()}",
            *(f"{name} {_version(name)}" for name in _REPORTED_PACKAGES),
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    # A secret may contain another one, so the longest are masked first.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "…")
    path = folder / f"{now:%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _secrets(config: Path | None) -> Iterator[str]:
    """Yield the values of all references in lockstep.toml that can be resolved, even if
    the settings are invalid."""
    from lockstep.resources.config.secrets import is_reference, resolve

    if config is None:
        return
    try:
        content = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for text in filter(is_reference, _texts(content)):
        with suppress(LockstepError):
            yield resolve(text, config.resolve().parent)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value of TOML."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


if __name__ == "__main__":
    program()
