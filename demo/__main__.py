"""`make demo`: the guided first run, from nothing to a proven copy of a shop."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo.guide import (
    SHOWN_CUSTOMERS,
    DemoResult,
    DemoRun,
    prepare_folder,
    run_demo,
    running_shop,
    write_configuration,
)
from lockstep.pipeline.values.errors import LockstepError

REPOSITORY = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the demo; return 0 if MySQL and the lake are equal, else 4."""
    console = Console(highlight=False)
    runs: list[DemoRun] = []

    def say(sentence: str) -> None:
        console.print(f"[cyan]·[/] {sentence}", soft_wrap=True)

    def show_run(run: DemoRun) -> None:
        runs.append(run)
        console.print(run_line(run, len(runs)), soft_wrap=True)

    folder = REPOSITORY / ".lockstep" / "demo"
    try:
        prepare_folder(folder)
        with running_shop(folder, say) as server:
            from lockstep.resources.config import load_settings

            config = write_configuration(folder, REPOSITORY / "lockstep.toml", server)
            result = run_demo(load_settings(config), server, say, show_run)
    except LockstepError as error:
        console.print(f"[red]{error.message}[/]\nhint: {error.hint}", soft_wrap=True)
        return error.recovery.exit_code
    print_summary(console, result, REPOSITORY)
    return 0 if result.comparison.equal else 4


# -- what is printed: a line for each run, the comparison, and what to do next -------------------


def run_line(run: DemoRun, number: int) -> str:
    report, rows = run.report, run.report.counts
    last = report.batches[-1]
    end = (last.end or last.start).at
    read = sum(total.rows_read for total in report.totals)
    tables = {write.intent.table for write in report.writes}
    return (
        f"  run {number}  {run.transactions:>6,} transactions  "
        f"[green]+{rows.inserted:,}[/] [yellow]~{rows.updated:,}[/] [red]-{rows.deleted:,}[/] rows"
        f"{f'  and [green]{read:,}[/] rows from the tables' if read else ''}"
        f"  into {len(tables)} tables  in {run.seconds:.1f} s  [dim]up to {end}[/]"
    )


def print_summary(console: Console, result: DemoResult, repository: Path) -> None:
    """Print the comparison, and the command that shows the runs in Dagster."""
    table = Table(title="MySQL and the lake, every row, while people shop", title_justify="left")
    table.add_column("table")
    table.add_column("rows", justify="right")
    table.add_column("")
    table.add_column("as of")
    for difference in result.comparison.tables:
        mark = "[green]equal[/]" if difference.equal else "[red]different[/]"
        place = "" if difference.at is None else str(difference.at)
        table.add_row(str(difference.table), f"{difference.source_rows:,}", mark, place)
    for unproven in result.comparison.not_proven:
        table.add_row(str(unproven.table), "", "[yellow]not proven[/]", unproven.reason)
    console.print()
    console.print(table)
    console.print(f"Customers are compared as the lake shows them: {SHOWN_CUSTOMERS}.")
    rolled_back = result.traffic.rolled_back
    transactions = sum(run.transactions for run in result.runs)
    console.print(
        f"\n{transactions:,} transactions arrived completely, in {len(result.runs)} runs, while"
        f" people shopped. [dim]{rolled_back:,} were rolled back and are nowhere.[/]\n"
    )
    config = _relative(result.config, repository)
    command = f"LOCKSTEP_CONFIG={config} make ui WORKSPACE=demo/workspace.yaml"
    console.print("Look at the runs, the graph and each table in Dagster:\n")
    console.print(f"  {command}\n", style="bold", soft_wrap=True, highlight=False)
    console.print("and open http://127.0.0.1:3000. The lake is at", end=" ")
    console.print(_relative(result.config.parent / "lake", repository), highlight=False)
    folder = _relative(result.config.parent, repository)
    console.print(
        "The shop's MySQL has been stopped, so new runs are refused; `make demo` begins again, and"
        f" `rm -r {folder}` deletes it all.",
        soft_wrap=True,
        highlight=False,
    )


def _relative(path: Path, repository: Path) -> str:
    return str(path.relative_to(repository)) if path.is_relative_to(repository) else str(path)


if __name__ == "__main__":
    sys.exit(main())
