"""`lockstep recover`: makes a ledger (the Postgres database with positions) and a
source's folder in the lake agree again. `pipeline.recovery` decides which of the two
follows the other. `kept_ledger` serves a ledger that continues as it is; this module
makes a new ledger from the lake.

The order is: the lake, the ledger, the folder's claim (a file that names the owning
ledger). An interrupted recovery is repeated. A mirror is the Delta table with a table's
current rows, a changelog the Delta table with all its changes, a batch a part of the
log that a run captured at once.

1. The folder's claim declares all batches after the chosen one void, so that no later
   recovery continues after one of them. Nothing else in the lake says reliably that a
   batch is void. A mirror is not restored if its table is re-read or if no earlier
   batch has the table, so it still shows a void batch. `_transactions` does not list
   all batches.

2. Changelogs stop listing the files of later batches, and mirrors that show later
   batches are restored to the chosen one. These commits change only metadata; a
   repeated recovery finds them done.

3. One batch is recorded in place of everything captured before. It ends where the lake
   ends, and its changes count up to the last sequence number that the lake has, so that
   numbering continues there. Tables adopt their mirrors in a new generation, whose ids
   and paths differ, so that no earlier transaction or file is taken for one of this
   ledger.

4. The folder is claimed for this ledger.

`plan_recovery` also foresees what the next run will do with each table. The recovery
itself decides only with which version of its mirror a table continues, or that the
lake goes back to what the ledger has. The rules of `pipeline.supply` decide, as for any
run, what supplies the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import assert_never

from lockstep.pipeline.mirror.layout import (
    application_id,
    changelog_path,
    free_mirror_path,
    new_table,
)
from lockstep.pipeline.mirror.merging import ROWS_BEFORE_CHANGELOG
from lockstep.pipeline.mirror.system_tables import system_table_app_id
from lockstep.pipeline.model.batch import CaptureRecord
from lockstep.pipeline.model.claim import Unclaimed
from lockstep.pipeline.model.lake_commit import WriteKind, metadata_of_kind
from lockstep.pipeline.model.life import LakeRestarted, next_state
from lockstep.pipeline.model.table_state import (
    Extent,
    Handover,
    StoppedTable,
    TableCondition,
    TableEventKind,
    TableState,
)
from lockstep.pipeline.ports.lease_check import RequireHeld
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.recovery import (
    Adoption,
    BatchRecord,
    LedgerContent,
    RecoveryCase,
    RecoveryPlan,
    case_of,
    decide,
    nameable_batches,
)
from lockstep.pipeline.run.agreement.changelog_files import batches_in_file
from lockstep.pipeline.run.agreement.claim import claim_folder, claim_of, lake_error
from lockstep.pipeline.run.agreement.lake_logs import disagreeing_tables, unrecorded_commit_error
from lockstep.pipeline.run.begin import foresee_start
from lockstep.pipeline.run.commit_metadata import recovery_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_folders import collisions, move_reason, pending_moves
from lockstep.pipeline.run.recovery.kept_ledger import (
    LakeChanges,
    keep_ledger,
    lake_disagreement,
    move_away,
    plan_lake_changes,
)
from lockstep.pipeline.run.recovery.recovered_structures import (
    HIDDEN_BEFORE,
    ChangelogListing,
    LakeContent,
    RecoveredStructures,
    RecoveryPlace,
    RecoveryPlaces,
    find_structures,
    read_lake,
)
from lockstep.pipeline.run.status.plan import plan_tables
from lockstep.pipeline.run.stop_errors import reread_error
from lockstep.pipeline.run.table_plans import KnownReach, KnownTables, TablePlans, with_prices
from lockstep.pipeline.run.unpruned_batches import RUNS_HINT, batch_of_run, no_run_sentence
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.supply import OLDER_REASON, Have, SupplyStanding, Want, plan
from lockstep.pipeline.values.decisions import START_KIND, Decision, Lease
from lockstep.pipeline.values.errors import (
    ForeignCommit,
    LockstepError,
    Need,
    PositionPurged,
    SpanRefused,
    TableError,
    VersionSetUnknown,
)
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, batch_of
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class RecoveryOutcome:
    """The outcome of a recovery. `disagreement`: how the ledger and the lake disagree.
    `plan`: where a ledger that is made from the lake continues. `reloads`: tables whose
    rows the lake does not have, and why. `table_plans`: what the next run will do with
    tables; only `plan_recovery` fills it. `shortened_changelogs`: folders of changelogs
    that stop listing files of later batches. `lake_changes`: the changes to the lake if
    the ledger continues as it is or starts over."""

    case: RecoveryCase
    disagreement: str | None = None
    plan: RecoveryPlan | None = None
    reloads: tuple[tuple[TableName, str], ...] = ()
    table_plans: TablePlans = field(default_factory=TablePlans, compare=False)
    shortened_changelogs: tuple[str, ...] = ()
    lake_changes: LakeChanges = field(default_factory=LakeChanges)


def plan_recovery(
    ports: RunPorts,
    after_batch: int | None = None,
    *,
    start_over: bool = False,
    reread_tables: Collection[TableName] = (),
) -> RecoveryOutcome:
    """Return what a recovery would do; nothing is written. `after_batch`: the batch
    after which the ledger is to continue. If it is given, the outcome is also returned
    for a ledger that still has the source; `recover` refuses that. `reread_tables`:
    those of `RunToUndo`. Raise `ForeignCommit`, `PositionPurged` or `VersionSetUnknown`
    if a recovery is impossible."""
    outcome, basis = _outcome_and_basis(ports, after_batch, start_over, reread_tables, is_plan=True)
    if outcome.case is RecoveryCase.KEEP_LEDGER:
        outcome = replace(outcome, lake_changes=plan_lake_changes(ports, outcome.reloads))
    return replace(outcome, table_plans=_tables_after(ports, outcome, basis))


def recover(
    ports: RunPorts,
    lease: Lease,
    *,
    author: str,
    reason: str = "",
    after_batch: int | None = None,
    start_over: bool = False,
    reread_tables: Collection[TableName] = (),
) -> RecoveryOutcome:
    """Carry out the recovery, and record who ordered it and why. The other parameters
    are those of `plan_recovery`."""
    outcome, basis = _outcome_and_basis(
        ports, after_batch, start_over, reread_tables, is_plan=False
    )
    if basis is not None:
        return _make_ledger_from_lake(ports, lease, basis, outcome, author, reason)
    if outcome.case is RecoveryCase.FINISH:
        _claim_and_acknowledge(ports, lease)
    if outcome.case in (RecoveryCase.KEEP_LEDGER, RecoveryCase.START_OVER):
        reread = [str(table) for table, _ in outcome.reloads]
        facts = {"disagreement": outcome.disagreement, "reread": reread}
        decision_reason = reason or outcome.disagreement or "the source starts over"
        ports.ledger.decide(
            lease, Decision(RECOVERY_KIND, outcome.case, decision_reason, facts, author)
        )
    if outcome.case is RecoveryCase.KEEP_LEDGER:
        return replace(outcome, lake_changes=keep_ledger(ports, lease, outcome.reloads))
    if outcome.case is RecoveryCase.START_OVER:
        changes = LakeChanges(moved_folders=(move_away(ports, ports.source.name),))
        outcome = replace(outcome, lake_changes=changes)
        claim_folder(ports)
    return outcome


def _outcome_and_basis(
    ports: RunPorts,
    after_batch: int | None,
    start_over: bool,
    reread_tables: Collection[TableName],
    *,
    is_plan: bool,
) -> tuple[RecoveryOutcome, RecoveryBasis | None]:
    """Return the outcome of a recovery, and its basis if a ledger is made from the
    lake. Raise an error if the recovery is refused. `is_plan`: nothing is carried out,
    so going back to a named batch is not refused if the ledger still has the source."""
    find_disagreement = cache(lambda: lake_disagreement(ports))
    case = case_of(
        _ledger_content(ports),
        lambda: find_disagreement() is not None,
        lambda: ports.claims.read(ports.source.name) != Unclaimed(is_unwritten=True),
        back_to=after_batch is not None,
        start_over=start_over,
    )
    if case is RecoveryCase.REFUSED and not (is_plan and after_batch is not None):
        raise _source_held_error(ports)
    if case in (RecoveryCase.FROM_LAKE, RecoveryCase.REFUSED):
        basis = _choose_basis(ports, after_batch)
        return _outcome_from_lake(case, basis, reread_tables), basis
    if case is RecoveryCase.START_OVER:
        error = lake_error(ports)
        return RecoveryOutcome(case, None if error is None else error.message), None
    if case is RecoveryCase.KEEP_LEDGER and (disagreement := find_disagreement()) is not None:
        return RecoveryOutcome(case, disagreement.sentence, reloads=disagreement.reloads), None
    return RecoveryOutcome(case), None


def _ledger_content(ports: RunPorts) -> LedgerContent:
    """Return whether this ledger has nothing of the source, was just made from the
    lake, or holds the source. A ledger that was just made has one batch without changes
    and only adopted tables, and nobody has committed to the lake since."""
    source = ports.source.name
    cursors = ports.ledger.cursors(source)
    newest = cursors.captured
    if newest is None:
        return LedgerContent.NOTHING
    if cursors.acknowledged is not None:
        return LedgerContent.RECORDED
    batches = ports.ledger.live_batches(source, 0, newest.batch)
    states = ports.ledger.table_states(source).values()
    just_made = [batch.start for batch in batches] == [batches[0].end] and all(
        state.adopted_version is not None or state.need is Need.CONSENT for state in states
    )
    if just_made and not disagreeing_tables(ports) and unrecorded_commit_error(ports) is None:
        return LedgerContent.RECOVERING
    return LedgerContent.RECORDED


def _source_held_error(ports: RunPorts) -> ForeignCommit:
    source = ports.source.name
    newest = ports.ledger.cursors(source).captured
    assert newest is not None, "this ledger holds the source"
    return ForeignCommit(
        f"this ledger holds {source} already, up to batch {newest.batch} at {newest.position.at}",
        hint="to give it up for a new one, move it away first (docs/recovery.md)",
    )


def declare_undone(ports: RunPorts, lease: Lease, recovery: RecoveryOutcome) -> None:
    """Record in the lake that all batches after the plan's `lake_end` are void. If this
    recovery dies afterwards, a later one also continues at `lake_end`."""
    assert recovery.plan is not None, "the ledger is made from the lake"
    claim = claim_of(ports, recovery.plan.lake_end.ledger)
    ports.ledger.require_held(lease)
    ports.claims.write(claim.reset_to(recovery.plan.lake_end.batch, recovery.plan.highest_batch))


def _make_ledger_from_lake(
    ports: RunPorts,
    lease: Lease,
    basis: RecoveryBasis,
    recovery: RecoveryOutcome,
    author: str,
    reason: str,
) -> RecoveryOutcome:
    """Make the ledger from the lake, in the order that the module describes."""
    require_held = partial(ports.ledger.require_held, lease)
    declare_undone(ports, lease, recovery)
    adopted_mirrors, refused_tables = _restore_mirrors(ports, basis.plan.adoptions, require_held)
    examined_versions = basis.lake.newest_versions | {
        adoption.mirror.folder: version for adoption, version in adopted_mirrors
    }
    examined_versions |= _cut_changelogs(ports, basis.lake, basis.plan.lake_end, require_held)
    recovery = replace(recovery, reloads=(*recovery.reloads, *refused_tables))
    # Loads are ordered first: once the batch is recorded, a repeated recovery only does
    # `_claim_and_acknowledge`.
    for table, reload_reason in recovery.reloads:
        ports.ledger.order_load(lease, table, author=author, reason=reload_reason)
    ports.ledger.note_examined_versions(lease, examined_versions)
    adopted_tables = [str(adoption.mirror.table) for adoption, _ in adopted_mirrors]
    decision = _decision_from_lake(basis.plan, recovery.reloads, adopted_tables, author, reason)
    _record_basis(ports, lease, basis, adopted_mirrors, decision)
    _claim_and_acknowledge(ports, lease)
    return recovery


@dataclass(frozen=True, slots=True)
class RecoveryBasis:
    """A planned recovery, and the facts from which it was decided. `plan`: adopts only
    tables whose structures are known at `place`, where the ledger continues in the
    server's log; `structures`: those structures."""

    lake: LakeContent
    plan: RecoveryPlan
    place: RecoveryPlace
    structures: RecoveredStructures


def _choose_basis(ports: RunPorts, after_batch: int | None) -> RecoveryBasis:
    """Choose the batch after which a ledger made from the lake continues, and find its
    end in the server's log. Raise an error with a hint if that is impossible."""
    lake = read_lake(ports, after_batch)
    if not lake.facts.mirrors:
        raise ForeignCommit(
            f"the lake has no mirror of {ports.source.name} that Lockstep wrote",
            hint="mount or restore the lake's folder; or start over: `lockstep recover "
            f"--start-over --source {ports.source.name}`",
        )
    places = RecoveryPlaces(ports)
    nameable = nameable_batches(lake.facts)
    if after_batch is not None and nameable and after_batch not in nameable:
        raise VersionSetUnknown(
            f"the lake does not say where batch {after_batch} ended: it has batches "
            f"{nameable[0]} to {nameable[-1]}",
            hint="`lockstep versions --list` has the batches, and what each shows",
        )
    plan = decide(lake.facts, places.reaches, after_batch)
    if plan is None and after_batch is not None:
        reasons = "; ".join(places.reasons) or "no commit says where it ends"
        raise PositionPurged(
            f"the server's log does not reach the end of batch {after_batch} ({reasons})",
            hint="name a later batch: `lockstep versions --list` has them",
        )
    if plan is None:
        tables = ", ".join(str(mirror.table) for mirror in lake.facts.mirrors)
        reasons = "; ".join(places.reasons) or "no commit names a place that all tables show"
        raise PositionPurged(
            f"the server's log reaches no batch that the lake shows ({reasons}): these tables must "
            f"be read from the source: {tables}",
            hint=f"`lockstep recover --start-over --source {ports.source.name}` moves the folder "
            "to _before, and the next run reads the tables",
        )
    place = places.places[plan.lake_end.batch]
    structures = find_structures(ports, lake, plan, place)
    mirrors = {adoption.mirror.table: adoption.mirror for adoption in plan.adoptions}
    dropped_mirrors = (
        mirror for table, mirror in mirrors.items() if table in structures.dropped_tables
    )
    plan = replace(
        plan,
        adoptions=tuple(
            adoption
            for adoption in plan.adoptions
            if adoption.mirror.table in structures.adopted_tables
        ),
        unchanged_mirrors=(*plan.unchanged_mirrors, *dropped_mirrors),
        doubts=(*plan.doubts, *_doubts_of_rewritten(ports, lake, plan.lake_end.batch)),
    )
    return RecoveryBasis(lake, plan, place, structures)


def _outcome_from_lake(
    case: RecoveryCase, basis: RecoveryBasis, reread_tables: Collection[TableName]
) -> RecoveryOutcome:
    adopted = basis.structures.adopted_tables
    reason_undone = "rows of it were read from the source by a run that is undone now"
    reasons = dict.fromkeys(adopted.intersection(reread_tables), reason_undone)
    reasons |= {table: reason for table, reason in basis.plan.reloads if table in adopted}
    return RecoveryOutcome(
        case,
        plan=basis.plan,
        reloads=(*basis.structures.reloads, *sorted(reasons.items())),
        shortened_changelogs=tuple(
            changelog.folder
            for changelog in basis.lake.changelogs
            if changelog.must_change(basis.plan.lake_end.batch)
        ),
    )


def _doubts_of_rewritten(ports: RunPorts, lake: LakeContent, batch: int) -> Iterator[str]:
    """Yield a doubt for each changelog that another program rewrote. `batch`: the last
    one whose files are listed from now on."""
    for changelog in lake.changelogs:
        files = _files_up_to(ports, changelog, batch)
        unlisted_files = [file for file in files if file.path not in changelog.files]
        if damages := ports.segments.damage_sentences(changelog.folder, unlisted_files):
            yield (
                f"captured changes are no longer in {changelog.folder}: {damages[0]}, and another "
                "program put them into a file with later changes"
            )
        elif any(batch_of(file.path) is None for file in files):
            yield (
                f"another program wrote files to {changelog.folder}: nothing says which batches "
                "their rows belong to, so all of them stay"
            )


def _restore_mirrors(
    ports: RunPorts, adopted: Iterable[Adoption], require_held: RequireHeld
) -> tuple[list[tuple[Adoption, int]], list[tuple[TableName, str]]]:
    """Restore mirrors that show later batches. Return the adopted tables with their
    mirrors' Delta versions, and the tables whose mirrors could not be restored, with
    the reason."""
    restored_mirrors, refused_tables = [], []
    for adoption in adopted:
        version, folder = adoption.mirror.newest_version, adoption.mirror.folder
        if adoption.needs_restore:
            metadata = metadata_of_kind(
                adoption.shown_batch.user_metadata, WriteKind.RESTORE, restored=adoption.version
            )
            ports.progress.note(f"{folder} is set back to version {adoption.version}")
            try:
                version = ports.mirrors.restore(folder, adoption.version, metadata, require_held)
            except TableError as error:
                refused_tables.append((adoption.mirror.table, error.reason))
                continue
        restored_mirrors.append((adoption, version))
    return restored_mirrors, refused_tables


def _cut_changelogs(
    ports: RunPorts, lake: LakeContent, lake_end: BatchRecord, require_held: RequireHeld
) -> dict[str, int]:
    """Make changelogs stop listing the files of batches after `lake_end`. Return the
    changed changelogs' new Delta versions by folder."""
    versions = {}
    for changelog in lake.changelogs:
        if not changelog.must_change(lake_end.batch):
            continue
        files = _files_up_to(ports, changelog, lake_end.batch)
        ports.progress.note(f"{changelog.folder} is set back to the changes up to {lake_end.end}")
        restatement = ports.changelog.restate(
            changelog.folder,
            app_id=_app_id(ports, lake, changelog),
            batch=lake_end.batch,
            files=files,
            user_metadata=recovery_metadata(ports, changelog.table, lake_end),
            require_held=require_held,
        )
        if restatement.delta_version is not None:
            versions[changelog.folder] = restatement.delta_version
    return versions


def _files_up_to(ports: RunPorts, changelog: ChangelogListing, batch: int) -> list[SegmentFile]:
    """Return the files of batches up to `batch` that a changelog should list. If some
    of them are missing, another program may have moved their rows to files of its own.
    Those files are listed instead if they have no rows of later batches."""
    captured_files = [
        file.as_unrecorded_segment
        for path, file in changelog.own_files.items()
        if (batch_of(path) or 0) <= batch
    ]
    unlisted_files = [file for file in captured_files if file.path not in changelog.files]
    if not ports.segments.damage_sentences(changelog.folder, unlisted_files) or _has_later_rows(
        ports, changelog, batch
    ):
        return captured_files
    listed_files = [file for file in captured_files if file.path in changelog.files]
    foreign = (SegmentFile(path, size=changelog.files[path]) for path in changelog.foreign_files)
    return [*listed_files, *foreign]


def _has_later_rows(ports: RunPorts, changelog: ChangelogListing, batch: int) -> bool:
    """Return whether a foreign file has rows of later batches, or cannot be read."""
    batch_sets = (
        batches_in_file(ports, changelog.folder, path) for path in changelog.foreign_files
    )
    return any(batches is None or max(batches, default=0) > batch for batches in batch_sets)


def _app_id(ports: RunPorts, lake: LakeContent, changelog: ChangelogListing) -> str:
    source = ports.source.name
    if isinstance(changelog.table, SystemTable):
        return system_table_app_id(source, changelog.table)
    mirrors = {mirror.table: mirror for mirror in lake.facts.mirrors}
    mirror = mirrors.get(changelog.table)
    generation = 1 if mirror is None else mirror.generation + 1
    state = TableState(changelog.table, TableCondition.FOLLOWING, generation, "", changelog.folder)
    return application_id(source, state, "changelog", changelog.generation)


RECOVERY_KIND = "recovery"
"""The kind of the decision that keeps the ledger as it is, or starts the source
over."""


def _decision_from_lake(
    plan: RecoveryPlan,
    reloads: Iterable[tuple[TableName, str]],
    adopted_tables: Sequence[str],
    author: str,
    order_reason: str,
) -> Decision:
    """Return the decision that starts the batch which stands for everything captured
    before. `order_reason`: the reason that the author gave."""
    facts = {
        "batch": plan.lake_end.batch,
        "of_ledger": plan.lake_end.ledger,
        "highest_batch": plan.highest_batch,
        "adopted": adopted_tables,
        "read_again": [str(table) for table, _ in reloads],
        "doubts": list(plan.doubts),
    }
    origin = (
        f"made from the lake, which shows batch {plan.lake_end.batch} up to {plan.lake_end.end}"
    )
    reason = f"{origin}: {order_reason}" if order_reason else origin
    return Decision(START_KIND, "recovered", reason, facts, author)


def _record_basis(
    ports: RunPorts,
    lease: Lease,
    basis: RecoveryBasis,
    adopted_mirrors: Iterable[tuple[Adoption, int]],
    decision: Decision,
) -> None:
    """Record the batch that stands for everything captured before. `adopted_mirrors`:
    the tables that continue, with their mirrors' Delta versions."""
    ledger, plan, place = ports.ledger, basis.plan, basis.place
    for unfinished_batch in ledger.unfinished_batches(ports.source.name):
        ledger.abandon(lease, unfinished_batch.id, "its recovery did not finish")
    ledger.skip_numbers(
        lease,
        batch=plan.highest_batch,
        txn_version=basis.lake.txn_version,
        inherited=basis.lake.facts.valid_spans(plan.lake_end.batch),
    )
    start: Position = place.position
    decision_id = ledger.decide(lease, decision).id
    batch = ledger.begin_batch(lease, start, continued_batch=None, start_decision=decision_id)
    for tightening in basis.structures.tightenings:
        ledger.note_tightened(lease, replace(tightening, last_batch=batch.id))
    handovers = [
        _handover(ports, adoption, version, basis) for adoption, version in adopted_mirrors
    ]
    tables_needing_consent = sorted(basis.structures.tables_needing_consent)
    record = CaptureRecord(
        end=start,
        anchor=place.anchor,
        changes=plan.lake_end.cursor.sequence,
        tables=(
            *(handover.adopted_state() for handover in handovers),
            *(_consent_state(ports, table, basis) for table in tables_needing_consent),
        ),
        stopped_tables=tuple(_consent_stop(table, start.at) for table in tables_needing_consent),
        by_gtid=place.by_gtid,
        history=BatchHistory((), basis.structures.versions, basis.structures.databases),
        handovers=tuple(handovers),
        extents=tuple(
            Extent(adoption.mirror.table, plan.lake_end.mirror_begins[adoption.mirror.table])
            for adoption, _ in adopted_mirrors
            if adoption.mirror.table in plan.lake_end.mirror_begins
        ),
        scope=ports.source.patterns,
    )
    ledger.record_capture(lease, batch.id, record)


def _consent_stop(table: TableName, at: Coordinates) -> StoppedTable:
    """Return the stop of a table that may show values which were hidden under another
    name: the former ledger asked for somebody's consent, and so does this one."""
    error = TableError(
        HIDDEN_BEFORE,
        hint="hide them under their present name, too, then `lockstep resume "
        f"{table.word} --reason …`; to resume it without that is your consent to show it, "
        "which is recorded with its reason",
        need=Need.CONSENT,
    )
    return StoppedTable.of(table, error, str(at))


def _consent_state(ports: RunPorts, table: TableName, basis: RecoveryBasis) -> TableState:
    """Return the state of a table that waits for somebody's consent, with a mirror that
    is still to be made."""
    source, generation = ports.source.name, basis.structures.generation(table)
    mirror = free_mirror_path(
        source, ports.source.mirror_name(table), 1, basis.lake.newest_versions
    )
    return replace(
        new_table(source, table, mirror),
        changelog=changelog_path(source, table, generation),
        changelog_generation=generation,
    )


def _handover(ports: RunPorts, adoption: Adoption, version: int, basis: RecoveryBasis) -> Handover:
    """Return the record by which the ledger adopts a mirror at the Delta version
    `version`."""
    mirror = adoption.mirror
    changelog_generation = basis.structures.generation(mirror.table)
    changelog = changelog_path(ports.source.name, mirror.table, changelog_generation)
    state_before = TableState(
        mirror.table,
        TableCondition.FOLLOWING,
        mirror.generation,
        mirror.folder,
        changelog,
        changelog_generation=changelog_generation,
    )
    return Handover(
        mirror.table,
        mirror.generation + 1,
        mirror.folder,
        version,
        shown_version=1,
        state_before=state_before,
    )


def _claim_and_acknowledge(ports: RunPorts, lease: Lease) -> None:
    """Claim the folder, then acknowledge the batch that stands for everything captured
    before. Until it is acknowledged, the recovery counts as unfinished."""
    ports.ledger.mark_merged(lease)
    claim_folder(ports)
    for batch in ports.ledger.unfinished_batches(ports.source.name):
        ports.ledger.acknowledge(lease, batch.id)


# -- the plans of tables after a recovery ----------------------------------------------


def _tables_after(
    ports: RunPorts, outcome: RecoveryOutcome, basis: RecoveryBasis | None
) -> TablePlans:
    match outcome.case:
        case RecoveryCase.FROM_LAKE | RecoveryCase.REFUSED:
            assert basis is not None, "a ledger is made from the lake"
            handovers = (
                _handover(ports, adoption, adoption.version, basis)
                for adoption in basis.plan.adoptions
            )
            adopted_states = (handover.adopted_state() for handover in handovers)
            return _after_new_ledger(ports, adopted_states, outcome.reloads)
        case RecoveryCase.KEEP_LEDGER:
            return _after_kept_ledger(ports, outcome.reloads)
        case RecoveryCase.START_OVER:
            return _after_start_over(ports)
        case RecoveryCase.AGREE | RecoveryCase.FINISH:
            return TablePlans()
    assert_never(outcome.case)


_MissingRows = Iterable[tuple[TableName, str]]
"""Tables whose rows the lake does not have, each with the reason."""


def _after_new_ledger(
    ports: RunPorts, adopted_states: Iterable[TableState], missing_rows: _MissingRows
) -> TablePlans:
    """Return the plans of tables after a ledger is made from the lake.
    `adopted_states`: the states of the tables that continue with their mirrors."""
    haves_and_wants = [
        (Have(table, SupplyStanding.NEW, reason=reason), Want())
        for table, reason in missing_rows
        if ports.source.patterns.matches(table)
    ]
    states = {state.table: state for state in adopted_states}
    for table, name in pending_moves(ports, states).to_reload.items():
        have = Have(table, SupplyStanding.STOPPED, reason=move_reason(name))
        haves_and_wants.append((have, Want(rewrite=True)))
    # The mirror has rows that this ledger has not seen, so its changelog is not
    # complete.
    return _priced_plans(ports, haves_and_wants, KnownReach(changelog=ROWS_BEFORE_CHANGELOG))


def _after_kept_ledger(ports: RunPorts, missing_rows: _MissingRows) -> TablePlans:
    """Return the plans of tables after the lake goes back to what the ledger has. If
    the server does not answer, only the plans of `missing_rows` are returned, without
    prices."""
    cursor = ports.ledger.cursors(ports.source.name).captured
    assert cursor is not None, "this ledger holds the source"
    errors = {table: reread_error(reason) for table, reason in missing_rows}
    known = KnownTables.of(ports).with_stopped(cursor, errors)
    states = {table: next_state(table, known.states[table], LakeRestarted()) for table in errors}
    known = replace(known, states={**known.states, **states})
    with suppress(LockstepError):
        return tables_of_next_run(ports, known)
    haves_and_wants = [
        (Have(table, SupplyStanding.STOPPED, frozenset({Need.ROWS}), error.reason), Want())
        for table, error in errors.items()
        if states[table].reason == error.reason  # A table that had stopped before keeps its reason.
    ]
    return TablePlans(
        {have.table: plan(have, want, KnownReach()) for have, want in haves_and_wants}
    )


def tables_of_next_run(ports: RunPorts, known: KnownTables | None = None) -> TablePlans:
    """Return the plans of the next run, which continues where the ledger ends. `known`:
    the tables' states; None for the states in the ledger."""
    ledger, source = ports.ledger, ports.source.name
    cursor = ledger.cursors(source).captured
    proposal = foresee_start(ports, cursor, ledger.open_override(source))
    return plan_tables(ports, proposal.outcome, known)


def _after_start_over(ports: RunPorts) -> TablePlans:
    """Return the plans of the first run after the source starts over. If it starts with
    a snapshot, that run reads all tables that have rows."""
    if not ports.source.loads_new_tables:
        return TablePlans()
    tables = [table.name for table in ports.server.tables()]
    tables = [table for table in tables if ports.source.patterns.matches(table)]
    colliding_tables = collisions(ports, {}, tables)
    haves_and_wants = [
        (Have(table, SupplyStanding.NEW, reason=OLDER_REASON), Want())
        for table in tables
        if table not in colliding_tables
    ]
    return _priced_plans(ports, haves_and_wants, KnownReach())


def _priced_plans(
    ports: RunPorts, haves_and_wants: Sequence[tuple[Have, Want]], reach: KnownReach
) -> TablePlans:
    plans = {have.table: plan(have, want, reach) for have, want in haves_and_wants}
    wants = {have.table: want for have, want in haves_and_wants}
    return with_prices(ports, TablePlans(plans, wants))


# -- undoing a run ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunToUndo:
    """A run to undo. `run`: its full id. `first_batch`: its first batch.
    `previous_batch`: the batch before that one, to which the ledger goes back.
    `later_count`: number of batches that other runs captured afterwards, which are
    undone too. `reread_tables`: tables whose rows one of these batches read from the
    source. The next run reads them again, because the log need not show what was wrong
    with the rows before."""

    run: str
    first_batch: int
    previous_batch: int
    later_count: int
    reread_tables: tuple[TableName, ...] = ()


def run_to_undo(ledger: Ledger, source: str, run: str) -> RunToUndo:
    """Return what undoing a run means; `run` may be a shortened id. Raise `SpanRefused`
    if the run is unknown, or if nothing was captured before it. Raise it also if
    mirrors would again show values that must still be cleared."""
    batch = batch_of_run(ledger, source, run)
    newest = ledger.cursors(source).captured
    assert newest is not None, "a run captured a batch"
    pruned_through = ledger.pruned_through(source)
    batches = ledger.live_batches(source, pruned_through, newest.batch)
    run_id = batch.run_id or run
    own_batches = [other.id for other in batches if other.run_id == batch.run_id]
    earlier_batches = [other.id for other in batches if other.id < own_batches[0]]
    if own_batches[0] <= pruned_through:
        raise SpanRefused(no_run_sentence(ledger, source, run), hint=RUNS_HINT)
    if not earlier_batches:
        raise SpanRefused(
            f"run {run_id} captured the first batch of {source}: there is nothing to go back to",
            hint="to start over, move the ledger away, then `lockstep recover --start-over "
            f"--source {source}`",
        )
    for note in ledger.uncleared_values(source):
        if note.kept_because is None and earlier_batches[-1] <= note.tightening.last_batch:
            raise SpanRefused(
                f"{note.table} would show more than its settings say: {note.sentence}",
                hint=f"undo the run once these values are cleared: {note.hint}",
            )
    later_count = sum(other.id > own_batches[-1] for other in batches)
    reread_tables = {
        event.table
        for content in ledger.contents(source, own_batches[0], newest.batch)
        for event in content.events
        if event.kind in (TableEventKind.REREAD, TableEventKind.REFRESHED)
    }
    return RunToUndo(
        run_id, own_batches[0], earlier_batches[-1], later_count, tuple(sorted(reread_tables))
    )
