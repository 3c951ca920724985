"""The progress of a run on a terminal; notes only where there is none."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lockstep.log import ProgressLines
from pipeline.runs.context import StepProgress


def bars_on(console: Console) -> Progress:
    """Drawn while the context lasts."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class LiveProgress:
    """`pipeline.runs.context.Progress` as bars, told to the log as well."""

    def __init__(self, bars: Progress, source: str, logged: ProgressLines) -> None:
        self._bars, self._source, self._logged = bars, source, logged
        self._tasks: dict[str, TaskID] = {}

    def tell(self, step: StepProgress) -> None:
        self._logged.tell(step)
        if step.step not in self._tasks:
            about = f"{self._source}: {step.step}"
            self._tasks[step.step] = self._bars.add_task(about, told="")
        task, total = self._tasks[step.step], max(step.total, 1)
        self._bars.update(task, completed=step.done, total=total, told=step.told)

    def note(self, sentence: str) -> None:
        self._logged.note(sentence)
        self._bars.console.print(f"{self._source}: {sentence}", markup=False)
