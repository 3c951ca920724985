"""A ledger in whose calls something happens: the process dies, or another one acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, Final, TypeAlias, cast

import pytest

from tests.chance import by_chance
from tests.fix_ledger import LedgerOfTest
from tests.positions.follower import Follower


class Crash(BaseException):
    """The process is gone."""


class Interrupted:
    """`act` happens before or after each call of `step`."""

    def __init__(
        self, ledger: LedgerOfTest, step: str, act: Callable[[], None], *, after: bool = False
    ) -> None:
        self._ledger = ledger
        self._step = step
        self._act = act
        self._after = after

    def __getattr__(self, name: str) -> Any:
        call: Callable[..., Any] = getattr(self._ledger, name)
        if name != self._step:
            return call

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            if not self._after:
                self._act()
            result = call(*args, **kwargs)
            if self._after:
                self._act()
            return result

        return interrupted


@contextmanager
def interrupted(
    follower: Follower, step: str, act: Callable[[], None], *, after: bool = False
) -> Iterator[None]:
    """`act` happens in each call of a step by this follower."""
    ledger = follower.ledger
    follower.ledger = cast("LedgerOfTest", Interrupted(ledger, step, act, after=after))
    try:
        yield
    finally:
        follower.ledger = ledger


DRAWN: Final = 3

STEPS: Final = (
    "decide",
    "begin_batch",
    "record_capture",
    "intend",
    "settle",
    "mark_merged",
    "acknowledge",
)
"""Those of a run that every run takes."""


def drawn(steps: Sequence[str]) -> list[tuple[str, bool]]:
    """Some steps in their order, before them or after them as chance has it."""
    chance = by_chance()
    numbers = sorted(chance.sample(range(len(steps)), min(DRAWN, len(steps))))
    return [(steps[number], chance.random() < 0.5) for number in numbers]


def every(steps: Sequence[str]) -> list[tuple[str, bool]]:
    """Before each step, and after it."""
    return [*product(steps, (False, True))]


Moments: TypeAlias = Callable[[Sequence[str]], list[tuple[str, bool]]]

at_moments = pytest.mark.parametrize(
    "moments", [drawn, pytest.param(every, marks=pytest.mark.soak)], ids=["drawn", "every"]
)
"""The parameter `moments` says at which of some steps a process dies."""


@contextmanager
def noted(moment: str) -> Iterator[None]:
    """A failure of one moment of many says which."""
    try:
        yield
    except BaseException as error:
        error.add_note(moment)
        raise


@contextmanager
def mortal(follower: Follower, step: str, *, after: bool) -> Iterator[None]:
    """The process dies before or after a call of a step."""

    def die() -> None:
        raise Crash

    with interrupted(follower, step, die, after=after):
        yield
