"""What is drawn anew in each run, so that it can be drawn once more.

Belongs here: seeds. Does not: what is drawn, and how much of it (the tests).
"""

from __future__ import annotations

import os
from random import Random, SystemRandom


def seed_of(variable: str) -> int:
    """A new one each time, told so that a failure can be had again: set the variable."""
    seed = int(os.environ.get(variable) or SystemRandom().randrange(1 << 32))
    print(f"{variable}={seed}")
    return seed


def by_chance() -> Random:
    """For a sample of what the soak has all of."""
    return Random(seed_of("SOAK_SEED"))
