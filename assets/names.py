"""What things are called in Dagster: keys that people read, generated names for the rest.

Op, output and job names must be `[A-Za-z0-9_]+` and must not collide, so none is made
from a table's name, and all begin with `lockstep_`: they stand beside other people's.
A mirror's key has a part for the source, the database and the table, as the keys of other
integrations have; a translator may choose another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from string import ascii_letters, digits

import dagster as dg

from pipeline.mirror_names import MirrorNames
from pipeline.table import TableName

SOURCE_TAG = "lockstep/source"
LEASE_TAG = "lockstep/lease"
UNTIL_TAG = "lockstep/until"
WAITS_TAG = "lockstep/waits"
"""Tags of Dagster runs. `LEASE_TAG` + "." + source holds the lease's token, and `RELEASED` behind
it once it was given back; `UNTIL_TAG` a place, as `--until` takes it; `WAITS_TAG` the moment at
which a run still waited for the lock."""
RELEASED = "released"

SOURCE_PART = "{source}"
"""The part of a key's prefix that stands for the source's name."""

_OWN_PART = "lockstep"
_KEPT = frozenset(ascii_letters + digits + "_-")


@dataclass(frozen=True, slots=True)
class SourceNames:
    """The names of one source.

    `prefix`: first parts of each mirror's key, where `{source}` stands for the source's name;
    `group`: the group of its assets, the source's own name if it is None; `translated`: the keys
    of mirrors that somebody chose; `mirrors`: what mirrors are called in the lake.
    """

    source: str
    prefix: tuple[str, ...] = (SOURCE_PART,)
    group: str | None = None
    translated: Callable[[TableName], dg.AssetKey] | None = field(default=None, compare=False)
    mirrors: MirrorNames | None = field(default=None, compare=False)

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
        return self._key("replayed")

    @property
    def steps(self) -> tuple[dg.AssetKey, ...]:
        return self.captured, self.merged, self.acknowledged

    def table(self, table: TableName) -> dg.AssetKey:
        return self.default(table) if self.translated is None else self.translated(table)

    def default(self, table: TableName) -> dg.AssetKey:
        """A mirror's key where nobody chose another."""
        name = table if self.mirrors is None else self.mirrors.of(table)
        return dg.AssetKey([*self._prefix, _spelled(name.database), _spelled(name.name)])

    def op(self, what: str) -> str:
        """`what` is one word without `_`, so that names of different sources never meet."""
        return f"{job_name(self.source)}_{what}"

    @property
    def _prefix(self) -> tuple[str, ...]:
        return tuple(self.source if part == SOURCE_PART else part for part in self.prefix)

    def _key(self, name: str) -> dg.AssetKey:
        """A step's key is never as long as a mirror's, so no table can be called like a step."""
        own = () if SOURCE_PART in self.prefix else (_OWN_PART, self.source)
        return dg.AssetKey([*self._prefix, *own, name])


def output_name(letter: str, number: int) -> str:
    """The name of the table with that number in the catalogue, from 1 (`t000001`), or with another
    letter that of a check of it."""
    return f"{letter}{number:06d}"


JOBS = ("", "replay", "upkeep")


def job_name(source: str, what: str = "") -> str:
    """`what` of `JOBS`; "" is a run."""
    return f"lockstep_{source}_{what}" if what else f"lockstep_{source}"


def is_own_job(name: str) -> bool:
    """Whether a job is Lockstep's, and no selection of assets that somebody clicked or another
    project's job has: ours run in one process, under one lease."""
    return name.startswith("lockstep_")


def lease_tag(source: str) -> str:
    return f"{LEASE_TAG}.{source}"


def _spelled(name: str) -> str:
    """Letters and digits of ASCII, `_` and `-` stay; each byte of anything else becomes `.XX`: an
    asset that names the key in its `deps` can have no other letters. Different names, different
    texts."""
    return "".join(
        letter if letter in _KEPT else "".join(f".{byte:02X}" for byte in letter.encode())
        for letter in name
    )
