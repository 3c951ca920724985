"""What `lockstep check` looks at, on its page: `pipeline.check`."""

from __future__ import annotations

import re
from typing import Any, Final

from lockstep.pipeline.check import CHECK_RULES, RUN_RULES
from lockstep.pipeline.check.findings import CheckRule
from lockstep.pipeline.values.engines import ENGINES, engine_of
from tests.pages.made import MadePart, row

_STATEMENT: Final = re.compile(r"(?:GRANT|ALTER USER|set global|stop replica|call) .*;")
_HEAD: Final = "| rule | looks at | level | what it costs | cure |\n|---|---|---|---|---|"


def tables() -> str:
    """A table a topic, in Markdown."""
    rules: list[CheckRule[Any]] = [*RUN_RULES, *CHECK_RULES]
    lines = []
    for topic in dict.fromkeys(rule.topic for rule in rules):
        rows = [_row(rule) for rule in rules if rule.topic == topic]
        lines += [f"### {topic[0].upper()}{topic[1:]}", "", _HEAD, *rows, ""]
    return "\n".join([*lines, *_engines()])


def _engines() -> list[str]:
    """The engines in the order of their list; those of which the same is said share a row."""
    named: dict[tuple[str, str], list[str]] = {}
    for engine in ENGINES.values():
        named.setdefault((engine.level, engine.reason), []).append(engine.name)
    rows = [row((", ".join(names), f"**{level}**", why)) for (level, why), names in named.items()]
    last = row(("any other", "**refusal**", engine_of("x").reason))
    return ["### Engines", "", "| engine | level | why |\n|---|---|---|", *rows, last]


def _row(rule: CheckRule[Any]) -> str:
    level = f"**{rule.level}**, of a run too" if rule.error and rule in RUN_RULES else rule.level
    cells = (rule.name, rule.judged_facts, level, rule.consequence, _code(rule.cure))
    return row(cells)


def _code(cure: str) -> str:
    """A statement to be typed, as code; what follows it is prose."""
    found = _STATEMENT.match(cure)
    if found is None:
        return cure
    mark = "``" if "`" in found[0] else "`"
    return f"{mark}{found[0]}{mark}{cure[found.end() :]}"


PART: Final = MadePart("checks", "docs/reference.md", tables)
