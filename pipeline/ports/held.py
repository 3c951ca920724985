"""Whether a source is still held, for ports that know no ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pipeline.errors import LeaseLost, LedgerUnavailable

Held = Callable[[], None]
"""Raises (`LeaseLost`) where whoever writes no longer holds the source. It is asked after what is
written was planned, so that whoever took over before that is told of it, and whoever takes over
later finds what was planned on, and commits there first or finds our commit."""


@contextmanager
def overtaken_first(held: Held) -> Iterator[None]:
    """Raise `LeaseLost` for any error inside, if another run has taken over by then.

    A run that was stopped and wakes up may have read one thing before and another after: what it
    makes of that, an order to a person included, is about neither.
    """
    try:
        yield
    except (LeaseLost, LedgerUnavailable):
        raise
    except Exception:
        with suppress(LedgerUnavailable):
            held()
        raise


def unasked() -> None:
    """For what nobody takes over."""
