"""Whatever the bytes of a log: errors that have a name and a cure, or whole transactions.

Never a crash, another exception, a hang, or memory beyond a cap. Each process that takes
inputs is looked at from outside; one that dies leaves the seed of its last input behind.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
GROWTH_BYTES: Final = 320 << 20
"""zstd may have a window of 128 MiB (RFC 8878, 3.1.1.1.2), and the bombs unpack to more."""

FEW: Final = {
    "stream": 400,
    "places": 120,
    "rows": 600,
    "maps": 400,
    "spill": 200,
    "documents": 400,
    "lies": 30,
    "results": 600,
}
MILLION: Final = {
    "stream": 150_000,
    "places": 40_000,
    "rows": 170_000,
    "maps": 70_000,
    "spill": 30_000,
    "documents": 38_000,
    "lies": 2_000,
    "results": 170_000,
}
"""Half of it: each server's log is damaged so often."""

FLAVOURS: Final = ("mysql", "mariadb")

OF_NO_SERVER: Final = frozenset({"lies", "results"})
"""Inputs that are made without a server's log."""


@dataclass(frozen=True, slots=True)
class Job:
    """So many inputs for each way in, over one server's log."""

    corpus: Path
    counts: dict[str, int]

    def words(self) -> list[str]:
        return [str(self.corpus), *(f"{way}:{count}" for way, count in self.counts.items())]


def test_damage_is_refused_by_name(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Thousands of inputs, the same every time, of the log of each server that is there; those that
    are made without a log are taken once."""
    jobs: list[Job] = []
    for flavour in FLAVOURS:
        with suppress(pytest.skip.Exception):
            corpus = request.getfixturevalue(f"{flavour}_corpus")
            few = {way: n for way, n in FEW.items() if not jobs or way not in OF_NO_SERVER}
            jobs.append(Job(corpus, few))
    if not jobs:
        pytest.skip("there is neither a MySQL nor a MariaDB")
    for outcomes, job in zip(_outcomes(jobs, tmp_path / "seed", 0), jobs, strict=True):
        _require_sound(outcomes, job.counts)


@pytest.mark.soak
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_million_damaged_inputs(
    flavour: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others every time; FUZZ_SEED, as printed, repeats them."""
    first = int(os.environ.get("FUZZ_SEED", secrets.randbelow(1 << 40)))
    corpus = request.getfixturevalue(f"{flavour}_corpus")
    with capsys.disabled():
        print(f"\n{flavour}: FUZZ_SEED={first}", flush=True)
    [outcomes] = _outcomes([Job(corpus, MILLION)], tmp_path / "seed", first)
    with capsys.disabled():
        for outcome in outcomes:
            rate = outcome["inputs"] / outcome["seconds"]
            print(f"{outcome['way']}: {rate:.0f}/s, {outcome['out']} out, {outcome['refused']}")
    _require_sound(outcomes, MILLION)


def test_a_read_beyond_the_end_ends_the_process() -> None:
    """The memory that inputs lie in notices a single byte too many."""
    command = [sys.executable, "-c", _READS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    codes = [0, -signal.SIGSEGV, -signal.SIGSEGV]
    assert done.stdout.split() == [str(int(code)) for code in codes]


_READS: Final = """
import os
from tests.fuzz.guarded import Guarded, ctypes
held = Guarded(1)
at = held.last(9).ctypes.data
for place, size in (at, 9), (at + 1, 9), (at + 9, 1):
    child = os.fork()
    if not child:
        ctypes.string_at(place, size)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def _outcomes(jobs: list[Job], seeds: Path, first: int) -> list[list[dict[str, Any]]]:
    """What a process that took these inputs says of each way in, for each corpus; fails if it
    died."""
    seeds.write_bytes(bytes(8))
    module = ["-m", "tests.fuzz.process", str(seeds), str(first)]
    done = subprocess.run(
        [sys.executable, *module, *(word for job in jobs for word in job.words())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        corpus, way = [(job.corpus, way) for job in jobs for way in job.counts][len(outcomes)]
        seed = int.from_bytes(seeds.read_bytes(), "little")
        # pytest soon deletes its own.
        kept = shutil.copy(corpus, Path(tempfile.gettempdir()) / f"fuzz-{way}-{seed}.corpus")
        again = f"python -m tests.fuzz.process {kept}.seed {seed} {kept} {way}:1"
        pytest.fail(
            f"{way} ended with {done.returncode} at the input of seed {seed}; "
            f"once more, alone: {again}\n{done.stderr[-4000:]}",
            pytrace=False,
        )
    told = iter(outcomes)
    return [list(islice(told, len(job.counts))) for job in jobs]


def _require_sound(outcomes: list[dict[str, Any]], counts: dict[str, int]) -> None:
    """All were taken, some were refused and some came out, and memory stayed."""
    assert {outcome["way"]: outcome["inputs"] for outcome in outcomes} == counts
    silent = [
        outcome["way"] for outcome in outcomes if not outcome["out"] or not outcome["refused"]
    ]
    assert silent == []
    grown = {outcome["way"]: outcome["grown_bytes"] for outcome in outcomes}
    assert {way: size for way, size in grown.items() if size > GROWTH_BYTES} == {}
