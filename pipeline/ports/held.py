"""The check that a writer still holds its source, for ports that do not know the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from lockstep.pipeline.values.errors import LeaseLost, LedgerUnavailable

RequireHeld = Callable[[], None]
"""Raise `LeaseLost` unless the writer still holds the source. A port calls it after it has planned
its commit and before it commits: a run that took over earlier is noticed, and one that takes over
later commits first, or finds this commit."""


@contextmanager
def lease_lost_first(held: RequireHeld) -> Iterator[None]:
    """Raise `LeaseLost` instead of any error inside, if another run has taken over by then.

    A process that was suspended and wakes up may have read some facts before and some after: its
    error, with a hint for a person, is true of neither.
    """
    try:
        yield
    except (LeaseLost, LedgerUnavailable):
        raise
    except Exception:
        with suppress(LedgerUnavailable):
            held()
        raise


def no_check() -> None:
    """Do nothing: the check for writes that no other run can take over."""
