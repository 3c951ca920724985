"""Compiled code is kept for these very sources, and where it cannot be, it runs all the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep.pipeline.binlog.arrays import compiled
from lockstep.pipeline.binlog.arrays.compiled import cache_folder, kernel


def _twice(number: float) -> float:
    return number * 2


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of one file that takes the engine's place; no user's cache."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "kernel.py").write_text("first\n")
    monkeypatch.setattr(compiled, "_PACKAGE", folder)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    cache_folder.cache_clear()
    yield folder
    cache_folder.cache_clear()


def _hits(made: Any) -> int:
    """How often a kernel's code came from the cache."""
    return sum(made._compiled.stats.cache_hits.values())


def _kept(folder: Path | None) -> list[Path]:
    assert folder is not None
    return sorted(path for path in folder.rglob("*.nb?") if path.stat().st_size)


def test_nothing_is_written_before_the_first_call(package: Path) -> None:
    """A decorated function is only a promise."""
    made = kernel(_twice)
    assert list(package.iterdir()) == [package / "kernel.py"]
    assert made(4) == 8
    assert _kept(package / "__pycache__") != []


def test_what_is_compiled_is_found_again(package: Path) -> None:
    """By another process too, which here is another kernel of the same function."""
    first, second = kernel(_twice), kernel(_twice)
    assert (first(4), second(4)) == (8, 8)
    assert (_hits(first), _hits(second)) == (0, 1)


def test_a_changed_source_has_a_folder_of_its_own(package: Path) -> None:
    """And what was compiled for the old one is gone; a folder that is there deletes none."""
    kernel(_twice)(4)
    old = cache_folder()
    (package / "kernel.py").write_text("second\n")
    cache_folder.cache_clear()
    made = kernel(_twice)
    assert (made(4), _hits(made)) == (8, 0)
    assert list((package / "__pycache__").iterdir()) == [cache_folder()]
    assert cache_folder() != old
    assert old is not None
    old.mkdir()
    cache_folder.cache_clear()
    assert cache_folder() != old
    assert old.exists()


@pytest.mark.parametrize(
    ("variable", "below"), [("HOME", ".cache/lockstep"), ("XDG_CACHE_HOME", "lockstep")]
)
def test_a_read_only_installation_uses_the_users_cache(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, below: str
) -> None:
    """Where no folder can be made beside the sources."""
    (package / "__pycache__").write_text("a file where a folder should be")
    monkeypatch.setenv(variable, str(tmp_path))
    made = kernel(_twice)
    assert made(4) == 8
    folder = cache_folder()
    assert folder is not None
    assert (folder.parent, _kept(folder) != []) == (tmp_path / below, True)


@pytest.mark.parametrize("home", [False, True])
def test_without_any_place_it_is_compiled_at_each_start(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: bool
) -> None:
    """HOME unset, or below something that is no folder."""
    (package / "__pycache__").write_text("a file where a folder should be")
    if home:
        (tmp_path / "file").touch()
        monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert kernel(_twice)(4) == 8
    assert cache_folder() is None


def test_a_folder_that_goes_away_is_made_again(package: Path) -> None:
    """Another version, installed meanwhile, deletes it under a run's feet."""
    made = kernel(_twice)
    assert made(4) == 8
    folder = cache_folder()
    shutil.rmtree(package / "__pycache__")
    assert made(1.5) == 3.0
    assert _kept(folder) != []


def test_a_cache_that_takes_nothing_more_stops_nobody(package: Path) -> None:
    """A full disk, here a file in the folder's place."""
    made = kernel(_twice)
    assert made(4) == 8
    shutil.rmtree(package / "__pycache__")
    (package / "__pycache__").touch()
    assert (made(1.5), made(4)) == (3.0, 8)


@pytest.mark.parametrize("left", [0, 20])
def test_what_a_power_cut_left_of_the_cache_stops_nobody(package: Path, left: int) -> None:
    """Empty files, or their beginnings: compiled anew, and kept anew by the next one."""
    kernel(_twice)(4)
    for path in _kept(cache_folder()):
        path.write_bytes(path.read_bytes()[:left])
    assert kernel(_twice)(4) == 8
    assert kernel(_twice)(4) == 8
    last = kernel(_twice)
    assert (last(4), _hits(last)) == (8, 1)


def test_set_up_compiles_every_loop() -> None:
    """So that no run waits for the compiler; in a process that called none of them before."""
    program = """
import importlib, pkgutil
from lockstep.pipeline import binlog, resultset
from lockstep.pipeline.binlog.arrays.compiled import kernel
from lockstep.resources.mysql.decoder_compilation import compile_decoders
compile_decoders()
for package in binlog, resultset:
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        for name, one in vars(importlib.import_module(found.name)).items():
            if isinstance(one, kernel) and one._compiled is None:
                print(found.name, name)
print("all")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"all\n"
