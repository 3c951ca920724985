"""Sparks for the tests: one in a worker, and a Java for the processes that run whole commands for
it; each from the first test that needs it on.

They cost seconds to start, and a process has one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.resources.lake.spark.session import SparkProcess
from tests.e2e.warm import HeldLedgers, WarmProcess
from tests.fix_objects import ObjectStore
from tests.uncompiled import UNCOMPILED


@pytest.fixture(scope="session")
def spark(object_address: ObjectStore) -> Iterator[SparkProcess]:
    """The Spark of this process, which knows the tests' object store; started by whoever first
    needs a session."""
    process = SparkProcess(
        {
            "spark.driver.memory": "1g",
            **UNCOMPILED,
            **object_address.spark_conf(),
        },
        lake=object_address.prefix(),
        on_warning=lambda sentence: None,
    )
    yield process
    process.stop()


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """pytest's, which is removed behind a test that passed: no ledger runs in it then."""
    yield tmp_path
    HeldLedgers.let_go_below(tmp_path)


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    """Commands as processes that do not have to import and to start Java first."""
    process = WarmProcess()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def rival(warm: WarmProcess) -> Iterator[WarmProcess]:
    """Another one, for a run that meets one of `warm`: each has one child at a time."""
    process = warm.twin()
    yield process
    process.stop()
