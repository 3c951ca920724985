"""What things are called in Dagster: keys that people read, generated names for the rest.

Op, output and job names must be `[A-Za-z0-9_]+` and must not collide, so none is made
from a table's name, and all begin with `lockstep_`: they stand beside other people's.
A mirror's key ends with what every command calls the table, `shop.orders`. Paths in the
lake are another matter (`pipeline.changes.layout`).
"""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from pipeline.table import TableName

SOURCE_TAG = "lockstep/source"
CLI_TAG = "lockstep/cli"
LEASE_TAG = "lockstep/lease"
UNTIL_TAG = "lockstep/until"
WAITS_TAG = "lockstep/waits"
"""Tags of Dagster runs. `LEASE_TAG` + "." + source holds the lease's token, and `RELEASED` behind
it once it was given back; `UNTIL_TAG` a place, as `--until` takes it; `WAITS_TAG` the moment at
which a run still waited for the lock."""
RELEASED = "released"

_KEPT = "_-$ "


@dataclass(frozen=True, slots=True)
class SourceNames:
    """The names of one source. `prefix`: parts in front of each key; `group`: the group of
    its assets, the source's own name if it is None."""

    source: str
    prefix: tuple[str, ...] = ()
    group: str | None = None

    @property
    def group_name(self) -> str:
        return self.group or self.source

    @property
    def log(self) -> dg.AssetKey:
        """The source's binlog, which others write."""
        return self._key("log")

    @property
    def captured(self) -> dg.AssetKey:
        return self._key("captured")

    @property
    def merged(self) -> dg.AssetKey:
        return self._key("merged")

    @property
    def acknowledged(self) -> dg.AssetKey:
        return self._key("acknowledged")

    @property
    def replayed(self) -> dg.AssetKey:
        """The past, hour by hour."""
        return self._key("replayed")

    @property
    def steps(self) -> tuple[dg.AssetKey, ...]:
        """The keys of a run's steps, in order."""
        return self.captured, self.merged, self.acknowledged

    def table(self, table: TableName) -> dg.AssetKey:
        """A mirror's key: it alone has a `.` in its last part."""
        return self._key(f"{_spelled(table.database)}.{_spelled(table.name)}")

    def op(self, what: str) -> str:
        """`what` is one word without `_`, so that names of different sources never meet."""
        return f"{job_name(self.source)}_{what}"

    def _key(self, name: str) -> dg.AssetKey:
        return dg.AssetKey([*self.prefix, self.source, name])


def output_name(number: int) -> str:
    """The name of the table with that number in the catalogue, from 1: `t000001`."""
    return f"t{number:06d}"


def check_output_name(number: int) -> str:
    """The same for its check."""
    return f"c{number:06d}"


def keys_output_name(number: int) -> str:
    """The same for the check of its keys."""
    return f"k{number:06d}"


def job_name(source: str) -> str:
    return f"lockstep_{source}"


def replay_job_name(source: str) -> str:
    return f"{job_name(source)}_replay"


def upkeep_job_name(source: str) -> str:
    return f"{job_name(source)}_upkeep"


def is_own_job(name: str) -> bool:
    """Whether a job is Lockstep's, and no selection of assets that somebody clicked or another
    project's job has: ours run in one process, under one lease."""
    return name.startswith("lockstep_")


def lease_tag(source: str) -> str:
    return f"{LEASE_TAG}.{source}"


def _spelled(name: str) -> str:
    """Letters and digits of every script, `_`, `-`, `$` and blanks between them stay; each byte
    of anything else becomes `=XX`, as in the lake's paths. Different names, different texts."""
    kept = [letter.isalnum() or letter in _KEPT for letter in name]
    for end in (0, -1):
        kept[end] = kept[end] and name[end] != " "
    return "".join(
        letter if stays else "".join(f"={byte:02X}" for byte in letter.encode())
        for letter, stays in zip(name, kept, strict=True)
    )
