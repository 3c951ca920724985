"""Waiting for a source's lock, so that a replay comes behind the run that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from pipeline.decisions import Lease
from pipeline.errors import SourceBusy
from pipeline.ports.ledger import Ledger
from pipeline.retries import REPLAY_LOCK

_TELL_EVERY = 30
"""Tries between two sentences."""


@contextmanager
def lock_when_free(
    ledger: Ledger,
    source: str,
    holder: str,
    tell: Callable[[str], None],
    *,
    run: str | None = None,
    in_dagster: bool = False,
) -> Iterator[Lease]:
    """The source's lock, for `run` if that is who asks, however long it takes; `tell` says whose
    end is waited for, again and again. Whoever interrupts the waiting leaves nothing behind."""
    with ExitStack() as held:
        lock = partial(ledger.lock, source, holder, run, in_dagster=in_dagster)
        yield _taken(held, lock, tell)


def _taken(
    held: ExitStack,
    lock: Callable[[], AbstractContextManager[Lease]],
    tell: Callable[[str], None],
) -> Lease:
    for number, _ in enumerate(REPLAY_LOCK.tries()):
        try:
            return held.enter_context(lock())
        except SourceBusy as error:
            if number % _TELL_EVERY == 0:
                tell(f"{error.message} Waiting for it.")
    raise AssertionError("it is tried until it is taken")
