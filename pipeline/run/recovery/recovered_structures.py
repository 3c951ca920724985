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
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from lockstep.pipeline.mirror.generations import holds_version
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.foreign_commits import own_files
from lockstep.pipeline.model.lake_commit import FileAction, LakeCommit
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.recovery import (
    Adopted,
    BatchRecord,
    LakeFacts,
    MirrorFacts,
    RecoveryPlan,
    forgotten_of,
    mirror_facts,
    record_of,
    table_named,
)
from lockstep.pipeline.run.agreement.claim import claim_of
from lockstep.pipeline.run.begin import RunStart, start_at_known_place
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.dump.initial_schemas import quiet_baseline, touched_between
from lockstep.pipeline.run.find_place import ProvenPosition, find_place
from lockstep.pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    SchemaVersion,
    VersionOrigin,
)
from lockstep.pipeline.schema.model import TableSchema
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
from lockstep.pipeline.values.table import TableName

COMMITS: Final = 200
"""Largest number of commits that are read from each table's Delta log, newest first."""


@dataclass(frozen=True, slots=True)
class ListedChangelog:
    """A changelog (all changes of a table), or a system table (`_transactions`,
    `_ddl`). `newest`: its Delta version. `files`: the listed files, with their sizes in
    bytes. `own`: the files that it would list without other programs' commits."""

    folder: str
    table: TableName | SystemTable
    newest: int
    files: dict[str, int]
    own: Mapping[str, FileAction]

    @property
    def batches(self) -> frozenset[int]:
        numbers = (batch_of(file) for file in self.own)
        return frozenset(number for number in numbers if number is not None)

    @property
    def foreign(self) -> tuple[str, ...]:
        """The listed files that other programs wrote."""
        return tuple(sorted(self.files.keys() - self.own.keys()))

    def changes(self, batch: int) -> bool:
        """Return whether its list of files must change so that `batch` is its last
        batch."""
        return max(self.batches, default=0) > batch or self.files.keys() != self.own.keys()

    @property
    def generation(self) -> int:
        """The number of the changelog among all that its table has had, by its folder's
        name."""
        _, mark, number = self.folder.rpartition("@")
        return int(number) if mark else 1


@dataclass(frozen=True, slots=True)
class GatheredLake:
    """What the lake shows of a source. `listed`: its changelogs and system tables.
    `folders`: its Delta tables, with their newest versions. `txn_version`: the highest
    Delta transaction number of any write to a mirror (the table with the current
    rows)."""

    facts: LakeFacts
    listed: tuple[ListedChangelog, ...]
    folders: dict[str, int]
    txn_version: int


def gather(work: Workplace) -> GatheredLake:
    """Read the Delta logs of all tables of the source; nothing is written."""
    source = work.source.name
    system_tables = {system_table_path(source, table): table for table in SystemTable}
    folders, mirrors, listed = dict[str, int](), list[MirrorFacts](), list[ListedChangelog]()
    transactions, highest = list[BatchRecord](), 0
    claim = claim_of(work, "")
    numbers = [claim.batch or 0]
    void = list(claim.void)
    tables = work.claims.tables(source)
    work.progress.note(f"the logs of {len(tables)} tables in the lake are read")
    for folder in tables:
        commits = list(islice(work.mirrors.history(folder), COMMITS))
        if not commits:
            continue
        folders[folder] = commits[0].delta_version
        changelog = folder.startswith(f"{source}/_changes/")
        table = system_tables.get(folder) or (_table_of(commits) if changelog else None)
        if table is not None:
            files = work.changelog.listed_files(folder) or {}
            actions = {
                path: FileAction(path, None, True, size=size) for path, size in files.items()
            }
            own = own_files(actions, commits)
            listed.append(ListedChangelog(folder, table, commits[0].delta_version, files, own))
            numbers += [*listed[-1].batches, *_numbers(commits)]
            if table is SystemTable.TRANSACTIONS:
                entries = (record_of(commit, whole=True) for commit in commits)
                whole = [entry for entry in entries if entry is not None and entry.whole]
                listed_batches = listed[-1].batches
                transactions = [entry for entry in whole if entry.batch in listed_batches]
                # A batch that was committed, is not forgotten and is no longer listed
                # is void.
                forgotten = forgotten_of(commits)
                committed = {entry.batch for entry in whole if entry.batch > forgotten}
                void += [BatchSpan(b - 1, b) for b in sorted(committed - listed_batches)]
        elif not changelog and (mirror := mirror_facts(folder, commits)) is not None:
            mirrors.append(mirror)
            highest = max([highest, *_numbers(commits)])
    completed = tuple(_completed(mirrors, listed))
    facts = LakeFacts(
        claim.ledger or None,
        tuple(transactions),
        completed,
        void=tuple(void),
        complete=claim.complete,
        highest=max(numbers),
        unmirrored=_unmirrored(listed, {mirror.table for mirror in completed}),
    )
    return GatheredLake(facts, tuple(listed), folders, highest)


def _table_of(commits: Iterable[LakeCommit]) -> TableName | None:
    """Return the table of a changelog, from the newest commit that names it."""
    for commit in commits:
        with suppress(KeyError, TypeError, ValueError):
            return table_named(commit.metadata or {})
    return None


def _numbers(commits: Iterable[LakeCommit]) -> Iterable[int]:
    """Yield the transaction numbers in commits: of writes to a mirror, or of a
    changelog's batches and revisions."""
    for commit in commits:
        yield from (n for name, n in commit.transactions.items() if name.startswith("lockstep/"))
        number = (commit.metadata or {}).get("txn_version")
        if isinstance(number, int):
            yield number


def _unmirrored(
    listed: Iterable[ListedChangelog], mirrored: Collection[TableName]
) -> tuple[tuple[TableName, int], ...]:
    """Return the tables that have a changelog but no mirror, with their first batches."""
    first: dict[TableName, int] = {}
    for changelog in listed:
        if (
            isinstance(changelog.table, TableName)
            and changelog.table not in mirrored
            and changelog.batches
        ):
            begins = min(changelog.batches)
            first[changelog.table] = min(begins, first.get(changelog.table, begins))
    return tuple(sorted(first.items()))


def _completed(
    mirrors: Sequence[MirrorFacts], listed: Sequence[ListedChangelog]
) -> Iterator[MirrorFacts]:
    """Yield the mirrors, completed with the batches of all changelogs of their tables
    and the writes to all folders of their tables' mirrors. A version shows the end of a
    batch only if no write to another folder began after it. The mirror with the highest
    generation of a table comes first. All its mirrors get that number, so that the next
    number is new to each."""
    published, begins = dict[TableName, set[int]](), dict[TableName, set[int]]()
    generations = dict[TableName, int]()
    for changelog in listed:
        if isinstance(changelog.table, TableName):
            published.setdefault(changelog.table, set()).update(changelog.batches)
    for mirror in mirrors:
        begins.setdefault(mirror.table, set()).update(mirror.begins)
    ordered = sorted(mirrors, key=lambda facts: (facts.table, -facts.generation, facts.folder))
    for mirror in ordered:
        yield replace(
            mirror,
            published=frozenset(published.get(mirror.table, ())),
            begins=frozenset(begins[mirror.table]),
            generation=generations.setdefault(mirror.table, mirror.generation),
        )


@dataclass(frozen=True, slots=True)
class PlacedRecovery:
    """The place where the ledger continues. `lake_end`: the record of the batch that
    ends there. `by_gtid`: the next run finds it by GTID. `run_start`: where reading
    begins in this server's log."""

    lake_end: BatchRecord
    position: Position
    anchor: Anchor
    by_gtid: bool
    run_start: RunStart


@dataclass(slots=True)
class Places:
    """The ends of batches in the server's log. `found`: the places that are proven, by
    batch; `why`: the reasons for those that are not."""

    work: Workplace
    found: dict[int, PlacedRecovery] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)
    _facts: ServerFacts | None = None

    def reaches(self, lake_end: BatchRecord) -> bool:
        """Return whether the server still has the whole log after this batch."""
        if self._facts is None:
            self._facts = self.work.server.facts()
        try:
            self.found[lake_end.batch] = _placed(self.work, lake_end, self._facts)
        except LockstepError as error:
            if error.recovery is Recovery.RETRY:
                raise
            self.why.append(f"{lake_end.at}: {error.message}")
        return lake_end.batch in self.found


def _placed(work: Workplace, lake_end: BatchRecord, facts: ServerFacts) -> PlacedRecovery:
    """Return the end of a batch as a place in this server's log, by file and offset or
    by GTIDs. Raise an error if neither proves it."""
    cursor = lake_end.cursor
    if cursor.server == facts.server_uuid and facts.lists(lake_end.at.file):
        return _at_place(work, lake_end, facts)
    if not cursor.by_gtid or not cursor.gtids or facts.gtid_mode != "ON":
        raise StartUnreachable(
            "the server does not list that file, and no GTIDs name the place",
            hint="`lockstep check`",
        )
    if not GtidSet.parse(facts.gtid_executed).contains(cursor.gtids):
        raise StartUnreachable(
            "the server lacks transactions that were captured", hint="`lockstep check`"
        )
    proven = find_place(work, cursor.gtids, facts)
    position = Position(lake_end.at, cursor.gtids, cursor.server)
    return PlacedRecovery(lake_end, position, cursor.anchor, True, _begun(lake_end, proven, facts))


def _at_place(work: Workplace, lake_end: BatchRecord, facts: ServerFacts) -> PlacedRecovery:
    """Return the place by file and offset, which the anchor proves."""
    proven = find_place(work, lake_end.at, facts)
    cursor, anchor = lake_end.cursor, proven.anchor
    if proven.at != lake_end.at or anchor is None:
        raise StartUnreachable("no transaction ends there", hint="`lockstep check`")
    if compare_anchor(cursor.anchor, anchor) is AnchorReading.DIFFERENT:
        raise HistoryRewritten(
            "the log has another event there than the one that was captured",
            hint="`lockstep check`",
        )
    gtids = proven.gtid_set if cursor.gtids is None else cursor.gtids
    position = Position(lake_end.at, gtids, facts.server_uuid)
    by_gtid = cursor.by_gtid and facts.gtid_mode == "ON"
    return PlacedRecovery(
        lake_end, position, cursor.anchor, by_gtid, _begun(lake_end, proven, facts)
    )


def _begun(lake_end: BatchRecord, proven: ProvenPosition, facts: ServerFacts) -> RunStart:
    start = Position(proven.at, proven.gtid_set, facts.server_uuid)
    reason = f"the lake shows {lake_end.at}"
    return start_at_known_place(start, proven.anchor, facts, reason, leave_out=proven.leave_out)


@dataclass(frozen=True, slots=True)
class Structures:
    """The structures that the ledger records. `adopted`: tables that continue with
    their mirrors. `dropped`: tables that were dropped at the source before the place.
    `reloads`: tables that are re-read from MySQL, and why. `tightenings`: values that
    old versions of mirrors may show although the settings hide them; the batch of each
    is 0 until it is recorded."""

    versions: tuple[SchemaVersion, ...]
    databases: tuple[DatabaseVersion, ...]
    adopted: frozenset[TableName]
    dropped: frozenset[TableName]
    reloads: tuple[tuple[TableName, str], ...]
    tightenings: tuple[Tightening, ...] = ()

    def generation(self, table: TableName) -> int:
        """Return the generation of the changelog that a table continues with."""
        return next(version.generation for version in self.versions if version.table == table)


def structures_of(
    work: Workplace, gathered: GatheredLake, plan: RecoveryPlan, placed: PlacedRecovery
) -> Structures:
    """Return the structures at the place. The server gives the current structures, and
    its log the statements that changed them after the place."""
    baseline, between = quiet_baseline(work, placed.run_start)
    now = {table.name: table for table in baseline.tables}
    touched = touched_between(between, list(now))
    # Tables that existed at the place: a statement after it did not create them.
    existing = {name for name in now if name not in touched or not touched[name].created}
    existing |= {name for name, statements in touched.items() if not statements.created}
    adoptions = {
        adoption.mirror.table: adoption
        for adoption in plan.adopted
        if adoption.mirror.table in existing
    }
    versions, unknown = [], set[TableName]()
    for name in sorted(existing):
        schema = now.get(name) if name not in touched else None
        if schema is None and name in adoptions:
            schema = _kept(work, gathered, plan, adoptions[name])
        unknown |= {name} if schema is None else set()
        version = _version(work, name, schema, placed.lake_end.at)
        changelogs = [changelog for changelog in gathered.listed if changelog.table == name]
        generation = _generation(work, changelogs, version, plan.lake_end.batch)
        versions.append(replace(version, generation=generation))
    adopted = {name for name in adoptions if name not in unknown}
    adopted -= set(_unfit(work, {name: adoptions[name] for name in adopted}, versions))
    why = dict(plan.reloads)
    shapes = {version.table: version.shape_fingerprint for version in versions}
    for name in sorted(adopted):
        if adoptions[name].shown.shape != shapes[name]:
            adopted.remove(name)
            why[name] = "its mirror shows other columns or rows of it than its settings"
    mirrors = {mirror.table: mirror for mirror in gathered.facts.mirrors}
    hiding = [
        version for version in versions if version.shown_as is not None and version.table in mirrors
    ]
    tightenings = [
        _less_shown(work, version) for version in hiding if _shown_otherwise(work, version, mirrors)
    ]
    for less in tightenings:
        # Nothing proves that the mirror itself shows no hidden values, so it is written
        # again.
        adopted.discard(less.table)
        why.setdefault(
            less.table, "earlier versions of its mirror show more of it than its settings"
        )
    reloads = tuple(
        (name, _why(name, why, unknown, adoptions))
        for name in sorted(existing & now.keys())
        if work.source.patterns.matches(name) and name not in adopted
    )
    at = placed.lake_end.at
    databases = tuple(
        DatabaseVersion(database.name, at, database) for database in baseline.databases
    )
    dropped = frozenset(adoption.mirror.table for adoption in plan.adopted) - existing
    return Structures(
        tuple(versions), databases, frozenset(adopted), dropped, reloads, tuple(tightenings)
    )


def _shown_otherwise(
    work: Workplace, version: SchemaVersion, mirrors: Mapping[TableName, MirrorFacts]
) -> bool:
    """Return whether any version of a mirror shows more, or other, columns and rows
    than the settings allow now. The lost ledger may have recorded that hidden values
    must still be cleared from it."""
    for mirror_version in mirrors[version.table].shown:
        schemas = work.claims.structures(work.source.name, mirror_version.structure or "") or ()
        schema = next(
            (schema for schema in schemas if schema.name == version.table), version.schema
        )
        with suppress(TableError):
            if (
                schema is not None
                and work.shaping.shape_fingerprint(schema) == mirror_version.shape
            ):
                continue
        return True
    return False


def _less_shown(work: Workplace, version: SchemaVersion) -> Tightening:
    assert version.schema is not None and version.shown_as is not None
    hidden, rules = version.hidden_columns, work.shaping.rules_of(version.table)
    return Tightening(
        version.table,
        0,
        tuple(column.name for column in version.schema.columns if column.name.lower() in hidden),
        version.shown_as.row_condition is not None,
        kept_because=None if rules is None else rules.keep_clear,
    )


def _version(
    work: Workplace, name: TableName, schema: TableSchema | None, at: Coordinates
) -> SchemaVersion:
    why = ""
    try:
        if schema is not None:
            recorded, shown_as = work.shaping.for_history(schema)
            version = SchemaVersion(name, 1, at, Knowledge.KNOWN, VersionOrigin.BASELINE, recorded)
            return replace(version, shown_as=shown_as)
    except TableError as error:
        why = error.reason
    why = why or "statements changed it after this place, and its structure before is unknown"
    return SchemaVersion(name, 1, at, Knowledge.UNKNOWN, VersionOrigin.BASELINE, reason=why)


def _generation(
    work: Workplace, changelogs: Sequence[ListedChangelog], version: SchemaVersion, batch: int
) -> int:
    """Return the generation (number of the changelog) that the table continues with.
    The search begins at the newest changelog that has a batch up to `batch`, and takes
    the first whose columns fit the structure. If none fits or the structure is unknown,
    return a new number."""
    existing = {changelog.generation: changelog for changelog in changelogs}
    if version.schema is None:
        return max(existing, default=0) + 1
    up_to = [
        changelog.generation
        for changelog in changelogs
        if min(changelog.batches, default=0) <= batch
    ]
    number = max(up_to, default=min(existing, default=1))
    while number in existing:
        columns = work.mirrors.schema(existing[number].folder, existing[number].newest)
        if holds_version(columns, version):
            break
        number += 1
    return number


def _kept(
    work: Workplace, gathered: GatheredLake, plan: RecoveryPlan, adoption: Adopted
) -> TableSchema | None:
    """Return the newest structure of a table that the lake keeps, up to the plan's
    batch; None without one."""
    keys = [
        (lake_end.batch, lake_end.structures)
        for lake_end in gathered.facts.records
        if lake_end.structures
    ]
    keys += [(shown.last, shown.structure) for shown in adoption.mirror.shown if shown.structure]
    for batch, key in sorted(keys, reverse=True):
        if batch > plan.lake_end.batch or key is None:
            continue
        for schema in work.claims.structures(work.source.name, key) or ():
            if schema.name == adoption.mirror.table:
                return schema
    return None


def _unfit(
    work: Workplace,
    adopted: Mapping[TableName, Adopted],
    versions: list[SchemaVersion],
) -> Iterator[TableName]:
    """Yield the tables whose mirrors cannot be read at the adopted version, or lack a
    column of the structure."""
    schemas = {version.table: version.shown_schema for version in versions}
    for name, adoption in adopted.items():
        schema = schemas[name]
        folder, version = adoption.mirror.folder, adoption.version
        if work.mirrors.reason_unreadable(folder, version) is not None or schema is None:
            yield name
            continue
        have = {comparable_name(column) for column in work.mirrors.schema(folder, version).names}
        if not {comparable_name(column.name) for column in schema.columns} <= have:
            yield name


def _why(
    name: TableName,
    why: Mapping[TableName, str],
    unknown: set[TableName],
    adoptions: Mapping[TableName, Adopted],
) -> str:
    if name in why:
        return why[name]
    if name in unknown and name in adoptions:
        return "it was altered after this place, and the lake does not keep its structure before"
    if name in adoptions:
        return "its mirror is incomplete at this place: files or columns are missing"
    return "its mirror is not in the lake"
