"""Whether a source is still held, for ports that know no ledger.

Belongs here: the question. Does not: its answer (`Ledger.require_held`).
"""

from __future__ import annotations

from collections.abc import Callable

Held = Callable[[], None]
"""Raises (`LeaseLost`) where whoever writes no longer holds the source. It is asked after what is
written was planned, so that whoever took over before that is told of it, and whoever takes over
later finds what was planned on, and commits there first or finds our commit."""


def unasked() -> None:
    """For what nobody takes over."""
