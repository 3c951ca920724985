"""Every error that a command may end with, on the page to look things up: `pipeline.values.errors`.

A class without a docstring of two paragraphs, what has happened and what to do, has no row: a test
finds it.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Final

from lockstep.pipeline.values import errors
from lockstep.pipeline.values.errors import LockstepError, Recovery
from tests.pages.made import MadePart, row

_HEAD: Final = "| error | what has happened | what to do |\n|---|---|---|"
_BASE: Final = "never raised itself"
_WHO: Final = {
    Recovery.CONFIGURATION: "exit code 2: correct it, then run again",
    Recovery.RETRY: "exit code 3: the next run tries again",
    Recovery.OPERATOR: "exit code 5: a person decides",
}


def table() -> str:
    """The errors of each exit code, in the module's order."""
    lines = [_HEAD]
    for recovery in Recovery:
        lines.append(row((f"**{_WHO[recovery]}**", "", "")))
        lines += [_row(error) for error in raised() if error.recovery is recovery]
    return "\n".join(lines)


def raised() -> list[type[LockstepError]]:
    """Return the classes whose errors are raised, and not only those of subclasses."""
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    return [
        found
        for found in classes
        if issubclass(found, LockstepError) and _BASE not in paragraphs(found)[0]
    ]


def paragraphs(error: type[LockstepError]) -> list[str]:
    """Return the paragraphs of the class's docstring, each in one line."""
    text = cleandoc(error.__doc__ or "")
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _row(error: type[LockstepError]) -> str:
    what, cure, *_ = paragraphs(error)
    return row((f"`{error.__name__}`", what, cure))


PART: Final = MadePart("errors", "docs/reference.md", table)
