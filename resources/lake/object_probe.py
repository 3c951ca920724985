"""Whether an object store keeps what commits stand on, tried with two small objects.

Belongs here: the trial. Does not: telling of it (`lockstep check`).
"""

from __future__ import annotations

from uuid import uuid4

from pipeline.errors import ConfigurationError
from resources.lake.paths import ObjectPath
from resources.lake.storage import lake_errors


def require_conditional_writes(lake: ObjectPath) -> None:
    """Write, read, list and delete under the lake's prefix. `LakeUnavailable` where that is
    refused; `ConfigurationError` for a store that lets a second writer overwrite the first: two
    runs could commit the same version of a table."""
    path = lake / f"_lockstep-probe-{uuid4()}" / "commit"
    with lake_errors(lake):
        try:
            first, second = path.create_once(b"1"), path.create_once(b"2")
            found, listed = path.read_bytes(), [one.name for one in path.parent.rglob()]
        finally:
            path.unlink()
    if not first or second or found != b"1":
        raise ConfigurationError(
            f"{lake} lets a second writer overwrite the first.",
            hint="use a store with conditional writes (If-None-Match), as Amazon S3 has since 2024",
        )
    if listed != ["commit"]:
        raise ConfigurationError(
            f"{lake} does not list what was just written.",
            hint="use a store whose listings are consistent, as Amazon S3's are since 2020",
        )
