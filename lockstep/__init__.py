"""The front door: the command line, what a person sees, changes in Python. No rule about data.

`lockstep.consume` and its friends are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.consuming import consume, drop_consumer, list_consumers, make_consumer
    from lockstep.reading import read_at, read_changelog

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
    from importlib import import_module

    room = "reading" if name.startswith("read") else "consuming"
    return getattr(import_module(f"lockstep.{room}"), name)
