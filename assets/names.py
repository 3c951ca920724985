"""Names in Dagster: asset keys for people, and generated names of jobs, ops and
outputs.

Names of jobs, ops and outputs must match `[A-Za-z0-9_]+` and must not collide, so they
do not contain names of tables. Jobs and ops begin with `lockstep_`, because Dagster
lists them among the jobs and ops of other projects. The key of a mirror (the Delta
table with a table's current rows) has parts for source, database and table, as in other
integrations; a translator may choose another key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from string import ascii_letters, digits

import dagster as dg

from lockstep.pipeline.values.mirror_names import MirrorNames
from lockstep.pipeline.values.table import TableName

SOURCE_TAG = "lockstep/source"
LEASE_TAG = "lockstep/lease"
UNTIL_TAG = "lockstep/until"
WAITS_TAG = "lockstep/waits"
"""These are tags of Dagster runs. `LEASE_TAG` + "." + source has the lease's token
and the first letters of the run's id, followed by `RELEASED` after the run released it;
`UNTIL_TAG` has a place, in the form that `--until` accepts; `WAITS_TAG` has the last
moment at which the run still waited for the lock."""
RELEASED = "released"

SOURCE_PART = "{source}"
"""The part of a key's prefix that is replaced by the source's name."""

_OWN_PART = "lockstep"
_UNESCAPED = frozenset(ascii_letters + digits + "_-")


@dataclass(frozen=True, slots=True)
class SourceNames:
    """The names of one source.

    `prefix`: the first parts of each mirror's key. `group`: the group of its assets;
    None stands for the source's name. `translated_key` returns the key that a
    translator chose; None if there is no translator. `mirror_names`: the names of
    mirrors in the lake.
    """

    source: str
    prefix: tuple[str, ...] = (SOURCE_PART,)
    group: str | None = None
    translated_key: Callable[[TableName], dg.AssetKey] | None = field(default=None, compare=False)
    mirror_names: MirrorNames | None = field(default=None, compare=False)

    @property
    def group_name(self) -> str:
        return self.group or self.source

    @property
    def log_key(self) -> dg.AssetKey:
        """The source's binlog, an asset that Lockstep does not materialize."""
        return self._key("log")

    @property
    def captured_key(self) -> dg.AssetKey:
        return self._key("captured")

    @property
    def merged_key(self) -> dg.AssetKey:
        return self._key("merged")

    @property
    def acknowledged_key(self) -> dg.AssetKey:
        return self._key("acknowledged")

    @property
    def replayed_key(self) -> dg.AssetKey:
        return self._key("replayed")

    @property
    def step_keys(self) -> tuple[dg.AssetKey, ...]:
        return self.captured_key, self.merged_key, self.acknowledged_key

    def table_key(self, table: TableName) -> dg.AssetKey:
        return (
            self.default_table_key(table)
            if self.translated_key is None
            else self.translated_key(table)
        )

    def default_table_key(self, table: TableName) -> dg.AssetKey:
        """Return a mirror's key without a translator."""
        name = table if self.mirror_names is None else self.mirror_names.of(table)
        return dg.AssetKey([*self._prefix, _escaped(name.database), _escaped(name.name)])

    def op_name(self, word: str) -> str:
        """Return the name of an op. `word` must not contain `_`, so that names of two
        sources never collide."""
        return f"{job_name(self.source)}_{word}"

    @property
    def _prefix(self) -> tuple[str, ...]:
        return tuple(self.source if part == SOURCE_PART else part for part in self.prefix)

    def _key(self, name: str) -> dg.AssetKey:
        """Return a step's key. Its number of parts differs from that of a mirror's key,
        so no mirror can have the same key."""
        own_parts = () if SOURCE_PART in self.prefix else (_OWN_PART, self.source)
        return dg.AssetKey([*self._prefix, *own_parts, name])


def output_name(letter: str, number: int) -> str:
    """Return the name of the output (`t000001`) for the table with that number in its
    source's list. `letter`: "t" for the table itself, another letter for one of its
    checks."""
    return f"{letter}{number:06d}"


JOB_SUFFIXES = ("", "replay", "upkeep")


def job_name(source: str, suffix: str = "") -> str:
    """Return the name of a job. `suffix`: one of `JOB_SUFFIXES`; the job of runs has
    the suffix ""."""
    return f"lockstep_{source}_{suffix}" if suffix else f"lockstep_{source}"


def lease_tag(source: str) -> str:
    return f"{LEASE_TAG}.{source}"


def _escaped(name: str) -> str:
    """Return the name in which each byte that is not an ASCII letter, a digit, `_` or
    `-` is written as `.XX`: Dagster refuses other characters in an asset's `deps`.
    Different names stay different.
    """
    return "".join(
        letter if letter in _UNESCAPED else "".join(f".{byte:02X}" for byte in letter.encode())
        for letter in name
    )
