"""Lockstep in a project of `dg`: scaffolded, found, refused with a sentence where it is hidden."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster_dg_cli.cli import create_dg_cli

from assets.component import SourceParams, SourceScaffolder
from lockstep import location

pytestmark = pytest.mark.acceptance

REPOSITORY = Path(__file__).resolve().parents[2]
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


Typed = Callable[..., str]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Typed:
    """What `dg` prints to whoever types this in that folder."""

    def done(folder: Path, *arguments: str) -> str:
        monkeypatch.chdir(folder)
        monkeypatch.delenv("LOCKSTEP_CONFIG", raising=False)
        monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
        program = create_dg_cli()  # type: ignore[no-untyped-call]
        found = CliRunner().invoke(program, arguments)
        assert found.exit_code == 0, (found.output, found.exception)
        return found.stdout

    return done


def test_a_bare_checkout_loads(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `dg`, from the repository's own folder."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert "All definitions loaded successfully." in typed(REPOSITORY, "check", "defs")


def test_dg_scaffolds_a_source(
    typed: Typed, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The component is among dg's; what it writes loads, without a server, as the source's
    assets."""
    typed(project, "scaffold", "defs", COMPONENT, "crm", "--name", "crm")
    monkeypatch.syspath_prepend(project / "src")
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


def test_packages_that_hide_lockstep_are_named(
    typed: Typed, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project with an `assets` of its own: the import says so and what to do; dg works, and
    does not list the component."""
    assert COMPONENT in typed(project, "list", "components", "--json")
    package = project / "src/assets"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(project / "src")
    monkeypatch.delitem(sys.modules, "assets")
    with pytest.raises(ImportError, match="code location of its own") as refused:
        _ = location.definitions_of
    assert str(package) in str(refused.value)
    assert COMPONENT not in typed(project, "list", "components", "--json")
