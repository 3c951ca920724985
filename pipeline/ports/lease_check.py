"""The check that a writer still holds its source's lease. Ports to the lake call it
before they commit, although they do not know the ledger, which records leases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from lockstep.pipeline.values.errors import LeaseLost, LedgerUnavailable

RequireHeld = Callable[[], None]
"""A function that raises `LeaseLost` unless the writer still holds the source. A port
reads the version that its commit is to follow, calls the function, and commits. If
another run took over before the call, the call raises. If it took over later, it either
commits after the same version, so that one of the two commits fails, or it finds this
commit in the log."""


@contextmanager
def check_lease_on_error(require_held: RequireHeld) -> Iterator[None]:
    """Raise `LeaseLost` instead of any other error if another run has taken over.

    A process that was suspended may have read some facts before the other run's changes
    and some after them. Its own error would then give a person a wrong hint.
    """
    try:
        yield
    except (LeaseLost, LedgerUnavailable):
        raise
    except Exception:
        with suppress(LedgerUnavailable):  # Without an answer, the first error counts.
            require_held()
        raise


def no_check() -> None:
    """Do nothing: the check for writes that no other run competes with."""
