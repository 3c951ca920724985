"""`lockstep adopt TABLE`: a mirror that somebody else loaded is compared with MySQL, and gone on
with if it is equal.

That place is where the table goes on: a batch that reads nothing says that its mirror shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.batch import CaptureRecord, Cursor
from pipeline.changes.layout import DELETED_AT, mirror_columns, new_table
from pipeline.decisions import Decision, Lease
from pipeline.errors import TableError
from pipeline.runs.agreement.claim import claim_folder, require_claim
from pipeline.runs.agreement.lake_logs import is_foreign
from pipeline.runs.comparing.verify_rows import Found, LakeShown, compare, what_the_lake_shows
from pipeline.runs.context import Workplace
from pipeline.runs.reports import NotCompared, TableDifference
from pipeline.schema.history import History, Knowledge, SchemaVersion, VersionOrigin
from pipeline.table import TableName
from pipeline.table_state import Handover, TableState

KIND = "mirror-adopted"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table and the mirror that it may go on with, at a Delta version; `schema`: its structure
    at the place that the lake shows."""

    table: TableName
    state: TableState
    version: int
    schema: SchemaVersion


@dataclass(frozen=True, slots=True)
class AdoptionComparison:
    """What was found of each table; `candidates`: those that are equal."""

    cursor: Cursor
    found: Mapping[TableName, Found]
    candidates: tuple[Candidate, ...]

    @property
    def equal(self) -> bool:
        """Whether all of them are."""
        return len(self.candidates) == len(self.found)


def compare_tables(work: Workplace, tables: Sequence[TableName]) -> AdoptionComparison:
    """Writes nothing. `SourceMoving` before the first run, and while batches wait."""
    shown = what_the_lake_shows(work)
    comparisons: dict[TableName, Found] = {}
    candidates: dict[TableName, Candidate] = {}
    for table in tables:
        try:
            candidates[table] = _candidate(work, shown, table)
        except TableError as error:
            comparisons[table] = NotCompared(table, error.reason, error.hint)
    with_them = replace(
        shown,
        states={
            **shown.states,
            **{candidate.table: candidate.state for candidate in candidates.values()},
        },
        versions={
            **shown.versions,
            **{candidate.table: candidate.version for candidate in candidates.values()},
        },
    )
    comparisons.update(compare(work, with_them, sorted(candidates)))
    equal = [
        candidates[table]
        for table, comparison in sorted(comparisons.items())
        if isinstance(comparison, TableDifference) and comparison.equal
    ]
    return AdoptionComparison(shown.cursor, comparisons, tuple(equal))


def adopt_tables(
    work: Workplace, lease: Lease, tables: Sequence[TableName], *, author: str, reason: str
) -> AdoptionComparison:
    """Compare them, and go on with all of them or none."""
    require_claim(work)
    compared = compare_tables(work, tables)
    if compared.equal:
        _record(work, lease, compared, author, reason)
        claim_folder(work)
    return compared


def _candidate(work: Workplace, shown: LakeShown, table: TableName) -> Candidate:
    source = work.source.name
    state = new_table(source, table)
    instead = f"`lockstep snapshot {table} --reason …` reads it from the source"
    if not work.source.patterns.matches(table):
        raise TableError(
            "the patterns leave it out", hint="add it to `tables` of the source in lockstep.toml"
        )
    if table in shown.states or table in shown.loading:
        raise TableError(
            "Lockstep follows it already", hint=f"`lockstep verify {table}` compares it"
        )
    version = work.mirrors.version(state.mirror)
    if version is None:
        raise TableError(f"there is no Delta table at {state.mirror}", hint=instead)
    if not is_foreign(work, state.mirror):
        raise TableError(
            "its mirror was written by Lockstep",
            hint=f"`lockstep adopt --source {source}` shows what becomes of it",
        )
    at = shown.cursor.position.at
    schema = work.ledger.schema_at(source, table, batch=shown.cursor.batch, place=at)
    if schema is None or schema.schema is None:
        raise TableError(f"its structure at {at} is not known", hint=instead)
    wanted = mirror_columns(schema.schema)
    have = work.mirrors.schema(state.mirror, version)
    mine = {field.name: field.type for field in have if field.name != DELETED_AT.name}
    other = sorted(
        {one.name for one in wanted if mine.get(one.name) != one.type}
        | mine.keys() - {*wanted.names}
    )
    if other:
        raise TableError(
            f"columns of its mirror are not as docs/lake.md says: {', '.join(sorted(other))}",
            hint=instead,
        )
    return Candidate(table, state, version, schema)


def _record(
    work: Workplace, lease: Lease, compared: AdoptionComparison, author: str, reason: str
) -> None:
    """A batch behind the newest one, which ends where it begins."""
    ledger, cursor, source = work.ledger, compared.cursor, work.source.name
    names = [str(candidate.table) for candidate in compared.candidates]
    ledger.decide(lease, Decision("hand-over", KIND, reason, {"tables": names}, author))
    here = cursor.position
    batch = ledger.begin_batch(lease, here, predecessor=cursor.batch, start_decision=None)
    numbers = ledger.last_versions(source)
    versions, handovers = [], []
    for candidate in compared.candidates:
        number = numbers.get(candidate.table, 0) + 1
        versions.append(
            SchemaVersion(
                candidate.table,
                number,
                here.at,
                Knowledge.KNOWN,
                VersionOrigin.CARRIED,
                schema=candidate.schema.schema,
                generation=candidate.schema.generation,
            )
        )
        before = candidate.state
        handovers.append(
            Handover(
                candidate.table,
                before.generation + 1,
                before.mirror,
                candidate.version,
                number,
                before,
            )
        )
    record = CaptureRecord(
        end=here,
        witness=cursor.witness,
        tables=tuple(handover.adopted() for handover in handovers),
        by_gtid=cursor.by_gtid,
        history=History((), tuple(versions)),
        handovers=tuple(handovers),
        scope=work.source.patterns,
    )
    ledger.record_capture(lease, batch.id, record)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)
    looked = {candidate.state.mirror: candidate.version for candidate in compared.candidates}
    ledger.note_looked(lease, looked)
