"""Dagster's own storage on Postgres, as Dagster documents it, and storage that does not work."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from assets.home import dagster_home, open_instance
from pipeline.errors import ConfigurationError
from pipeline.ports.source import SourceServer
from tests.dagster.place import settings_for, stand_for
from tests.ledger.servers import embedded_server
from tests.positions.fake import FakeServer

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_a_run_on_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`postgresql://` finds the driver that is there, and the run's events are kept."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    server = FakeServer(UUID, 1)
    server.write(1, 1)
    settings = settings_for(tmp_path, "shop", tables="shop.*", start="earliest")
    with embedded_server(tmp_path / "postgres") as dsn:
        socket = dsn.split("'")[1]
        home = dagster_home(settings.state_folder)
        (home / "dagster.yaml").write_text(
            "telemetry:\n  enabled: false\nstorage:\n  postgres:\n"
            f'    postgres_url: "postgresql://postgres@/postgres?host={socket}"\n'
        )
        with stand_for(settings, cast("SourceServer", server), home) as stand:
            assert stand.run().success
            (run,) = stand.instance.get_runs()
            assert run.is_success
            assert len(stand.instance.all_logs(run.run_id)) > 10
        with pytest.raises(ConfigurationError, match="UndefinedTable"), open_instance(home) as lost:
            lost.run_storage.wipe()
            from sqlalchemy import text

            with lost.run_storage.connect() as connection:  # type: ignore[attr-defined]
                connection.execute(text("select * from nowhere"))


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        pytest.param(  # Dagster tries for ten seconds
            "postgres:\n    postgres_url: postgresql://me@127.0.0.1:1/x",
            "127.0.0.1",
            marks=pytest.mark.soak,
        ),
        ("postgres:\n    postgres_url: postgresql+nodriver://me@127.0.0.1:1/x", "nodriver"),
        ("nowhere:\n    a: b", "storage"),
    ],
    ids=["nobody answers", "no driver", "no storage"],
)
def test_storage_that_does_not_work_is_configuration(
    tmp_path: Path, storage: str, words: str
) -> None:
    """2, with the file to correct; no defect of ours."""
    (tmp_path / "dagster.yaml").write_text(f"storage:\n  {storage}\n")
    with pytest.raises(ConfigurationError) as refused, open_instance(tmp_path):
        pass
    assert words in refused.value.message
    assert str(tmp_path / "dagster.yaml") in refused.value.hint
