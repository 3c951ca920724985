"""Events of one run, sent beside it: by a thread, in order, and never in the run's way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib.util import find_spec
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from pipeline.errors import ConfigurationError, LockstepError, SetupIncomplete

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

PATIENCE: Final = 5.0
"""Seconds that a run, all of it done, waits for its events to be taken."""

_WORDS: Final = 200


def require_client() -> None:
    """`SetupIncomplete` where the official client is not installed."""
    if find_spec("openlineage") is None:
        raise SetupIncomplete(
            "[lineage] needs the OpenLineage client, which is not installed",
            hint="pip install 'lockstep[openlineage]', with the version that is installed here",
        )


def open_client(transport: Mapping[str, Any]) -> OpenLineageClient:
    """The official client for a `transport` in its own words; for none, what its environment
    variables and its file say. `ConfigurationError` for one that it does not understand, or that
    leads nowhere; asks nobody."""
    require_client()
    from openlineage.client import OpenLineageClient

    try:
        client = OpenLineageClient(config={"transport": deepcopy(dict(transport))})
    except Exception as error:  # the client raises whatever its transports do
        raise ConfigurationError(
            f"The OpenLineage client refuses its transport: {_said(error)}",
            hint="correct transport under [lineage]; docs/deploy.md#openlineage",
        ) from error
    if client.transport.kind == "console" and transport.get("type") != "console":
        raise ConfigurationError(
            "[lineage] names no transport, and the OpenLineage client finds none by itself",
            hint="set transport under [lineage], or OPENLINEAGE_URL; docs/deploy.md#openlineage",
        )
    return client


class Sending:
    """Takes events, and hands each to the client from a thread of its own. `note` is told in one
    sentence what came of it, if anything went wrong, when this is closed."""

    def __init__(
        self,
        transport: Callable[[], Mapping[str, Any]],
        note: Callable[[str], None],
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._transport, self._note, self._patience = transport, note, patience
        self._waiting: SimpleQueue[Callable[[], RunEvent] | None] = SimpleQueue()
        self._taken = threading.Event()
        self._given = self._sent = 0
        self._why = f"nobody answered within {patience:g} s"
        self._thread: threading.Thread | None = None

    def send(self, event: Callable[[], RunEvent]) -> None:
        """It is made by the thread, too: to import what it is made of takes a second."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="lockstep-lineage", daemon=True)
            self._thread.start()
        self._given += 1
        self._waiting.put(event)

    def close(self) -> None:
        """Wait for what is under way. What is not taken by then is given up."""
        if self._thread is None:
            return
        self._waiting.put(None)
        self._taken.wait(self._patience)
        lost = self._given - self._sent
        if lost:
            events = "1 OpenLineage event was" if lost == 1 else f"{lost} OpenLineage events were"
            self._note(f"{events} not sent: {self._why}. The run itself is not concerned.")

    def _work(self) -> None:
        client: OpenLineageClient | None = None
        while (event := self._waiting.get()) is not None:
            try:
                client = client or open_client(self._transport())
                client.emit(event())
            except Exception as error:  # noqa: BLE001 - a backend's trouble is never a run's
                self._why = _said(error)
            else:
                self._sent += 1
        if client is not None:
            client.close(self._patience)
        self._taken.set()


def _said(error: Exception) -> str:
    """In one line, without what was sent."""
    if isinstance(error, LockstepError):
        return f"{error.message}; {error.hint}"
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:_WORDS].rstrip(".")
