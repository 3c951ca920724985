"""Waiting for a source's lock, so that a replay begins after the run that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from lockstep.pipeline.ports.ledger import Leases
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SourceBusy
from lockstep.pipeline.values.retries import REPLAY_LOCK

_REPORT_EVERY = 30
"""Tries between two progress messages."""


@contextmanager
def wait_for_lock(
    ledger: Leases,
    source: str,
    holder: str,
    tell: Callable[[str], None],
    *,
    run: str | None = None,
    in_dagster: bool = False,
) -> Iterator[Lease]:
    """Hold the source's lock, waiting for it as long as it takes. `tell` is called now and then
    with who holds it. An interrupt while waiting leaves nothing locked."""
    with ExitStack() as locks:
        for number, _ in enumerate(REPLAY_LOCK.tries()):
            try:
                lease = locks.enter_context(ledger.lock(source, holder, run, in_dagster=in_dagster))
            except SourceBusy as error:
                if number % _REPORT_EVERY == 0:
                    tell(f"{error.message} Waiting for it.")
                continue
            yield lease
            return
