"""Where in the server's log a ledger goes on that is made from a lake, and the structures that
tables have there.

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.changes.generations import fits
from pipeline.errors import HistoryRewritten, LockstepError, Recovery, StartUnreachable
from pipeline.gtid import GtidSet
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, Position, Witness
from pipeline.recovery.facts import Adopted, RecoveryPlan, Told
from pipeline.runs.begin import RunStart, read_again_at
from pipeline.runs.capturing.initial_schemas import quiet_baseline, touched_between
from pipeline.runs.context import Workplace
from pipeline.runs.find_place import ProvenPosition, find_place
from pipeline.runs.recovering.lake_facts import GatheredLake, Listed
from pipeline.schema.column_names import folded
from pipeline.schema.history import DatabaseVersion, Knowledge, SchemaVersion, VersionOrigin
from pipeline.schema.model import TableSchema
from pipeline.start.decision import compare_witness
from pipeline.start.question import WitnessReading
from pipeline.table import TableName


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
    that the source had dropped before; `reloads`: those that are read from the source, and why."""

    versions: tuple[SchemaVersion, ...]
    databases: tuple[DatabaseVersion, ...]
    adopted: frozenset[TableName]
    gone: frozenset[TableName]
    reloads: tuple[tuple[TableName, str], ...]

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
        version = _version(name, schema, placed.told.at)
        changelogs = [changelog for changelog in gathered.listed if changelog.table == name]
        generation = _generation(work, changelogs, version, plan.told.batch)
        versions.append(replace(version, generation=generation))
    adopted = {name for name in wanted if name not in unknown}
    adopted -= set(_unfit(work, {name: wanted[name] for name in adopted}, versions))
    why = dict(plan.reloads)
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
    return Structures(tuple(versions), databases, frozenset(adopted), gone, reloads)


def _version(name: TableName, schema: TableSchema | None, at: Coordinates) -> SchemaVersion:
    if schema is not None:
        known = Knowledge.KNOWN
        return SchemaVersion(name, 1, at, known, VersionOrigin.BASELINE, schema=schema)
    why = "statements changed it since, and nothing tells what it was before them"
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
    schemas = {one.table: one.schema for one in versions}
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
