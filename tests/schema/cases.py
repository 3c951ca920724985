"""Sequences of statements in files: our own, and a folder of anybody's.

Belongs here: reading them. A `.sql` file holds cases, each behind `-- case: name`, with
[mysql] or [mariadb] behind the name where it is for one flavour; a line `-- mysql:` or
`-- mariadb:` says so of the statement that follows. Without a case the file is one.
Statements end with a semicolon at a line's end; `{db}` is the case's own database, which is
there and in use. A `.jsonl` file holds a case a line: `id`, `schema` (the database that is
made and used first), `statements` and, where it differs, `sql_mode`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from lockstep.pipeline.schema.model import ServerSchema

Steps = Generator[str, ServerSchema, None]
"""Statements; behind each the tables are sent that the server has then."""

OWN: Final = Path(__file__).parent / "cases"

_CASE: Final = re.compile(r"--\s*case:\s*(.*?)\s*(?:\[(mysql|mariadb)\])?\s*")
_GATE: Final = re.compile(r"--\s*(mysql|mariadb):\s*")


@dataclass(frozen=True, slots=True)
class Case:
    """Statements in one session. `database`: made and used first; "" where the statements
    do it. `like`: what they may create; `alone`: every other database has to go first.
    `made`: more statements, each made when the tables after the one before are known."""

    name: str
    statements: tuple[str, ...]
    database: str = ""
    like: str = "%"
    alone: bool = False
    made: Callable[[], Steps] | None = None

    def steps(self) -> Steps:
        """All statements, the database's own first."""
        if self.database:
            yield f"create database `{self.database}`"
            yield f"use `{self.database}`"
        yield from (
            statement for statement in self.statements
        )  # a tuple takes nothing that is sent
        if self.made is not None:
            yield from self.made()


def read_cases(folder: Path, flavour: str) -> list[Case]:
    """All cases of a folder's files that are for this flavour, by file name."""
    found: list[Case] = []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".sql":
            found += _sql(path, flavour)
        elif path.suffix == ".jsonl":
            found += map(_json, path.read_text("utf-8").splitlines())
    return found


def in_databases(cases: Iterable[Case], names: Iterator[str]) -> list[Case]:
    """Our own cases, each with a database of its own; nothing else is looked at."""
    found = []
    for case in cases:
        name = next(names)
        statements = tuple(statement.replace("{db}", name) for statement in case.statements)
        found.append(replace(case, statements=statements, database=name, like=f"{name}%"))
    return found


def _json(line: str) -> Case:
    data: dict[str, Any] = json.loads(line)
    statements = tuple(data["statements"])
    if data.get("sql_mode") is not None:
        statements = (f"set sql_mode = '{data['sql_mode']}'", *statements)
    return Case(data["id"], statements, data["schema"], alone=True)


def _sql(path: Path, flavour: str) -> Iterator[Case]:
    name, wanted, gate = path.stem, True, ""
    statements: list[str] = []
    lines: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        if not lines:
            if (case := _CASE.fullmatch(line)) is not None:
                if statements and wanted:
                    yield Case(name, tuple(statements))
                name, wanted = f"{path.stem}: {case[1]}", case[2] in (None, flavour)
                statements, gate = [], ""
                continue
            if (gated := _GATE.fullmatch(line)) is not None:
                gate = gated[1]
                continue
            if not line.strip():
                continue
        lines.append(line)
        if line.rstrip().endswith(";"):
            if gate in ("", flavour):
                statements.append("\n".join(lines).rstrip().removesuffix(";"))
            lines, gate = [], ""
    if lines:
        raise ValueError(f"{path}: the last statement has no semicolon")
    if statements and wanted:
        yield Case(name, tuple(statements))
