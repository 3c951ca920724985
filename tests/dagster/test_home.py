"""Dagster's home: where it is, and that it tells nobody anything."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from assets.home import dagster_home, open_instance


def test_the_home_is_beside_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless DAGSTER_HOME says otherwise; telemetry is off; a file that is there stays."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    home = dagster_home(tmp_path / ".lockstep")
    assert home == tmp_path / ".lockstep" / "dagster"
    with open_instance(home) as instance:
        assert instance.telemetry_enabled is False
    (home / "dagster.yaml").write_text("")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert dagster_home(tmp_path / "elsewhere") == home
    assert (home / "dagster.yaml").read_text() == ""


def test_files_of_the_storage_stay_open_while_it_is_used(tmp_path: Path) -> None:
    """A journal that nobody uses is written back and deleted: those of a home that is in use are
    there from one statement to the next, and none is left behind."""

    def journals() -> set[str]:
        return {path.name for path in tmp_path.rglob("*.db-wal")}

    with open_instance(tmp_path) as instance:
        instance.get_runs_count()
        assert journals() == {"runs.db-wal", "index.db-wal", "schedules.db-wal"}
    assert journals() == set()


def _open(home: str, together: Barrier) -> None:
    together.wait()
    with open_instance(Path(home)) as instance:
        instance.get_runs_count()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_processes_may_open_a_new_storage_at_once(tmp_path: Path) -> None:
    """Two first runs: whoever comes second finds the tables made, not half of them."""
    forked = multiprocessing.get_context("fork")  # what takes longest is Dagster's import
    together = forked.Barrier(2)
    processes = [forked.Process(target=_open, args=(str(tmp_path), together)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
