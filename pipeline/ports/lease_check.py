"""The check that a writer still holds its source's lease. Ports to the lake call it
before they commit, although they do not know the ledger, which records leases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from lockstep.pipeline.values.errors import LeaseLost, LedgerUnavailable

RequireHeld = Callable[[], None]
"""A function that raises `LeaseLost` unless the writer still holds the source. A port
calls it after it has read the version that its commit is to follow, and before it
commits. If another run has taken over before the call, the call raises. If one takes
over after the call, both runs commit after the same version and one commit fails, or
the later run finds the commit."""


@contextmanager
def lease_lost_first(require_held: RequireHeld) -> Iterator[None]:
    """Replace any error inside by `LeaseLost` if another run has taken over.

    A process that was suspended may have read some facts before the other run's changes
    and some after them. Its own error would then give a person a wrong hint.
    """
    try:
        yield
    except (LeaseLost, LedgerUnavailable):
        raise
    except Exception:
        with suppress(LedgerUnavailable):
            require_held()
        raise


def no_check() -> None:
    """Do nothing: the check for writes that no other run competes with."""
