"""Waiting for a source's lock, so that a replay comes behind the run that has it.

Belongs here: the waiting, and telling of it. Does not: the lock (`ports.leases`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pipeline.decisions import Lease
from pipeline.errors import SourceBusy
from pipeline.ports.leases import Leases
from pipeline.retries import REPLAY_LOCK

_TELL_EVERY = 30
"""Tries between two sentences."""


@contextmanager
def lock_when_free(
    ledger: Leases,
    source: str,
    holder: str,
    tell: Callable[[str], None],
    *,
    run: str | None = None,
) -> Iterator[Lease]:
    """The source's lock, for the Dagster run `run` if that is who asks, however long it takes;
    `tell` says whose end is waited for, again and again. Whoever interrupts the waiting leaves
    nothing behind."""
    with ExitStack() as held:
        yield _taken(held, ledger, source, holder, tell, run)


def _taken(
    held: ExitStack,
    ledger: Leases,
    source: str,
    holder: str,
    tell: Callable[[str], None],
    run: str | None,
) -> Lease:
    for number, _ in enumerate(REPLAY_LOCK.tries()):
        try:
            return held.enter_context(ledger.lock(source, holder, run))
        except SourceBusy as error:
            if number % _TELL_EVERY == 0:
                tell(f"{error.message} Waiting for it.")
    raise AssertionError("it is tried until it is taken")
