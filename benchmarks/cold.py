"""`python -m benchmarks.cold`, which `engine` starts: what a new process costs before it reads.

Its standard input is a JSON object: the server's `host`, `port`, `user` and `password`, `tables`,
and `small` and `large`, two spans of the log as [start, end]. It prints a JSON object with the
fields of `ColdCost`. The engine's compiled code must be cached already, as in every process but the
first.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from time import perf_counter

from benchmarks.resident import highest_resident_size


@dataclass(frozen=True, slots=True)
class ColdCost:
    """Seconds of importing, and of the first and second pass over the small span; the highest
    resident size in bytes before the first pass and after the large span."""

    import_seconds: float
    first_seconds: float
    second_seconds: float
    resident_before: int
    resident_peak: int


def main() -> None:
    """Import, then read the small span twice and the large one once."""
    request = json.load(sys.stdin)
    timer_start = perf_counter()
    from benchmarks.reader import read_all
    from lockstep.pipeline.values.position import Coordinates
    from lockstep.pipeline.values.table import TablePatterns
    from lockstep.resources.mysql.connection import ConnectionSettings

    import_seconds = perf_counter() - timer_start
    before = highest_resident_size()
    settings = ConnectionSettings(
        request["host"], request["port"], request["user"], request["password"], tls="off"
    )
    patterns = TablePatterns((request["tables"],))
    seconds = []
    for span in (request["small"], request["small"], request["large"]):
        start, end = map(Coordinates.parse, span)
        timer_start = perf_counter()
        read_all(settings, start, end, patterns)
        seconds.append(perf_counter() - timer_start)
    peak = highest_resident_size()
    print(json.dumps(asdict(ColdCost(import_seconds, seconds[0], seconds[1], before, peak))))


if __name__ == "__main__":
    main()
