"""The interfaces for people and programs: the command line, and the Python functions
that read the lake. Rules about data belong to `pipeline`.

The functions are imported at their first use, because the command line does not need
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.reading import (
        consume,
        drop_consumer,
        list_consumers,
        make_consumer,
        read_at,
        read_changelog,
    )

__all__ = [
    "consume",
    "drop_consumer",
    "list_consumers",
    "make_consumer",
    "read_at",
    "read_changelog",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lockstep import reading

    return getattr(reading, name)
