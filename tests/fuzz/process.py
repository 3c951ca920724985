"""A process that takes inputs until one is not refused as it should be.

    python -m tests.fuzz.process CORPUS SEED_FILE FIRST WAY:COUNT …

takes, for each way in (`targets.ways_in`), the inputs of so many seeds from FIRST on. It decides
which exceptions may come, how much memory and how long one input may take, and writes the seed of
the current input to SEED_FILE (8 bytes, little-endian), for whoever finds this process dead. It
prints a line of JSON (`Outcome`) for each way and ends with 0, or with a traceback.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import resource
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Final

from lockstep.pipeline.values.errors import LockstepError, Recovery, TableError
from tests.fuzz.guarded import guard_outputs
from tests.fuzz.recorded import Corpus
from tests.fuzz.targets import ways_in

_MEMORY_BYTES: Final = 512 << 20
"""What the process may ask for beyond what it has when everything is compiled."""

_SECONDS: Final = 120
_TOGETHER: Final = 256
"""So many inputs may take so long; they take seconds at most."""

_WARM: Final = 64
"""So many of the inputs are taken beforehand, so that what they need is compiled and loaded
when the memory in use is looked at."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Inputs taken, in so many seconds; what came out whole; how often which error was
    raised; bytes by which the greatest resident size grew."""

    way: str
    inputs: int
    seconds: float
    out: int
    refused: dict[str, int]
    grown_bytes: int


def run(
    way: str, take: Callable[[Random], int], first: int, count: int, place: mmap.mmap
) -> Outcome:
    """Take the inputs of so many seeds from `first` on; `place`: where the seed is noted."""
    for seed in range(first, first + min(count, _WARM)):
        _taken(take, seed, place)
    _limit_memory()
    refused: Counter[str] = Counter()
    clock, before, out = perf_counter(), _resident(), 0
    for number in range(count):
        if number % _TOGETHER == 0:
            faulthandler.dump_traceback_later(_SECONDS, exit=True)
        found = _taken(take, first + number, place)
        if isinstance(found, str):
            refused[found] += 1
        else:
            out += found
    seconds = perf_counter() - clock
    return Outcome(way, count, seconds, out, dict(refused), _resident() - before)


def _taken(take: Callable[[Random], int], seed: int, place: mmap.mmap) -> int | str:
    """What came out whole of the seed's input, or the name of the error that refused it."""
    place[:] = seed.to_bytes(8, "little")
    try:
        return take(Random(seed))
    except (LockstepError, TableError) as error:
        _require_typed(error)
        return type(error).__name__


def _require_typed(error: LockstepError | TableError) -> None:
    """A leaf with a hint, and a sentence that anything can print."""
    recovery = Recovery.OPERATOR if isinstance(error, TableError) else error.recovery
    assert recovery is not None, error
    assert error.hint, error
    assert str(error).encode("utf-8", "surrogateescape"), error
    assert len(str(error)) < 1000, error


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY_BYTES, resource.RLIM_INFINITY))


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(arguments: list[str]) -> None:
    corpus, seeds, first, *wanted = arguments
    guard_outputs()
    ways = ways_in(Corpus.load(Path(corpus)))
    Path(seeds).write_bytes(bytes(8))
    with Path(seeds).open("r+b") as file, mmap.mmap(file.fileno(), 8) as place:
        for part in wanted:
            way, _, count = part.partition(":")
            faulthandler.dump_traceback_later(_SECONDS, exit=True)
            outcome = run(way, ways[way], int(first), int(count), place)
            print(json.dumps(asdict(outcome)), flush=True)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    faulthandler.enable()
    main(sys.argv[1:])
