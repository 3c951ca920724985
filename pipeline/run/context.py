"""The values that each step of a run is given: the ports to the outside world
(Protocols), the settings of the source, and the receiver of its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from time import sleep
from typing import TYPE_CHECKING

from lockstep.pipeline.model.batch import RequestCounts
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.run.progress import Progress
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.source_plan import SourcePlan

if TYPE_CHECKING:
    from lockstep.pipeline.ports.catalog import Registry
    from lockstep.pipeline.ports.changelog import Changelog
    from lockstep.pipeline.ports.claims import Claims
    from lockstep.pipeline.ports.ledger import Ledger
    from lockstep.pipeline.ports.mirrors import Mirrors
    from lockstep.pipeline.ports.segments import SegmentStore, Spool
    from lockstep.pipeline.ports.source import SourceServer


@dataclass(frozen=True, slots=True)
class RunPorts:
    """The ports and settings that each step of one source's runs works with.

    - `segments`: files of captured changes. `spool`: encrypted temporary files for row
      events.
    - `changelog`: Delta tables with all changes. `mirrors`: Delta tables with the
      current rows.
    - `claims`: small files in the lake, which say which ledger owns a source's folder,
      and which structures its tables have.
    - `clock`: returns the present moment. `pause`: waits a number of seconds.
    - `count_requests`: returns the number of requests to the lake's object store so
      far; None if the lake is a folder.
    - `shaping`: the settings that hide or change columns and rows of the source's
      tables in the lake.
    - `open_registry`: returns the catalog in which mirrors are registered, or None.
      Raises `ConfigurationError` if its settings are wrong.
    """

    source: SourcePlan
    server: SourceServer
    ledger: Ledger
    segments: SegmentStore
    spool: Spool
    changelog: Changelog
    mirrors: Mirrors
    claims: Claims
    progress: Progress
    clock: Callable[[], datetime]
    count_requests: Callable[[], RequestCounts | None] = lambda: None
    pause: Callable[[float], None] = sleep
    open_registry: Callable[[], Registry | None] = lambda: None
    shaping: Shaping = field(default_factory=Shaping)

    def report_stop(self, stopped: StoppedTable) -> None:
        """Report a table that stops while the run continues."""
        event = f"was quarantined at {stopped.position}"
        if stopped.starts_by_itself:
            event = f"stops at {stopped.position} until a run reads it from the source"
        self.progress.note(f"{stopped.table} {event}: {stopped.reason}")
