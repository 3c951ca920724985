"""Whatever is tried again, on the page of operations: `pipeline.values.retries`."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.values import retries
from lockstep.pipeline.values.retries import Retry
from tests.pages.made import MadePart, row

_HEAD: Final = (
    "| what is tried again | why | how often | between | in the end |\n|---|---|---|---|---|"
)


def table() -> str:
    """One row a retry, in the order of the module."""
    return "\n".join([_HEAD, *(_row(one) for one in named().values())])


def named() -> dict[str, Retry]:
    """Every retry of the product, by its name."""
    return {name: one for name, one in vars(retries).items() if isinstance(one, Retry)}


def _row(one: Retry) -> str:
    often = "until it answers"
    if one.most_tries is not None:
        often = f"{one.most_tries} times"
    elif one.seconds is not None:
        often = f"for {one.seconds:g} s"
    between = ", ".join(f"{pause:g} s" for pause in one.pauses if pause) or "at once"
    return row((one.operation, one.reason, often, between, one.consequence))


PART: Final = MadePart("retries", "docs/operating.md", table)
