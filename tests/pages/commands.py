"""Every command, as it is typed, on the page to look things up: `lockstep.grammar`."""

from __future__ import annotations

import argparse
from typing import Final

from lockstep.grammar import make_parser
from tests.pages.made import MadePart, row

_SHARED: Final = ("--config", "--json", "--log-format", "--log-file", "--source", "--author")
"""Options that the page explains once, for all commands that take them."""
_HEAD: Final = "| command | what it does |\n|---|---|"


def table() -> str:
    """A row for each command, with its options; `--help` says what each of them does."""
    parser = make_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    lines = [_HEAD]
    for command in commands._choices_actions:
        options = commands.choices[command.dest]._actions
        own = [one for one in options if one.dest != "help" and not _is_shared(one)]
        words = [command.dest, *map(_written, own)]
        # Markdown would take a `<` for HTML.
        lines.append(row((f"`{' '.join(words)}`", (command.help or "").replace("<", "\\<"))))
    return "\n".join(lines)


def _is_shared(option: argparse.Action) -> bool:
    return not set(option.option_strings).isdisjoint(_SHARED)


def _written(option: argparse.Action) -> str:
    """Return the option with its value, as it is typed; in brackets if it may be left out."""
    value = "" if option.nargs == 0 else str(option.metavar or option.dest.upper())
    if option.choices:
        value = "|".join(map(str, option.choices))
    several = {"+": " …", "*": " …"}.get(str(option.nargs), "")
    words = " ".join(filter(None, (*option.option_strings, value))) + several
    needed = option.required and option.nargs not in ("*", "?")
    return words if needed else f"[{words}]"


PART: Final = MadePart("commands", "docs/reference.md", table)
