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

# Rooms whose tests share a Spark stay on one worker; of other rooms, each module does.
_ONE_SPARK = ("consumers", "lake")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Which tests keep together when several workers share the work (`--dist loadgroup`)."""
    for item in items:
        module = item.path.relative_to(TESTS)
        group = "spark" if module.parts[0] in _ONE_SPARK else str(module)
        item.add_marker(pytest.mark.xdist_group(group))
