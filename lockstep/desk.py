"""What every command is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.streams import Streams

if TYPE_CHECKING:
    from rich.console import Console

    from resources.config import Settings, SourceSettings


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command's exit code and the object that --json prints."""

    code: int
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Desk:
    """The configuration's path, the streams, and whether JSON was asked for."""

    config: Path
    streams: Streams
    wants_json: bool

    @cached_property
    def console(self) -> Console:
        """For people. With --json only progress and notes are of interest there."""
        from rich.console import Console

        return Console(file=self.streams.people, highlight=False, soft_wrap=True)

    @cached_property
    def settings(self) -> Settings:
        from resources.config import load_settings

        return load_settings(self.config)

    def sources(self, name: str | None) -> tuple[SourceSettings, ...]:
        """The source of that name, or all of them."""
        return self.settings.sources if name is None else (self.settings.source(name),)

    def say(self, text: str = "") -> None:
        """A line for people, unless only the object was asked for."""
        if not self.wants_json:
            self.console.print(text, markup=False)

    def note(self, sentence: str) -> None:
        """A line for people in any case."""
        self.console.print(sentence, markup=False)
