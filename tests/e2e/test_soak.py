"""Minutes of traffic and power cuts: whatever moment a run dies at, the end is equal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chance import seed_of
from tests.e2e.power_cuts import kill_runs
from tests.fix_mysql import MySqlStand

KILLS = int(os.environ.get("SOAK_KILLS", "100"))


@pytest.mark.soak
def test_a_hundred_kills_at_random_moments(mysql: MySqlStand, tmp_path: Path) -> None:
    """Under write load, run after run is killed; the last one is not, and all is there."""
    kill_runs(mysql, tmp_path / "project", "soak", kills=KILLS, seed=seed_of("SOAK_SEED"))
