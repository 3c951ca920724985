"""What a new process pays: `python -m benchmarks.cold`, started by `engine.py`.

Standard input is one JSON object: the server's `host`, `port`, `user` and `password`,
`tables`, and `small` and `large`, two stretches of the log as [start, end]. Standard
output is one JSON object, of `Cold`'s fields. The engine's compiled code must be in its
cache already, as in every process but the first.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from time import perf_counter

from benchmarks.resident import highest_resident_size


@dataclass(frozen=True, slots=True)
class Cold:
    """Seconds of importing, of the first pass over the small stretch and of the second;
    the highest resident size in bytes, before the first pass and after the large stretch."""

    imported: float
    first: float
    second: float
    resident_before: int
    resident_peak: int


def main() -> None:
    """Import, read the small stretch twice and the large one once."""
    given = json.load(sys.stdin)
    clock = perf_counter()
    from benchmarks.reader import read_all
    from pipeline.position import Coordinates
    from pipeline.tables import TablePatterns
    from resources.mysql.connection import ConnectionSettings

    imported = perf_counter() - clock
    before = highest_resident_size()
    settings = ConnectionSettings(
        given["host"], given["port"], given["user"], given["password"], tls="off"
    )
    patterns = TablePatterns((given["tables"],))
    seconds = []
    for stretch in (given["small"], given["small"], given["large"]):
        start, end = map(Coordinates.parse, stretch)
        clock = perf_counter()
        read_all(settings, start, end, patterns)
        seconds.append(perf_counter() - clock)
    peak = highest_resident_size()
    print(json.dumps(asdict(Cold(imported, seconds[0], seconds[1], before, peak))))


if __name__ == "__main__":
    main()
