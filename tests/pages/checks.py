"""What `lockstep check` looks at, on its page: `pipeline.check`."""

from __future__ import annotations

import re
from typing import Any, Final

from lockstep.pipeline.check import CHECK_RULES, RUN_RULES
from lockstep.pipeline.check.findings import CheckRule
from lockstep.pipeline.values.engines import ENGINES, engine_of
from tests.pages.made import MadePart, row

_STATEMENT: Final = re.compile(r"(?:GRANT|ALTER USER|set global|stop replica|call) .*;")
_FOR_GOOD: Final = re.compile(
    r" \(and put it into the server's configuration"
    r"(, and let applications (reconnect): open sessions keep their value)?\)"
)
"""What goes for every `set global`, which the page says once."""
_NOTHING: Final = "nothing to do"
_SHORT: Final = 60
"""Up to so many characters, a cure is repeated rather than referred to."""
_HEAD: Final = "| rule | looks at | level | what it costs | cure |\n|---|---|---|---|---|"


def tables() -> str:
    """A table a topic, in Markdown."""
    rules: list[CheckRule[Any]] = [*RUN_RULES, *CHECK_RULES]
    lines = []
    for topic in dict.fromkeys(rule.topic for rule in rules):
        rows = _rows([rule for rule in rules if rule.topic == topic])
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


def _rows(rules: list[CheckRule[Any]]) -> list[str]:
    """A row a rule; a long cure of several that follow one another stands in the first of
    them, which the others name."""
    rows = []
    first: CheckRule[Any] | None = None
    for rule in rules:
        level: str = rule.level
        if rule.error and rule in RUN_RULES:
            level = f"**{level}**, of a run too"
        cure = _code(rule.cure)
        if first is not None and first.cure == rule.cure and len(cure) > _SHORT:
            cure = f"as for {first.name}"
        else:
            first = rule
        facts = rule.judged_facts.removeprefix("global variable, ")
        rows.append(row((rule.name, facts, level, rule.consequence, cure)))
    return rows


def _code(cure: str) -> str:
    """A statement to be typed, as code; what follows it is prose."""
    if cure == _NOTHING:
        return ""
    cure = _FOR_GOOD.sub(lambda found: f" and {found[2]}" if found[1] else "", cure)
    found = _STATEMENT.match(cure)
    if found is None:
        return cure
    mark = "``" if "`" in found[0] else "`"
    return f"{mark}{found[0]}{mark}{cure[found.end() :]}"


PART: Final = MadePart("checks", "docs/reference.md", tables)
