"""Mirrors under keys that somebody chose: in the graph, in runs, on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from lockstep.assets.declaration import loaded_names
from lockstep.assets.definitions import build_definitions, definitions_of
from lockstep.assets.names import SourceNames
from lockstep.location import LockstepTranslator, MirroredTable
from lockstep.pipeline.values.table import TableName
from tests.dagster.place import MemoryAdapters, Stand, entry, settings_for, source_of
from tests.dagster.test_runs import entries, materialized
from tests.fix_mysql import MySqlStand

NAMES = SourceNames("shop")
STEPS = set(NAMES.step_keys)


class Plain(LockstepTranslator):
    """Keys as dbt's sources have them, and an owner."""

    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        spec = super().get_asset_spec(table)
        return spec.replace_attributes(key=[table.database, table.name], owners=["team:data"])


class OneForAll(LockstepTranslator):
    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        return table.spec.replace_attributes(key="mirror")


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    """A source with two tables and changes of one."""
    statements = (
        "create table a (id int primary key)",
        "create table b (id int primary key)",
        "insert into a values (1)",
    )
    folder = tmp_path / "shop"
    folder.mkdir()
    with source_of(mysql, database, folder, *statements) as made:
        made.adapters.settings.path.write_text(
            '[[sources]]\nname = "shop"\nhost = "127.0.0.1"\nuser = "u"\npassword = "env:X"\n'
            f'tables = ["{database}.*"]\n'
        )
        yield made


def test_a_run_logs_under_the_keys_of_its_translator(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """What it made and what it checked, tables that are new to it included; a click too."""
    stand.translator = Plain()
    ran = stand.run()
    made, other = dg.AssetKey([database, "a"]), dg.AssetKey([database, "b"])
    assert materialized(ran) == {*STEPS, made, other}
    checked = {
        event.asset_check_evaluation_data.asset_key
        for event in ran.all_events
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    }
    assert checked - STEPS == {made, other}
    mysql.execute("insert into a values (2)", database=database)
    assert stand.click(entries(database), made).success
    repository = stand.definitions(entries(database)).get_repository_def()
    node = repository.asset_graph.get(made)
    assert (list(node.owners), node.metadata["mirror"]) == (["team:data"], "a")
    assert node.parent_keys == {NAMES.log_key}


def test_the_command_line_knows_the_keys_of_the_location(stand: Stand, database: str) -> None:
    """Once the location was loaded with a translator, and until it is loaded without one."""
    settings = stand.adapters.settings
    assert stand.run().success

    def known() -> dg.AssetKey:
        return loaded_names(settings, "shop").table_key(TableName(database, "a"))

    default = NAMES.table_key(TableName(database, "a"))
    assert known() == default
    definitions_of(settings.path, translator=Plain())
    assert known() == dg.AssetKey([database, "a"])
    definitions_of(settings.path)
    assert known() == default


def test_a_mirror_has_the_key_of_its_name(tmp_path: Path) -> None:
    """Of two tables whose mirrors would be called alike, that one has an asset whose mirror is
    there: the other one is quarantined."""
    into = '[[sources.table]]\nmatch = "shop.[ab]"\ninto = "crm.t"\n'
    settings = settings_for(tmp_path, "shop", extra=into)
    there = replace(entry("shop", "b"), mirror="shop/crm/t")
    table_lists = {"shop": [entry("shop", "a"), there, entry("shop", "c")]}
    repository = build_definitions(
        settings, table_lists, MemoryAdapters(settings).open
    ).get_repository_def()
    keys = {key for key in repository.asset_graph.get_all_asset_keys() if len(key.path) == 3}
    assert keys == {dg.AssetKey(["shop", "crm", "t"]), dg.AssetKey(["shop", "shop", "c"])}


def test_two_mirrors_with_one_key_are_refused_by_name(tmp_path: Path) -> None:
    """Dagster's own refusal would name no table."""
    settings = settings_for(tmp_path, "shop")
    table_lists = {"shop": [entry("shop", "a"), entry("shop", "b")]}
    with pytest.raises(dg.DagsterInvalidDefinitionError, match=r"shop\.a.*shop\.b"):
        build_definitions(
            settings, table_lists, MemoryAdapters(settings).open, translator=OneForAll()
        )
