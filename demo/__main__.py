"""`make demo`: the guided first run, from nothing to a proven copy of a shop."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from demo.guide import Ran, perform, prepare_folder, running_shop, write_configuration
from demo.summary import run_line, tell
from lockstep.pipeline.values.errors import LockstepError

REPOSITORY = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the demo; return 0 if MySQL and the lake are equal, else 4."""
    console = Console(highlight=False)
    shown: list[Ran] = []

    def say(sentence: str) -> None:
        console.print(f"[cyan]·[/] {sentence}", soft_wrap=True)

    def show(ran: Ran) -> None:
        shown.append(ran)
        console.print(run_line(ran, len(shown)), soft_wrap=True)

    folder = REPOSITORY / ".lockstep" / "demo"
    try:
        prepare_folder(folder)
        with running_shop(folder, say) as server:
            from lockstep.resources.config import load_settings

            config = write_configuration(folder, REPOSITORY / "lockstep.toml", server)
            told = perform(load_settings(config), server, say, show)
    except LockstepError as error:
        console.print(f"[red]{error.message}[/]\nhint: {error.hint}", soft_wrap=True)
        return error.recovery.exit_code
    tell(console, told, REPOSITORY)
    return 0 if told.verified.equal else 4


if __name__ == "__main__":
    sys.exit(main())
