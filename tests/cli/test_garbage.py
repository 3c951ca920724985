"""Objects that hold each other: a command's start does not look for them, its work does."""

from __future__ import annotations

import subprocess
import sys

from lockstep.garbage import MORE, STARTED

_MAKE = """
import gc
import weakref
from lockstep import garbage

class Link:
    pass

garbage.put_off()
kept = [[] for _ in range(garbage.STARTED)]
frozen = gc.get_freeze_count()
alive, most = set(), 0
for number in range(20 * garbage.MORE):
    link = Link()
    link.itself = link
    weakref.finalize(link, alive.discard, number)
    alive.add(number)
    most = max(most, len(alive))
print(frozen, most)
"""


def test_what_a_start_leaves_is_not_looked_at_and_work_keeps_no_more_than_before() -> None:
    """Cycles that nobody needs go while others are made."""
    made = subprocess.run(
        [sys.executable, "-c", _MAKE], capture_output=True, text=True, check=True
    ).stdout
    frozen, most = map(int, made.split())
    assert frozen >= STARTED
    assert 0 < most < 3 * MORE
