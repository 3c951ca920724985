"""A ledger in whose calls something happens: the process dies, or another one acts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

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


def drawn(steps: Iterable[str]) -> list[tuple[str, bool]]:
    """Each step, before it or after it as chance has it: the soak has both."""
    chance = by_chance()
    return [(step, chance.random() < 0.5) for step in steps]


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
