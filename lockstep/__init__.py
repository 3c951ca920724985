"""The front door: the command line, what a person sees, changes in Python.

Belongs here: arguments, sentences, tables, JSON, exit codes. Does not: any rule about
data; a command is a few lines over `pipeline.runs`. `lockstep.consume` and its friends
are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.changelogs import read_changelog
    from lockstep.consuming import consume, drop_consumer, list_consumers, make_consumer
    from lockstep.reading import read_at

__all__ = [
    "consume",
    "drop_consumer",
    "list_consumers",
    "make_consumer",
    "read_at",
    "read_changelog",
]
_ROOMS = {"read_at": "lockstep.reading", "read_changelog": "lockstep.changelogs"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ROOMS.get(name, "lockstep.consuming")), name)
