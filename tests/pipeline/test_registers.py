"""The compiled loop's registers have one owner."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LOOP = "pipeline/binlog/stream/"
PACKAGES = ("pipeline", "resources", "assets", "lockstep", "demo", "tests", "benchmarks")


def knows_places(source: str) -> bool:
    """Whether a module names the registers' places, or takes one out of the array."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module="pipeline.binlog.stream.registers", names=names):
                if any(name.name not in ("Registers", "COUNT") for name in names):
                    return True
            case ast.ImportFrom(module="pipeline.binlog.stream", names=names):
                if any(name.name == "registers" for name in names):
                    return True
            case _:
                pass
    return re.search(r"registers\.array\[", source) is not None


def test_only_the_loop_knows_the_registers_places() -> None:
    """Whoever else reads or writes one does it by its name."""
    paths = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    found = {
        path.relative_to(REPOSITORY).as_posix()
        for path in paths
        if "registers" in (source := path.read_text("utf-8")) and knows_places(source)
    }
    own = {path for path in found if path.startswith(LOOP)}
    here = Path(__file__).relative_to(REPOSITORY).as_posix()
    assert found - own == {here}
    assert {f"{LOOP}registers.py", f"{LOOP}stream.py"} <= own


@pytest.mark.parametrize(
    "source",
    [
        "from pipeline.binlog.stream import registers",
        "from pipeline.binlog.stream.registers import PUT, Registers",
        "self._registers.array[3] = 0",
    ],
)
def test_a_place_known_elsewhere_is_noticed(source: str) -> None:
    """The rule can be broken."""
    assert knows_places(source)
