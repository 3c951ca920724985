"""What is tried again stands in one table, and nothing else in the product waits."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.pipeline.values import retries
from lockstep.pipeline.values.retries import SPARK, STEP
from tests.pages.retries import named

ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    path
    for room in ("pipeline", "resources", "assets", "lockstep")
    for path in sorted((ROOT / room).rglob("*.py"))
]
_NAMED = re.compile(r"(^|_)(TRIES|ATTEMPTS|RETRIES|PAUSES)$|_PAUSE$")
"""How a number is called that counts tries, or waits between them."""
_MAY_WAIT = re.compile(r"sleep|TRIES|ATTEMPTS|RETRIES|PAUSE|^\s*(while|for _ in)\b", re.MULTILINE)
"""A module without any of these does none of it."""


def waits(tree: ast.AST) -> list[str]:
    """Calls of sleep, numbers of tries, and loops that go on after a failure."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="sleep") | ast.Attribute(attr="sleep")):
                found.append(f"{node.lineno}: sleeps")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if _NAMED.search(name):
                    found.append(f"{node.lineno}: {name}")
            case (
                ast.For(target=ast.Name(id="_"), iter=ast.Call(func=ast.Name(id="range")))
                | ast.While(test=ast.Constant())
            ):
                if any(isinstance(one, ast.Try) and _goes_on(one) for one in node.body):
                    found.append(f"{node.lineno}: tries again")
    return found


def _goes_on(tried: ast.Try) -> bool:
    ends = ast.Raise | ast.Return | ast.Break
    return any(not isinstance(handler.body[-1], ends) for handler in tried.handlers)


def test_nothing_else_waits_or_counts_tries() -> None:
    """Whoever waits takes its numbers and its loop from `pipeline.values.retries`."""
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in MODULES
        if path != Path(retries.__file__).resolve()
        and _MAY_WAIT.search(text := path.read_text())
        and (wrong := waits(ast.parse(text)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "sleep(1)",
        "time.sleep(0.1)",
        "_TRIES = 3",
        "PAUSES: Final = (1.0,)",
        "for _ in range(3):\n    try:\n        f()\n    except OSError:\n        g()",
        "while True:\n    try:\n        f()\n    except OSError:\n        continue",
    ],
)
def test_a_wait_is_found(code: str) -> None:
    assert _MAY_WAIT.search(code)
    assert len(waits(ast.parse(code))) == 1


def test_each_retry_is_used() -> None:
    others = "".join(
        path.read_text() for path in MODULES if path != Path(retries.__file__).resolve()
    )
    assert len(named()) > 10
    assert [name for name in named() if f" {name}" not in others] == []


def test_tries_and_pauses() -> None:
    """The last try has no pause behind it; the last pause is repeated, for ever where there is no
    end; what succeeds is not tried again, and a time that is over still has one try."""
    slept: list[float] = []
    retry = replace(STEP, most_tries=4, pauses=(0.5, 2.0))
    next(retry.tries(slept.append))
    assert slept == []
    assert list(retry.tries(slept.append)) == [0.5, 2.0, 2.0, None]
    assert slept == [0.5, 2.0, 2.0]
    assert list(replace(STEP, most_tries=None, seconds=0.0).tries()) == [None]
    endless = SPARK.tries(lambda _: None)
    assert [next(endless) for _ in range(100)] == [0.02] * 100
