"""What every command is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from lockstep import exits
from lockstep.grammar import UsageError
from lockstep.log import JsonLog, ProgressLines
from lockstep.streams import Streams
from pipeline.shown import shown

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.errors import LockstepError
    from pipeline.runs.context import Progress, Workplace
    from pipeline.table import TableName
    from resources.adapters import Adapters
    from resources.config import Settings, SourceSettings


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command's exit code and the object that --json prints, whose values become JSON by
    `pipeline.json_values.to_json`."""

    code: int
    payload: Mapping[str, Any]

    @classmethod
    def of_sources(cls, answers: Mapping[str, tuple[int, Mapping[str, Any]]]) -> Outcome:
        """Each source's exit code and values by its name; the most serious code counts."""
        sources = {name: {**values, "exit_code": code} for name, (code, values) in answers.items()}
        return cls(exits.most_serious(code for code, _ in answers.values()), {"sources": sources})


@dataclass(frozen=True)
class CommandContext:
    """The configuration's path, the streams, and whether JSON was asked for. `leave_if_asked`
    raises KeyboardInterrupt where a signal asked this process to end."""

    config: Path
    streams: Streams
    wants_json: bool
    leave_if_asked: Callable[[], None] = lambda: None
    log: JsonLog = field(default_factory=JsonLog)

    @cached_property
    def console(self) -> Console:
        """Progress and notes, on standard error."""
        return _console(self.streams.people)

    @cached_property
    def page(self) -> Console:
        """What the command was asked for, on standard output."""
        return _console(self.streams.answer)

    @cached_property
    def settings(self) -> Settings:
        from resources.config import load_settings

        return load_settings(self.config)

    def sources(self, name: str | None) -> tuple[SourceSettings, ...]:
        return self.settings.sources if name is None else (self.settings.source(name),)

    def one_source(self, name: str | None) -> SourceSettings:
        """The source of that name, or the only one; `UsageError` where there are several."""
        sources = self.sources(name)
        if len(sources) > 1:
            names = ", ".join(source.name for source in sources)
            raise UsageError(
                f"There are several sources: {names}.", hint="say which one: --source NAME"
            )
        return sources[0]

    def source_of(self, adapters: Adapters, name: str | None, table: TableName) -> str:
        """The one source that has the table in the lake; `NothingMatches` for none."""
        from pipeline.runs.inspecting.schema_history import unknown_table

        ledger, sources = adapters.ledger(), [source.name for source in self.sources(name)]
        known = {source: ledger.table_states(source) for source in sources}
        names = [source for source, states in known.items() if table in states]
        if not names:
            raise unknown_table(table, [t for states in known.values() for t in states], "the lake")
        if len(names) > 1:
            raise UsageError(
                f"Several sources have a table {table}: {', '.join(names)}.",
                hint="say which one: --source NAME",
            )
        return names[0]

    @contextmanager
    def adapters(self) -> Iterator[Adapters]:
        """Ledger, lake and servers, each opened when asked for, all closed at the end."""
        from resources.adapters import Adapters

        with Adapters(self.settings, on_warning=self.note) as adapters:
            yield adapters

    @contextmanager
    def work_on(self, source: str) -> Iterator[tuple[Adapters, Workplace]]:
        """What steps of the source are given, which show how far they are."""
        with self.adapters() as adapters, self.watch(source) as progress:
            yield adapters, adapters.workplace(source, progress)

    def say(self, *lines: str) -> None:
        """Lines of the answer, unless only the object was asked for."""
        for line in lines:
            self.show(line)

    def show(self, renderable: Any, *, width: int | None = None) -> None:
        """… or a table of it, as wide as the page or as it is told."""
        if not self.wants_json:
            if isinstance(renderable, str):
                renderable = shown(renderable, keep="\n\t")
            self.page.print(renderable, markup=False, width=width)

    def note(self, sentence: str) -> None:
        """A line beside the answer, in any case."""
        self.log.tell("warning", sentence)
        if not self.log.instead:
            self.console.print(shown(sentence, keep="\n\t"), markup=False)

    def refused(self, source: str, error: LockstepError) -> tuple[int, dict[str, Any]]:
        """Tell a person of a refusal of one source; its exit code, and what `--json` says of it."""
        self.note(f"{source}: {error.message}\nhint: {error.hint}")
        return error.recovery.exit_code, {"error": error}

    @contextmanager
    def watch(self, source: str) -> Iterator[Progress]:
        """What shows how far a run of the source is: on the terminal, in the log, or both."""
        from lockstep.progress import LiveProgress, bars_on

        logged = ProgressLines(self.log, source)
        if self.log.instead:
            yield logged
            return
        with bars_on(self.console) as bars:
            yield LiveProgress(bars, source, logged)


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    class Page(Console):
        def on_broken_pipe(self) -> None:
            """The reader went away, as `head` does; what the command does goes on."""
            self.quiet = True

    return Page(file=stream, highlight=False, soft_wrap=True)
