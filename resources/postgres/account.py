"""As whom the embedded Postgres runs.

Belongs here: the account, and letting it reach the programs and the data. Does not:
starting anything (`embedded`).
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from pipeline.errors import ConfigurationError


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


def as_account(account: pwd.struct_passwd | None, *command: str) -> list[str]:
    """A command that does the same as this account. None: as we are."""
    if account is None:
        return [*command]
    become = Path(__file__).with_name("become.py")
    user = (str(account.pw_uid), str(account.pw_gid))
    return [sys.executable, "-I", "-S", str(become), *user, *command]


def let_through(path: Path) -> None:
    """Let other accounts pass (not list) the folders that lead to `path`."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o001)


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
