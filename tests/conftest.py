"""What every test may ask for; each server's fixtures are a plugin of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.fix_mysql", "tests.fix_mariadb"]

# Time is not a property: the first example may compile code, and machines differ.
settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")

TESTS = Path(__file__).parent

# Two halves, each in the order of its modules: rooms that start Spark or whole processes, and
# rooms that read logs.
_WHOLE_RUNS = ("cli", "consumers", "dagster", "demo", "e2e", "lake", "online")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Which tests keep together when two workers share the work (`--dist loadgroup`)."""
    for item in items:
        room = item.path.relative_to(TESTS).parts[0]
        half = "runs" if room in _WHOLE_RUNS else "logs"
        item.add_marker(pytest.mark.xdist_group(half))
