"""Lockstep in a project of `dg`: scaffolded, found, refused with a sentence where it is hidden."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from assets.component import SourceParams, SourceScaffolder

COMPONENT = "lockstep.location.LockstepComponent"
PROJECT = {
    "pyproject.toml": '[project]\nname = "ours"\nversion = "0"\n[tool.dg]\n'
    'directory_type = "project"\n[tool.dg.project]\nroot_module = "ours"\n',
    "src/ours/__init__.py": "",
    "src/ours/defs/__init__.py": "",
    "src/ours/definitions.py": "from pathlib import Path\n\nimport dagster as dg\n\n\n"
    "@dg.definitions\ndef defs():\n"
    "    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def done(project: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    found = Path(sys.executable).parent / program
    kept = {name: value for name, value in os.environ.items() if name != "LOCKSTEP_CONFIG"}
    return subprocess.run(
        [found, *arguments],
        cwd=project,
        env={**kept, "PYTHONPATH": "src", "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_dg_scaffolds_a_source(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The component is among dg's; what it writes loads, without a server, as the source's
    assets."""
    made = done(project, "dg", "scaffold", "defs", COMPONENT, "crm", "--name", "crm")
    assert made.returncode == 0, made.stdout + made.stderr
    monkeypatch.syspath_prepend(project / "src")
    monkeypatch.delenv("LOCKSTEP_CONFIG", raising=False)
    monkeypatch.chdir(project)
    found = importlib.import_module("ours.definitions").defs().get_repository_def()
    for name in [name for name in sys.modules if name.partition(".")[0] == "ours"]:
        del sys.modules[name]
    keys = {key.to_user_string() for key in found.assets_defs_by_key}
    assert keys == {f"crm/{step}" for step in ("captured", "merged", "acknowledged", "log")}
    assert 'name = "crm"' in (project / "src/ours/defs/crm/lockstep.toml").read_text()


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """It may know more than what was asked for."""
    written = tmp_path / "lockstep.toml"
    written.write_text("# ours")
    request = dg.ScaffoldRequest(
        type_name=COMPONENT,
        target_path=tmp_path,
        scaffold_format="yaml",
        project_root=tmp_path,
        params=SourceParams(name="crm", host="db", user="lockstep", tables=""),
        append=False,
    )
    SourceScaffolder().scaffold(request)
    assert written.read_text() == "# ours"
    assert (tmp_path / "defs.yaml").exists()


def test_packages_that_hide_lockstep_are_named(project: Path) -> None:
    """A project with an `assets` of its own: the import says so and what to do; dg works, and
    does not list the component."""
    package = project / "src/assets"
    package.mkdir()
    (package / "__init__.py").touch()
    refused = done(project, "python", "-c", "from lockstep.location import definitions_of")
    assert refused.returncode == 1
    sentence = refused.stderr.splitlines()[-1]
    assert str(package) in sentence
    assert "code location of its own" in sentence
    listed = done(project, "dg", "list", "components", "--json")
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert COMPONENT not in listed.stdout
