"""Folders of the lake as wholes: the tables and the files below one, moving one, removing one."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipeline.ports.held import Held
from resources.lake.paths import LakePath, ObjectFacts, ObjectPath
from resources.lake.storage import make_durable_folder, sync_folder


def delta_tables(folder: LakePath) -> Iterator[LakePath]:
    """The Delta tables below a folder, at any depth; there is none inside of another."""
    try:
        below: list[LakePath] = [*folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    if any(path.name == "_delta_log" and _has_files(path) for path in below):
        yield folder
        return
    for path in sorted(below, key=str):
        if isinstance(path, ObjectPath) or path.is_dir():
            yield from delta_tables(path)


def _has_files(log: LakePath) -> bool:
    """Whether more than the mark of a folder is left in a store, which Hadoop makes."""
    return not isinstance(log, ObjectPath) or log.has_objects()


def files_below(folder: LakePath) -> dict[str, os.stat_result | ObjectFacts]:
    """Names below a folder, at any depth, and what is known of those files. Left out is what is
    hidden from Delta: files and folders whose name begins with `_` or `.`, the log among them."""
    if isinstance(folder, ObjectPath):
        return {
            name: facts
            for name, facts in folder.facts_below()
            if not any(part.startswith(_HIDDEN) for part in name.split("/"))
        }
    found: dict[str, os.stat_result | ObjectFacts] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        for path in (Path(place) / name for name in names if not name.startswith(_HIDDEN)):
            found[path.relative_to(folder).as_posix()] = path.stat()
    return found


_HIDDEN = ("_", ".")


def remove_folder(folder: LakePath) -> None:
    """With all that is in it; none there is no error."""
    if isinstance(folder, ObjectPath):
        folder.rmtree()
        return
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def move_folder(folder: LakePath, target: LakePath) -> None:
    """With all that is in it, durably. In a store that is a copy of each object, then its
    deletion: repeating it after an end in between moves the rest."""
    if isinstance(folder, ObjectPath) and isinstance(target, ObjectPath):
        for path in folder.rglob():
            path.replace(target / path.relative_to(folder))
        return
    if isinstance(folder, Path) and isinstance(target, Path):
        make_durable_folder(target.parent)
        folder.rename(target)
        sync_folder(folder.parent)
        sync_folder(target.parent)


def remove_table(folder: LakePath, held: Held) -> None:
    """A Delta table is gone as a whole, then its files and its folder; none there is no error.

    The folder is opened, then `held` is asked, and what goes is what was opened: a table that
    somebody makes in its place meanwhile stays.
    """
    if isinstance(folder, ObjectPath):
        held()
        folder.remove_table()
        return
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
