"""The wheel holds the product, all of it, and works without the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lockstep.resources.lake.spark import log_store
from tests.lake import build_log_store

pytestmark = pytest.mark.acceptance

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("lockstep", "assets", "resources", "pipeline")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the checkout, the demo included."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in (*PACKAGES, "demo"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "checkout" / name, symlinks=True, ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE", "lockstep.toml"):
        shutil.copy(ROOT / name, folder / "checkout" / name)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    command = [sys.executable, "-W", "ignore", "-c", build, str(folder)]
    subprocess.run(command, cwd=folder / "checkout", check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def test_it_has_every_file_of_the_product(wheel: Path) -> None:
    """Modules, statements, the jar and its source, and whatever else is no module of Python."""
    files = {
        f"{'' if package == 'lockstep' else 'lockstep/'}{file.relative_to(ROOT)}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {
        f"lockstep/resources/lake/spark/{file.name}"
        for file in (log_store.LOG_STORE_JAR, *build_log_store.SOURCES)
    } <= files
    assert files - names(wheel) == set()


def test_it_has_nothing_that_finds_or_starts_a_mysql(wheel: Path) -> None:
    """The demo and the tests come with a checkout."""
    found = {name.partition("/")[0] for name in names(wheel)}
    assert {name for name in found if not name.endswith(".dist-info")} == {"lockstep"}


def test_its_commands_work_without_a_checkout(wheel: Path, tmp_path: Path) -> None:
    """No module of the demo can be imported there, and no command needs one."""
    run = (
        "import sys; sys.path[:0] = [sys.argv.pop(1)]; import lockstep.cli; "
        "from importlib.util import find_spec; assert find_spec('demo') is None; "
        "print(lockstep.cli.__file__); lockstep.cli.program()"
    )
    command = [sys.executable, "-c", run, str(wheel), "check", "--config", "missing.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(str(wheel))
    assert (done.returncode, "missing.toml" in done.stderr) == (2, True)


def test_its_version_has_notes(wheel: Path) -> None:
    """The changelog begins with the version that the wheel has, in a page that is read at once."""
    version = wheel.name.split("-")[1]
    notes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert next(line for line in notes if line.startswith("## ")) == f"## {version}"
    assert len(notes) <= 80
