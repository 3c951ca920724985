"""A job executed in this process, as a run of the location that Dagster's page has loaded.

A run without an origin is missing from the page's Timeline, and Dagster's public
`execute_in_process` cannot give it one. So this module, and no other, uses what Dagster keeps
for itself: it creates the run as a launcher would, and executes it here.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from assets.storage import file_of_run, kept_open

_REPOSITORY = "__repository__"
"""What Dagster calls the repository of a location that is one `Definitions`."""

_NEVER_RELAUNCHED = {"dagster/max_retries": "0"}
"""Whoever typed the command tries again, not the daemon: it would start a second process."""

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_in_process(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    *,
    location: str,
    tags: Mapping[str, str],
) -> dg.JobExecutionResult:
    """The job, here and now, nothing raised for a failed step; the page shows it as a run of
    `location`, the name under which the page has loaded these definitions."""
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), _REPOSITORY)
    run = instance.create_run_for_job(
        job_def=job,
        run_config=_QUIET,
        tags={
            **job.run_tags,
            **_NEVER_RELAUNCHED,
            ".dagster/repository": repository.get_label(),
            **tags,
        },
        remote_job_origin=RemoteJobOrigin(repository, job.name),
    )
    with kept_open(instance, file_of_run(run.run_id)):
        return execute_run(InMemoryJob(job), run, instance)
