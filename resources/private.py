"""Folders for this account alone: `.lockstep`, and all that is in it.

Belongs here: making one. Does not: the lake, which is for whoever may read it.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

_ACL: Final = "system.posix_acl_default"
_OWNER, _GROUP, _OTHERS, _NOBODY_NAMED = 0x01, 0x04, 0x20, 0xFFFFFFFF
_ENTRIES: Final = ((_OWNER, 7), (_GROUP, 0), (_OTHERS, 0))

_OWNER_ALONE: Final = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, allowed, _NOBODY_NAMED) for tag, allowed in _ENTRIES
)
"""A default ACL as Linux keeps it: version 2, then each entry's tag, permissions and number
(`linux/posix_acl_xattr.h`). In a folder that has it, it decides about the modes of what is made
there, whatever the process's umask is (acl(5))."""


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing: each 0700, and whatever is made there,
    by us or by a library, is for this account alone as well. What is there stays as it is."""
    for path in reversed((folder, *folder.parents)):
        if path.exists():
            continue
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        # Not every system and file system has such lists; the folder is closed all the same.
        with suppress(OSError, AttributeError):
            os.setxattr(path, _ACL, _OWNER_ALONE)
