"""The interface of commands: each receives a `CommandContext` and returns an `Outcome`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from lockstep import exits
from lockstep.arguments import parse_table_name
from lockstep.grammar import UsageError
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.shown import printable
from lockstep.pipeline.values.table import has_wildcard
from lockstep.streams import JsonLog, LiveProgress, ProgressLines, Streams, progress_bars

if TYPE_CHECKING:
    from rich.console import Console

    from lockstep.pipeline.run.context import RunPorts
    from lockstep.pipeline.run.progress import Progress
    from lockstep.pipeline.values.errors import LockstepError
    from lockstep.pipeline.values.table import TableName
    from lockstep.resources.adapters import Adapters
    from lockstep.resources.config import Settings, SourceSettings


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command's exit code and the object that `--json` prints.
    `pipeline.model.json_values.to_json` converts its values."""

    code: int
    payload: Mapping[str, Any]

    @classmethod
    def of_sources(cls, answers: Mapping[str, tuple[int, Mapping[str, Any]]]) -> Outcome:
        """Return the outcome of several sources, given each source's exit code and
        values by its name. The most serious code becomes the command's."""
        sources = {name: {**values, "exit_code": code} for name, (code, values) in answers.items()}
        return cls(exits.most_serious(code for code, _ in answers.values()), {"sources": sources})


@dataclass(frozen=True)
class CommandContext:
    """The configuration's path, the streams, and whether the answer is printed as JSON.
    `raise_if_signalled` raises KeyboardInterrupt if SIGINT or SIGTERM arrived."""

    config: Path
    streams: Streams
    wants_json: bool
    raise_if_signalled: Callable[[], None] = lambda: None
    log: JsonLog = field(default_factory=JsonLog)

    @cached_property
    def message_console(self) -> Console:
        """Standard error, for progress and notes."""
        return _make_console(self.streams.messages)

    @cached_property
    def answer_console(self) -> Console:
        """Standard output, for the answer."""
        return _make_console(self.streams.answer)

    @cached_property
    def settings(self) -> Settings:
        from lockstep.resources.config import load_settings

        return load_settings(self.config)

    def sources(self, name: str | None) -> tuple[SourceSettings, ...]:
        """Return the source of that name, or all sources without a name."""
        return self.settings.sources if name is None else (self.settings.source(name),)

    def one_source(self, name: str | None) -> SourceSettings:
        """Return the source of that name, or the only source. Raise `UsageError` if no
        name is given and there are several."""
        sources = self.sources(name)
        if len(sources) > 1:
            names = ", ".join(source.name for source in sources)
            raise UsageError(
                f"There are several sources: {names}.", hint="say which one: --source NAME"
            )
        return sources[0]

    def source_with_table(self, adapters: Adapters, name: str | None, table: TableName) -> str:
        """Return the one source that has captured the table. Raise `NothingMatches` if
        no source has, and `UsageError` if several have."""
        from lockstep.pipeline.run.status.schema_history import unknown_table_error

        ledger = adapters.ledger()
        states = {source.name: ledger.table_states(source.name) for source in self.sources(name)}
        sources = [source for source, tables in states.items() if table in tables]
        if not sources:
            captured_tables = [captured for tables in states.values() for captured in tables]
            raise unknown_table_error(table, captured_tables, "the lake")
        if len(sources) > 1:
            raise UsageError(
                f"Several sources have a table {table}: {', '.join(sources)}.",
                hint="say which one: --source NAME",
            )
        return sources[0]

    def source_with_tables(
        self,
        adapters: Adapters,
        name: str | None,
        patterns: Iterable[str],
        *,
        may_be_new: bool = False,
    ) -> str:
        """Return the one source that has captured the tables which `patterns` name in
        full, or the only configured source if they name none. Raise `UsageError` if
        there are several such sources, and `NothingMatches` for a table that no source
        has captured. `may_be_new`: ignore tables that no source has captured."""
        sources = set[str]()
        for pattern in filterfalse(has_wildcard, patterns):
            with suppress(NothingMatches) if may_be_new else nullcontext():
                table = parse_table_name(pattern)
                sources.add(self.source_with_table(adapters, name, table))
        return sources.pop() if len(sources) == 1 else self.one_source(name).name

    @contextmanager
    def adapters(self) -> Iterator[Adapters]:
        """Yield ledger, lake and servers. Each is opened at its first use; all are
        closed when the context ends."""
        from lockstep.resources.adapters import Adapters

        with Adapters(self.settings, on_warning=self.note) as adapters:
            yield adapters

    @contextmanager
    def open_source(self, source: str) -> Iterator[tuple[Adapters, RunPorts]]:
        """Yield the adapters, and the ports that the steps of a run of the source
        receive."""
        with self.adapters() as adapters, self.watch(source) as progress:
            yield adapters, adapters.ports(source, progress)

    def say(self, *lines: str) -> None:
        """Print lines of the answer; with `--json` do nothing."""
        for line in lines:
            self.show(line)

    def show(self, renderable: Any, *, width: int | None = None) -> None:
        """Print a line or a rich table of the answer, as wide as the terminal or as
        `width`; with `--json` do nothing."""
        if not self.wants_json:
            if isinstance(renderable, str):
                renderable = printable(renderable, keep="\n\t")
            self.answer_console.print(renderable, markup=False, width=width)

    def note(self, sentence: str) -> None:
        """Print a warning on standard error, also with `--json`."""
        self.log.write("warning", sentence)
        if not self.log.replaces_text:
            self.message_console.print(printable(sentence, keep="\n\t"), markup=False)

    def report_error(self, source: str, error: LockstepError) -> tuple[int, dict[str, Any]]:
        """Print the error of one source; return its exit code and its object in
        `--json`."""
        message = error.message.removeprefix(f"{source}: ")
        self.note(f"{source}: {message}\nhint: {error.hint}")
        return error.recovery.exit_code, {"error": error}

    @contextmanager
    def watch(self, source: str) -> Iterator[Progress]:
        """Yield the receiver of a run's progress, which shows it as bars on the
        terminal, writes it to the log, or does both."""
        log_lines = ProgressLines(self.log, source)
        if self.log.replaces_text:
            yield log_lines
            return
        with progress_bars(self.message_console) as bars:
            yield LiveProgress(bars, source, log_lines)


def _make_console(stream: TextIO) -> Console:
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            """Print nothing more, but let the command finish: a reader such as `head`
            closed the pipe."""
            self.quiet = True

    return PipeConsole(file=stream, highlight=False, soft_wrap=True)
