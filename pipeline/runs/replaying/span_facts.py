"""What the batches of a span are read again with, asked once for all of them.

Where one batch goes on in the log file that another ended in, the witness at the later end speaks
for the earlier one too: a file of the log only grows. Structures are those of the batch before,
unless one in between learnt any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from pipeline.batch import Batch, Cursor
from pipeline.ports.batches import Elsewhere
from pipeline.ports.source import ServerFacts
from pipeline.runs.begin import read_witness_of
from pipeline.runs.capturing.initial_schemas import known_at
from pipeline.runs.context import Workplace
from pipeline.schema.versions import KnownStructures
from pipeline.start.question import WitnessReading
from pipeline.table import TableName

_ELSEWHERE: Final = MappingProxyType(
    {
        Elsewhere.SOURCE: "it has rows that were read from the source",
        Elsewhere.PREPARED: "it has rows of an XA transaction that was prepared before it",
    }
)


@dataclass(slots=True)
class SpanFacts:
    """`server`: what it answered when the span was begun. `firsts`: the first batch that has
    anything of a table. `elsewhere`, `learnt`: see `ports.batches`."""

    work: Workplace
    server: ServerFacts
    firsts: Mapping[TableName, int]
    elsewhere: Mapping[int, Elsewhere]
    learnt: frozenset[int]
    speaks: Mapping[int, Batch]
    _read: dict[int, WitnessReading] = field(default_factory=dict)
    _known: tuple[Batch, KnownStructures] | None = None

    @classmethod
    def of(cls, work: Workplace, chosen: Sequence[Batch]) -> SpanFacts:
        """Of batches in their order, at least one."""
        ledger, source = work.ledger, work.source.name
        ends = chosen[0].id, chosen[-1].id
        return cls(
            work,
            work.server.facts(),
            ledger.touched(source, 1, ends[1]),
            ledger.told_elsewhere(source, *ends),
            ledger.learnt_within(source, *ends),
            _speakers(chosen),
        )

    def why_not(self, batch: Batch) -> str | None:
        """Why the log cannot tell once more what a batch captured; None where nothing is known
        against it. Reads two events of each log file."""
        if batch.catches_up:
            return "it brought back tables that had stopped"
        if batch.id in self.elsewhere:
            return _ELSEWHERE[self.elsewhere[batch.id]]
        if batch.start.server_uuid != self.server.server_uuid:
            return "another server answers than the one whose log it read"
        assert batch.end is not None, "it is acknowledged"
        there = {log.file for log in self.server.binlogs}
        for file in (batch.start.at.file, batch.end.at.file):
            if file not in there:
                return f"its log is gone from the server ({file})"
        readings = (self._witness(one) for one in (self.speaks.get(batch.id, batch), batch))
        if all(reading is not WitnessReading.SAME for reading in readings):
            return "the server's log is not the one that it read"
        return None

    def structures(self, batch: Batch) -> KnownStructures:
        """What held where a batch began."""
        if self._known is not None:
            before, known = self._known
            if before.id <= batch.id and self.learnt.isdisjoint(range(before.id, batch.id + 1)):
                return known
        known = known_at(self.work, batch, batch.start.at)
        self._known = batch, known
        return known

    def _witness(self, batch: Batch) -> WitnessReading:
        if batch.id not in self._read:
            assert batch.end is not None and batch.witness is not None, "it is acknowledged"
            cursor = Cursor(batch.id, batch.end, batch.witness)
            self._read[batch.id] = read_witness_of(self.work, cursor, self.server)
        return self._read[batch.id]


def _speakers(chosen: Sequence[Batch]) -> dict[int, Batch]:
    """The last batch that ends in the same file as each, and went on from its end."""
    found: dict[int, Batch] = {}
    for before, later in reversed(list(pairwise(chosen))):
        assert before.end is not None and later.end is not None, "they are acknowledged"
        if later.predecessor == before.id and later.end.at.file == before.end.at.file:
            found[before.id] = found.get(later.id, later)
    return found
