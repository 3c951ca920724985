"""Every command and its options, on the page to look things up: `lockstep.grammar`."""

from __future__ import annotations

import argparse
from typing import Final

from lockstep.grammar import make_parser
from tests.pages.made import MadePart, row

_SHARED: Final = ("--config", "--json", "--log-format", "--log-file", "--source", "--author")
"""Options that the page explains once, for all commands that take them."""
_HEAD: Final = "| command | option | what it does |\n|---|---|---|"


def table() -> str:
    """A row for each command, followed by a row for each of its options, as `--help` has them."""
    parser = make_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    lines = [_HEAD]
    for command in commands._choices_actions:
        lines.append(row((f"**{command.dest}**", "", _told(command))))
        for option in commands.choices[command.dest]._actions:
            if option.dest != "help" and not set(option.option_strings) & set(_SHARED):
                required = " (required)" if option.option_strings and option.required else ""
                lines.append(row(("", f"`{_written(option)}`{required}", _told(option))))
    return "\n".join(lines)


def _told(action: argparse.Action) -> str:
    """What `--help` says of it; Markdown would take a `<` for HTML."""
    return (action.help or "").replace("<", "\\<")


def _written(option: argparse.Action) -> str:
    """The option with what stands behind it, as it is typed."""
    value = "" if option.nargs == 0 else str(option.metavar or option.dest.upper())
    if option.choices:
        value = "|".join(map(str, option.choices))
    several = {"+": " …", "*": " …"}.get(str(option.nargs), "")
    return " ".join(filter(None, (*option.option_strings, value))) + several


PART: Final = MadePart("commands", "docs/reference.md", table)
