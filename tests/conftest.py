"""What every test may ask for; each server's fixtures are a plugin of their own."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import signal
import tempfile
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import pytest
from hypothesis import settings

from lockstep.resources.lake.store.staging import LockedFolder, make_locked_folder

pytest_plugins = [
    "tests.fix_ledger",
    "tests.fix_mysql",
    "tests.fix_mariadb",
    "tests.fix_objects",
    "tests.fix_spark",
    "tests.fix_connect",
    "tests.fix_catalogs",
]

# Time is not a property: the first example may compile code, and machines differ. Each run tries
# other examples, and what failed is tried again; a test to which half of Hypothesis's own hundred
# are too few says how many it wants.
settings.register_profile("lockstep", deadline=None, max_examples=50)
settings.load_profile("lockstep")


# A shell's background job does not hear Ctrl-C, and hands that on to what it starts. Commands of
# tests are interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)


MEMORY: Final = Path("/dev/shm")
ROOM: Final = 8 << 30
"""Bytes: more than all files are that tests have at a time."""


def keep_files_in_memory() -> None:
    """Have tests and their servers write to memory, where there is room: no power is cut in them
    either way, and writing to a disk is a tenth of what they take. TMPDIR, if set, says where: also
    to the processes among which the tests are distributed."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    told = Path("/proc/meminfo").read_text(encoding="ascii")
    [available] = re.findall(r"^MemAvailable: *(\d+) kB$", told, re.M)
    if min(int(available) << 10, shutil.disk_usage(MEMORY).free) > ROOM:
        own = own_folder(MEMORY)
        os.environ["TMPDIR"] = tempfile.tempdir = str(own.folder)
        atexit.register(leave, own, os.getpid())


PREFIX: Final = "lockstep-tests-"
KEPT_SESSIONS: Final = 3
"""Newest sessions with tests that failed, whose files stay."""

FAILED: Final[list[pytest.Session]] = []
"""This process's session, if a test failed."""


def own_folder(parent: Path) -> LockedFolder:
    """A folder for the files of this session. Those of sessions that were killed are removed, which
    hold no lock any more; of those that `leave` left without one, the newest stay."""
    left = [
        folder
        for folder in parent.glob(f"{PREFIX}*/")
        if not folder.with_name(f"{folder.name}.lock").exists()
    ]
    for folder in sorted(left, key=_changed_at)[:-KEPT_SESSIONS]:
        shutil.rmtree(folder, ignore_errors=True)
    own = make_locked_folder(parent, PREFIX)
    # The embedded Postgres has its socket there, and another account if the tests are root's.
    own.folder.chmod(0o711)
    return own


def _changed_at(folder: Path) -> float:
    with suppress(FileNotFoundError):  # another session has removed it
        return folder.stat().st_mtime
    return 0.0


def leave(own: LockedFolder, process: int) -> None:
    """At a process's end; one that it forked does not come to it. Without its lock, the folder of a
    session in which tests failed can be looked at."""
    if os.getpid() != process:
        return
    if FAILED and any(own.folder.iterdir()):
        own.folder.with_name(f"{own.folder.name}.lock").unlink()
    else:
        own.end()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.testsfailed:
        FAILED.append(session)


keep_files_in_memory()


TOGETHER = {
    "commands that begin warm": (
        "tests/catalogs/",
        "tests/e2e/",
        "tests/hostile/test_restored_by_hand",
        "tests/hostile/test_takeovers",
        "tests/upgrade/",
    ),
    "the ledger's Postgres": ("tests/ledger/",),
    "two servers": tuple(
        f"tests/positions/test_{name}.py"
        for name in (
            *("committing", "failover", "first_log", "load_faults", "moved_address", "read_from"),
            *("replays_told", "rewritten", "standby", "start_at", "whole_logs", "without_gtids"),
        )
    ),
    "Spark": (
        "tests/consumers/",
        "tests/e2e/test_dagster",
        "tests/hostile/test_foreign",
        "tests/lake/",
    ),
    "Spark Connect": (
        "tests/catalogs/test_connect",
        "tests/e2e/test_connect",
        "tests/lake/test_connect",
    ),
}
"""Modules that share what takes longest to start: one process runs them all, and they begin before
the others. None takes longer than a process's share of all tests does. Where several fit, the
longest name counts."""


def scope(nodeid: str) -> str:
    """What goes to one process: a module, or those that share something."""
    module = nodeid.split("::")[0]
    shared = {begin: name for name, begins in TOGETHER.items() for begin in begins}
    fits = [begin for begin in shared if module.startswith(begin)]
    return shared[max(fits, key=len)] if fits else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadscope`, by scopes of ours."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = scope
    return scheduler


def thinned(name: str, cases: Sequence[Mapping[str, object]]) -> list[bool]:
    """Which cases of the test of this name, marked `thin`, are kept, each given as parameter →
    value: one of so many as its parameter with the fewest values has. Any value of it is kept with
    any value of another one. Parameters that always change together count as one. The name says
    which case comes first: tests that vary in their server alone would all keep the same one."""
    columns = []
    for name in cases[0]:
        values = list[object]()
        for case in cases:
            if case[name] not in values:
                values.append(case[name])
        column = [values.index(case[name]) for case in cases]
        if column not in columns:
            columns.append(column)
    every = 1 + min(map(max, columns))
    first = crc32(name.encode()) % every
    return [sum(numbers) % every == first for numbers in zip(*columns, strict=True)]


def leave_to_the_soak(items: Sequence[pytest.Item]) -> None:
    thin = defaultdict[str, list[pytest.Function]](list)
    for item in items:
        if item.get_closest_marker("soak") or not item.get_closest_marker("thin"):
            continue
        if isinstance(item, pytest.Function):
            thin[item.nodeid.partition("[")[0]].append(item)
    for name, together in thin.items():
        kept = thinned(name, [item.callspec.params for item in together])
        for item in (item for item, keeps in zip(together, kept, strict=True) if not keeps):
            item.add_marker("soak")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_to_the_soak(items)
    items.sort(key=lambda item: scope(item.nodeid) not in TOGETHER)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: thousands of tests, and all that they import. Nobody looks for
    garbage among it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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
