"""The lake's local file system: durable folders and files, and its errors by name."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import DeltaError

from pipeline.errors import LakeUnavailable, MirrorRefused
from pipeline.ports.held import Held

_CURES = {
    errno.ENOSPC: ("is full", "free some space there, then run again"),
    errno.EDQUOT: ("is over its quota", "free some space there, then run again"),
    errno.EROFS: ("is mounted read-only", "mount it writable, then run again"),
    errno.EACCES: ("may not be used by this account", "give this account access, then run again"),
    errno.EPERM: ("may not be used by this account", "give this account access, then run again"),
    errno.ENOENT: ("is gone", "bring the lake's storage back, then run again"),
}

_EVERYBODYS = frozenset(
    {
        errno.EDQUOT,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EROFS,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)
"""What storage or a machine lacks, whichever file it is found out at."""

_OS_ERROR = re.compile(r"os error (\d+)")


@contextmanager
def lake_errors(path: Path) -> Iterator[None]:
    """Whatever storage or delta-rs raises inside becomes `LakeUnavailable` about `path`."""
    try:
        yield
    except OSError as error:
        raise unavailable(path, error.errno, error.strerror or type(error).__name__) from error
    except DeltaError as error:
        raise unavailable(path, None, first_line(str(error))) from error


@contextmanager
def mirror_errors(lake: Path, path: Path) -> Iterator[None]:
    """What goes wrong inside is the matter of the mirror at `path` alone (`MirrorRefused`),
    unless the lake is away, full or read-only, or this machine has no room (`LakeUnavailable`).
    """
    try:
        yield
    except MirrorRefused as error:
        if not lake.is_dir():
            raise unavailable(lake, errno.ENOENT, "") from error
        raise
    except LakeUnavailable as error:
        if isinstance(error.__cause__, OSError | DeltaError):
            raise _about_mirror(lake, path, error.__cause__) from error
        raise
    except (OSError, DeltaError, JSONDecodeError, UnicodeDecodeError, pa.ArrowException) as error:
        raise _about_mirror(lake, path, error) from error


def _about_mirror(lake: Path, path: Path, error: Exception) -> LakeUnavailable | MirrorRefused:
    number = error.errno if isinstance(error, OSError) else _number_in(str(error))
    if number in _EVERYBODYS:
        return unavailable(path, number, os.strerror(number or 0))
    if not lake.is_dir():
        return unavailable(lake, errno.ENOENT, "")
    said = type(error).__name__
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        said = "its log is damaged"
    elif isinstance(error, OSError):
        said = error.strerror or type(error).__name__
    elif isinstance(error, DeltaError):
        said = first_line(str(error))
    return MirrorRefused(f"its mirror {path} cannot be used: {said}", hint="rewrite the mirror")


def _number_in(text: str) -> int | None:
    """The errno that delta-rs tells."""
    found = _OS_ERROR.search(text)
    return int(found[1]) if found else None


def unavailable(path: Path, number: int | None, what: str) -> LakeUnavailable:
    """The refusal for an errno, or for words where there is none."""
    state, cure = _CURES.get(number or 0, (f"cannot be used: {what}", "check it, then run again"))
    return LakeUnavailable(f"The lake's storage at {path} {state}", hint=cure)


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].strip()[:300] if lines else ""


def make_durable_folder(folder: Path) -> None:
    """Create a folder and its parents; each new name is on disk before this returns."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def remove_table(folder: Path, held: Held) -> None:
    """A Delta table is gone as a whole, then its files and its folder; none there is no error.

    The folder is opened, then `held` is asked, and what goes is what was opened: a table that
    somebody makes in its place meanwhile stays.
    """
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        held()
        with suppress(FileNotFoundError):
            os.rename("_delta_log", _LEAVING, src_dir_fd=opened, dst_dir_fd=opened)
            os.fsync(opened)
        with suppress(FileNotFoundError):
            _empty(opened)
    finally:
        os.close(opened)
    with suppress(FileNotFoundError):
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
    sync_folder(folder.parent)


_LEAVING = "_delta_log.removed"


def _empty(folder: int) -> None:
    """Delete what is in an open folder."""
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable (POSIX fsync on the folder)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
