"""Creation of folders that only this account can use: `.lockstep` and everything in it."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

_DEFAULT_ACL: Final = "system.posix_acl_default"
_OWNER, _GROUP, _OTHERS, _NO_ID = 0x01, 0x04, 0x20, 0xFFFFFFFF
_ENTRIES: Final = ((_OWNER, 7), (_GROUP, 0), (_OTHERS, 0))

_OWNER_ONLY_ACL: Final = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, allowed, _NO_ID) for tag, allowed in _ENTRIES
)
"""A default ACL in Linux's binary form: version 2, then each entry's tag, permissions
and id (`linux/posix_acl_xattr.h`). It limits the modes of everything that is created in
its folder, whatever the umask of the process is (acl(5))."""


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700, and with a default ACL,
    so that only this account can use what libraries create there. An existing folder is
    not changed."""
    for path in reversed((folder, *folder.parents)):
        if path.exists():
            continue
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        # Some systems and file systems have no ACLs; the mode alone protects the folder
        # there.
        with suppress(OSError, AttributeError):
            os.setxattr(path, _DEFAULT_ACL, _OWNER_ONLY_ACL)
