"""How findings are shown: to people by weight, to programs one by one.

Belongs here: what is put on one line, and what is left to `--json`. Does not: any rule.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pipeline.preflight import Finding
from pipeline.shown import listed, shown

_WIDTH: Final = 100
_INDENT: Final = " " * 11
_MARK: Final = {"ok": "  ok       ", "warning": "  warning  ", "refusal": "  refusal  "}
_GRAVEST: Final = ("refusal", "warning", "ok")
_MOST: Final = 5
"""Cures named of a finding that many tables share."""


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Refusals and warnings with their cures, then what is fine, a line a topic, then how
    many of each there are."""
    for level in ("refusal", "warning"):
        for group in _alike(finding for finding in findings if finding.level == level):
            yield from _fault(group)
    yield from _fine([finding for finding in findings if finding.level == "ok"])
    yield f"  {counted(findings)}"


def counted(findings: Iterable[Finding]) -> str:
    """`1 refusal, 3 warnings, 40 ok`; levels without a finding are left out."""
    levels = [finding.level for finding in findings]
    words = []
    for level in _GRAVEST:
        count = levels.count(level)
        if count:
            plural = "s" if count > 1 and level != "ok" else ""
            words.append(f"{count} {level}{plural}")
    return ", ".join(words)


def objects(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Each finding as `--json` prints it."""
    return [
        {
            "level": finding.level,
            "subject": finding.subject,
            "sentence": finding.sentence,
            "hint": finding.hint,
        }
        for finding in findings
    ]


def _alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Findings that say the same of different tables."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.topic, finding.sentence), []).append(finding)
    return groups.values()


def _fault(group: list[Finding]) -> Iterator[str]:
    first = group[0]
    subjects = listed([finding.subject for finding in group])
    yield f"{_MARK[first.level]}{shown(subjects)}: {shown(first.sentence)}"
    hints = list(dict.fromkeys(finding.hint for finding in group if finding.hint))
    for hint in hints[:_MOST]:
        yield f"{_INDENT}hint: {shown(hint)}"
    if len(hints) > _MOST:
        yield f"{_INDENT}      and {len(hints) - _MOST} more such; --json has them all"


def _fine(findings: Sequence[Finding]) -> Iterator[str]:
    topics: dict[str, list[str]] = {}
    for finding in findings:
        topics.setdefault(finding.topic or finding.subject, []).append(finding.sentence)
    for topic, sentences in topics.items():
        text = f"{topic}: {'; '.join(dict.fromkeys(sentences))}"
        yield from textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=_MARK["ok"],
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
