"""`make demo`: the guided first run, from nothing to a proven copy of a shop."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo.guide import (
    CUSTOMERS,
    Ran,
    Told,
    perform,
    prepare_folder,
    running_shop,
    write_configuration,
)
from lockstep.pipeline.run.status.span_report import SpanReport
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


# -- what is printed: a line for each run, the comparison, and what to do next -------------------


def run_line(ran: Ran, number: int) -> str:
    report, rows = ran.report, ran.report.counts
    read = sum(total.read for total in report.totals)
    tables = {write.intent.table for write in report.writes}
    return (
        f"  run {number}  {ran.transactions:>6,} transactions  "
        f"[green]+{rows.inserted:,}[/] [yellow]~{rows.updated:,}[/] [red]-{rows.deleted:,}[/] rows"
        f"{f'  and [green]{read:,}[/] rows from the tables' if read else ''}"
        f"  into {len(tables)} tables  in {ran.seconds:.1f} s  [dim]up to {_end(report)}[/]"
    )


def _end(report: SpanReport) -> str:
    last = report.batches[-1]
    return str((last.end or last.start).at)


def tell(console: Console, told: Told, makefile_folder: Path) -> None:
    """Print the comparison, and how to look at the runs in Dagster."""
    table = Table(title="MySQL and the lake, every row, while people shop", title_justify="left")
    table.add_column("table")
    table.add_column("rows", justify="right")
    table.add_column("")
    table.add_column("as of")
    for difference in told.verified.tables:
        mark = "[green]equal[/]" if difference.equal else "[red]different[/]"
        place = "" if difference.at is None else str(difference.at)
        table.add_row(str(difference.table), f"{difference.source_rows:,}", mark, place)
    for missing in told.verified.not_proven:
        table.add_row(str(missing.table), "", "[yellow]not proven[/]", missing.reason)
    console.print()
    console.print(table)
    console.print(f"Customers are compared as the lake shows them: {CUSTOMERS}.")
    transactions = sum(ran.transactions for ran in told.runs)
    console.print(
        f"\n{transactions:,} transactions arrived completely, in {len(told.runs)} runs, while"
        f" people shopped. [dim]{told.traffic.rolled_back:,} were rolled back and are nowhere.[/]\n"
    )
    config = _short(told.config, makefile_folder)
    command = f"LOCKSTEP_CONFIG={config} make ui WORKSPACE=demo/workspace.yaml"
    console.print("Look at the runs, the graph and each table in Dagster:\n")
    console.print(f"  {command}\n", style="bold", soft_wrap=True, highlight=False)
    console.print("and open http://127.0.0.1:3000. The lake is at", end=" ")
    console.print(_short(told.config.parent / "lake", makefile_folder), highlight=False)


def _short(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


if __name__ == "__main__":
    sys.exit(main())
