"""Gathers the facts from which a lost ledger is made again: what the lake shows of a
source, where in the server's log the ledger continues, and which structures tables have
at that place.

| the server | the place is proven by |
|---|---|
| is the one that was read, and lists the file | the event before the place (its anchor) |
| is another, or has purged the file | its GTIDs: all executed, and none purged outside of them |

| after that place | the structure at the place is |
|---|---|
| no statement changed the table | the server's |
| a statement changed it | the one that the lake keeps for its newest version |
| a statement changed it, and the lake keeps none | unknown: the table is re-read from MySQL |
| a statement created it | that of the statement, which the next run reads |
| a RENAME gave it this name | the one that it has under its former name |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from lockstep.pipeline.mirror.generations import can_take
from lockstep.pipeline.mirror.layout import changelog_schema
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.changelog_listing import own_files
from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.lake_commit import FileAction, LakeCommit, table_of
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.recovery import (
    Adoption,
    BatchRecord,
    LakeFacts,
    MirrorFacts,
    RecoveryPlan,
    ShownBatch,
    last_deleted_batch,
    mirror_facts,
    needed_commits,
    record_of,
)
from lockstep.pipeline.run.agreement.claim import claim_of
from lockstep.pipeline.run.begin import RunStart, start_at_known_place
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.initial_schemas import (
    FoldCase,
    case_folding,
    spans_of_changes,
    undisturbed_baseline,
)
from lockstep.pipeline.run.find_place import LogBoundary, find_place
from lockstep.pipeline.run.reshaping import keep_clear_reason
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    SchemaVersion,
    VersionOrigin,
)
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.statements.changes import affected_tables, renamed_pairs
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.types import comparable_name
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.start.rules import compare_anchor
from lockstep.pipeline.upkeep.clearing import Tightening
from lockstep.pipeline.values.errors import (
    HistoryRewritten,
    LockstepError,
    Recovery,
    StartUnreachable,
    TableError,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates, Position
from lockstep.pipeline.values.segment import SystemTable, batch_of
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName

HIDDEN_BEFORE: Final = (
    "it has values that were hidden under another name, and the lake does not say which"
)
"""Reason of a table that waits for somebody's consent to show it."""

_ALTERED_AFTER_PLACE: Final = (
    "statements changed it after this place, and its structure before is unknown"
)


@dataclass(frozen=True, slots=True)
class ChangelogListing:
    """The files that a changelog (all changes of a table) or a system table
    (`_transactions`, `_ddl`) lists. `newest_version`: its newest Delta version.
    `files`: the listed files, with their sizes in bytes. `own_files`: the files that it
    would list without other programs' commits."""

    folder: str
    table: TableName | SystemTable
    newest_version: int
    files: dict[str, int]
    own_files: Mapping[str, FileAction]

    @property
    def batches(self) -> frozenset[int]:
        batch_ids = (batch_of(file) for file in self.own_files)
        return frozenset(batch_id for batch_id in batch_ids if batch_id is not None)

    @property
    def foreign_files(self) -> tuple[str, ...]:
        """The listed files that other programs wrote."""
        return tuple(sorted(self.files.keys() - self.own_files.keys()))

    def must_change(self, batch: int) -> bool:
        """Return whether its list of files must change so that `batch` is its last
        batch."""
        return max(self.batches, default=0) > batch or self.files.keys() != self.own_files.keys()

    @property
    def generation(self) -> int:
        """The number of the changelog among all that its table has had, by its folder's
        name."""
        _, mark, number = self.folder.rpartition("@")
        return int(number) if mark else 1


@dataclass(frozen=True, slots=True)
class LakeContent:
    """What the lake shows of a source. `changelogs`: its changelogs and system tables.
    `newest_versions`: its Delta tables, with their newest versions. `txn_version`: the
    highest Delta transaction number of any write to a mirror (the table with the
    current rows)."""

    facts: LakeFacts
    changelogs: tuple[ChangelogListing, ...]
    newest_versions: dict[str, int]
    txn_version: int


def read_lake(ports: RunPorts, after_batch: int | None) -> LakeContent:
    """Read the Delta logs of all tables of the source; nothing is written.
    `after_batch`: the batch to which a person wants to go back, so that the logs are
    read up to there."""
    source = ports.source.name
    system_tables = {system_table_path(source, table): table for table in SystemTable}
    newest_versions = dict[str, int]()
    mirrors, changelogs = list[MirrorFacts](), list[ChangelogListing]()
    transaction_records = list[BatchRecord]()
    highest_txn_version = 0
    claim = claim_of(ports, "")
    batch_ids = [claim.batch or 0]
    void_spans = list(claim.void)
    folders = ports.claims.table_folders(source)
    ports.progress.note(f"the Delta logs of {pluralize(len(folders), 'table')} are read")
    for folder in folders:
        commits = needed_commits(ports.mirrors.history(folder), claim.void, after_batch)
        if not commits:
            continue
        newest_versions[folder] = commits[0].delta_version
        is_changelog = folder.startswith(f"{source}/_changes/")
        table = system_tables.get(folder) or (table_of(commits) if is_changelog else None)
        if table is not None:
            listing = _read_listing(ports, folder, table, commits)
            changelogs.append(listing)
            batch_ids += [*listing.batches, *transaction_numbers(commits)]
            if table is SystemTable.TRANSACTIONS:
                transaction_records, undone_batches = _records_of(commits, listing.batches)
                void_spans += [BatchSpan(batch - 1, batch) for batch in undone_batches]
        elif not is_changelog and (mirror := mirror_facts(folder, commits)) is not None:
            mirrors.append(mirror)
            highest_txn_version = max([highest_txn_version, *transaction_numbers(commits)])
    published_batches = dict[TableName, set[int]]()
    for changelog in changelogs:
        if isinstance(changelog.table, TableName):
            published_batches.setdefault(changelog.table, set()).update(changelog.batches)
    completed_mirrors = tuple(_completed_mirrors(mirrors, published_batches))
    tables_with_mirror = {mirror.table for mirror in mirrors}
    facts = LakeFacts(
        owner=claim.ledger or None,
        records=tuple(transaction_records),
        mirrors=completed_mirrors,
        void_spans=tuple(void_spans),
        is_claim_complete=claim.is_void_complete,
        highest_batch=max(batch_ids),
        tables_without_mirror=tuple(
            (table, min(batches))
            for table, batches in sorted(published_batches.items())
            if batches and table not in tables_with_mirror
        ),
    )
    return LakeContent(facts, tuple(changelogs), newest_versions, highest_txn_version)


def _read_listing(
    ports: RunPorts, folder: str, table: TableName | SystemTable, commits: Sequence[LakeCommit]
) -> ChangelogListing:
    files = ports.changelog.listed_files(folder) or {}
    actions = {path: FileAction(path, None, True, size=size) for path, size in files.items()}
    newest_version = commits[0].delta_version
    return ChangelogListing(folder, table, newest_version, files, own_files(actions, commits))


def _records_of(
    commits: Sequence[LakeCommit], listed_batches: Set[int]
) -> tuple[list[BatchRecord], list[int]]:
    """Return the whole records of the batches that `_transactions` lists, by its
    commits. Return also the batches that were undone: they were committed, are no
    longer listed, and were not deleted on purpose."""
    all_records = (record_of(commit, in_transactions=True) for commit in commits)
    records = [record for record in all_records if record is not None and record.is_whole]
    deleted_through = last_deleted_batch(commits)
    committed_batches = {record.batch for record in records if record.batch > deleted_through}
    listed_records = [record for record in records if record.batch in listed_batches]
    return listed_records, sorted(committed_batches - listed_batches)


def transaction_numbers(commits: Iterable[LakeCommit]) -> Iterable[int]:
    """Yield the transaction numbers in commits: of writes to a mirror, or of a
    changelog's batches and revisions."""
    for commit in commits:
        for name, number in commit.transactions.items():
            if name.startswith("lockstep/"):
                yield number
        txn_version = (commit.metadata or {}).get("txn_version")
        if isinstance(txn_version, int):
            yield txn_version


def _completed_mirrors(
    mirrors: Sequence[MirrorFacts], published_batches: Mapping[TableName, set[int]]
) -> Iterator[MirrorFacts]:
    """Yield the mirrors, completed with the batches of all changelogs of their tables
    (`published_batches`) and the writes to all folders of their tables' mirrors. A
    version shows the end of a batch only if no write to another folder began after it.
    Of each table, the mirror with the highest generation comes first. All mirrors of
    the table get that number, so that the next number is new to each."""
    first_batches, generations = dict[TableName, set[int]](), dict[TableName, int]()
    last_without_log = Counter[TableName]()
    for mirror in mirrors:
        first_batches.setdefault(mirror.table, set()).update(mirror.first_batches)
        last_without_log |= Counter({mirror.table: mirror.last_without_log})
    sorted_mirrors = sorted(
        mirrors, key=lambda facts: (facts.table, -facts.generation, facts.folder)
    )
    for mirror in sorted_mirrors:
        yield replace(
            mirror,
            published_batches=frozenset(published_batches.get(mirror.table, ())),
            first_batches=frozenset(first_batches[mirror.table]),
            generation=generations.setdefault(mirror.table, mirror.generation),
            last_without_log=last_without_log[mirror.table],
        )


@dataclass(frozen=True, slots=True)
class RecoveryPlace:
    """The place where the ledger continues. `lake_end`: the record of the batch that
    ends there. `by_gtid`: the next run finds it by GTID. `run_start`: where reading
    begins in this server's log."""

    lake_end: BatchRecord
    position: Position
    anchor: Anchor
    by_gtid: bool
    run_start: RunStart


@dataclass(slots=True)
class RecoveryPlaces:
    """The ends of batches in the server's log. `places`: those that are proven, by
    batch; `reasons`: why the others are not."""

    ports: RunPorts
    places: dict[int, RecoveryPlace] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    _facts: ServerFacts | None = None

    def reaches(self, lake_end: BatchRecord) -> bool:
        """Return whether the server still has the whole log after this batch."""
        if self._facts is None:
            self._facts = self.ports.server.facts()
        try:
            self.places[lake_end.batch] = _place_of(self.ports, lake_end, self._facts)
        except LockstepError as error:
            if error.recovery is Recovery.RETRY:
                raise
            self.reasons.append(f"{lake_end.end}: {error.message}")
        return lake_end.batch in self.places


def _place_of(ports: RunPorts, lake_end: BatchRecord, facts: ServerFacts) -> RecoveryPlace:
    """Return the end of a batch as a place in this server's log, by file and offset or
    by GTIDs. Raise an error if neither proves it."""
    cursor = lake_end.cursor
    if cursor.server == facts.server_uuid and facts.lists(lake_end.end.file):
        return _place_by_coordinates(ports, lake_end, facts)
    if not cursor.by_gtid or not cursor.gtids or facts.gtid_mode != "ON":
        raise StartUnreachable(
            "the server does not list that file, and no GTIDs name the place",
            hint="`lockstep check`",
        )
    if not GtidSet.parse(facts.gtid_executed).contains(cursor.gtids):
        raise StartUnreachable(
            "the server lacks transactions that were captured", hint="`lockstep check`"
        )
    boundary = find_place(ports, cursor.gtids, facts)
    position = Position(lake_end.end, cursor.gtids, cursor.server, cursor.committed_at)
    return RecoveryPlace(
        lake_end,
        position,
        cursor.anchor,
        by_gtid=True,
        run_start=_run_start(lake_end, boundary, facts),
    )


def _place_by_coordinates(
    ports: RunPorts, lake_end: BatchRecord, facts: ServerFacts
) -> RecoveryPlace:
    """Return the place by file and offset, which the anchor proves."""
    boundary = find_place(ports, lake_end.end, facts)
    cursor, anchor = lake_end.cursor, boundary.anchor
    if boundary.at != lake_end.end or anchor is None:
        raise StartUnreachable("no transaction ends there", hint="`lockstep check`")
    if compare_anchor(cursor.anchor, anchor) is AnchorReading.DIFFERENT:
        raise HistoryRewritten(
            "the log has another event there than the one that was captured",
            hint="`lockstep check`",
        )
    gtids = boundary.gtid_set if cursor.gtids is None else cursor.gtids
    position = Position(lake_end.end, gtids, facts.server_uuid, cursor.committed_at)
    by_gtid = cursor.by_gtid and facts.gtid_mode == "ON"
    return RecoveryPlace(
        lake_end, position, cursor.anchor, by_gtid, _run_start(lake_end, boundary, facts)
    )


def _run_start(lake_end: BatchRecord, boundary: LogBoundary, facts: ServerFacts) -> RunStart:
    start = Position(boundary.at, boundary.gtid_set, facts.server_uuid)
    reason = f"the lake shows {lake_end.end}"
    return start_at_known_place(start, boundary.anchor, facts, reason, leave_out=boundary.leave_out)


@dataclass(frozen=True, slots=True)
class RecoveredStructures:
    """The structures that the ledger records. `adopted_tables`: tables that continue
    with their mirrors. `dropped_tables`: those that were dropped at the source before
    the place. `reloads`: tables that are re-read from MySQL, and why. `tightenings`:
    values that old versions of mirrors may show although the settings hide them; the
    batch of each is 0 until it is recorded. `tables_needing_consent`: those of the plan
    that existed at the place."""

    versions: tuple[SchemaVersion, ...]
    databases: tuple[DatabaseVersion, ...]
    adopted_tables: frozenset[TableName]
    dropped_tables: frozenset[TableName]
    reloads: tuple[tuple[TableName, str], ...]
    tightenings: tuple[Tightening, ...] = ()
    tables_needing_consent: frozenset[TableName] = frozenset()

    def generation(self, table: TableName) -> int:
        """Return the generation of the changelog that a table continues with."""
        return next(version.generation for version in self.versions if version.table == table)


def find_structures(
    ports: RunPorts, lake: LakeContent, plan: RecoveryPlan, place: RecoveryPlace
) -> RecoveredStructures:
    """Return the structures at the place. The server gives the current structures, and
    its log the statements that changed them after the place."""
    baseline, between = undisturbed_baseline(ports, place.run_start)
    server_tables = {table.name: table for table in baseline.tables}
    fold_case = case_folding(place.run_start.facts)
    statements_by_table = spans_of_changes(between, list(server_tables), fold_case)
    # Tables that existed at the place: a statement after it did not create them.
    created_tables = {
        name for name, statements in statements_by_table.items() if statements.is_created
    }
    # A RENAME is followed by the next run, which knows what the table's former name hides.
    former_names = _former_names(between, fold_case)
    renamed_tables = {
        name
        for name in statements_by_table
        if (former_name := former_names.get(fold_case(name))) is not None
        and _is_followed_by_rename(ports, plan, former_name, fold_case)
    }
    existing_tables = server_tables.keys() | statements_by_table.keys()
    existing_tables = existing_tables - created_tables - renamed_tables
    adoptions = {
        adoption.mirror.table: adoption
        for adoption in plan.adoptions
        if adoption.mirror.table in existing_tables
    }
    versions, unknown_tables = [], set[TableName]()
    for name in sorted(existing_tables):
        schema = server_tables.get(name) if name not in statements_by_table else None
        if schema is None and name in adoptions:
            schema = _structure_in_lake(ports, lake, plan, adoptions[name])
        reason = _ALTERED_AFTER_PLACE
        if name in plan.tables_needing_consent:
            # If a RENAME gives its rows another name, that one waits for consent, too.
            schema, reason = None, HIDDEN_BEFORE
        if schema is None:
            unknown_tables.add(name)
        version = _version(ports, name, schema, place.lake_end.end, reason)
        changelogs = [changelog for changelog in lake.changelogs if changelog.table == name]
        generation = _generation(ports, changelogs, version, plan.lake_end.batch)
        versions.append(replace(version, generation=generation))
    adopted_tables = adoptions.keys() - unknown_tables
    adopted_tables -= set(
        _unfit_tables(ports, {name: adoptions[name] for name in adopted_tables}, versions)
    )
    reasons = dict(plan.reloads)
    shapes = {version.table: version.shape_fingerprint for version in versions}
    for name in sorted(adopted_tables):
        if adoptions[name].shown_batch.shape != shapes[name]:
            adopted_tables.remove(name)
            reasons[name] = "its mirror shows other columns or rows of it than its settings"
    tightenings = _find_tightenings(ports, lake, versions)
    for tightening in tightenings:
        # Nothing proves that the mirror itself shows no hidden values, so it is written
        # again.
        adopted_tables.discard(tightening.table)
        reasons.setdefault(
            tightening.table, "earlier versions of its mirror show more of it than its settings"
        )
    tables_with_mirror = {mirror.table for mirror in lake.facts.mirrors}
    reloads = tuple(
        (name, _reload_reason(name, reasons, unknown_tables, adoptions))
        for name in sorted(existing_tables & server_tables.keys())
        if (ports.source.patterns.matches(name) or name in tables_with_mirror)
        and name not in adopted_tables | plan.tables_needing_consent
    )
    at = place.lake_end.end
    databases = tuple(
        DatabaseVersion(database.name, at, database) for database in baseline.databases
    )
    dropped_tables = (
        frozenset(adoption.mirror.table for adoption in plan.adoptions) - existing_tables
    )
    return RecoveredStructures(
        tuple(versions),
        databases,
        frozenset(adopted_tables),
        dropped_tables,
        reloads,
        tuple(tightenings),
        plan.tables_needing_consent & existing_tables,
    )


def _former_names(
    statements: Iterable[LoggedStatement], fold_case: FoldCase
) -> dict[TableName, TableName]:
    """Return the tables to which a RENAME gave a name that no earlier statement has, each
    with its former name; both as the server compares them."""
    former_names: dict[TableName, TableName] = {}
    known_names = set[TableName]()
    for statement in statements:
        changes = read_change(statement.text, statement.context)
        if not isinstance(changes, tuple):
            continue
        for change in changes:
            for pair in renamed_pairs([change]):
                former_name, name = map(fold_case, pair)
                if name not in known_names:
                    former_names[name] = former_names.get(former_name, former_name)
                known_names |= {former_name, name}
            known_names |= {fold_case(table) for table in affected_tables([change]) or ()}
    return former_names


def _is_followed_by_rename(
    ports: RunPorts, plan: RecoveryPlan, former_name: TableName, fold_case: FoldCase
) -> bool:
    """Return whether the next run knows a table by its former name: its mirror goes on, or
    the settings hide something of it, so that no run may read it under another name
    before it has followed the RENAME."""
    if any(fold_case(adoption.mirror.table) == former_name for adoption in plan.adoptions):
        return True
    return ports.source.shape_rules_of(former_name) is not None


def _find_tightenings(
    ports: RunPorts, lake: LakeContent, versions: Iterable[SchemaVersion]
) -> list[Tightening]:
    """Return a tightening for each table whose mirrors have a version that shows other
    columns or rows than the settings allow now. The lost ledger may have recorded that
    hidden values must still be cleared from these versions."""
    return [
        _tightening_of(ports, version)
        for version in versions
        if version.shown_as is not None
        and any(
            _shows_other_shape(ports, version, shown_batch)
            for mirror in lake.facts.mirrors  # several of one table if its mirror moved
            if mirror.table == version.table
            for shown_batch in mirror.shown_batches
        )
    ]


def _shows_other_shape(ports: RunPorts, version: SchemaVersion, shown_batch: ShownBatch) -> bool:
    key = shown_batch.structure_key or ""
    schemas = ports.claims.structures(ports.source.name, key) or ()
    schema = next((schema for schema in schemas if schema.name == version.table), version.schema)
    try:
        return schema is None or ports.shaping.shape_fingerprint(schema) != shown_batch.shape
    except TableError:
        return True


def _tightening_of(ports: RunPorts, version: SchemaVersion) -> Tightening:
    assert version.schema is not None and version.shown_as is not None
    hidden = version.hidden_columns
    return Tightening(
        version.table,
        last_batch=0,
        columns=tuple(
            column.name for column in version.schema.columns if column.name.lower() in hidden
        ),
        has_fewer_rows=version.shown_as.row_condition is not None,
        kept_because=keep_clear_reason(ports, version.table),
    )


def _version(
    ports: RunPorts, name: TableName, schema: TableSchema | None, at: Coordinates, reason: str
) -> SchemaVersion:
    """Return the version of a table at the place. `reason`: why its structure is
    unknown, if it is."""
    try:
        if schema is not None:
            recorded, shown_as = ports.shaping.for_history(schema)
            version = SchemaVersion(name, 1, at, Knowledge.KNOWN, VersionOrigin.BASELINE, recorded)
            return replace(version, shown_as=shown_as)
    except TableError as error:
        reason = error.reason
    return SchemaVersion(name, 1, at, Knowledge.UNKNOWN, VersionOrigin.BASELINE, reason=reason)


def _generation(
    ports: RunPorts, changelogs: Sequence[ChangelogListing], version: SchemaVersion, batch: int
) -> int:
    """Return the generation (number of the changelog) that the table continues with.
    The search begins at the newest changelog that has a batch up to `batch`, and takes
    the first whose columns fit the structure. If none fits or the structure is unknown,
    return a new number."""
    changelogs_by_generation = {changelog.generation: changelog for changelog in changelogs}
    if version.schema is None:
        return max(changelogs_by_generation, default=0) + 1
    generations = [
        changelog.generation
        for changelog in changelogs
        if min(changelog.batches, default=0) <= batch
    ]
    generation = max(generations, default=min(changelogs_by_generation, default=1))
    while (changelog := changelogs_by_generation.get(generation)) is not None:
        columns = ports.mirrors.schema(changelog.folder, changelog.newest_version)
        if can_take(columns, changelog_schema(version.shown_structure)):
            break
        generation += 1
    return generation


def _structure_in_lake(
    ports: RunPorts, lake: LakeContent, plan: RecoveryPlan, adoption: Adoption
) -> TableSchema | None:
    """Return the newest structure of a table that the lake keeps, up to the plan's
    batch; None without one."""
    keys = [
        (record.batch, record.structures_key)
        for record in lake.facts.records
        if record.structures_key
    ]
    keys += [
        (shown.batch, shown.structure_key)
        for shown in adoption.mirror.shown_batches
        if shown.structure_key
    ]
    for batch, key in sorted(keys, reverse=True):
        if batch > plan.lake_end.batch or key is None:
            continue
        for schema in ports.claims.structures(ports.source.name, key) or ():
            if schema.name == adoption.mirror.table:
                return schema
    return None


def _unfit_tables(
    ports: RunPorts, adoptions: Mapping[TableName, Adoption], versions: list[SchemaVersion]
) -> Iterator[TableName]:
    """Yield the tables whose mirrors cannot be read at the adopted version, or lack a
    column of the structure."""
    schemas = {version.table: version.shown_schema for version in versions}
    for name, adoption in adoptions.items():
        schema = schemas[name]
        folder, version = adoption.mirror.folder, adoption.version
        if ports.mirrors.reason_unreadable(folder, version) is not None or schema is None:
            yield name
            continue
        mirror_columns = {
            comparable_name(column) for column in ports.mirrors.schema(folder, version).names
        }
        if not {comparable_name(column.name) for column in schema.columns} <= mirror_columns:
            yield name


def _reload_reason(
    name: TableName,
    reasons: Mapping[TableName, str],
    unknown_tables: set[TableName],
    adoptions: Mapping[TableName, Adoption],
) -> str:
    if name in reasons:
        return reasons[name]
    if name in unknown_tables and name in adoptions:
        return "it was altered after this place, and the lake does not keep its structure before"
    if name in adoptions:
        return "its mirror is incomplete at this place: files or columns are missing"
    return "its mirror is not in the lake"
