"""Lockstep as a component of a `dg` project. The component's defs.yaml has the path of
a lockstep.toml. Other projects import the component from `lockstep.location`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel, Field, model_validator

from lockstep.assets.declaration import LockstepTranslator, MirroredTable
from lockstep.assets.definitions import definitions_of
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.config.example import text_of_new_file
from lockstep.resources.config.load import parse_settings

_CONFIG_FILE: Final = "lockstep.toml"
_COMPONENT_TYPE: Final = "lockstep.location.LockstepComponent"
"""The component's type, as defs.yaml names it."""


class SourceParams(BaseModel):
    """The options of `lockstep init`, which `dg scaffold` asks for and writes into
    lockstep.toml."""

    name: str = Field(
        default="", description="the source's name; default: that of the component's folder"
    )
    host: str = Field(description="the server's host name or address")
    port: int = Field(default=3306, description="its port")
    user: str = Field(description="the account that reads the log")
    password: str = Field(
        default="", description="env:NAME or file:PATH; default: env:<NAME>_PASSWORD"
    )
    tls: Literal["verify", "required", "off"] = Field(
        default="verify", description="how the connection is encrypted"
    )
    tables: str = Field(description="database.table, with * and ?; patterns separated by spaces")
    exclude: str = Field(default="", description="patterns of tables to leave out")
    start: str = Field(default="snapshot", description="snapshot, earliest, latest or file:offset")
    schedule: str = Field(default="", description='cron, five fields, UTC, such as "*/10 * * * *"')
    lake: str = Field(
        default="lake", description="a folder beside lockstep.toml, or s3://bucket/prefix"
    )
    ledger: str = Field(
        default="embedded", description='embedded, or "env:NAME" with the DSN of your Postgres'
    )

    @model_validator(mode="after")
    def _require_valid(self) -> SourceParams:
        # `dg` makes the component's folder before it calls the scaffolder, so invalid
        # options are refused here. Without a name, the source is named after the
        # folder, which is not known here.
        self.configuration_text(self.name or "source")
        return self

    def configuration_text(self, name: str) -> str:
        """Return the text of lockstep.toml with a source of that name. Raise ValueError
        if it would be invalid."""
        patterns = {"tables": self.tables.split(), "exclude": self.exclude.split()}
        text = text_of_new_file(**self.model_dump() | patterns | {"name": name})
        try:
            parse_settings(text, Path(_CONFIG_FILE))
        except ConfigurationError as error:
            raise ValueError(error.message) from None
        return text


class SourceScaffolder(dg.Scaffolder[SourceParams]):
    """The scaffolder of the component, for `dg scaffold`: it writes defs.yaml into the
    package, and lockstep.toml into the project's folder, where runs create the lake and
    `.lockstep`. An existing lockstep.toml is kept. A project has one component for all
    its sources, because they share one ledger, one lake and one set of sensors."""

    @classmethod
    def get_scaffold_params(cls) -> type[SourceParams]:
        return SourceParams

    def scaffold(self, request: dg.ScaffoldRequest[SourceParams]) -> None:
        folder = request.target_path
        config = (request.project_root or folder) / _CONFIG_FILE
        for defs_file in folder.parent.glob("*/defs.yaml"):
            is_other = defs_file.parent != folder
            if is_other and _COMPONENT_TYPE in defs_file.read_text(encoding="utf-8"):
                raise ValueError(f"{defs_file} exists already; add your source to {config} instead")
        if not config.exists():
            name = request.params.name or re.sub(r"\W", "_", folder.name.lower())
            config.write_text(request.params.configuration_text(name), encoding="utf-8")
        root = "" if request.project_root is None else "{{ context.project_root }}/"
        scaffold_component(request, {"config": f"{root}{_CONFIG_FILE}"})


Translation = Annotated[
    TranslationFn[MirroredTable],
    TranslationFnResolver[MirroredTable](lambda table: {"table": table}),
]
"""Templates in defs.yaml for an asset's attributes. A template can use `table`."""


@dg.scaffold_with(SourceScaffolder)
class LockstepComponent(LockstepTranslator, dg.Component, dg.Model, dg.Resolvable):
    """Mirrors of MySQL tables in Delta Lake, declared by one lockstep.toml: the steps
    of a run, each mirror, checks, schedules and sensors."""

    config: str = Field(
        _CONFIG_FILE, description="the path of lockstep.toml, relative to the folder of defs.yaml"
    )
    translation: Translation | None = Field(
        None,
        description="attributes of each mirror's asset; templates can use table.source, "
        "table.database and table.name",
    )

    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        """Return the asset of a mirror, changed by `translation` if that is set.
        Subclasses may override this method."""
        return table.spec if self.translation is None else self.translation(table.spec, table)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        path = Path(context.path)
        folder = path if path.is_dir() else path.parent
        return definitions_of(folder / self.config, translator=self)
