"""The location loads: with everything down, with awkward names, from a bare checkout."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.decorators.op_decorator import DecoratedOpFunction
from dagster._core.definitions.reconstruct import repository_def_from_target_def
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.workspace.autodiscovery import (
    loadable_targets_from_python_file,
    loadable_targets_from_python_module,
)
from dagster._core.workspace.load_target import WorkspaceFileTarget

import lockstep
from lockstep.assets import definitions
from lockstep.assets.coverage import Coverage
from lockstep.assets.home import dagster_home
from lockstep.assets.names import SOURCE_TAG, SourceNames
from lockstep.assets.table_list import update_table_list
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config.model import DAGSTER_ENDINGS
from tests.dagster.place import MemoryAdapters, entry, settings_for
from tests.typed_pages import blocks, chapter

NAMES = SourceNames("shop")
REPOSITORY = Path(__file__).resolve().parents[2]


def loaded(settings_folder: Path, monkeypatch: pytest.MonkeyPatch) -> dg.RepositoryDefinition:
    monkeypatch.setenv("LOCKSTEP_CONFIG", str(settings_folder / "lockstep.toml"))
    return definitions.defs().get_repository_def()


def write_file(folder: Path, extra: str = "") -> None:
    (folder / "lockstep.toml").write_text(
        '[ledger]\ndsn = "host=127.0.0.1 port=1"\n[[sources]]\nname = "shop"\n'
        'host = "127.0.0.1"\nport = 1\nuser = "u"\npassword = "env:LOCKSTEP_TEST_NOWHERE"\n'
        f'tables = ["shop.*"]\n{extra}'
    )


def test_everything_loads_with_every_server_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL, Postgres, the lake and even the password may be missing."""
    write_file(tmp_path, 'schedule = "*/5 * * * *"\n')
    repository = loaded(tmp_path, monkeypatch)
    assert {key.path[-1] for key in repository.assets_defs_by_key} == {
        "log",
        "captured",
        "merged",
        "acknowledged",
    }
    assert [s.name for s in repository.schedule_defs] == ["lockstep_shop_schedule"]
    pause = timedelta(minutes=5)
    late = dg.FreshnessPolicy.time_window(fail_window=3 * pause, warn_window=2 * pause)
    policies = {
        key.path[-1]: repository.asset_graph.get(key).freshness_policy
        for key in repository.assets_defs_by_key
    }
    assert policies == {**dict.fromkeys(policies), "acknowledged": late}
    assert sorted(s.name for s in repository.sensor_defs) == [
        "lockstep_attention",
        "lockstep_dead_runs",
        "lockstep_new_tables",
        "lockstep_other_runs",
    ]
    assert not (tmp_path / ".lockstep").exists()
    assert not (tmp_path / "lake").exists()


def test_settings_refuse_every_name_that_two_sources_would_share(tmp_path: Path) -> None:
    """Dagster loads nothing if a job has the name of another job or of an op."""
    settings = settings_for(tmp_path, "shop")
    begins = datetime(2026, 11, 1, tzinfo=UTC)
    repository = definitions.build_definitions(
        settings,
        {"shop": [entry("shop", "t")]},
        MemoryAdapters(settings).open,
        coverages={"shop": Coverage(begins, begins)},
    ).get_repository_def()
    ops = {node.name for job in repository.get_all_jobs() for node in job.all_node_defs}
    names = ops.union(repository.job_names)
    own = {name.removeprefix("lockstep_shop_") for name in names if "lockstep_shop_" in name}
    assert own == {*DAGSTER_ENDINGS}


def test_the_job_is_the_three_steps_in_order(tmp_path: Path) -> None:
    """captured → merged → acknowledged, tagged with the source; a mirror beside them tells its
    changelog."""
    settings = settings_for(tmp_path, "shop")
    built = definitions.build_definitions(
        settings, {"shop": [entry("shop", "t")]}, MemoryAdapters(settings).open
    )
    job = built.resolve_job_def("lockstep_shop")
    graph = built.get_repository_def().asset_graph
    captured, merged, acknowledged = NAMES.step_keys
    assert job.asset_layer.selected_asset_keys == {captured, merged, acknowledged}
    assert graph.get(merged).parent_keys == {captured}
    assert graph.get(acknowledged).parent_keys == {merged}
    assert job.tags[SOURCE_TAG] == "shop"
    mirror = graph.get(NAMES.table_key(TableName("shop", "t")))
    assert (mirror.metadata["changelog"], mirror.group_name) == ("shop/_changes/t", "shop")


def test_what_the_page_shows_can_be_typed_into_one_module(tmp_path: Path) -> None:
    """Dagster finds one object of definitions in it, with Lockstep's assets and the asset behind
    them, which still reads by the package."""
    write_file(tmp_path)
    page = (REPOSITORY / "docs/dagster.md").read_text(encoding="utf-8")
    behind = blocks(chapter(page, "Assets downstream of the mirrors"), "python")
    merged = blocks(chapter(page, "In another project's definitions"), "python")[0]
    code = "\n".join([*behind, "page_somebody = print", merged])
    module = tmp_path / "ours.py"
    module.write_text(code.replace("/etc/lockstep/lockstep.toml", f"{tmp_path}/lockstep.toml"))
    [target] = loadable_targets_from_python_file(str(module))
    repository = repository_def_from_target_def(target.target_definition)
    assert repository is not None
    open_orders = dg.AssetKey("open_orders")
    keys = set(repository.assets_defs_by_key)
    assert keys == {open_orders, NAMES.log_key, *NAMES.step_keys}
    function = repository.assets_defs_by_key[open_orders].op.compute_fn
    assert isinstance(function, DecoratedOpFunction)
    assert function.decorated_fn.__globals__["lockstep"] is lockstep


def test_the_definitions_merge_into_others(tmp_path: Path) -> None:
    """With an executor, resources and names of their own, under a prefix and in a group of their
    choice."""
    write_file(tmp_path, '[dagster]\nkey_prefix = ["lake"]\ngroup = "raw"\nowners = ["team:x"]\n')
    update_table_list(tmp_path / ".lockstep", "shop", [entry("shop", "t")], complete=True)

    @dg.asset(name="captured", deps=[["lake", "shop", "t"]])
    def shop__captured() -> None: ...

    @dg.sensor(name="sessions", job_name="lockstep_shop")
    def sessions() -> dg.SkipReason:
        return dg.SkipReason("theirs")

    theirs = dg.Definitions(
        assets=[shop__captured],
        sensors=[sessions],
        resources={"sessions": object()},
        executor=dg.multiprocess_executor,
    )
    ours = definitions.definitions_of(tmp_path / "lockstep.toml")
    merged = dg.Definitions.merge(theirs, ours)
    graph = merged.get_repository_def().asset_graph
    table = graph.get(dg.AssetKey(["lake", "shop", "t"]))
    assert (table.group_name, list(table.owners), table.kinds) == ("raw", ["team:x"], {"delta"})
    assert merged.resolve_job_def("lockstep_shop").executor_def is dg.in_process_executor


@pytest.mark.parametrize(
    ("extra", "sentence"), [("colour = 1\n", "unknown key 'colour'"), (None, "lockstep init")]
)
def test_a_file_that_is_broken_or_missing_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str | None, sentence: str
) -> None:
    """The page shows our sentence and the cure."""
    if extra is not None:
        write_file(tmp_path, extra)
    with pytest.raises(dg.DagsterInvalidDefinitionError, match=sentence) as caught:
        loaded(tmp_path, monkeypatch)
    assert "hint: " in str(caught.value)


@pytest.mark.parametrize("file", ["workspace.yaml", "demo/workspace.yaml"])
def test_what_a_workspace_names_loads(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the repository's own folder, without a configuration of anybody's."""
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.delenv("LOCKSTEP_CONFIG", raising=False)
    [origin] = WorkspaceFileTarget([file]).create_origins()
    assert isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin)
    named = origin.loadable_target_origin
    assert (origin.location_name, Path(str(named.working_directory)).resolve()) == (
        "lockstep",
        REPOSITORY,
    )
    [found] = loadable_targets_from_python_module(str(named.module_name), named.working_directory)
    repository = repository_def_from_target_def(found.target_definition)
    assert repository is not None
    assert {NAMES.captured_key, NAMES.acknowledged_key} <= repository.assets_defs_by_key.keys()


def test_the_home_is_beside_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless DAGSTER_HOME says otherwise; telemetry is off; a file that is there stays."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    home = dagster_home(tmp_path / ".lockstep")
    assert home == tmp_path / ".lockstep" / "dagster"
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert instance.telemetry_enabled is False
    (home / "dagster.yaml").write_text("")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert dagster_home(tmp_path / "elsewhere") == home
    assert (home / "dagster.yaml").read_text() == ""
