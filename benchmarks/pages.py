"""Dagster's part: loading a location of many tables, and reporting those that changed.

Loading is measured in a new process, from its first line, without Python's own start, to the
description that the page asks for. Seconds are processor seconds of that process, which has one
busy thread, so that other work of the host does not change them.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import dagster as dg
import pyarrow as pa
from rich.console import Console

from benchmarks.common import Lines, scratch_folder
from lockstep.pipeline.ports.mirrors import MirrorSize
from lockstep.pipeline.run.reports import TableMerge
from lockstep.pipeline.status.tables import TableHealth, TableStanding
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName

DECLARED_TABLES = (500, 5_000)
CHANGED_TABLES = (10, 1_000)
PASSES = 3

_CONFIGURATION = """\
[[sources]]
name = "shop"
host = "127.0.0.1"
user = "u"
password = "env:NOWHERE"
tables = ["shop.*"]
"""

_LOADING_SCRIPT = """\
import sys
from time import process_time
timer_start = process_time()
from lockstep.assets.definitions import defs
from dagster._core.remote_representation.external_data import RepositorySnap
RepositorySnap.from_def(defs().get_repository_def())
print(process_time() - timer_start)
"""

_MAX_EVENTS = 100
"""Number of new tables that a step reports at once (`assets.table_news`)."""

_COLUMNS = tuple((f"column_{number}", pa.int64()) for number in range(10))


def measure_pages(console: Console) -> None:
    """Print the best of `PASSES`: seconds of loading by the number of declared tables, and of
    logging a run by the number of changed tables with ten columns."""
    loading = Lines(console, "Loading", ("tables declared", "loading, s"), texts=0)
    for tables in DECLARED_TABLES:
        loading.add(f"{tables:,}", f"{min(_load_seconds(tables) for _ in range(PASSES)):.2f}")
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    columns = ("tables changed", "events of theirs", "seconds", "ms each")
    reporting = Lines(console, "Reporting", columns, texts=0)
    for tables in CHANGED_TABLES:
        seconds = min(_report_seconds(tables) for _ in range(PASSES)) - min(
            _report_seconds(0) for _ in range(PASSES)
        )
        events = tables + min(tables, 3 * _MAX_EVENTS)
        reporting.add(
            f"{tables:,}", f"{events:,}", f"{seconds:.2f}", f"{1000 * seconds / events:.2f}"
        )


def _load_seconds(tables: int) -> float:
    from lockstep.assets.table_list import TableEntry, update_table_list

    with scratch_folder() as folder:
        (folder / "lockstep.toml").write_text(_CONFIGURATION)
        entries = [
            TableEntry("shop", f"t{n}", f"shop/shop/t{n}", f"shop/_changes/shop/t{n}")
            for n in range(tables)
        ]
        update_table_list(folder / ".lockstep", "shop", entries, complete=True)
        process = subprocess.run(
            [sys.executable, "-c", _LOADING_SCRIPT],
            env={
                "LOCKSTEP_CONFIG": str(folder / "lockstep.toml"),
                "PYTHONPATH": ":".join(sys.path),
            },
            capture_output=True,
            text=True,
            check=True,
        )
    return float(process.stdout)


def _report_seconds(tables: int) -> float:
    """Run a step that logs a materialization for each table, and as many evaluations as a run
    logs if a source is new."""
    from lockstep.assets.dagster_interop import evaluate_annotations
    from lockstep.assets.dagster_metadata import (
        evaluation_of,
        follows_check_result,
        materialization_of,
    )
    from lockstep.assets.home import dagster_home
    from lockstep.assets.names import SourceNames

    names, now, lake = SourceNames("shop"), datetime.now(UTC), Path("/lake")
    place = Position(Coordinates(LogFile("binlog", 7), 4711), GtidSet(), "3e11fa47", now)

    @dg.op
    @evaluate_annotations
    def step(context: dg.OpExecutionContext) -> None:
        log: Callable[[Any], None] = (
            context.log_event
        )  # It takes more kinds of events than its type says.
        for number in range(tables):
            merge = _merge(number)
            log(
                materialization_of(
                    names,
                    merge,
                    lake,
                    now,
                    position=place,
                    change_bytes=900,
                    version=None,
                    comments={},
                )
            )
            if number < 3 * _MAX_EVENTS:  # by each step
                standing = TableStanding(merge.table, TableHealth.FOLLOWING, "it follows")
                log(evaluation_of(follows_check_result(names, standing)))

    @dg.job(executor_def=dg.in_process_executor)
    def run() -> None:
        step()

    with (
        scratch_folder() as folder,
        dg.DagsterInstance.from_config(str(dagster_home(folder))) as instance,
    ):
        timer_start = process_time()
        result = run.execute_in_process(instance=instance, raise_on_error=False)
        seconds = process_time() - timer_start
    if not result.success:
        raise SystemExit(str([event.message for event in result.all_events if event.is_failure]))
    return seconds


def _merge(number: int) -> TableMerge:
    return TableMerge(
        table=TableName("shop", f"t{number}"),
        counts=RowCounts(3, 2, 1),
        delta_version=number,
        mirror=f"shop/shop/t{number}",
        changelog=f"shop/_changes/shop/t{number}",
        seconds=0.5,
        first_batch=1,
        last_batch=1,
        columns=_COLUMNS,
        shown_version=1,
        size=MirrorSize(1_000, 2, 50_000),
    )
