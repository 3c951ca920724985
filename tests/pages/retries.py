"""Whatever is tried again, on the page to look things up: `pipeline.values.retries`."""

from __future__ import annotations

from itertools import chain, islice, repeat
from typing import Final

from lockstep.pipeline.values import retries
from lockstep.pipeline.values.retries import Retry
from tests.pages.made import MadePart, row

_HEAD: Final = "| what is tried again | how often | in the end |\n|---|---|---|"


def table() -> str:
    """One row a retry that a person may wait for, in the order of the module."""
    return "\n".join([_HEAD, *(_row(one) for one in named().values() if _takes_long(one))])


def _takes_long(one: Retry) -> bool:
    """Two seconds, or for as long as it takes."""
    return one.most_tries is one.seconds is None or _seconds(one) >= 2


def _seconds(one: Retry) -> float:
    """How long it waits until the last try."""
    if one.seconds is not None:
        return one.seconds
    pauses = chain(one.pauses, repeat(one.pauses[-1]))
    return sum(islice(pauses, (one.most_tries or 1) - 1))


def named() -> dict[str, Retry]:
    """Every retry of the product, by its name."""
    return {name: one for name, one in vars(retries).items() if isinstance(one, Retry)}


def _row(one: Retry) -> str:
    often = "until it answers"
    if one.most_tries is not None:
        waits = f", {round(_seconds(one), 1):g} s in all" if any(one.pauses) else ""
        often = f"{one.most_tries} times{waits}"
    elif one.seconds is not None:
        often = f"for {one.seconds:g} s"
    return row((one.operation, often, one.consequence))


PART: Final = MadePart("retries", "docs/reference.md", table)
