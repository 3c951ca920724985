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
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
GROWTH_BYTES: Final = 320 << 20
"""zstd may have a window of 128 MiB (RFC 8878, 3.1.1.1.2), and the bombs unpack to more."""

FEW: Final = {
    "stream": 200,
    "places": 60,
    "rows": 300,
    "maps": 200,
    "spill": 100,
    "documents": 200,
    "lies": 30,
    "results": 300,
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


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_damage_is_refused_by_name(
    flavour: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Thousands of inputs, the same every time; each server's log has others, and those that are
    made without one are taken once."""
    corpus, number = request.getfixturevalue(f"{flavour}_corpus"), FLAVOURS.index(flavour)
    few = {way: count for way, count in FEW.items() if not number or way not in OF_NO_SERVER}
    _require_sound(_outcomes(corpus, tmp_path / "seed", 100_000 * number, few), few)


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
    outcomes = _outcomes(corpus, tmp_path / "seed", first, MILLION)
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


def _outcomes(
    corpus: Path, seeds: Path, first: int, counts: dict[str, int]
) -> list[dict[str, Any]]:
    """What a process that took these inputs says of each way in; fails if it died."""
    seeds.write_bytes(bytes(8))
    parts = [f"{way}:{count}" for way, count in counts.items()]
    module = ["-m", "tests.fuzz.process", str(corpus), str(seeds)]
    done = subprocess.run(
        [sys.executable, *module, str(first), *parts],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        way = list(counts)[len(outcomes)]
        seed = int.from_bytes(seeds.read_bytes(), "little")
        # pytest soon deletes its own.
        kept = shutil.copy(corpus, Path(tempfile.gettempdir()) / f"fuzz-{way}-{seed}.corpus")
        again = f"python -m tests.fuzz.process {kept} {kept}.seed {seed} {way}:1"
        pytest.fail(
            f"{way} ended with {done.returncode} at the input of seed {seed}; "
            f"once more, alone: {again}\n{done.stderr[-4000:]}",
            pytrace=False,
        )
    return outcomes


def _require_sound(outcomes: list[dict[str, Any]], counts: dict[str, int]) -> None:
    """All were taken, some were refused and some came out, and memory stayed."""
    assert {outcome["way"]: outcome["inputs"] for outcome in outcomes} == counts
    silent = [
        outcome["way"] for outcome in outcomes if not outcome["out"] or not outcome["refused"]
    ]
    assert silent == []
    grown = {outcome["way"]: outcome["grown_bytes"] for outcome in outcomes}
    assert {way: size for way, size in grown.items() if size > GROWTH_BYTES} == {}
