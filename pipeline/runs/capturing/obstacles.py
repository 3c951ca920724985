"""What to type where the log itself lets no run by: the place behind the obstacle."""

from __future__ import annotations

from typing import TypeVar

from pipeline.binlog.search.walk import behind_transaction
from pipeline.errors import LockstepError, LogStops
from pipeline.ports.source import SourceServer
from pipeline.position import Coordinates

Stopped = TypeVar("Stopped", bound=LogStops)


def with_way_on(error: Stopped, server: SourceServer, head: Coordinates) -> Stopped:
    """The same error, its hint with the whole command that goes on behind what stopped the run.
    As it was where that cannot be found."""
    if not error.at:
        return error
    begin = Coordinates.parse(error.at)
    try:
        dump = server.dump(begin)
        try:
            behind = behind_transaction(dump, begin, head)
        finally:
            dump.close()
    except LockstepError:
        return error
    hint = (
        f"{error.hint}. Then go on after it, which leaves out what it changed: `lockstep start-at "
        f"{behind} --reason …`"
    )
    return type(error)(error.message, hint=hint, before=error.before)
