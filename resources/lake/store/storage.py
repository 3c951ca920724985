"""Access to the lake's storage: errors, and durable writes.

The storage is a folder of this machine or a prefix of an object store. In a file
system, the content of a file is durable after an fsync of the file, and its name after
an fsync of its folder. In an object store, both are durable once the upload is
complete; until then the object does not exist. After an upload, the object's length is
compared; whoever publishes the object also compares its checksum.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import get_ident
from typing import IO

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from obstore.exceptions import BaseError

from lockstep.pipeline.ports.lease_check import RequireHeld
from lockstep.pipeline.values.errors import LakeUnavailable, MirrorRefused
from lockstep.resources.full_disk import FULL_CURE
from lockstep.resources.lake.store.answers import explanation_of
from lockstep.resources.lake.store.paths import ByteSink, LakePath, ObjectFacts, ObjectPath, is_url

_LINKS_REFUSED = (
    "does not allow hard links, with which commits are made, or changes to its files",
    "keep the lake in a file system with hard links, or in an object store: exFAT and some mounts "
    "of CIFS and FUSE have none",
)

_CURES = {
    errno.ENOSPC: ("has no space left", FULL_CURE),
    errno.EDQUOT: ("is over its quota", FULL_CURE),
    errno.EROFS: ("is mounted read-only", "mount it writable, then run again"),
    errno.EACCES: ("is not accessible to this account", "give this account access, then run again"),
    **dict.fromkeys((errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP), _LINKS_REFUSED),
    errno.ENOENT: ("is missing", "bring the lake's storage back, then run again"),
}

_MACHINE_ERRORS = frozenset(
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
"""Errors of the whole storage or machine, not only of the file for which they were
raised."""

_FILE_ERRORS = (OSError, DeltaError, JSONDecodeError, UnicodeDecodeError)
"""Errors of a file or of a Delta table, and of a text that is damaged."""

_OS_ERROR = re.compile(r"os error (\d+)")
"""Matches an errno in an error message of delta-rs."""


@contextmanager
def lake_errors(path: LakePath) -> Iterator[None]:
    """Turn any error of the storage or of delta-rs inside the context, and JSON that is
    damaged, into `LakeUnavailable` about `path`."""
    try:
        yield
    except (BaseError, *_FILE_ERRORS) as error:
        raise _storage_error(path, error) from error


@contextmanager
def mirror_errors(lake: LakePath, path: LakePath) -> Iterator[None]:
    """Turn errors inside the context into `MirrorRefused`, which concerns only the
    mirror at `path`; or into `LakeUnavailable` if the lake is missing, full or
    read-only, or if this machine is out of memory."""
    try:
        yield
    except MirrorRefused as error:
        _require_lake(lake, error)
        raise
    except LakeUnavailable as error:
        # A lost connection is to a Java that died, or to a store, and never to a file.
        is_about_file = not isinstance(error.__cause__, ConnectionError)
        if is_about_file and isinstance(error.__cause__, _FILE_ERRORS):
            raise _mirror_error(lake, path, error.__cause__) from error
        raise
    except (*_FILE_ERRORS, pa.ArrowException) as error:
        raise _mirror_error(lake, path, error) from error
    except BaseError as error:
        raise _storage_error(path, error) from error


def _mirror_error(
    lake: LakePath, path: LakePath, error: Exception
) -> LakeUnavailable | MirrorRefused:
    """Return our error for an error at the mirror's folder `path`: of this mirror only,
    or of the whole lake."""
    raise_storage_failure(path, error)
    _require_lake(lake, error)
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        reason = "its log is damaged"
    elif isinstance(error, OSError | DeltaError):
        reason = _description(error)
    else:
        reason = type(error).__name__  # a message of Arrow's can have a value of a row
    return MirrorRefused(f"its mirror {path} cannot be used: {reason}", hint="rewrite the mirror")


def raise_storage_failure(path: LakePath, error: Exception) -> None:
    """Raise `LakeUnavailable` if the machine or the store failed; do nothing if `error`
    is only about the file or table at `path`."""
    error_number = _error_number(error)
    if error_number in _MACHINE_ERRORS:
        raise unavailable_error(path, error_number, os.strerror(error_number or 0)) from error
    if isinstance(path, ObjectPath) and explanation_of(str(error)) is not None:
        raise _storage_error(path, error) from error


def _error_number(error: Exception) -> int | None:
    """Return the errno of an error, which delta-rs gives only in its message."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = _OS_ERROR.search(str(error))
    return int(match[1]) if match else None


def _require_lake(lake: LakePath, error: Exception) -> None:
    """Raise `LakeUnavailable` if the lake is missing: `error` was raised for one table,
    but then it concerns all tables."""
    with lake_errors(lake):
        if not lake.is_dir():
            raise unavailable_error(lake, errno.ENOENT, "") from error


def _description(error: Exception) -> str:
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        return "it is damaged"
    reason: str | None = error.strerror if isinstance(error, OSError) else None
    return reason or first_line(str(error)) or type(error).__name__


def unavailable_error(
    path: LakePath, error_number: int | None, description: str
) -> LakeUnavailable:
    """Return the error for an errno, or for the description of another failure."""
    state, cure = _CURES.get(
        error_number or 0, (f"cannot be used: {description}", "check it, then run again")
    )
    return LakeUnavailable(f"The lake's storage at {path} {state}", hint=cure)


def first_line(text: str) -> str:
    """Return the first line of a text, at most 300 characters; '' if it is blank."""
    lines = text.strip().splitlines()
    return lines[0].strip()[:300] if lines else ""


def _storage_error(path: LakePath, error: Exception) -> LakeUnavailable:
    explanation = (
        explanation_of(f"{type(error).__name__} {error}") if isinstance(path, ObjectPath) else None
    )
    if explanation is not None:
        state, cure = explanation
        return LakeUnavailable(f"The lake's storage at {path} {state}", hint=cure)
    error_number = _error_number(error) if isinstance(error, OSError) else None
    return unavailable_error(path, error_number, _description(error))


def delta_table(path: LakePath, version: int | None = None) -> DeltaTable:
    """Open a version of the table at a path, by default the newest one."""
    return DeltaTable(str(path), version=version, storage_options=delta_options(path))


def file_paths(table: DeltaTable) -> list[str]:
    """Return the path of each file of a table, relative to its folder."""
    paths: list[str] = pa.table(table.get_add_actions()).column("path").to_pylist()
    return paths


def table_if_exists(path: LakePath) -> DeltaTable | None:
    """Return the newest version of the table at a path; None if there is no table."""
    try:
        return delta_table(path)
    except TableNotFoundError:
        return None


def delta_options(path: LakePath) -> dict[str, str] | None:
    return path.delta_options if isinstance(path, ObjectPath) else None


def file_named(lake: LakePath, name: str) -> LakePath:
    """Return the path of a file that a write names: a file in the lake, or one that is
    staged on this machine."""
    if isinstance(lake, ObjectPath) and is_url(name):
        return lake.at_url(name)
    return Path(name)


def count_missing_files(folder: LakePath, names: Sequence[str]) -> int:
    """Return how many of the files `names`, which are relative to `folder`, are
    missing. In an object store, several files are looked up in a listing, because one
    request lists a thousand."""
    if isinstance(folder, ObjectPath) and len(names) > 1:
        listed_names = {path.relative_to(folder) for path in folder.rglob()}
        return sum(name not in listed_names for name in names)
    return sum(not (folder / name).is_file() for name in names)


def parquet_content(path: LakePath) -> Path | IO[bytes]:
    """Return a file in a form that pyarrow reads."""
    return path.open() if isinstance(path, ObjectPath) else path


def open_file(path: LakePath) -> IO[bytes]:
    """Return a reader of a file's content, which knows the file's size without a further
    request."""
    return path.open() if isinstance(path, ObjectPath) else path.open("rb")


def create_file(path: LakePath) -> ByteSink:
    """Create a file for writing. It is complete after `close_durably`."""
    return path.create() if isinstance(path, ObjectPath) else path.open("wb", buffering=0)


def close_durably(path: LakePath, file: ByteSink, size: int) -> None:
    """Close a file that `create_file` created. Its `size` bytes then survive a crash of
    the machine; in a file system, its name survives only after `sync_folder`. Raise
    `OSError` if the object in a store has another length."""
    if isinstance(path, ObjectPath):
        file.close()
        stored_size = path.stat().st_size
        if stored_size != size:
            raise OSError(errno.EIO, f"has {stored_size} bytes instead of {size}")
        return
    os.fsync(file.fileno())  # type: ignore[attr-defined]
    file.close()


def write_durably(path: LakePath, content: bytes) -> None:
    """Write or replace a small file in an existing folder, atomically and durably."""
    if isinstance(path, ObjectPath):
        path.write_bytes(content)
        if path.read_bytes() != content:
            raise OSError(errno.EIO, "was read back with other content")
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sha256_of(path: LakePath) -> str:
    with path.open() if isinstance(path, ObjectPath) else path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def make_durable_folder(folder: LakePath) -> None:
    """Create a folder and its parents; each new name is durable when this returns."""
    if isinstance(folder, ObjectPath):
        return
    missing_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing_folders:
        sync_folder(path.parent)


def sync_folder(folder: LakePath) -> None:
    """Make the names in a folder durable (POSIX fsync on the folder)."""
    if isinstance(folder, ObjectPath):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def ignores_case(folder: LakePath) -> bool:
    """Return whether the storage takes names in a folder that differ only in case for
    the same name. A folder that does not exist yet will be as its parent is."""
    if isinstance(folder, ObjectPath):
        return False
    existing = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    with suppress(OSError), NamedTemporaryFile(prefix=".Case-", dir=existing) as file:
        return (existing / Path(file.name).name.swapcase()).exists()
    return False  # nothing can be written there


def delta_tables(folder: LakePath) -> Iterator[LakePath]:
    """Yield the Delta tables below a folder, at any depth. Folders inside a Delta table
    are not searched."""
    try:
        entries: list[LakePath] = [*folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    # `is_dir`, because Hadoop can leave an empty object as the marker of a deleted
    # folder.
    if any(path.name == "_delta_log" and path.is_dir() for path in entries):
        yield folder
        return
    for path in sorted(entries, key=str):
        if isinstance(path, ObjectPath) or path.is_dir():
            yield from delta_tables(path)


def files_below(folder: LakePath) -> dict[str, os.stat_result | ObjectFacts]:
    """Return the files below a folder, at any depth: their relative names, with their
    size and time of modification. Hidden files, as Delta defines them, are left out:
    files and folders whose names begin with `_` or `.`, such as `_delta_log`, but not
    the change data feed and indexes."""
    if isinstance(folder, ObjectPath):
        return {
            name: facts
            for name, facts in folder.facts_below()
            if not any(map(_is_hidden, name.split("/")))
        }
    files: dict[str, os.stat_result | ObjectFacts] = {}
    for folder_path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for path in (Path(folder_path) / name for name in names if not _is_hidden(name)):
            files[path.relative_to(folder).as_posix()] = path.stat()
    return files


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and not name.startswith(("_change_data", "_delta_index"))


def remove_folder(folder: LakePath) -> None:
    """Delete a folder with all its content; a missing one is no error."""
    if isinstance(folder, ObjectPath):
        folder.rmtree()
        return
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def move_folder(folder: LakePath, target: LakePath) -> None:
    """Move a folder with all its content, durably. In a store, each object is copied,
    then deleted; a repeated call after an interruption moves the rest."""
    if isinstance(folder, ObjectPath) and isinstance(target, ObjectPath):
        for path in folder.rglob():
            path.replace(target / path.relative_to(folder))
        return
    if isinstance(folder, Path) and isinstance(target, Path):
        make_durable_folder(target.parent)
        folder.rename(target)
        sync_folder(folder.parent)
        sync_folder(target.parent)


def remove_table(folder: LakePath, require_held: RequireHeld) -> None:
    """Remove a Delta table: first its log, so that readers find no table rather than a
    part of one, then its files and its folder. A missing table is no error. A table
    that another process creates under the same name after `require_held` was called
    remains: in a file system, the folder is opened before the call, and its content is
    deleted through that descriptor."""
    if isinstance(folder, ObjectPath):
        folder.remove_table(require_held)
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        require_held()
        with suppress(FileNotFoundError):  # a removal that was killed left it
            shutil.rmtree(_REMOVED_LOG_NAME, dir_fd=descriptor)
        with suppress(FileNotFoundError):
            os.rename("_delta_log", _REMOVED_LOG_NAME, src_dir_fd=descriptor, dst_dir_fd=descriptor)
            os.fsync(descriptor)
        with suppress(FileNotFoundError):
            _delete_content(descriptor)
    finally:
        os.close(descriptor)
    with suppress(FileNotFoundError):
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
    sync_folder(folder.parent)


_REMOVED_LOG_NAME = "_delta_log.removed"
"""Name of a table's log while the table is being removed."""


def _delete_content(folder: int) -> None:
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
