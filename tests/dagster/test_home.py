"""Dagster's home: where it is, and that it tells nobody anything."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from lockstep.assets.home import dagster_home


def test_the_home_is_beside_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless DAGSTER_HOME says otherwise; telemetry is off; a file that is there stays."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    home = dagster_home(tmp_path / ".lockstep")
    assert home == tmp_path / ".lockstep" / "dagster"
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert instance.telemetry_enabled is False
    (home / "dagster.yaml").write_text("")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert dagster_home(tmp_path / "elsewhere") == home
    assert (home / "dagster.yaml").read_text() == ""
