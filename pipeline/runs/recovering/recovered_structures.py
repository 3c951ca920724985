"""What a lake shows of a source, gathered for a ledger that is to be made from it; where in
the server's log that ledger goes on, and the structures that tables have there.

| the server | the place is proven by |
|---|---|
| is the one that was read, and lists the file | the event before it, its witness |
| is another, or has purged the file | its GTIDs: all executed, none purged that is not among them |

| since then | the structure is |
|---|---|
| no statement in the log changed the table | the server's |
| one did | the one that the lake keeps for its newest version |
| one did, and the lake keeps none | not known: the table is read from the source |
| the table was made | that of the statement, which the next run reads |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from pipeline.changes.generations import fits
from pipeline.changes.source_tables import source_table_path
from pipeline.claim import BatchSpan
from pipeline.errors import HistoryRewritten, LockstepError, Recovery, StartUnreachable, TableError
from pipeline.gtid import GtidSet
from pipeline.lake_commit import FileAction, LakeCommit
from pipeline.listing import own_files
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, Position, Witness
from pipeline.recovery.facts import (
    Adopted,
    LakeFacts,
    MirrorFacts,
    RecoveryPlan,
    Told,
    forgotten_of,
    mirror_facts,
    table_named,
    told_of,
)
from pipeline.runs.agreement.claim import said_by
from pipeline.runs.begin import RunStart, read_again_at
from pipeline.runs.capturing.initial_schemas import quiet_baseline, touched_between
from pipeline.runs.context import Workplace
from pipeline.runs.find_place import ProvenPosition, find_place
from pipeline.schema.column_names import folded
from pipeline.schema.history import DatabaseVersion, Knowledge, SchemaVersion, VersionOrigin
from pipeline.schema.model import TableSchema
from pipeline.segment import SourceTable, batch_of
from pipeline.shape.shaping import hidden_of
from pipeline.start.question import WitnessReading
from pipeline.start.rules import compare_witness
from pipeline.table import TableName
from pipeline.upkeep.clearing import Tightening

COMMITS: Final = 200
"""So many of the newest commits of each table are read."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A changelog, or a table of the source's own: the files it lists, with their sizes, and those
    that it would list if nobody else had committed to it. `newest`: its Delta version."""

    folder: str
    table: TableName | SourceTable
    newest: int
    files: dict[str, int]
    own: Mapping[str, FileAction]

    @property
    def batches(self) -> frozenset[int]:
        found = (batch_of(file) for file in self.own)
        return frozenset(one for one in found if one is not None)

    @property
    def foreign(self) -> tuple[str, ...]:
        """Files that it lists for somebody else."""
        return tuple(sorted(self.files.keys() - self.own.keys()))

    def changes(self, batch: int) -> bool:
        """Whether it is to list other files once that batch is its last."""
        return self.above(batch) or self.files.keys() != self.own.keys()

    def above(self, batch: int) -> bool:
        """Whether it lists what is behind a batch."""
        return max(self.batches, default=0) > batch

    @property
    def generation(self) -> int:
        """Of a changelog, by its folder's name."""
        _, mark, number = self.folder.rpartition("@")
        return int(number) if mark else 1


@dataclass(frozen=True, slots=True)
class GatheredLake:
    """`folders`: of all Delta tables of the source, with their newest versions; `txn_version`:
    the highest number that any write to a mirror had."""

    facts: LakeFacts
    listed: tuple[Listed, ...]
    folders: dict[str, int]
    txn_version: int


def gather(work: Workplace) -> GatheredLake:
    """Reads logs; writes nothing."""
    source = work.source.name
    own = {source_table_path(source, one): one for one in SourceTable}
    folders, mirrors, listed = dict[str, int](), list[MirrorFacts](), list[Listed]()
    told, highest = list[Told](), 0
    claim = said_by(work, "")
    named = [claim.batch or 0]
    void = list(claim.void)
    tables = work.claims.tables(source)
    work.progress.note(f"the logs of {len(tables)} tables in the lake are read")
    for folder in tables:
        commits = list(islice(work.mirrors.history(folder), COMMITS))
        if not commits:
            continue
        folders[folder] = commits[0].delta_version
        changelog = folder.startswith(f"{source}/_changes/")
        table = own.get(folder) or (_table_of(commits) if changelog else None)
        if table is not None:
            files = work.changelog.listed(folder) or {}
            there = {path: FileAction(path, None, True, size=size) for path, size in files.items()}
            left = own_files(there, commits)
            listed.append(Listed(folder, table, commits[0].delta_version, files, left))
            named += [*listed[-1].batches, *_numbers(commits)]
            if table is SourceTable.TRANSACTIONS:
                said = [one for commit in commits if (one := told_of(commit, whole=True))]
                listed_batches = listed[-1].batches
                told = [one for one in said if one.whole and one.batch in listed_batches]
                behind = forgotten_of(commits)
                gone = {one.batch for one in said if one.whole and one.batch > behind}
                void += [BatchSpan(b - 1, b) for b in sorted(gone - listed_batches)]
        elif not changelog and (found := mirror_facts(folder, commits)) is not None:
            mirrors.append(found)
            highest = max([highest, *_numbers(commits)])
    facts = LakeFacts(
        claim.ledger or None,
        tuple(told),
        (),
        void=tuple(void),
        complete=claim.complete,
        highest=max(named),
    )
    each = tuple(_of_tables(mirrors, listed))
    bare = _unmirrored(listed, {mirror.table for mirror in each})
    facts = replace(facts, mirrors=each, unmirrored=bare)
    return GatheredLake(facts, tuple(listed), folders, highest)


def _table_of(commits: Iterable[LakeCommit]) -> TableName | None:
    """Whose changelog it is, by the newest commit that says so."""
    for commit in commits:
        with suppress(KeyError, TypeError, ValueError):
            return table_named(commit.said or {})
    return None


def _numbers(commits: Iterable[LakeCommit]) -> Iterable[int]:
    """The numbers of writes to a mirror; of batches in a changelog, or of a replay's revisions."""
    for commit in commits:
        yield from (n for name, n in commit.transactions.items() if name.startswith("lockstep/"))
        number = (commit.said or {}).get("txn_version")
        if isinstance(number, int):
            yield number


def _unmirrored(
    listed: Iterable[Listed], mirrored: Collection[TableName]
) -> tuple[tuple[TableName, int], ...]:
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


def _of_tables(mirrors: Sequence[MirrorFacts], listed: Sequence[Listed]) -> Iterator[MirrorFacts]:
    """With what all changelogs of their tables have, and all folders that their mirrors had: a
    version shows the end of a batch only if no write to another folder began since, and the next
    generation is new to all of them. The newest generation of a table is first."""
    published, begins = dict[TableName, set[int]](), dict[TableName, set[int]]()
    generations = dict[TableName, int]()
    for changelog in listed:
        if isinstance(changelog.table, TableName):
            published.setdefault(changelog.table, set()).update(changelog.batches)
    for mirror in mirrors:
        begins.setdefault(mirror.table, set()).update(mirror.begins)
    ordered = sorted(mirrors, key=lambda one: (one.table, -one.generation, one.folder))
    for mirror in ordered:
        yield replace(
            mirror,
            published=frozenset(published.get(mirror.table, ())),
            begins=frozenset(begins[mirror.table]),
            generation=generations.setdefault(mirror.table, mirror.generation),
        )


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
    start = Position(proven.at, proven.gtid_set, facts.server_uuid)
    reason = f"the lake shows {told.at}"
    return read_again_at(start, proven.witness, facts, reason, leave_out=proven.leave_out)


@dataclass(frozen=True, slots=True)
class Structures:
    """What the ledger records. `adopted`: the tables that go on with their mirrors; `gone`: those
    that the source had dropped before; `reloads`: those that are read from the source, and why;
    `in_clear`: what the lake may show of tables in versions of before, although the settings
    hide it, with the batch 0."""

    versions: tuple[SchemaVersion, ...]
    databases: tuple[DatabaseVersion, ...]
    adopted: frozenset[TableName]
    gone: frozenset[TableName]
    reloads: tuple[tuple[TableName, str], ...]
    in_clear: tuple[Tightening, ...] = ()

    def generation(self, table: TableName) -> int:
        """Of the changelog that a table goes on with."""
        return next(version.generation for version in self.versions if version.table == table)


def structures_of(
    work: Workplace, gathered: GatheredLake, plan: RecoveryPlan, placed: PlacedRecovery
) -> Structures:
    """Asks the server for its structures, and its log for what changed them since."""
    baseline, between = quiet_baseline(work, placed.run_start)
    now = {table.name: table for table in baseline.tables}
    touched = touched_between(between, list(now))
    there = {name for name in now if name not in touched or not touched[name].created}
    there |= {name for name, found in touched.items() if not found.created}
    wanted = {
        adoption.mirror.table: adoption
        for adoption in plan.adopted
        if adoption.mirror.table in there
    }
    versions, unknown = [], set[TableName]()
    for name in sorted(there):
        schema = now.get(name) if name not in touched else None
        if schema is None and name in wanted:
            schema = _kept(work, gathered, plan, wanted[name])
        unknown |= {name} if schema is None else set()
        version = _version(work, name, schema, placed.told.at)
        changelogs = [changelog for changelog in gathered.listed if changelog.table == name]
        generation = _generation(work, changelogs, version, plan.told.batch)
        versions.append(replace(version, generation=generation))
    adopted = {name for name in wanted if name not in unknown}
    adopted -= set(_unfit(work, {name: wanted[name] for name in adopted}, versions))
    why = dict(plan.reloads)
    shapes = {version.table: version.shape for version in versions}
    for name in sorted(adopted):
        if wanted[name].shown.shape != shapes[name]:
            adopted.remove(name)
            why[name] = "its settings show something else of it than its mirror does"
    mirrors = {mirror.table: mirror for mirror in gathered.facts.mirrors}
    hiding = [one for one in versions if one.shown_as is not None and one.table in mirrors]
    in_clear = [_less_shown(work, one) for one in hiding if _otherwise(work, one, mirrors)]
    for less in in_clear:
        # Only what is written from now on tells that the mirror itself shows no more.
        adopted.discard(less.table)
        why.setdefault(less.table, "versions of before show something else of it than its settings")
    reloads = tuple(
        (name, _why(name, why, unknown, wanted))
        for name in sorted(there & now.keys())
        if work.source.patterns.matches(name) and name not in adopted
    )
    at = placed.told.at
    databases = tuple(
        DatabaseVersion(database.name, at, database) for database in baseline.databases
    )
    gone = frozenset(adoption.mirror.table for adoption in plan.adopted) - there
    return Structures(
        tuple(versions), databases, frozenset(adopted), gone, reloads, tuple(in_clear)
    )


def _otherwise(
    work: Workplace, version: SchemaVersion, mirrors: Mapping[TableName, MirrorFacts]
) -> bool:
    """Return whether some version of a mirror shows its table otherwise than the settings would
    show the structure that it had then: the ledger that is lost may have known that values were
    still to be cleared."""
    for shown in mirrors[version.table].shown:
        schemas = work.claims.structures(work.source.name, shown.structure or "") or ()
        then = next((one for one in schemas if one.name == version.table), version.schema)
        with suppress(TableError):
            if then is not None and work.shaping.fingerprint(then) == shown.shape:
                continue
        return True
    return False


def _less_shown(work: Workplace, version: SchemaVersion) -> Tightening:
    assert version.schema is not None and version.shown_as is not None
    hidden, rules = hidden_of(version), work.shaping.rules_of(version.table)
    return Tightening(
        version.table,
        0,
        tuple(one.name for one in version.schema.columns if one.name.lower() in hidden),
        version.shown_as.rows is not None,
        kept_because=None if rules is None else rules.keep_clear,
    )


def _version(
    work: Workplace, name: TableName, schema: TableSchema | None, at: Coordinates
) -> SchemaVersion:
    why = ""
    try:
        if schema is not None:
            known, shown_as = work.shaping.recorded(schema)
            version = SchemaVersion(name, 1, at, Knowledge.KNOWN, VersionOrigin.BASELINE, known)
            return replace(version, shown_as=shown_as)
    except TableError as error:
        why = error.reason
    why = why or "statements changed it since, and nothing tells what it was before them"
    return SchemaVersion(name, 1, at, Knowledge.UNKNOWN, VersionOrigin.BASELINE, reason=why)


def _generation(
    work: Workplace, changelogs: Sequence[Listed], version: SchemaVersion, batch: int
) -> int:
    """Of the changelog that the table goes on with: the newest that has something up to the
    batch, or one behind it, if that one's columns cannot take the structure's. A new one, where
    the structure is not known."""
    own = {changelog.generation: changelog for changelog in changelogs}
    if version.schema is None:
        return max(own, default=0) + 1
    up_to = [
        changelog.generation
        for changelog in changelogs
        if min(changelog.batches, default=0) <= batch
    ]
    number = max(up_to, default=min(own, default=1))
    while number in own:
        columns = work.mirrors.schema(own[number].folder, own[number].newest)
        if fits(columns, version):
            break
        number += 1
    return number


def _kept(
    work: Workplace, gathered: GatheredLake, plan: RecoveryPlan, adoption: Adopted
) -> TableSchema | None:
    """The newest structure that the lake keeps of a table up to the batch."""
    keys = [(told.batch, told.structures) for told in gathered.facts.told if told.structures]
    keys += [(shown.last, shown.structure) for shown in adoption.mirror.shown if shown.structure]
    for batch, key in sorted(keys, reverse=True):
        if batch > plan.told.batch or key is None:
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
    """Tables whose mirrors cannot be read as of that version, or lack a column of it."""
    schemas = {one.table: one.shown for one in versions}
    for name, adoption in adopted.items():
        schema = schemas[name]
        folder, version = adoption.mirror.folder, adoption.version
        if work.mirrors.lacking(folder, version) is not None or schema is None:
            yield name
            continue
        have = {folded(column) for column in work.mirrors.schema(folder, version).names}
        if not {folded(column.name) for column in schema.columns} <= have:
            yield name


def _why(
    name: TableName,
    why: Mapping[TableName, str],
    unknown: set[TableName],
    wanted: Mapping[TableName, Adopted],
) -> str:
    if name in why:
        return why[name]
    if name in unknown and name in wanted:
        return "it was altered since, and the lake does not keep what it was before"
    if name in wanted:
        return "its mirror is not whole as of there: files or columns are missing"
    return "its mirror is not in the lake"
