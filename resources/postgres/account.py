"""As whom the embedded Postgres runs.

Belongs here: the account, and how it reaches the programs and the data, whatever the folders
above them are open to. Does not: starting anything (`embedded`).
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import sys
from pathlib import Path
from typing import Final

from pipeline.errors import ConfigurationError
from resources.file_lock import alone
from resources.postgres.become import FOLDER

_COPIES: Final = Path("/var/cache/lockstep")
"""Where root keeps copies of programs for accounts that do not get to the originals."""


def account_of(data: Path) -> pwd.struct_passwd | None:
    """Postgres refuses to run as root: then as the data's owner, postgres, or nobody."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat().st_uid) != 0:
        try:
            return pwd.getpwuid(owner)
        except KeyError as error:
            raise ConfigurationError(
                f"The ledger in {data} belongs to user {owner}, for whom there is no account here.",
                hint=f"`chown -R postgres {data}`, or another account here, then try again.",
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
    """A command that does the same as this account, with a folder of its own open
    (`within_account`). None: as we are."""
    if account is None:
        return [*command]
    become = Path(__file__).with_name("become.py")
    user = (str(account.pw_uid), str(account.pw_gid))
    return [sys.executable, "-I", "-S", str(become), *user, str(folder), *command]


def within_account(account: pwd.struct_passwd | None, folder: Path) -> str:
    """The name of `folder` in a command of `as_account`."""
    return str(folder) if account is None else f"/proc/self/fd/{FOLDER}"


def reachable(account: pwd.struct_passwd | None, programs: Path) -> Path:
    """A folder with the same programs that the account gets to: `programs` itself (PREFIX/bin), or
    a copy of PREFIX, made once, where a folder above is closed to it. None is opened: whose it is
    closed it for a reason."""
    if account is None or _passes(account, programs):
        return programs
    status = (programs / "postgres").stat()
    told = f"{programs} {status.st_size} {status.st_mtime_ns}"
    copy = _COPIES / f"postgres-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    try:
        _COPIES.mkdir(mode=0o755, parents=True, exist_ok=True)
        with alone(copy.with_suffix(".lock")):
            if not copy.exists():
                _copy_for_all(programs.parent, copy)
    except OSError as error:
        raise _closed(account, programs) from error
    if not _passes(account, copy / programs.name):
        raise _closed(account, programs)
    return copy / programs.name


def _passes(account: pwd.struct_passwd, folder: Path) -> bool:
    """Whether the account may enter a folder and all above it, by their modes."""
    for path in (folder, *folder.parents):
        status = path.stat()
        mine = 0o100 if status.st_uid == account.pw_uid else 0o001
        if not status.st_mode & mine:
            return False
    return True


def _copy_for_all(prefix: Path, copy: Path) -> None:
    """Whole or not at all, and readable by all accounts: an installation may be root's alone."""
    unfinished = copy.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(prefix, unfinished, symlinks=True)
    for folder, _, names in os.walk(unfinished):
        Path(folder).chmod(0o755)
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    unfinished.rename(copy)


def _closed(account: pwd.struct_passwd, programs: Path) -> ConfigurationError:
    return ConfigurationError(
        f"The embedded Postgres cannot run as root, and the account {account.pw_name} does not get "
        f"to its programs in {programs}.",
        hint="Run Lockstep as another user, install it in a folder that all accounts may enter, "
        "such as /opt/lockstep, or set [ledger] dsn.",
    )


def hand_over(data: Path, account: pwd.struct_passwd) -> None:
    """Give the data to the account: a project copied or restored by root is root's."""
    if data.stat().st_uid == account.pw_uid:
        return
    for folder, _, names in os.walk(data):
        for path in (*(Path(folder) / name for name in names), Path(folder)):
            if path != data:
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    # Last, so that a hand-over that was cut off is done again.
    os.chown(data, account.pw_uid, account.pw_gid)
