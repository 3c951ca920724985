"""What every test may ask for; each server's fixtures are a plugin of their own."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import settings

pytest_plugins = ["tests.fix_mysql", "tests.fix_mariadb", "tests.fix_objects", "tests.fix_spark"]

# Time is not a property: the first example may compile code, and machines differ.
settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")


def room(nodeid: str) -> str:
    """The folder of a test, or its module for those of `tests` itself."""
    parts = nodeid.split("::")[0].split("/")
    return "/".join(parts[:2])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time went: the seconds of each folder, set-up and tear-down with them, summed
    over the workers."""
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[room(report.nodeid)] += report.duration
                tests[room(report.nodeid)] += report.when == "call"
    if len(seconds) < 2:
        return
    terminalreporter.section("seconds by folder")
    for name, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        if spent >= 0.5:
            terminalreporter.line(f"{spent:8.1f} s  {tests[name]:5d} tests  {name}")
