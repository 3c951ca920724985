"""The files for production load: Dagster's home on a real Postgres, and the location."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.workspace.load_target import WorkspaceFileTarget
from psycopg2.extensions import parse_dsn

from tests.ledger.servers import embedded_server

DEPLOY = Path(__file__).resolve().parents[2] / "docs/deploy"


def _url(dsn: str) -> str:
    """The same address, as Dagster takes it."""
    known = parse_dsn(dsn)
    return f"postgresql://{known['user']}@/{known['dbname']}?host={known['host']}"


def test_dagsters_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are in Postgres, and the queue lets one run of a source go on at a time."""
    shutil.copy(DEPLOY / "dagster.yaml", tmp_path)
    with embedded_server(tmp_path / "postgres") as dsn:
        monkeypatch.setenv("DAGSTER_POSTGRES_URL", _url(dsn))
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert "Postgres" in type(instance.run_storage).__name__
            assert instance.get_runs_count() == 0
            config = instance.get_concurrency_config().run_queue_config
            assert config is not None
            [limit] = config.tag_concurrency_limits
            assert (limit["key"], limit["limit"]) == ("lockstep/source", 1)
            assert not instance.telemetry_enabled


def test_the_location() -> None:
    """It is loaded by the module and under the name that the checkout's own file has."""
    [origin] = WorkspaceFileTarget([str(DEPLOY / "workspace.yaml")]).create_origins()
    [ours] = WorkspaceFileTarget([str(DEPLOY.parents[1] / "workspace.yaml")]).create_origins()
    assert origin.location_name == ours.location_name
    assert isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin)
    assert isinstance(ours, ManagedGrpcPythonEnvCodeLocationOrigin)
    assert origin.loadable_target_origin.module_name == ours.loadable_target_origin.module_name
