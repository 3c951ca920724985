"""A run of Dagster's that changes nothing, in the process that others are forked from.

Belongs here: what the first run of a process compiles and reads once, so that no fork has to:
statements of SQLAlchemy, templates, classes that are written down. Does not: where runs of forks
are recorded (`run_history`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.report import page
from assets.timeline import run_in_process


def practised() -> dg.DagsterInstance:
    """A history in memory in which a run was recorded, and is no more."""
    instance = dg.DagsterInstance.ephemeral()
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    job = dg.define_asset_job("practice", executor_def=dg.in_process_executor)
    made = dg.Definitions([_first, _second], jobs=[job])
    done = run_in_process(
        made.resolve_job_def("practice"), instance, location="practice", tags={"practice": "true"}
    )
    assert done.success
    instance.delete_run(done.run_id)
    instance.wipe_assets([_first.key, _second.key])
    assert instance.get_run_records(limit=1) == []
    logging.getLogger("dagster").setLevel(logging.NOTSET)
    page._template()
    return instance


@dg.asset(check_specs=[dg.AssetCheckSpec("right", asset="_first")])
def _first() -> Iterator[Any]:
    yield dg.AssetMaterialization("_second", metadata={"rows": 1})
    yield dg.AssetCheckResult(passed=True, check_name="right", metadata={"rows": 1})
    yield dg.MaterializeResult(metadata={"rows": 1})


@dg.asset(deps=[_first])
def _second() -> None:
    """Asks for the versions of what is before it."""
