"""The text of an event of Dagster's, made once.

Its SQL storage writes an event out for the log of the run, again for the last event of the asset,
and of a check twice more; that is most of what an event costs. Belongs here: a function that
answers as Dagster's own does, and takes its place. Does not: how events are stored (`event_batch`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dagster._core.event_api import EventLogRecord
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log import sql_event_log
from dagster._serdes import serialize_value

_NUMBER: Final = 7_777_777_777
"""Stands nowhere else in the text of a record of `_EMPTY`."""

_EMPTY: Final = EventLogEntry(  # type: ignore[no-untyped-call]
    error_info=None, level=0, user_message="", run_id="", timestamp=0.0, dagster_event=None
)

Serialize = Callable[[Any], str]


def write_events_once() -> None:
    """From here on in this process, whoever stores them; repeating it changes nothing."""
    vars(sql_event_log)["serialize_value"] = _remembering


def remembering(serialize: Serialize) -> Serialize:
    """The same function; the text of the last event is kept, and put into that of its record."""
    event, record = serialize(_EMPTY), serialize(EventLogRecord(_NUMBER, _EMPTY))
    before, between, behind = record.partition(event)
    return _Remembering(serialize, before, behind).text if between else serialize


@dataclass(slots=True)
class _Remembering:
    """`before` and `behind` an event in the text of its record, where its number is `_NUMBER`."""

    serialize: Serialize
    before: str
    behind: str
    last: tuple[EventLogEntry, str] | None = None

    def text(self, value: Any) -> str:
        if isinstance(value, EventLogEntry):
            return self._of_event(value)
        if isinstance(value, EventLogRecord):
            number = str(value.storage_id)
            before, behind = (
                part.replace(str(_NUMBER), number) for part in (self.before, self.behind)
            )
            return f"{before}{self._of_event(value.event_log_entry)}{behind}"
        return self.serialize(value)

    def _of_event(self, event: EventLogEntry) -> str:
        last = self.last
        if last is None or last[0] is not event:
            last = self.last = event, self.serialize(event)
        return last[1]


_remembering: Final = remembering(serialize_value)
