"""Where output goes: one JSON object on standard output, everything for people on
standard error.

Belongs here: the duplicates taken before anything redirects the two, and standard output
kept clean of what libraries and the JVM print. Does not: what is written.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any, TextIO

_ESCAPED = "backslashreplace"


@dataclass(frozen=True, slots=True)
class Streams:
    """`people` takes text; `machine` exactly one JSON object, when it is asked for."""

    people: TextIO
    machine: TextIO

    def write_json(self, payload: Mapping[str, Any]) -> None:
        json.dump(payload, self.machine, ensure_ascii=False, indent=2)
        self.machine.write("\n")
        self.machine.flush()


@contextmanager
def open_streams() -> Iterator[Streams]:
    """Duplicates of descriptors 1 and 2; until the end, 1 leads where 2 does, so that
    what anybody prints cannot mix with the object."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1)
    with (
        os.fdopen(os.dup(1), "w", encoding="utf-8", errors=_ESCAPED) as machine,
        os.fdopen(os.dup(2), "w", 1, encoding="utf-8", errors=_ESCAPED) as people,
    ):
        os.dup2(2, 1)
        try:
            with redirect_stdout(sys.stderr):
                yield Streams(people, machine)
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
