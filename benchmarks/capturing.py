"""`python -m benchmarks.capturing`, which `runs` starts: the capture of a cold run without the
rest.

It works in the current project folder on the source `bench`, through the same ports as a run,
except for mirrors, because a run starts Spark in the background as soon as there are changes. It
prints a JSON object with the fields of `CaptureCost`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import process_time


@dataclass(frozen=True, slots=True)
class CaptureCost:
    """Wall and processor seconds of a capture, everything before its first byte included, and
    what it read."""

    seconds: float
    processor_seconds: float
    rows: int
    bytes: int


def main() -> None:
    """Capture once."""
    from lockstep.pipeline.run.capture import capture
    from lockstep.pipeline.run.progress import SilentProgress
    from lockstep.resources.adapters import Adapters
    from lockstep.resources.config import load_settings
    from tests.twins.lake import MemoryLake
    from tests.twins.mirrors import MemoryMirrors

    settings = load_settings(Path("lockstep.toml"))
    with Adapters(settings, on_warning=lambda text: print(text, file=sys.stderr)) as adapters:
        ports = replace(
            adapters.ports("bench", SilentProgress()), mirrors=MemoryMirrors(MemoryLake())
        )
        with ports.ledger.lock("bench", "benchmark", None) as lease:
            timer_start = process_time()
            report = capture(ports, lease)
            processor = process_time() - timer_start
    seconds = report.start_seconds + report.capture_seconds
    print(json.dumps(asdict(CaptureCost(seconds, processor, report.rows, report.log_bytes))))


if __name__ == "__main__":
    main()
