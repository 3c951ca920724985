"""Bytecode that set-up makes: commands compile nothing of what they import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_SET_UP = """
import json
from dataclasses import asdict
from lockstep.bytecode import compile_imports
print(json.dumps([asdict(compile_imports()), asdict(compile_imports())]))
"""
_IMPORT = """
import json
from importlib.machinery import SourceFileLoader
compiled = []
compile_it = SourceFileLoader.source_to_code
def noted(self, data, path, **options):
    compiled.append(str(path))
    return compile_it(self, data, path, **options)
SourceFileLoader.source_to_code = noted
import assets.execute, assets.home, lockstep.commands.run, lockstep.commands.status
import resources.lake.room, resources.postgres.ledger, pyspark.sql.connect.session
print(json.dumps(compiled))
"""


@pytest.mark.soak
def test_behind_set_up_nothing_is_compiled_at_a_start(tmp_path: Path) -> None:
    """Also where Python keeps no bytecode by itself; what is there is not made again."""
    first, again = _told(_SET_UP, tmp_path)
    assert first["now"] > 1000
    assert first["never"] == 0
    assert again == {"now": 0, "never": 0}
    assert _told(_IMPORT, tmp_path) == []


def _told(script: str, kept: Path) -> list[Any]:
    variables = {"PYTHONPYCACHEPREFIX": str(kept), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(done.stdout)
    return found
