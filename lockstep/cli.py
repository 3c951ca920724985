"""The front door: reads the command line, calls one command, turns errors into words and exit
codes.

Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import argparse
import atexit
import os
import platform
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import parse
from lockstep.log import JsonLog
from lockstep.streams import Streams, open_streams
from pipeline.errors import LockstepError, TableError
from pipeline.json_values import to_json

Command = Callable[[argparse.Namespace, CommandContext], Outcome]

_TOGETHER: Final = {
    **dict.fromkeys(("pause", "resume"), "orders"),
    **dict.fromkeys(("spark", "completion"), "setup"),
    "undo": "recover",
}
"""Commands that are carried out by another's module; any other has one of its own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. `--help` and `--version` leave by SystemExit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if {"-h", "--help", "--version"} & set(given):
        parse(given)
    with open_streams() as streams, hearing() as heard:
        wants_json = "--json" in given
        config: Path | None = None
        log = JsonLog()
        try:
            parsed = parse(given)
            chosen = getattr(parsed, "config", None) or os.environ.get("LOCKSTEP_CONFIG")
            config = Path(chosen or "lockstep.toml").absolute()
            as_json = getattr(parsed, "log_format", "text") == "json"
            log.open(streams.people if as_json else None, getattr(parsed, "log_file", None))
            context = CommandContext(config, streams, wants_json, heard.leave_if_asked, log)
            outcome = _perform(parsed, context)
        except LockstepError as error:
            outcome = _refused(error, streams, log)
        except KeyboardInterrupt:
            outcome = _ended(heard.last, streams, log)
        except (Exception, TableError) as error:  # noqa: BLE001 - the last line of defence
            from resources.full_disk import disk_full

            own = (config.parent if config else Path.cwd()) / ".lockstep"
            full = disk_full(error, [own, Path(tempfile.gettempdir())])
            if full is not None:
                outcome = _refused(full, streams, log)
            else:
                outcome = _defect(error, given, config, streams, log)
        finally:
            log.close()
        if wants_json:
            streams.write_json({**outcome.payload, "exit_code": outcome.code})
        return outcome.code


_ENDING = (signal.SIGINT, signal.SIGTERM)


class Heard:
    """The last signal that asked the process to end, if one did."""

    def __init__(self) -> None:
        self.last: signal.Signals | None = None

    def leave_if_asked(self) -> None:
        """For who catches KeyboardInterrupt on its way, as a callback of a library may."""
        if self.last is not None:
            raise KeyboardInterrupt


@contextmanager
def hearing() -> Iterator[Heard]:
    """KeyboardInterrupt in the main thread at either signal, until the end."""
    heard = Heard()
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return

    def interrupt(number: int, _: FrameType | None) -> None:
        heard.last = signal.Signals(number)
        raise KeyboardInterrupt

    # A shell has jobs that it starts with `&` ignore SIGINT.
    wanted = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield heard
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def program() -> NoReturn:
    """`main` as a process of its own. It does not wait for Python to free module by module what
    goes with the process anyway, which is a sixth of a short command."""
    # Or gRPC tells a terminal of each try to reach a Spark; it reads this when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    code = main()
    atexit._run_exitfuncs()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _perform(parsed: argparse.Namespace, context: CommandContext) -> Outcome:
    module = _TOGETHER.get(parsed.command, parsed.command.replace("-", "_"))
    perform: Command = import_module(f"lockstep.commands.{module}").perform
    outcome = perform(parsed, context)
    return Outcome(outcome.code, to_json(outcome.payload)) if context.wants_json else outcome


def _refused(error: LockstepError, streams: Streams, log: JsonLog) -> Outcome:
    told = type(error).__name__, error.message, error.hint
    return _ends(streams, log, error.recovery.exit_code, *told)


def _ended(number: signal.Signals | None, streams: Streams, log: JsonLog) -> Outcome:
    """By a signal; without one, by Ctrl-C in whatever way it came."""
    terminated = number is signal.SIGTERM
    kind = "Terminated" if terminated else "Interrupted"
    code = exits.TERMINATED if terminated else exits.INTERRUPTED
    hint = "nothing is lost: the next run repairs what was begun"
    return _ends(streams, log, code, kind, kind.lower(), hint)


def _ends(streams: Streams, log: JsonLog, code: int, kind: str, message: str, hint: str) -> Outcome:
    log.tell("error", message, kind=kind, hint=hint)
    if not log.instead:
        streams.people.write(f"{message}\nhint: {hint}\n")
    return Outcome(code, {"error": {"kind": kind, "message": message, "hint": hint}})


def _defect(
    error: BaseException,
    given: Sequence[str],
    config: Path | None,
    streams: Streams,
    log: JsonLog,
) -> Outcome:
    """A sentence, and a file to send. Never a second error on top of the first."""
    folder = (config.parent if config else Path.cwd()) / ".lockstep" / "reports"
    message = f"Lockstep failed because of a defect of its own: {type(error).__name__}."
    hint = "send us what you did"
    with suppress(OSError):
        report = write_report(folder, error, " ".join(given), _secrets(config), datetime.now(UTC))
        hint = f"send us {report}"
    return _ends(streams, log, exits.DEFECT, "Defect", message, hint)


_PACKAGES = ("lockstep", "dagster", "pyspark", "delta-spark", "deltalake", "pyarrow", "PyMySQL")


def write_report(
    folder: Path, error: BaseException, command: str, secrets: Iterable[str], now: datetime
) -> Path:
    """A report to send: versions, the command, the traceback without its values.

    `secrets` are masked wherever they stand. The file's path; OSError if it cannot be
    written.
    """
    from resources.private import make_private

    make_private(folder)
    text = "\n".join(
        (
            f"`lockstep {command}`, {now:%Y-%m-%d %H:%M:%S} UTC",
            f"Python {platform.python_version()}, {platform.platform()}",
            *(f"{name} {_version(name)}" for name in _PACKAGES),
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    for secret in secrets:
        if secret:
            text = text.replace(secret, "…")
    path = folder / f"{now:%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _secrets(config: Path | None) -> list[str]:
    """Every secret of the configuration, as far as it can be read, to be masked."""
    if config is None:
        return []
    from resources.config import load_settings

    found = []
    with suppress(LockstepError):
        settings = load_settings(config)
        conf = settings.spark_conf()
        found = [conf[key] for key in settings.sensitive_spark_keys()]
        if settings.ledger_dsn() != "embedded":
            found.append(settings.ledger_dsn())
        found += [source.password().reveal() for source in settings.sources]
    return found


if __name__ == "__main__":
    program()
