"""When Python looks for objects that hold each other and nobody needs.

Belongs here: how often a command does. Does not: what is freed at once when its last user is done
with it, which is nearly everything.

Python looks whenever there are 700 objects more than before, and now and then through all of them.
What a command imports makes half a million that stay, so that a fifth of a short one was looking in
vain. So the first look is put off until those are there, they are left out of every other, and from
then on memory is as bounded as ever.
"""

from __future__ import annotations

import gc
from typing import Final

STARTED: Final = 500_000
"""Objects that a command has when it has imported what it needs."""

MORE: Final = 10_000
"""So many more than there were, and it looks again."""


def put_off() -> None:
    """From here on in this process; called once, by whoever is the process."""
    gc.set_threshold(STARTED)
    gc.callbacks.append(_started)


def _started(phase: str, _: dict[str, int]) -> None:
    """Called in front of the first look."""
    gc.callbacks.remove(_started)
    gc.freeze()
    gc.set_threshold(MORE, 10, 10)
