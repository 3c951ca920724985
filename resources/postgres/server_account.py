"""Runs the embedded Postgres as another account if this process is root, because
Postgres refuses to run as root. The account needs programs that it can execute, and has
to own the data.

The account may not be able to enter the folders above the project or the programs.
Their permissions are not changed, because their owner chose them. Instead, a command of
the account names its folder through an open descriptor (`become`), and executes a copy
of the programs.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import sys
from pathlib import Path
from typing import Final

from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.file_lock import exclusive_lock
from lockstep.resources.postgres.become import FOLDER_DESCRIPTOR

_COPIES_FOLDER: Final = Path("/var/cache/lockstep")
"""Folder in which root keeps copies of the programs for accounts that cannot read the
originals."""


def account_of(data: Path) -> pwd.struct_passwd | None:
    """Return the account for Postgres: the data's owner unless that is root, else
    postgres, else nobody. Return None if this process is not root: then Postgres runs
    as this process does."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat().st_uid) != 0:
        try:
            return pwd.getpwuid(owner)
        except KeyError as error:
            raise ConfigurationError(
                f"The ledger in {data} belongs to user {owner}, for whom there is no account here.",
                hint=f"Run `chown -R postgres {data}`, or create user {owner}, then try again.",
            ) from error
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ConfigurationError(
        "The embedded Postgres cannot run as root, and there is no account postgres or nobody.",
        hint="Run Lockstep as another user, or set [ledger] dsn.",
    )


def as_account(account: pwd.struct_passwd | None, folder: Path, *command: str) -> list[str]:
    """Return a command line that executes `command` as the account; `command` has to
    name `folder` by `path_for_account`. For the account None, return `command`
    unchanged."""
    if account is None:
        return [*command]
    become = Path(__file__).with_name("become.py")
    user = (str(account.pw_uid), str(account.pw_gid))
    return [sys.executable, "-I", "-S", str(become), *user, str(folder), *command]


def path_for_account(account: pwd.struct_passwd | None, folder: Path) -> str:
    """Return the path by which a command of `as_account` names `folder`."""
    return str(folder) if account is None else f"/proc/self/fd/{FOLDER_DESCRIPTOR}"


def executable_programs(account: pwd.struct_passwd | None, programs_folder: Path) -> Path:
    """Return a folder whose programs the account can execute: `programs_folder`
    (PREFIX/bin), or the one in a copy of PREFIX if the account cannot enter a parent
    folder."""
    if account is None or _may_enter(account, programs_folder):
        return programs_folder
    status = (programs_folder / "postgres").stat()
    identity = f"{programs_folder} {status.st_size} {status.st_mtime_ns}"
    copy = _COPIES_FOLDER / f"postgres-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    try:
        _COPIES_FOLDER.mkdir(parents=True, exist_ok=True)
        _COPIES_FOLDER.chmod(0o755)  # whatever the umask
        with exclusive_lock(copy.with_suffix(".lock")):
            if not copy.exists():
                _copy_for_all(programs_folder.parent, copy)
    except OSError as error:
        raise _unreachable_error(account, programs_folder) from error
    if not _may_enter(account, copy / programs_folder.name):
        raise _unreachable_error(account, programs_folder)
    return copy / programs_folder.name


def _may_enter(account: pwd.struct_passwd, folder: Path) -> bool:
    """Return whether the account, with its own group alone (`become`), may enter a
    folder and all folders above it, by their modes."""
    for path in (folder, *folder.parents):
        status = path.stat()
        if status.st_uid == account.pw_uid:
            permission = 0o100
        else:
            permission = 0o010 if status.st_gid == account.pw_gid else 0o001
        if not status.st_mode & permission:
            return False
    return True


def _copy_for_all(prefix: Path, copy: Path) -> None:
    """Copy the programs atomically. Every account may execute the copies, even if only
    root may execute the originals."""
    unfinished = copy.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(prefix, unfinished, symlinks=True)
    for folder, _, names in os.walk(unfinished):
        Path(folder).chmod(0o755)
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    unfinished.rename(copy)


def _unreachable_error(account: pwd.struct_passwd, programs_folder: Path) -> ConfigurationError:
    return ConfigurationError(
        f"The embedded Postgres cannot run as root, and the account {account.pw_name} does not get "
        f"to its programs in {programs_folder}.",
        hint="Run Lockstep as another user, install it in a folder that all accounts may enter, "
        "such as /opt/lockstep, or set [ledger] dsn.",
    )


def hand_over(data: Path, account: pwd.struct_passwd) -> None:
    """Make the account the owner of the data, which root owns after it copied or
    restored the project."""
    if data.stat().st_uid == account.pw_uid:
        return
    for folder, _, names in os.walk(data):
        for path in (*(Path(folder) / name for name in names), Path(folder)):
            if path != data:
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    # The folder itself comes last, so that an interrupted hand-over is done again.
    os.chown(data, account.pw_uid, account.pw_gid)
