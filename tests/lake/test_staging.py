"""Staged files go with their process, however it ends."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lockstep.pipeline.values.errors import LakeUnavailable
from lockstep.resources.lake.store.staging import Staging

ROOT = Path(__file__).parents[2]
ROWS = pa.table({"id": [1, 2, 3]})
STAGES = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from lockstep.resources.lake.store.staging import Staging
staging = Staging(Path(sys.argv[1]))
print(staging.stage("x", pa.table({"id": [1]})), flush=True)
with staging.new_folder() as folder:
    (Path(folder) / "of spark").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(folder: Path) -> Path:
    """A file that was staged by a process that is gone."""
    done = subprocess.run(
        [sys.executable, "-c", STAGES, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, check=False
    )
    return Path(done.stdout.decode().strip())


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """By the next one that stages; what a living one has is left alone."""
    living = Staging(tmp_path)
    mine = Path(living.stage("mine", ROWS))
    left = killed(tmp_path)
    assert left.exists()
    other = Staging(tmp_path)
    theirs = Path(other.stage("theirs", ROWS))
    assert (left.exists(), mine.exists(), theirs.exists()) == (False, True, True)
    assert sorted(tmp_path.iterdir()) == sorted(
        one for file in (mine, theirs) for one in (file.parent, file.parent.with_suffix(".lock"))
    )
    del living, other
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is not filled further."""

    def full(rows: pa.Table, sink: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    staging = Staging(tmp_path)
    kept = Path(staging.stage("kept", ROWS))
    monkeypatch.setattr("lockstep.resources.lake.store.staging.pq.write_table", full)
    with pytest.raises(LakeUnavailable, match="has no space left"):
        staging.stage("x", ROWS)
    assert list(kept.parent.iterdir()) == [kept]
