"""Lockstep's runs from Airflow, where Dagster is not wanted: one task for each source."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, task

LOCKSTEP = "/opt/lockstep/bin/lockstep"
PROJECT = "/srv/lockstep"
DONE = (0, 6)  # 6: done, but tables are quarantined
AGAIN = (3, 130, 143)


@task(retries=5, retry_delay=timedelta(minutes=1), max_active_tis_per_dag=1)
def run(source: str) -> None:
    done = subprocess.run(
        [LOCKSTEP, "run", "--source", source], cwd=PROJECT, capture_output=True, text=True
    )
    said = f"{done.stdout}\n{done.stderr}"
    if done.returncode in AGAIN:
        raise AirflowException(f"try again: {said[-500:]}")
    if done.returncode not in DONE:
        raise AirflowFailException(f"somebody must look: {said[-500:]}")


@dag(schedule="*/5 * * * *", start_date=datetime(2026, 11, 1), catchup=False, max_active_runs=1)
def lockstep() -> None:
    run("shop")


lockstep()
