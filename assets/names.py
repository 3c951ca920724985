"""What things are called in Dagster: generated names, keys escaped by rule.

Op, output and job names must be `[A-Za-z0-9_]+` and must not collide, so none is made
from a table's name. Asset keys are read by people, so they are: each part of a key is
the table's own, every byte outside `[A-Za-z0-9_-]` as `=XX`, as in the lake's paths.
"""

from __future__ import annotations

from pipeline.changes.layout import path_part
from pipeline.table import TableName

SOURCE_TAG = "lockstep/source"
CLI_TAG = "lockstep/cli"
LEASE_TAG = "lockstep/lease"
UNTIL_TAG = "lockstep/until"
"""Tags of Dagster runs. `LEASE_TAG` + "." + source holds the lease's token; `UNTIL_TAG` a
place, as `--until` takes it."""

LOCATION = "lockstep"
"""The location's name in workspace.yaml; run tags refer to it."""


def captured_key(source: str) -> tuple[str, ...]:
    return (source, "captured")


def merged_key(source: str) -> tuple[str, ...]:
    return (source, "merged")


def acknowledged_key(source: str) -> tuple[str, ...]:
    return (source, "acknowledged")


def step_keys(source: str) -> tuple[tuple[str, ...], ...]:
    """The asset keys of a run's steps, in order."""
    return (captured_key(source), merged_key(source), acknowledged_key(source))


def table_key(source: str, table: TableName) -> tuple[str, ...]:
    """A mirror's asset key, three parts, where a step's has two."""
    return (source, path_part(table.database), path_part(table.name))


def output_name(number: int) -> str:
    """The name of the table with that number in the catalogue, from 1: `t000001`."""
    return f"t{number:06d}"


def mirrors_name(source: str) -> str:
    """The name of the op behind a source's mirrors; the steps' are made by Dagster from
    their keys, `<source>__captured` and so on."""
    return f"{source}__mirrors"


def job_name(source: str) -> str:
    return f"lockstep_{source}"


def lease_tag(source: str) -> str:
    return f"{LEASE_TAG}.{source}"
