"""Lockstep as a component of a `dg` project: `defs.yaml` names a lockstep.toml.

Belongs here: the component and what `dg scaffold` writes for it. Does not: the definitions, which
are those of a location of its own (`definitions`). Other projects import it by
`lockstep.location`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel, Field

from assets.definitions import definitions_of
from assets.translator import LockstepTranslator, MirroredTable

_FILE = "lockstep.toml"


class SourceParams(BaseModel):
    """What `dg scaffold` asks for, and writes into the lockstep.toml beside defs.yaml."""

    name: str = Field("shop", description="what to call the source")
    host: str = Field("127.0.0.1", description="the MySQL or MariaDB server")
    user: str = Field("lockstep", description="the account that reads the log")
    tables: str = Field("", description="database.table, with * and ?; default all of NAME.*")


class SourceScaffolder(dg.Scaffolder[SourceParams]):
    """Writes defs.yaml, and lockstep.toml where there is none: a file that is there stays."""

    @classmethod
    def get_scaffold_params(cls) -> type[SourceParams]:
        return SourceParams

    def scaffold(self, request: dg.ScaffoldRequest[SourceParams]) -> None:
        scaffold_component(request, {"config": _FILE})
        file = request.target_path / _FILE
        if not file.exists():
            file.write_text(configuration(request.params), encoding="utf-8")


def configuration(params: SourceParams) -> str:
    """A lockstep.toml of one source; its password is a reference."""
    name = params.name
    values: dict[str, Any] = {
        "name": name,
        "host": params.host,
        "user": params.user,
        "password": f"env:{name.upper().replace('-', '_')}_PASSWORD",
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    tables = json.dumps(params.tables or f"{name}.*", ensure_ascii=False)
    return "\n".join(
        [
            "# All keys: lockstep.toml in the repository. `lockstep check` says what is missing.",
            "[lake]",
            'path = "lake"',
            "",
            "[[sources]]",
            *lines,
            f"tables = [{tables}]",
            'start = "snapshot"',
            "",
        ]
    )


Translation = Annotated[
    TranslationFn[MirroredTable],
    TranslationFnResolver[MirroredTable](lambda table: {"table": table}),
]


@dg.scaffold_with(SourceScaffolder)
class LockstepComponent(dg.Component, dg.Model, dg.Resolvable):
    """Mirrors of MySQL tables in Delta Lake, by one lockstep.toml: the steps of a run, each
    table, checks, schedules and sensors."""

    config: str = Field(_FILE, description="the configuration, from the folder of defs.yaml")
    translation: Translation | None = Field(
        None, description="attributes of each mirror's asset; `table` has source, database, name"
    )

    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        """The asset of a mirror, by `translation`; override it as a translator's method."""
        return table.spec if self.translation is None else self.translation(table.spec, table)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        folder = Path(context.path)
        config = (folder if folder.is_dir() else folder.parent) / self.config
        return definitions_of(config, translator=_Translator(self.get_asset_spec))


class _Translator(LockstepTranslator):
    """The component's method as a translator."""

    def __init__(self, get: Callable[[MirroredTable], dg.AssetSpec]) -> None:
        self._get = get

    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        return self._get(table)
