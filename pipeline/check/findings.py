"""Rules, and how their verdicts become findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Literal, TypeVar

from lockstep.pipeline.values.errors import LockstepError

Level = Literal["ok", "warning", "refusal"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the preflight. `subject`: a setting, a table or the server. `error`: what a run
    raises for a refusal; None if it goes on, or stops only where it meets the fault. `topic`:
    groups the lines."""

    json_keys: ClassVar = ("level", "subject", "sentence", "hint")

    level: Level
    subject: str
    sentence: str
    hint: str | None = None
    error: LockstepError | None = None
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Fine:
    """There is nothing to do. `subject`: gives the verdict a line of its own."""

    sentence: str
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a person should correct. Fields that are None are taken from the rule."""

    sentence: str
    subject: str | None = None
    cure: str | None = None
    level: Level | None = None


Verdict = Fine | Fault
Evidence = TypeVar("Evidence")
Evidence_contra = TypeVar("Evidence_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class CheckRule(Generic[Evidence_contra]):
    """A pure function from evidence to verdicts, with its entry in the documentation.

    `name`: the subject of its findings. `looks_at`: what it reads. `level`: of its faults.
    `cost`: what a fault costs. `cure`: what to type or do. `error`: what a run raises for a
    refusal. A rule that does not apply yields no verdict.
    """

    name: str
    looks_at: str
    level: Level
    cost: str
    cure: str
    judge: Callable[[Evidence_contra], Iterable[Verdict]]
    error: type[LockstepError] | None = None
    topic: str = ""


def about(topic: str, *rules: CheckRule[Evidence]) -> tuple[CheckRule[Evidence], ...]:
    """Return the rules with their topic."""
    return tuple(replace(rule, topic=topic) for rule in rules)


def judged(rules: Iterable[CheckRule[Evidence]], evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings of all rules, in the rules' order."""
    for rule in rules:
        for verdict in rule.judge(evidence):
            yield _finding(rule, verdict)


def _finding(rule: CheckRule[Evidence], verdict: Verdict) -> Finding:
    if isinstance(verdict, Fine):
        subject, topic = verdict.subject or rule.name, verdict.subject or rule.topic
        return Finding("ok", subject, verdict.sentence, topic=topic)
    level = verdict.level or rule.level
    hint = verdict.cure or rule.cure
    error = None
    if level == "refusal" and rule.error is not None:
        error = rule.error(verdict.sentence, hint=hint)
    subject = verdict.subject or rule.name
    return Finding(level, subject, verdict.sentence, hint, error, rule.topic)
