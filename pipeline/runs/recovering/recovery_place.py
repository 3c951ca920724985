"""The place at which a batch of the lake ends, looked for in the server's log.

| the server | the place is proven by |
|---|---|
| is the one that was read, and lists the file | the event before it, its witness |
| is another, or has purged the file | its GTIDs: all executed, none purged that is not among them |
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.errors import HistoryRewritten, LockstepError, Recovery, StartUnreachable
from pipeline.gtid import GtidSet
from pipeline.ports.source import ServerFacts
from pipeline.position import Position, Witness
from pipeline.recovery.facts import Told
from pipeline.runs.begin import RunStart
from pipeline.runs.context import Workplace
from pipeline.runs.find_place import ProvenPosition, find_place
from pipeline.start.decision import compare_witness
from pipeline.start.question import Start, StartRule, WitnessReading


@dataclass(frozen=True, slots=True)
class PlacedRecovery:
    """Where the ledger goes on. `run_start`: the same on this server, for what has to be asked of
    its log."""

    told: Told
    position: Position
    witness: Witness
    by_gtid: bool
    run_start: RunStart


@dataclass(slots=True)
class Places:
    """Batches that were looked for: those that were `found`, by number, and `why` others were
    not."""

    work: Workplace
    found: dict[int, PlacedRecovery] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)
    _facts: ServerFacts | None = None

    def reaches(self, told: Told) -> bool:
        """Whether the log has all that comes behind a batch."""
        if self._facts is None:
            self._facts = self.work.server.facts()
        try:
            self.found[told.batch] = _placed(self.work, told, self._facts)
        except LockstepError as error:
            if error.recovery is Recovery.RETRY:
                raise
            self.why.append(f"{told.at}: {error.message}")
        return told.batch in self.found


def _placed(work: Workplace, told: Told, facts: ServerFacts) -> PlacedRecovery:
    cursor = told.cursor
    if cursor.server == facts.server_uuid and facts.lists(told.at.file):
        return _at_place(work, told, facts)
    if not cursor.by_gtid or not cursor.gtids or facts.gtid_mode != "ON":
        raise StartUnreachable(
            "the server does not list that file, and no GTIDs tell where to go on",
            hint="`lockstep check`",
        )
    if not GtidSet.parse(facts.gtid_executed).contains(cursor.gtids):
        raise StartUnreachable(
            "the server lacks transactions that were read", hint="`lockstep check`"
        )
    proven = find_place(work, cursor.gtids, facts)
    position = Position(told.at, cursor.gtids, cursor.server)
    return PlacedRecovery(told, position, cursor.witness, True, _begun(told, proven, facts))


def _at_place(work: Workplace, told: Told, facts: ServerFacts) -> PlacedRecovery:
    proven = find_place(work, told.at, facts)
    cursor, witness = told.cursor, proven.witness
    if proven.at != told.at or witness is None:
        raise StartUnreachable("no transaction ends there", hint="`lockstep check`")
    if compare_witness(cursor.witness, witness) is WitnessReading.DIFFERENT:
        raise HistoryRewritten(
            "the log shows another event there than the one that was read",
            hint="`lockstep check`",
        )
    gtids = proven.gtid_set if cursor.gtids is None else cursor.gtids
    position = Position(told.at, gtids, facts.server_uuid)
    by_gtid = cursor.by_gtid and facts.gtid_mode == "ON"
    return PlacedRecovery(told, position, cursor.witness, by_gtid, _begun(told, proven, facts))


def _begun(told: Told, proven: ProvenPosition, facts: ServerFacts) -> RunStart:
    reason = f"the lake shows {told.at}"
    decision = Start(StartRule.RESUME_SAME_SERVER, reason, proven.at)
    start = Position(proven.at, proven.gtid_set, facts.server_uuid)
    return RunStart(decision, 0, start, proven.witness, facts, leave_out=proven.leave_out)
