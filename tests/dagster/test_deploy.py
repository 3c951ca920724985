"""The files for production load: Dagster's home on a real Postgres, and the location."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import time
from typing import cast

import pytest
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.workspace.load_target import WorkspaceFileTarget
from psycopg2.extensions import parse_dsn

from lockstep.pipeline.ports.source import SourceServer
from tests.dagster.place import settings_for, stand_for
from tests.ledger.servers import embedded_server
from tests.positions.fake import FakeServer

pytestmark = pytest.mark.acceptance

DEPLOY = Path(__file__).resolve().parents[2] / "docs/deploy"


def _url(dsn: str) -> str:
    """The same address, as Dagster takes it."""
    known = parse_dsn(dsn)
    return f"postgresql://{known['user']}@/{known['dbname']}?host={known['host']}"


def test_dagsters_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are in Postgres with their events: `postgresql://` finds the driver that is there. The
    queue lets one run of a source go on at a time. A storage that is broken is configuration."""
    shutil.copy(DEPLOY / "dagster.yaml", tmp_path)
    server = FakeServer("3e11fa47-71ca-11e1-9e33-c80aa9429562", 1, clock=int(time()))
    server.write(1, 1)
    source = cast("SourceServer", server)
    with embedded_server(tmp_path / "postgres") as dsn:
        monkeypatch.setenv("DAGSTER_POSTGRES_URL", _url(dsn))
        with stand_for(settings_for(tmp_path, "shop"), source, tmp_path) as stand:
            instance = stand.instance
            assert "Postgres" in type(instance.run_storage).__name__
            config = instance.get_concurrency_config().run_queue_config
            assert config is not None
            [limit] = config.tag_concurrency_limits
            assert (limit["key"], limit["limit"]) == ("lockstep/source", 1)
            assert not instance.telemetry_enabled
            assert stand.run().success
            (run,) = instance.get_runs()
            assert run.is_success
            assert len(instance.all_logs(run.run_id)) > 10


def test_the_location() -> None:
    """It is loaded by the module and under the name that the checkout's own file has."""
    [origin] = WorkspaceFileTarget([str(DEPLOY / "workspace.yaml")]).create_origins()
    [ours] = WorkspaceFileTarget([str(DEPLOY.parents[1] / "workspace.yaml")]).create_origins()
    assert origin.location_name == ours.location_name
    assert isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin)
    assert isinstance(ours, ManagedGrpcPythonEnvCodeLocationOrigin)
    assert origin.loadable_target_origin.module_name == ours.loadable_target_origin.module_name
