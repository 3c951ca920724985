"""The tools, found or fetched, and a server whose log names no columns."""

from __future__ import annotations

import os

import pytest

from demo.mysql_search import cache_folder
from lockstep.pipeline.values.errors import SetupIncomplete
from tests.e2e.conftest import minimal_metadata
from tests.online.toolkit import PerconaToolkit

__all__ = ["minimal_metadata"]


@pytest.fixture(scope="session")
def toolkit() -> PerconaToolkit:
    """Percona Toolkit, fetched once into the user's cache folder."""
    try:
        return PerconaToolkit(cache_folder(os.environ))
    except SetupIncomplete as missing:
        pytest.skip(f"{missing}: {missing.hint}")
