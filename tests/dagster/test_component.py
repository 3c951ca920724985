"""Lockstep in a project of `dg`: scaffolded and found."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster_dg_cli.cli import create_dg_cli

from lockstep.assets.component import SourceParams, SourceScaffolder
from lockstep.assets.table_list import update_table_list
from lockstep.grammar import make_parser
from lockstep.resources.config import load_settings
from lockstep.resources.config.example import text_of_new_file
from tests.dagster.place import entry

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


def loaded(project: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The keys of the assets that the project has."""
    monkeypatch.syspath_prepend(project / "src")
    found = importlib.import_module("ours.definitions").defs().get_repository_def()
    for name in [name for name in sys.modules if name.partition(".")[0] == "ours"]:
        del sys.modules[name]
    return {key.to_user_string() for key in found.assets_defs_by_key}


def test_dg_scaffolds_a_source(
    typed: Typed, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for what `lockstep init` asks. What it writes loads, without a server, as the
    source's assets; nothing but defs.yaml is in the package."""
    asked = vars(make_parser().parse_args(["init"])).keys() - {"command", "version"}
    assert asked == SourceParams.model_fields.keys()
    options = ("--host", "db", "--user", "lockstep", "--tables", "crm.* old.*")
    typed(project, "scaffold", "defs", COMPONENT, "crm", *options, "--exclude", "crm.tmp_*")
    assert loaded(project, monkeypatch) == {
        f"crm/{step}" for step in ("captured", "merged", "acknowledged", "log")
    }
    settings = load_settings(project / "lockstep.toml")
    source = settings.source("crm").section
    assert (source.tables, source.exclude) == (("crm.*", "old.*"), ("crm.tmp_*",))
    assert source.password == "env:CRM_PASSWORD"
    for place in (Path(str(settings.lake_path())), settings.state_folder):
        assert not place.absolute().is_relative_to(project / "src")
    written = {path.name for path in (project / "src/ours/defs/crm").iterdir()}
    assert written - {"__pycache__", "__init__.py"} == {"defs.yaml"}


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """It may know more than what was asked for. A second component is refused: its sensors would
    be there twice. So are answers that would make a wrong file, before anything is written."""
    written = tmp_path / "lockstep.toml"
    written.write_text("# ours")

    def scaffold(name: str) -> Path:
        folder = tmp_path / "src" / name
        folder.mkdir(parents=True)
        request = dg.ScaffoldRequest(
            type_name=COMPONENT,
            target_path=folder,
            scaffold_format="yaml",
            project_root=tmp_path,
            params=SourceParams(host="db", user="lockstep", tables="crm.*"),
            append=False,
        )
        SourceScaffolder().scaffold(request)
        return folder

    assert (scaffold("crm") / "defs.yaml").exists()
    assert written.read_text() == "# ours"
    with pytest.raises(ValueError, match="add your source to"):
        scaffold("shop")
    with pytest.raises(ValueError, match="people"):
        SourceParams(host="db", user="lockstep", tables="people")


SUBCLASS = """from lockstep.location import LockstepComponent


class OurMirrors(LockstepComponent):
    def get_asset_spec(self, table):
        return table.spec.replace_attributes(key=["raw", table.name])
"""


@pytest.mark.parametrize(
    ("kind", "translation"),
    [
        (COMPONENT, '  translation:\n    key: "raw/{{ table.name }}"\n'),
        ("ours.mirrors.OurMirrors", ""),
    ],
)
def test_a_component_translates_mirrors(
    project: Path, monkeypatch: pytest.MonkeyPatch, kind: str, translation: str
) -> None:
    """By `translation` in its YAML, or by a subclass's method."""
    folder = project / "src/ours/defs/crm"
    folder.mkdir()
    text = text_of_new_file(name="crm", host="db", user="u", tables=["crm.*"])
    (folder / "lockstep.toml").write_text(text)
    update_table_list(folder / ".lockstep", "crm", [entry("crm", "people")], complete=True)
    (project / "src/ours/mirrors.py").write_text(SUBCLASS)
    (folder / "defs.yaml").write_text(
        f"type: {kind}\nattributes:\n  config: lockstep.toml\n{translation}"
    )
    assert "raw/people" in loaded(project, monkeypatch)


def test_packages_of_other_projects_hide_nothing(
    typed: Typed, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project may have an `assets` of its own: Lockstep's packages all lie below `lockstep`."""
    package = project / "src/assets"
    package.mkdir()
    (package / "__init__.py").touch()
    assert COMPONENT in typed(project, "list", "components", "--json")
