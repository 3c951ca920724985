"""The cases of tests/cases/values, written out: one table each."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "cases" / "values"
SERVERS = ("mysql", "mariadb")


@dataclass(frozen=True, slots=True)
class ValueCase:
    """A table whose first column is `id int primary key`. `rows` are what follows
    `insert into t`, with `{id}` where the row's number goes."""

    name: str
    columns: str
    rows: tuple[str, ...]
    servers: tuple[str, ...] = SERVERS
    options: str = ""

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
        for n in _each(case.get("each", [""])):
            yield _column_case(file.stem, case, str(n))
    for table in content.get("table", ()):
        yield ValueCase(
            f"{file.stem}: {table['name']}",
            table["columns"],
            tuple(table["rows"]),
            tuple(table.get("servers", SERVERS)),
            table.get("options", ""),
        )


def _each(each: list[Any]) -> list[Any]:
    numbers = len(each) == 2 and all(isinstance(n, int) for n in each)
    return list(range(each[0], each[1] + 1)) if numbers else each


def _column_case(family: str, case: dict[str, Any], n: str) -> ValueCase:
    """`after` shows whether the reading of `v` ended where the value ends."""
    column = _filled(case["column"], n)
    times = int(_filled(str(case.get("times", 1)), n))
    values = [_filled(value, n) for value in case["values"]]
    if "not null" not in column:
        values.append("null")
    rows = (
        ", ".join(values[(row + place) % len(values)] for place in range(times))
        for row in range(len(values))
    )
    shown = case["column"].replace("{members}", f"{n} members").replace("{n}", n)
    return ValueCase(
        f"{family}: {shown}" + (f" x {times}" if times > 1 else ""),
        ", ".join(f"v{place} {column}" for place in range(times)) + ", after int not null",
        tuple(f"values ({{id}}, {row}, {number})" for number, row in enumerate(rows)),
        tuple(case.get("servers", SERVERS)),
    )


def _filled(text: str, n: str) -> str:
    if "{members}" in text:
        text = text.replace("{members}", ",".join(f"'m{i + 1}'" for i in range(int(n))))
    return text.replace("{n}", n)
