"""A background thread that sends a run's events in order. The run waits for it only at
its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib.util import find_spec
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from lockstep.pipeline.values.errors import ConfigurationError, LockstepError, SetupIncomplete

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

TIMEOUT_SECONDS: Final = 5.0
"""Longest time in seconds that a finished run waits for its events to be sent."""

_LONGEST_SUMMARY: Final = 200
"""Largest number of characters that are shown of an error."""


def require_client() -> None:
    """Raise `SetupIncomplete` if the official client is not installed."""
    if find_spec("openlineage") is None:
        raise SetupIncomplete(
            "[lineage] needs the OpenLineage client, which is not installed",
            hint="run `pip install 'lockstep[openlineage]'`",
        )


def open_client(transport: Mapping[str, Any]) -> OpenLineageClient:
    """Return the official client. `transport` is in the client's own configuration
    format; if it is empty, the client reads its environment variables and its
    configuration file. Raise `ConfigurationError` if the client refuses the transport
    or finds none. The backend is not contacted."""
    require_client()
    from openlineage.client import OpenLineageClient

    try:
        client = OpenLineageClient(config={"transport": deepcopy(dict(transport))})
    except Exception as error:  # the client raises whatever its transports do
        raise ConfigurationError(
            f"The OpenLineage client refuses its transport: {_summary(error)}",
            hint="correct transport under [lineage]; docs/deploy.md#openlineage",
        ) from error
    if client.transport.kind == "console" and transport.get("type") != "console":
        raise ConfigurationError(
            "[lineage] names no transport, and the OpenLineage client finds none by itself",
            hint="set transport under [lineage], or OPENLINEAGE_URL; docs/deploy.md#openlineage",
        )
    return client


class EventSender:
    """A background thread that sends events. `close` passes a sentence to `report_loss`
    if events could not be sent."""

    def __init__(
        self, transport: Callable[[], Mapping[str, Any]], report_loss: Callable[[str], None]
    ) -> None:
        self._transport, self._report_loss = transport, report_loss
        self._queue: SimpleQueue[Callable[[], RunEvent] | None] = SimpleQueue()
        self._queued_count = 0
        self._sent_count = 0
        self._reason = f"the backend did not answer within {TIMEOUT_SECONDS:g} s"
        self._thread: threading.Thread | None = None

    def send(self, make_event: Callable[[], RunEvent]) -> None:
        """Queue an event. The thread calls `make_event`, because importing the classes
        of events takes a second."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._send_queued, name="lockstep-lineage", daemon=True
            )
            self._thread.start()
        self._queued_count += 1
        self._queue.put(make_event)

    def close(self) -> None:
        """Wait at most `TIMEOUT_SECONDS` until all events are sent, and give the
        unsent ones up."""
        if self._thread is None:
            return
        self._queue.put(None)
        self._thread.join(TIMEOUT_SECONDS)
        unsent = self._queued_count - self._sent_count
        if unsent:
            events = "event was" if unsent == 1 else "events were"
            self._report_loss(
                f"{unsent} OpenLineage {events} not sent: {self._reason}. The run itself is not "
                "affected."
            )

    def _send_queued(self) -> None:
        client: OpenLineageClient | None = None
        while (make_event := self._queue.get()) is not None:
            try:
                client = client or open_client(self._transport())
                client.emit(make_event())
            except Exception as error:  # noqa: BLE001 - a backend's failure must not fail the run
                self._reason = _summary(error)
            else:
                self._sent_count += 1
        if client is not None:
            client.close(TIMEOUT_SECONDS)


def _summary(error: Exception) -> str:
    """Return a line about an error, without the event's content. A client's error has
    it only after the first line."""
    if isinstance(error, LockstepError):
        return f"{error.message}; {error.hint}"
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:_LONGEST_SUMMARY].rstrip(".")
