"""Compilation of the inner loops by numba, and the cache of compiled code.

numba compiles a function at its first call and caches the result. It looks for changes
only in that function's file, but compiled callees are part of the result. So the cache
folder's name is a hash of every module of `pipeline.binlog` and `pipeline.resultset`.
The folder is in the package or, if that is not writable, in the user's cache. If
neither can be used (full disk, files left empty by a power cut), each process compiles
the code.
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
from threading import Lock
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE: Final = Path(__file__).parents[1]
_RESULTSET: Final = _PACKAGE.parent / "resultset"
"""The other package whose loops are compiled by these decorators."""

_PREFIX: Final = "compiled-"


class _KernelPart:
    """A function that only compiled code calls, built when a caller is compiled. A
    kernel from the cache needs no parts, and a command that reads no event does not
    even import numba."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        self._function: Any = None

    def function(self) -> Any:
        if self._function is None:
            self._function = self._build()
        return self._function

    @property
    def _numba_type_(self) -> Any:
        """The type that makes numba treat this object as the function that it builds."""
        from numba.core.registry import cpu_target

        function = self.function()
        cpu_target.typing_context.refresh()  # registers intrinsics defined since the last refresh
        return cpu_target.typing_context.resolve_value_type(function)


def kernel_part(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that only kernels and their parts call; it is compiled with its
    callers."""
    return cast("Callable[P, R]", _KernelPart(lambda: _compile(function)))


def intrinsic(name: str, *args: Any, **kwargs: Any) -> object:
    """Return a function for compiled code: the intrinsic that the function `name` of
    the module `intrinsics` returns for these arguments."""

    def build() -> Any:
        from lockstep.pipeline.binlog.arrays import intrinsics

        return getattr(intrinsics, name)(*args, **kwargs)

    return _KernelPart(build)


class kernel(Generic[P, R]):
    """A compiled function that Python calls; it releases the GIL while it runs.

    Before the first call nothing is compiled, no folder is read and numba is not
    imported.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._compiled: Callable[P, R] | None = None
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._compiled is None:
            self._compiled = _compile_with_cache(self._function)
        try:
            return self._compiled(*args, **kwargs)
        except (OSError, EOFError, UnpicklingError) as error:
            # The error comes from numba's cache, because compiled code opens no files.
            # So the function has not run yet, and calling it again is safe. Damaged
            # files are deleted, but after an OSError (a full disk) those that exist may
            # be good.
            folder = cache_folder()
            if folder is not None and not isinstance(error, OSError):
                shutil.rmtree(folder, ignore_errors=True)
            self._compiled = _compile(self._function)
        return self._compiled(*args, **kwargs)


def _compile(function: Callable[P, R]) -> Callable[P, R]:
    import numba

    compiled: Callable[P, R] = numba.njit(nogil=True)(function)
    return compiled


_CACHE_DIR_LOCK: Final = Lock()


def _compile_with_cache(function: Callable[P, R]) -> Callable[P, R]:
    folder = cache_folder()
    if folder is None:
        return _compile(function)
    import numba

    # numba reads this setting only when a function is decorated, but then twice. If
    # another thread restored it in between, the cache would be a folder in the current
    # directory.
    settings: Any = numba.config
    with _CACHE_DIR_LOCK:
        former_folder, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            compiled: Callable[P, R] = numba.njit(nogil=True, cache=True)(function)
        finally:
            settings.CACHE_DIR = former_folder
    return compiled


@cache
def cache_folder() -> Path | None:
    """Return the cache folder for the code as it is now; None if no folder is writable.
    Folders for earlier versions of the code are deleted."""
    for folder in _folders(_fingerprint()):
        is_new = not folder.exists()
        if _can_create(folder):
            if is_new:
                for other in folder.parent.glob(f"{_PREFIX}*"):
                    if other != folder:
                        shutil.rmtree(other, ignore_errors=True)
            return folder
    return None


def _folders(name: str) -> Iterator[Path]:
    yield _PACKAGE / "__pycache__" / name
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
    if home:
        subfolder = "lockstep" if os.environ.get("XDG_CACHE_HOME") else ".cache/lockstep"
        yield Path(home) / subfolder / name


def _can_create(folder: Path) -> bool:
    """Create the folder if it is missing. Return whether files can be created in it,
    which its permissions alone do not show."""
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
    for package in (_PACKAGE, _RESULTSET):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return f"{_PREFIX}{digest.hexdigest()[:16]}"
