"""Exit code 1: what is told and kept when Lockstep itself is at fault."""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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
