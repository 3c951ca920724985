"""The signed hand-over: a ledger goes on with a source's folder that it does not agree with.

Nothing is taken over on trust:

- Both tell the same: the folder is claimed.
- The ledger captured nothing yet: the folder moves to `_before`, and the source begins anew.
- The lake is ahead of the ledger, behind it or gone: changelogs list what the ledger
  acknowledged and no more; tables whose mirrors differ are read from the source by the next
  run, and tables that the ledger does not know move to `_before`; the log is read on from
  where the ledger is.

The next batch and write get numbers that nobody gave before, so that no file and no
transaction of the other history is taken for one of this ledger's.

`lockstep adopt TABLE` is about a mirror that somebody else loaded: it is compared with MySQL, and
gone on with if it is equal. The comparison holds while both sides are written to: the mirror's sum
is carried through the log from the place that all other mirrors show. That place is where the table
goes on: a batch that reads nothing says that its mirror shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.batch import BatchState, CaptureRecord, Cursor
from pipeline.changes.layout import (
    DELETED_AT,
    application_id,
    mirror_columns,
    mirror_path,
    new_table,
)
from pipeline.claim import Claim, Unclaimed
from pipeline.decisions import Decision, Lease
from pipeline.errors import TableError
from pipeline.life.events import LakeRestarted
from pipeline.ports.changelog import Restated
from pipeline.runs.agreement.changelog_files import (
    ChangelogTable,
    changelogs_of,
    recorded_batches,
    source_table,
)
from pipeline.runs.agreement.claim import (
    claim_folder,
    contradicted,
    lake_trouble,
    require_claim,
    said_by,
)
from pipeline.runs.agreement.lake_logs import is_foreign, parted
from pipeline.runs.commit_records import restated_metadata
from pipeline.runs.comparing.verify_rows import Found, LakeShown, compare, what_the_lake_shows
from pipeline.runs.context import Workplace
from pipeline.runs.cures import owed
from pipeline.runs.mirror_places import former_places
from pipeline.runs.repair import damages_of
from pipeline.runs.reports import NotCompared, TableDifference
from pipeline.schema.history import History, Knowledge, SchemaVersion, VersionOrigin
from pipeline.segment import SegmentFile, SourceTable, batch_of
from pipeline.table import TableName
from pipeline.table_state import Handover, Quarantine, TableCondition, TableState

_DONE = (BatchState.MERGED, BatchState.ACKNOWLEDGED)
KIND = "hand-over"

_FAR = 1_000_000
"""Where the other history's log was cleaned up, its numbers are not known: so far above."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """What a hand-over does. `disagreement`: what both sides tell, None where they agree.
    `moves`: whether the folder moves away. `rereads`: the tables that are read from the
    source, and why. `restated`: changelogs by folder, once it is done. `moved_to`: where folders
    are now that were moved away, relative to the lake."""

    disagreement: str | None
    moves: bool = False
    rereads: tuple[tuple[TableName, str], ...] = ()
    restated: tuple[tuple[str, Restated], ...] = ()
    moved_to: tuple[str, ...] = ()


def foresee(work: Workplace) -> HandOver:
    """What it would do; writes nothing."""
    folder = work.claims.read(work.source.name)
    error = lake_trouble(work)
    told = None if error is None else error.message
    if told is None and (revision := work.ledger.revisions(work.source.name).open) is not None:
        told = (
            f"revision {revision.id} of a replay that was cut off is in some changelogs, or in none"
        )
    if _moves(work, folder):
        return HandOver(told, moves=True)
    return HandOver(told, rereads=tuple({**_apart(work), **_files_lost(work)}.items()))


def adopt(work: Workplace, lease: Lease, *, author: str, reason: str) -> HandOver:
    """Do it, and record who wanted it and why."""
    source = work.source.name
    plan = foresee(work)
    work.ledger.decide(
        lease,
        Decision(
            KIND,
            KIND,
            reason,
            {
                "disagreement": plan.disagreement,
                "moves": plan.moves,
                "reread": [str(table) for table, _ in plan.rereads],
            },
            author,
        ),
    )
    if plan.moves:
        moved_to = (work.claims.move_away(source, _stamp(work)),)
        claim_folder(work)
        return HandOver(plan.disagreement, moves=True, moved_to=moved_to)
    done = HandOver(plan.disagreement, rereads=plan.rereads)
    if plan.disagreement is not None or plan.rereads:
        done = _settle(work, lease, done)
    claim_folder(work)
    return done


def _moves(work: Workplace, folder: Claim | Unclaimed) -> bool:
    """A ledger that captured nothing has no use for what is there."""
    empty = isinstance(folder, Unclaimed) and folder.empty
    known = work.ledger.cursors(work.source.name).captured is not None
    return not known and not empty


def _apart(work: Workplace) -> dict[TableName, str]:
    source = work.source.name
    pending, states = work.ledger.pending(source), work.ledger.table_states(source)
    return {
        apart.table: apart.why
        for apart in parted(work)
        if states[apart.table].condition is not TableCondition.DROPPED or apart.table in pending
    }


def _stamp(work: Workplace) -> str:
    return f"{work.clock():%Y%m%dT%H%M%SZ}"


def _settle(work: Workplace, lease: Lease, plan: HandOver) -> HandOver:
    source = work.source.name
    highest = _number_above(work, lease)
    newest = work.ledger.cursors(source).captured
    if newest is not None:
        work.ledger.require_held(lease)
        _go_back(work, newest.batch, highest)
    if (revision := work.ledger.revisions(source).open) is not None:
        # The changelogs list what there was before.
        work.ledger.end_revision(lease, revision, settled=False)
    place = "" if newest is None else str(newest.position.at)
    states = work.ledger.table_states(source)
    for table, said in plan.rereads:
        work.ledger.quarantine(lease, Quarantine.of(table, owed(said), place))
        work.ledger.record_event(lease, table, LakeRestarted())
        mirror = states[table].mirror
        work.ledger.note_looked(lease, {mirror: work.mirrors.version(mirror)})
    work.ledger.mark_merged(lease)
    known = {changelog.folder for changelog in _changelogs(work)} | {
        state.mirror for state in states.values()
    }
    looked = work.ledger.looked(source)
    former = former_places(work.ledger, source)
    known |= {folder for folder in former if work.mirrors.version(folder) == looked[folder]}
    unknown = [folder for folder in work.claims.tables(source) if folder not in known]
    moved_to = tuple(work.claims.move_away(folder, _stamp(work)) for folder in unknown)
    return replace(plan, restated=tuple(_restated(work, lease)), moved_to=moved_to)


def _files_lost(work: Workplace) -> dict[TableName, str]:
    """Tables with changes that were captured, not merged, and are in no file any more."""
    found: dict[TableName, str] = {}
    pending = work.ledger.pending(work.source.name)
    for damage in damages_of(work):
        tables = [table for table, numbers in pending.items() if damage.batch.id in numbers]
        found |= dict.fromkeys(tables, f"captured changes of it are lost: {damage.why}")
    return found


def _go_back(work: Workplace, newest: int, highest: int) -> None:
    """Record what is void before any table is changed: what the ledger does not know. What it has
    counts, even if another one had gone back from it."""
    folder = said_by(work, work.ledger.identity())
    apart = contradicted(work, folder)
    kept = tuple(span for span in folder.void if span not in apart)
    work.claims.write(replace(folder, void=kept).gone_back(newest, highest))


def _number_above(work: Workplace, lease: Lease) -> int:
    """Go on above all numbers that commits or files of the other history may have; return the
    highest of its batches."""
    source = work.source.name
    folder = said_by(work, work.ledger.identity())
    batches = [folder.batch or 0, *(span.through for span in folder.void)]
    writes = [0]
    looked = work.ledger.looked(source)
    for state in work.ledger.table_states(source).values():
        look = work.mirrors.look(state.mirror, looked.get(state.mirror, -1))
        if look.missing is not None:
            app_id = application_id(source, state, "mirror")
            writes.append(work.ledger.newest_writes(source, [app_id])[app_id].intended + _FAR)
        for commit in look.commits:
            writes += [n for name, n in commit.transactions.items() if name.startswith("lockstep/")]
            said = commit.said or {}
            batches += [n for n in said.get("batches", []) if isinstance(n, int)]
            writes.append(int(said.get("txn_version", 0)))
    for listed in _changelogs(work):
        batches.append(work.changelog.recorded(listed.folder, listed.app_id) or 0)
    work.ledger.number_above(lease, batch=max(batches), txn_version=max(writes))
    return max(batches)


def _changelogs(work: Workplace) -> Iterator[ChangelogTable]:
    source = work.source.name
    yield from (source_table(source, part) for part in SourceTable)
    yield from changelogs_of(source, work.ledger.table_states(source).values())


def _acknowledged(
    work: Workplace, changelog: ChangelogTable, done: Container[int]
) -> tuple[int, list[SegmentFile]]:
    """The newest batch with anything of it, and the files whose changes are kept."""
    table = changelog.table if isinstance(changelog.table, TableName) else None
    above = work.ledger.forgotten(work.source.name, table).through
    batches = {n: files for n, files in recorded_batches(work, changelog).items() if n in done}
    kept = [file for batch, files in batches.items() if batch > above for file in files]
    return max(batches, default=0), kept


def _inherits(work: Workplace) -> Callable[[int], bool]:
    """Return which batches count although the ledger does not have them: those that it took over
    when it was made from the lake. Changes that were forgotten stay so."""
    source = work.source.name
    inherited, above = work.ledger.inherited(source), work.ledger.forgotten(source).through
    void = said_by(work, work.ledger.identity()).void

    def counts(batch: int) -> bool:
        taken = any(batch in span for span in inherited)
        return batch > above and taken and not any(batch in span for span in void)

    return counts


def _inherited(work: Workplace, folder: str, inherits: Callable[[int], bool]) -> list[SegmentFile]:
    listed = work.changelog.listed(folder) or {}
    return [
        SegmentFile(file, 0, size, "")
        for file, size in listed.items()
        if (batch := batch_of(file)) is not None and inherits(batch)
    ]


def _restated(work: Workplace, lease: Lease) -> Iterator[tuple[str, Restated]]:
    """Each changelog lists what the ledger acknowledged: batches that it captured and did not
    merge are published by the next run."""
    looked: dict[str, int | None] = {}
    inherits = _inherits(work)

    def held() -> None:
        work.ledger.require_held(lease)

    newest = work.ledger.cursors(work.source.name).captured
    batches = work.ledger.live_batches(work.source.name, 0, 0 if newest is None else newest.batch)
    settled = {batch.id for batch in batches if batch.state in _DONE}
    for changelog in _changelogs(work):
        batch, files = _acknowledged(work, changelog, settled)
        done = work.changelog.restate(
            changelog.folder,
            app_id=changelog.app_id,
            batch=batch,
            files=[*_inherited(work, changelog.folder, inherits), *files],
            words=restated_metadata(work, changelog.table, batch),
            held=held,
        )
        looked[changelog.folder] = done.delta_version
        if done.removed or done.added or done.lost:
            yield changelog.folder, done
    work.ledger.note_looked(lease, looked)


MIRROR_ADOPTED = "mirror-adopted"


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
    state = new_table(source, table, mirror_path(source, work.source.mirror_name(table)))
    instead = f"`lockstep reload {table} --reason …` reads it from the source"
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
    if schema is None or schema.shown is None:
        raise TableError(f"its structure at {at} is not known", hint=instead)
    wanted = mirror_columns(schema.shown)
    have = work.mirrors.schema(state.mirror, version)
    own = {DELETED_AT.name, *work.source.policies_of(table).stamps}
    mine = {field.name: field.type for field in have if field.name not in own}
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
    ledger.decide(lease, Decision("hand-over", MIRROR_ADOPTED, reason, {"tables": names}, author))
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
                shown_as=candidate.schema.shown_as,
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
