"""The cases of tests/cases/values, written out: one table each."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "cases" / "values"
SERVERS = ("mysql", "mariadb")
COLUMNS = 16
"""Side by side in a table: of types that differ in a number alone."""


@dataclass(frozen=True, slots=True)
class ValueCase:
    """A table whose first column is `id int primary key`. `rows` are what follows
    `insert into t`, with `{id}` where the row's number goes. `since`: the first version of
    MySQL that can have it."""

    name: str
    columns: str
    rows: tuple[str, ...]
    servers: tuple[str, ...] = SERVERS
    options: str = ""
    since: tuple[int, ...] = ()

    def fits(self, flavour: str, version: tuple[int, ...]) -> bool:
        """Return whether a server of that product and version can have the table."""
        return flavour in self.servers and (flavour != "mysql" or version >= self.since)

    def create(self, table: str) -> str:
        return f"create table {table} (id int primary key, {self.columns}) {self.options}"

    def inserts(self, table: str) -> list[str]:
        """Each row twice, with the numbers 0 and 1, 2 and 3, …"""
        return [
            f"insert into {table} {row.replace('{id}', str(2 * number + twin))}"
            for number, row in enumerate(self.rows)
            for twin in (0, 1)
        ]


def value_cases() -> list[ValueCase]:
    return [case for file in sorted(FOLDER.glob("*.toml")) for case in _cases(file)]


def _cases(file: Path) -> Iterator[ValueCase]:
    content = tomllib.loads(file.read_text("utf-8"))
    for case in content.get("case", ()):
        for numbers in _side_by_side(case):
            yield _column_case(file.stem, case, numbers)
    for table in content.get("table", ()):
        yield ValueCase(
            f"{file.stem}: {table['name']}",
            table["columns"],
            tuple(table["rows"]),
            tuple(table.get("servers", SERVERS)),
            table.get("options", ""),
            _version(table),
        )


def _side_by_side(case: dict[str, Any]) -> Iterator[list[str]]:
    """What `{n}` stands for in the columns of each of the case's tables: of one whose words are
    listed together, one of them in each; else one of `each` in all `times`."""
    each = case.get("each", [""])
    if not all(isinstance(n, int) for n in each) or "times" in case:
        for n in each:
            if isinstance(n, list):
                yield n
            else:
                yield [str(n)] * int(_filled(str(case.get("times", 1)), str(n)))
        return
    numbers = list(range(each[0], each[1] + 1)) if len(each) == 2 else each
    for first in range(0, len(numbers), COLUMNS):
        yield [str(n) for n in numbers[first : first + COLUMNS]]


def _column_case(family: str, case: dict[str, Any], numbers: list[str]) -> ValueCase:
    """A column for each number, with another of its values in a row than its neighbours have.
    `after` shows whether the reading of the last one ended where the value ends."""
    columns = [_filled(case["column"], n) for n in numbers]
    values = [[_filled(value, n) for value in case["values"]] for n in numbers]
    if "not null" not in case["column"]:
        values = [[*ours, "null"] for ours in values]
    rows = (
        ", ".join(ours[(row + place) % len(ours)] for place, ours in enumerate(values))
        for row in range(len(values[0]))
    )
    shown = case["column"].replace("{members}", "{n} members").replace("{n}", _span(numbers))
    return ValueCase(
        f"{family}: {shown}" + (f" x {len(numbers)}" if len(numbers) > 1 else ""),
        ", ".join(f"v{place} {column}" for place, column in enumerate(columns))
        + ", after int not null",
        tuple(f"values ({{id}}, {row}, {number})" for number, row in enumerate(rows)),
        tuple(case.get("servers", SERVERS)),
        since=_version(case),
    )


def _version(case: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(number) for number in case.get("since", "0").split("."))


def _span(numbers: list[str]) -> str:
    first, last = numbers[0], numbers[-1]
    return first if first == last else f"{first} to {last}"


def _filled(text: str, n: str) -> str:
    if "{members}" in text:
        text = text.replace("{members}", ",".join(f"'m{i + 1}'" for i in range(int(n))))
    return text.replace("{n}", n)
