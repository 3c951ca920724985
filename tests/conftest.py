"""What every test may ask for; each server's fixtures are a plugin of their own."""

from __future__ import annotations

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.fix_mysql", "tests.fix_mariadb"]

# Time is not a property: the first example may compile code, and machines differ.
settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")

# Two halves, each in the order of its modules and with servers of its own: rooms that start Spark
# or whole processes, and rooms that read logs.
_WHOLE_RUNS = ("cli", "consumers", "dagster", "demo", "e2e", "lake", "online")


class Halves(LoadScopeScheduling):  # type: ignore[misc]
    """Which tests keep together when two workers share the work."""

    def _split_scope(self, nodeid: str) -> str:
        return "runs" if nodeid.split("/")[1] in _WHOLE_RUNS else "logs"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Halves:
    """The scheduler of `--dist loadscope`."""
    return Halves(config, log)
