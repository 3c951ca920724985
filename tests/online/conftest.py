"""The tools, found or fetched, and a server whose log names no columns."""

from __future__ import annotations

import os

import pytest

from lockstep.demo.mysql_search import cache_folder
from pipeline.errors import SetupIncomplete
from tests.online.toolkit import PerconaToolkit


@pytest.fixture(scope="session")
def toolkit() -> PerconaToolkit:
    """Percona Toolkit, fetched once into the user's cache folder."""
    try:
        return PerconaToolkit(cache_folder(os.environ))
    except SetupIncomplete as missing:
        pytest.skip(f"{missing}: {missing.hint}")
