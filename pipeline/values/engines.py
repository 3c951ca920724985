"""MySQL's and MariaDB's storage engines: whether tables of an engine are captured, and
why.

A table is captured if its engine stores exactly the rows that the log records. Tables
of an engine that is not listed here are not captured, because it was never tested.

Not here: which engine a table has. The server (`resources.mysql`) or a statement in the
log (`pipeline.schema`) says that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

_TRANSACTIONAL: Final = "its rows and the log are committed together"
_IN_PART: Final = "a failed statement is logged in part, and a crash may leave log and rows apart"
_ELSEWHERE: Final = "its rows are on other servers, whose changes this log does not hold"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine, by its usual `name`. A table whose engine is refused is quarantined:
    it is not captured, and the other tables continue."""

    name: str
    level: Literal["ok", "warning", "refusal"]
    reason: str


_ENGINES: Final = (
    Engine("InnoDB", "ok", _TRANSACTIONAL),
    Engine("RocksDB", "ok", _TRANSACTIONAL),
    Engine("TokuDB", "ok", _TRANSACTIONAL),
    Engine("MyISAM", "warning", _IN_PART),
    Engine("Aria", "warning", _IN_PART),
    Engine("ARCHIVE", "warning", _IN_PART),
    Engine(
        "MEMORY", "refusal", "its rows are lost at each restart, and the log only says so later"
    ),
    Engine("BLACKHOLE", "refusal", "it keeps nothing: the log has rows that the table never has"),
    Engine("EXAMPLE", "refusal", "it keeps nothing"),
    Engine("CSV", "refusal", "its file has no key, and may be changed without the server"),
    Engine(
        "MERGE",
        "refusal",
        "its rows belong to other tables, and the log has their changes under those names",
    ),
    Engine("FEDERATED", "refusal", _ELSEWHERE),
    Engine("NDB", "refusal", "updates are logged as inserts of only the changed columns"),
    Engine("SPIDER", "refusal", _ELSEWHERE),
    Engine("CONNECT", "refusal", "its rows are in files, or on other servers"),
    Engine("S3", "refusal", "its rows are in an object store that other servers read and write"),
    Engine("COLUMNSTORE", "refusal", "rows are loaded into it without being logged"),
    Engine("SEQUENCE", "refusal", "it keeps nothing: its numbers are generated as they are read"),
)

_OTHER_NAMES: Final = {
    "FEDERATEDX": "FEDERATED",
    "HEAP": "MEMORY",
    "MARIA": "ARIA",
    "MRG_MYISAM": "MERGE",
    "NDBCLUSTER": "NDB",
}

ENGINES: Final[Mapping[str, Engine]] = {engine.name.upper(): engine for engine in _ENGINES}


def engine_of(name: str) -> Engine:
    """Return the engine of that name. "" stands for a table that the server cannot
    open."""
    upper = name.strip().upper()
    engine = ENGINES.get(_OTHER_NAMES.get(upper, upper))
    if engine is not None:
        return Engine(name, engine.level, engine.reason)
    if not upper:
        return Engine("no engine", "refusal", "the server cannot open it")
    return Engine(name, "refusal", "nobody has tested whether its rows match the log")


def reason_refused(name: str) -> str | None:
    """Return why tables of the engine are quarantined, or None if they are captured."""
    engine = engine_of(name)
    return f"its engine is {engine.name}: {engine.reason}" if engine.level == "refusal" else None


def is_merge(name: str) -> bool:
    """Return whether a table of that engine shows the rows of other tables (MERGE)."""
    return _OTHER_NAMES.get(name.upper(), name.upper()) == "MERGE"


def can_be_merged(name: str) -> bool:
    """Return whether a MERGE table may be made of tables of that engine."""
    return name.upper() == "MYISAM" or is_merge(name)
