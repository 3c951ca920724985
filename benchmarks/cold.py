"""`python -m benchmarks.cold`, which `engine` starts: what a new process costs before it reads.

Its standard input is a JSON object: the server's `host`, `port`, `user` and `password`, `tables`,
and `small` and `large`, two spans of the log as [start, end]. It prints a JSON object with the
fields of `Cold`. The engine's compiled code must be cached already, as in every process but the
first.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from time import perf_counter

from benchmarks.resident import highest_resident_size


@dataclass(frozen=True, slots=True)
class Cold:
    """Seconds of importing, and of the first and second pass over the small span; the highest
    resident size in bytes before the first pass and after the large span."""

    imported: float
    first: float
    second: float
    resident_before: int
    resident_peak: int


def main() -> None:
    """Import, then read the small span twice and the large one once."""
    request = json.load(sys.stdin)
    clock = perf_counter()
    from benchmarks.reader import read_all
    from lockstep.pipeline.values.position import Coordinates
    from lockstep.pipeline.values.table import TablePatterns
    from lockstep.resources.mysql.connection import ConnectionSettings

    imported = perf_counter() - clock
    before = highest_resident_size()
    settings = ConnectionSettings(
        request["host"], request["port"], request["user"], request["password"], tls="off"
    )
    patterns = TablePatterns((request["tables"],))
    seconds = []
    for stretch in (request["small"], request["small"], request["large"]):
        start, end = map(Coordinates.parse, stretch)
        clock = perf_counter()
        read_all(settings, start, end, patterns)
        seconds.append(perf_counter() - clock)
    peak = highest_resident_size()
    print(json.dumps(asdict(Cold(imported, seconds[0], seconds[1], before, peak))))


if __name__ == "__main__":
    main()
