"""Waits for a source's lock, so that a replay begins after the run that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from lockstep.pipeline.ports.ledger import Leases
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SourceBusy
from lockstep.pipeline.values.retries import REPLAY_LOCK

_REPORT_EVERY = 30
"""Number of tries from one progress message to the next."""


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
    """Hold the source's lock while the context lasts. Waits without a limit. `tell`:
    called once in `_REPORT_EVERY` tries with a sentence that names the holder. If
    waiting is interrupted, nothing stays locked."""
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
