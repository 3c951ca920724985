"""How the engine's inner loops are compiled, and where the compiled code is kept.

numba compiles at the first call and keeps the result. It would notice a change only in
the file of the function called, so the folder is named after the content of every module
of `pipeline.binlog` and `pipeline.resultset`. Where neither the package's folder nor the
user's cache can be written to, the code is compiled once per process; so is what cannot be
kept or read back once a folder is chosen, on a full disk or after a power cut that left
files empty.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE: Final = Path(__file__).parents[1]
_BESIDE: Final = _PACKAGE.parent / "resultset"
"""Whose loops are compiled by the same decorators."""

_PREFIX: Final = "compiled-"


class _Part:
    """What compiled code calls, made when the first kernel that calls it has to be compiled: one
    whose code was kept needs none of them, and a command that reads no event not even numba."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def made(self) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of any value that compiled code names."""
        from numba.core.registry import cpu_target

        made = self.made()
        cpu_target.typing_context.refresh()  # which learns what was made meanwhile
        return cpu_target.typing_context.resolve_value_type(made)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """A function that only compiled code calls; compiled with its callers."""
    return cast("Callable[P, R]", _Part(lambda: _uncached(function)))


def inline(name: str, *args: Any, **kwargs: Any) -> object:
    """The same, out of what `intrinsics` tells LLVM under this name."""

    def make() -> Any:
        from pipeline.binlog.arrays import intrinsics

        return getattr(intrinsics, name)(*args, **kwargs)

    return _Part(make)


class kernel(Generic[P, R]):
    """A compiled function that Python calls; releases the GIL while it runs.

    Nothing is compiled, no folder looked at and numba not imported before the first call.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._compiled: Callable[P, R] | None = None
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._compiled is None:
            self._compiled = _compiled(self._function)
        try:
            return self._compiled(*args, **kwargs)
        except (OSError, EOFError, UnpicklingError) as error:
            # The cache's: compiled code opens nothing, and has not begun.
            folder = cache_folder()
            if folder is not None and not isinstance(error, OSError):
                shutil.rmtree(folder, ignore_errors=True)
            self._compiled = _uncached(self._function)
        return self._compiled(*args, **kwargs)


def _uncached(function: Callable[P, R]) -> Callable[P, R]:
    import numba

    compiled: Callable[P, R] = numba.njit(nogil=True)(function)
    return compiled


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    folder = cache_folder()
    if folder is None:
        return _uncached(function)
    import numba

    # numba looks at this setting when a function is decorated, and nowhere else.
    settings: Any = numba.config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    try:
        cached: Callable[P, R] = numba.njit(nogil=True, cache=True)(function)
    finally:
        settings.CACHE_DIR = before
    return cached


@cache
def cache_folder() -> Path | None:
    """Where compiled code is kept for these sources; None if nowhere. What was compiled
    for earlier ones is deleted."""
    for folder in _folders(_fingerprint()):
        new = not folder.exists()
        if _writable(folder):
            for other in folder.parent.glob(f"{_PREFIX}*") if new else ():
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)
            return folder
    return None


def _folders(name: str) -> Iterator[Path]:
    yield _PACKAGE / "__pycache__" / name
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
    if home:
        below = "lockstep" if os.environ.get("XDG_CACHE_HOME") else ".cache/lockstep"
        yield Path(home) / below / name


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _fingerprint() -> str:
    import numba

    digest = hashlib.sha256()
    digest.update(numba.__version__.encode())
    for package in (_PACKAGE, _BESIDE):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return f"{_PREFIX}{digest.hexdigest()[:16]}"
