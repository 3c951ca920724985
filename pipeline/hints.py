"""Commands in hints, whole: with the source that they are for.

Belongs here: adding it where a hint leaves what knows the source. Does not: the hints
themselves, which stand where a situation is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from pipeline.errors import LockstepError

_START_AT: Final = re.compile(r"`(lockstep\x20start-at (?![^`]*--source)[^`]*?)( --reason [^`]*)`")

Named = TypeVar("Named", bound=LockstepError)


def with_source(hint: str, source: str) -> str:
    """A hint whose `lockstep start-at` says which source is meant: without it the command is
    refused where there are several."""
    return _START_AT.sub(rf"`\1 --source {source}\2`", hint)


def named(error: Named, source: str) -> Named:
    """The same error, its hint with the source."""
    error.hint = with_source(error.hint, source)
    return error


@contextmanager
def naming(source: str) -> Iterator[None]:
    """What is refused inside says in its hint which source its commands are for."""
    try:
        yield
    except LockstepError as error:
        named(error, source)
        raise
