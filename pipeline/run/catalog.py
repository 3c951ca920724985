"""The registration of mirrors (the Delta tables with the current rows) in a catalog
such as Hive Metastore or Unity Catalog. `pipeline.catalog` decides the steps.

The ledger records an entry before it is made in the catalog and again afterwards, so
that the next run can finish the work of a killed run. An entry that Lockstep did not
make is left alone. No row of a mirror depends on the catalog.

A changed comment makes no new version of a table's structure. So a table is also
examined again when a statement in the log contains its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter

from lockstep.pipeline.catalog import (
    CatalogEntry,
    EntryColumn,
    EntryName,
    EntryStep,
    MissingEntry,
    RecordedEntry,
    WantedEntry,
    entry_name,
    entry_names,
    is_at_one_of,
    is_own_entry,
    normal_location,
    plan_steps,
)
from lockstep.pipeline.mirror.lineage import own_comments
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.catalog import Registry
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import CatalogRefused, LockstepError, TableError
from lockstep.pipeline.values.mirror_names import MirrorNames
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName

_STATEMENTS = 500
"""Number of statements that are read from the ledger at a time."""

_WORD = re.compile(r"[\w$]+")

_TAKEN_HINT = "rename that table, or choose other schemas for mirrors under [catalog]"

_TAKE_OVER_HINT = "`lockstep catalog --yes` takes it over"

_RETRY_HINT = "`lockstep catalog --yes` tries again"

_REPORT_SECONDS = 10.0
"""Shortest time between two progress messages, in seconds."""

_RUN_SECONDS = 60.0
"""Longest time that a run spends on registrations, in seconds. The next run
continues."""


@dataclass(frozen=True, slots=True)
class CatalogStanding:
    """The state of a source's registrations according to the ledger. `catalog`: the
    catalog's identity. `registered`: the number of entries. `waiting`: tables whose
    entries the next run creates or changes. `left`: tables that can have no name in the
    catalog."""

    catalog: str
    registered: int
    waiting: tuple[TableName, ...]
    left: tuple[TableName, ...]


def registrations_of(ledger: Ledger, mirrors: MirrorNames, registry: Registry) -> CatalogStanding:
    """Return the state of a source's registrations. Only the ledger is read."""
    recorded = ledger.registrations(mirrors.source, registry.catalog.identity).entries
    states = ledger.table_states(mirrors.source)
    comparison = _compare_recorded(recorded, mirrors, registry, states)
    return CatalogStanding(
        registry.catalog.identity,
        registered=sum(entry.content_hash is not None for entry in recorded.values()),
        waiting=tuple(sorted(comparison.differing_tables)),
        left=tuple(entry.table for entry in comparison.unnamable_entries),
    )


class EntryChangeKind(StrEnum):
    """The kinds of changes of a catalog entry."""

    REGISTERED = "registered"
    CHANGED = "changed"
    RENAMED = "renamed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class EntryChange:
    """A change of a catalog entry that was made, or would be made (`differences`)."""

    kind: EntryChangeKind
    table: TableName
    name: EntryName


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """The outcome of a registration.

    - `changes`: those in the catalog. `correct_count`: number of entries that needed
      none.
    - `missing_entries`: tables that could not be registered or changed.
    - `waiting`: number of entries for which there was no time, and which the next run
      examines.
    - `trouble`: the error that ended the registration early. The next run tries again.
    """

    catalog: str
    changes: tuple[EntryChange, ...] = ()
    missing_entries: tuple[MissingEntry, ...] = ()
    correct_count: int = 0
    waiting: int = 0
    trouble: LockstepError | None = None
    seconds: float = 0.0

    def lines(self) -> Iterator[str]:
        """Yield sentences for people about changes, and about entries that were not
        changed."""
        counts = Counter(change.kind.value for change in self.changes)
        if counts:
            yield ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
        if self.missing_entries:
            count = len(self.missing_entries)
            tables = pluralize(count, "table")
            yield f"{tables} could not be registered: `lockstep catalog` says why"
        if self.waiting:
            yield f"{self.waiting:,} more with the next run"
        if self.trouble is not None:
            yield self.trouble.message


def register(
    ports: RunPorts, lease: Lease, registry: Registry, *, examine_all: bool = False
) -> CatalogReport:
    """Bring the catalog up to date. Errors are reported and not raised. `examine_all`:
    a person ordered to examine all entries, and to take over entries of others that
    point at Lockstep's mirrors."""
    return _Registration(ports, registry, lease, examine_all).run()


def register_after_run(ports: RunPorts, lease: Lease) -> CatalogReport | None:
    """Register mirrors at the end of a run, if a catalog is configured. An error is
    reported and does not end the run."""
    try:
        registry = ports.open_registry()
    except LockstepError as error:
        report = CatalogReport("The catalog", trouble=error)
    else:
        if registry is None:
            return None
        report = register(ports, lease, registry)
    if report.trouble is not None:
        ports.progress.note(f"mirrors wait to be registered: {report.trouble.message}")
    return report


def differences(ports: RunPorts, registry: Registry) -> CatalogReport:
    """Return the report that `register` would return for all entries, and change
    nothing."""
    return _Registration(ports, registry, None, examine_all=True).run()


@dataclass(slots=True)
class _Registration:
    """One registration, with its results so far. `lease`: None if nothing may be
    changed. `examine_all`: examine all entries, and take over entries of others that
    point at Lockstep's mirrors. `freed_names`: former names of entries that were
    dropped or renamed, or would be with a lease. `refused_names`: names of entries that
    the catalog refused to change, with their tables; the next run tries again."""

    ports: RunPorts
    registry: Registry
    lease: Lease | None
    examine_all: bool
    changes: list[EntryChange] = field(default_factory=list)
    freed_names: set[EntryName] = field(default_factory=set)
    refused_names: dict[EntryName, TableName] = field(default_factory=dict)
    missing_entries: list[MissingEntry] = field(default_factory=list)
    correct_count: int = 0
    waiting_count: int = 0

    def run(self) -> CatalogReport:
        timer_start = perf_counter()
        trouble: LockstepError | None = None
        try:
            steps, new_statement = self._plan_steps()
            self._take_steps(steps, timer_start)
            is_complete = not self.waiting_count and not self.refused_names
            if self.lease is not None and is_complete and new_statement is not None:
                catalog = self.registry.catalog.identity
                self.ports.ledger.note_registered_up_to(self.lease, catalog, new_statement)
        except LockstepError as error:
            trouble = error
        return CatalogReport(
            self.registry.catalog.identity,
            changes=tuple(self.changes),
            missing_entries=tuple(self.missing_entries),
            correct_count=self.correct_count,
            waiting=self.waiting_count,
            trouble=trouble,
            seconds=perf_counter() - timer_start,
        )

    def _plan_steps(self) -> tuple[list[EntryStep], int | None]:
        """Return the steps for the tables whose registration may have changed, or for
        all tables (`examine_all`), and the newest statement that no complete
        registration has seen. MySQL is only asked for the comments of these tables."""
        ports, ledger, source = self.ports, self.ports.ledger, self.ports.source.name
        registrations = ledger.registrations(source, self.registry.catalog.identity)
        recorded_entries = {
            table: self._settle_rename(entry) for table, entry in registrations.entries.items()
        }
        seen = registrations.statement_id
        statement_id, texts = _new_statements(ports, seen)
        words = frozenset(word for text in texts for word in _WORD.findall(text))
        states = ledger.table_states(source)
        comparison = _compare_recorded(
            recorded_entries, ports.source.mirror_names, self.registry, states
        )
        names = comparison.names
        self.missing_entries += comparison.unnamable_entries
        tables_to_keep = {
            table
            for table, state in states.items()
            if table in names
            or (state.condition is not TableCondition.DROPPED and not _is_shown(state))
        }
        states_to_examine = [
            states[table]
            for table in names
            if self.examine_all
            or table in comparison.differing_tables
            or _may_be_named_in(table.name.lower(), words, texts)
        ]
        wanted_entries: tuple[WantedEntry, ...] = ()
        if states_to_examine:
            wanted_entries, unreadable = _wanted_entries(
                ports, self.registry, states_to_examine, names
            )
            self.missing_entries += unreadable
        gone_tables = [table for table in recorded_entries if table not in tables_to_keep]
        steps = plan_steps(wanted_entries, recorded_entries, gone_tables)
        return steps, None if statement_id == seen else statement_id

    def _settle_rename(self, recorded: RecordedEntry) -> RecordedEntry:
        """Return an entry with the name that it has in the catalog. If a run ended
        while it renamed the entry, the catalog says whether the entry has its new name,
        and the ledger records the answer."""
        if recorded.new_name is None:
            return recorded
        existing = self._find(recorded.new_name)
        is_renamed = existing is not None and self._is_ours(existing, recorded)
        name = recorded.new_name if is_renamed else recorded.name
        settled = RecordedEntry(recorded.table, name, recorded.location)
        self._note(settled.table, settled)
        return settled

    def _take_steps(self, steps: list[EntryStep], timer_start: float) -> None:
        last_report_at = timer_start
        for step_index, step in enumerate(steps):
            if perf_counter() - last_report_at > _REPORT_SECONDS:
                last_report_at = perf_counter()
                self.ports.progress.note(f"catalog: {step_index:,} of {len(steps):,} entries")
            if not self.examine_all and perf_counter() - timer_start > _RUN_SECONDS:
                self.waiting_count = len(steps) - step_index
                return
            try:
                self._take(step.recorded, step.wanted)
            except CatalogRefused as error:  # The other entries are still examined.
                entry = step.wanted or step.recorded
                assert entry is not None, "a step has one or the other"
                owner = step.recorded or entry
                self.refused_names[owner.name] = owner.table
                self.missing_entries.append(
                    MissingEntry(entry.table, entry.name, error.message, error.hint)
                )

    def _take(self, recorded: RecordedEntry | None, wanted: WantedEntry | None) -> None:
        if wanted is None:
            assert recorded is not None, "a step has one or the other"
            self._drop(recorded)
        elif recorded is not None and recorded.name != wanted.name:
            self._rename(recorded, wanted)
        elif (
            recorded is not None
            and not self.examine_all
            and recorded.content_hash == wanted.content_hash
        ):
            self._record(wanted)
        else:
            self._put(wanted, recorded)

    def _drop(self, recorded: RecordedEntry) -> None:
        existing = self._find(recorded.name)
        if existing is not None and self._is_ours(existing, recorded):
            self._announce(recorded, recorded.location)
            if self.lease is not None:
                self.registry.catalog.drop(recorded.name)
            self.freed_names.add(recorded.name)
            self.changes.append(EntryChange(EntryChangeKind.DROPPED, recorded.table, recorded.name))
        self._note(recorded.table, None)

    def _rename(self, recorded: RecordedEntry, entry: WantedEntry) -> None:
        """Rename an entry. Drop the old entry and make a new one instead if the old one
        is not Lockstep's or the new name is taken.

        Do so too for a table's own entry in a catalog without marks (properties that
        say who made an entry): if the entry's location changes with its name, an entry
        with the new name could not be recognized after a killed run."""
        is_own = recorded.table == entry.table
        existing = self._find(recorded.name)
        is_as_recorded = existing is not None and self._is_ours(existing, recorded)
        has_no_mark = is_own and not self.registry.catalog.has_marks
        if not is_as_recorded or has_no_mark or self._find(entry.name) is not None:
            self._drop(recorded)
            self._put(entry, None)
            return
        if is_own:
            renaming = RecordedEntry(
                recorded.table, recorded.name, recorded.location, new_name=entry.name
            )
            self._note(recorded.table, renaming)
        else:
            self._announce(entry, recorded.location)
        self._write(entry, recorded.name, EntryChangeKind.RENAMED)
        self.freed_names.add(recorded.name)
        if not is_own:
            self._note(recorded.table, None)
        self._record(entry)

    def _put(self, entry: WantedEntry, recorded: RecordedEntry | None) -> None:
        """Make or change an entry, unless it is as it should be or its name is
        taken."""
        refused_table = self.refused_names.get(entry.name, entry.table)
        if refused_table != entry.table and entry.name not in self.freed_names:
            reason = (
                f"{refused_table} still has that name, because the catalog refused to change its "
                "entry"
            )
            self._report_missing(entry, reason, _RETRY_HINT, recorded)
            return
        existing = self._find(entry.name)
        former_location = entry.location if recorded is None else recorded.location
        if existing is None:
            self._announce(entry, former_location)
            self._write(entry, None, EntryChangeKind.REGISTERED)
            self._record(entry)
            return
        is_in_place = is_at_one_of(existing, (entry.location,))
        may_take_over = is_in_place and self.examine_all
        if not may_take_over and not self._is_ours(existing, recorded, entry):
            self._report_taken_name(entry, existing, recorded)
            return
        content_hash = existing.content_hash
        if not content_hash and recorded is not None:
            content_hash = recorded.content_hash  # an entry without marks
        if is_in_place and content_hash == entry.content_hash:
            self.correct_count += 1
        else:
            self._announce(entry, former_location)
            self._write(entry, entry.name, EntryChangeKind.CHANGED)
        self._record(entry)

    def _find(self, name: EntryName) -> CatalogEntry | None:
        return None if name in self.freed_names else self.registry.catalog.find(name)

    def _is_ours(
        self,
        existing: CatalogEntry,
        recorded: RecordedEntry | None,
        entry: WantedEntry | None = None,
    ) -> bool:
        """Return whether Lockstep made an entry. In a catalog without marks, this is
        true if the ledger has registered the table and the entry has its location."""
        if self.registry.catalog.has_marks:
            lake = self.registry.locate("")
            return is_own_entry(existing, self.ports.source.name, lake, recorded)
        locations = [item.location for item in (recorded, entry) if item is not None]
        return recorded is not None and is_at_one_of(existing, locations)

    def _report_taken_name(
        self, entry: WantedEntry, existing: CatalogEntry, recorded: RecordedEntry | None
    ) -> None:
        """Report that the name is taken by an entry of somebody else."""
        if is_at_one_of(existing, (entry.location,)):
            reason, hint = "somebody else registered the mirror under that name", _TAKE_OVER_HINT
        else:
            owner = f"one of {existing.source}" if existing.source else "not Lockstep's"
            reason, hint = f"another table has that name in the catalog, {owner}", _TAKEN_HINT
        self._report_missing(entry, reason, hint, recorded)

    def _report_missing(
        self, entry: WantedEntry, reason: str, hint: str, recorded: RecordedEntry | None
    ) -> None:
        self.missing_entries.append(MissingEntry(entry.table, entry.name, reason, hint))
        if recorded is not None:
            self._note(recorded.table, None)

    def _write(self, entry: WantedEntry, name: EntryName | None, kind: EntryChangeKind) -> None:
        if self.lease is not None:
            self.registry.catalog.put(entry, name)
        self.changes.append(EntryChange(kind, entry.table, entry.name))

    def _announce(self, entry: WantedEntry | RecordedEntry, location: str) -> None:
        """Record that the catalog may have the entry from now on, at `location` or at
        its new place. It is recorded without content, so that the next run examines it
        after a crash."""
        self._note(entry.table, RecordedEntry(entry.table, entry.name, location))

    def _record(self, entry: WantedEntry) -> None:
        """Record that the catalog has the entry."""
        recorded = RecordedEntry(
            entry.table, entry.name, entry.location, entry.content_hash, entry.schema_version
        )
        self._note(entry.table, recorded)

    def _note(self, table: TableName, entry: RecordedEntry | None) -> None:
        if self.lease is not None:
            catalog = self.registry.catalog.identity
            self.ports.ledger.note_registration(self.lease, catalog, table, entry)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The entries that the ledger recorded, compared with the present mirrors. `names`:
    for all tables with a mirror, except those of `unnamable_entries`, which can have no
    name in the catalog. `differing_tables`: their entry has to be made or changed."""

    names: Mapping[TableName, EntryName]
    unnamable_entries: Sequence[MissingEntry]
    differing_tables: frozenset[TableName]


def _compare_recorded(
    recorded: Mapping[TableName, RecordedEntry],
    mirrors: MirrorNames,
    registry: Registry,
    states: Mapping[TableName, TableState],
) -> _Comparison:
    tables_with_mirror = [table for table, state in states.items() if _is_shown(state)]

    def name_of(table: TableName) -> EntryName:
        return entry_name(registry.schema_template, mirrors.source, mirrors.of(table))

    names, unnamable = entry_names(
        tables_with_mirror, name_of, registry.catalog.reason_refused, recorded
    )
    differing = frozenset(
        table
        for table, name in names.items()
        if _differs(recorded.get(table), states[table], name, registry)
    )
    return _Comparison(names, unnamable, differing)


def _is_shown(state: TableState) -> bool:
    """Return whether the lake has a mirror that shows the table. While a mirror is
    being rewritten in another folder, this is false, and the table's entry stays as it
    is."""
    return state.mirror_schema_version is not None and state.condition is not TableCondition.DROPPED


def _differs(
    recorded: RecordedEntry | None, state: TableState, name: EntryName, registry: Registry
) -> bool:
    if (
        recorded is None
        or recorded.name != name
        or recorded.schema_version != state.mirror_schema_version
    ):
        return True
    return normal_location(recorded.location) != normal_location(registry.locate(state.mirror))


def _new_statements(ports: RunPorts, seen_statement_id: int) -> tuple[int, list[str]]:
    """Return the id of the newest statement, and the lower-case texts of those after
    `seen_statement_id`."""
    texts: list[str] = []
    while True:
        statements = ports.ledger.schema_statements(
            ports.source.name, limit=_STATEMENTS, after=seen_statement_id
        )
        texts += [statement.text.lower() for statement in statements]
        seen_statement_id = max(
            (statement.id for statement in statements), default=seen_statement_id
        )
        if len(statements) < _STATEMENTS:
            return seen_statement_id, texts


def _may_be_named_in(name: str, words: Collection[str], texts: Collection[str]) -> bool:
    """Return whether a statement may concern a table of this name. `words`: those of
    all `texts`."""
    if _WORD.fullmatch(name):
        return name in words
    return any(name in text for text in texts)


def _wanted_entries(
    ports: RunPorts,
    registry: Registry,
    states: Collection[TableState],
    names: Mapping[TableName, EntryName],
) -> tuple[tuple[WantedEntry, ...], list[MissingEntry]]:
    """Return the entries of tables, and the tables whose mirrors cannot be read."""
    tables = frozenset(state.table for state in states)
    table_comments = ports.server.table_comments(tables)
    column_comments = ports.server.comments(tables) if registry.catalog.has_columns else {}
    entries, unreadable = [], []
    for state in states:
        try:
            comments = own_comments(ports.source.policies_of(state.table))
            comments |= column_comments.get(state.table, {})
            columns = _entry_columns(ports, registry, state, comments)
        except TableError as error:
            unreadable.append(
                MissingEntry(state.table, names[state.table], error.reason, error.hint)
            )
            continue
        entry = WantedEntry(
            source=ports.source.name,
            table=state.table,
            name=names[state.table],
            location=registry.locate(state.mirror),
            comment=table_comments.get(state.table, ""),
            columns=columns,
            schema_version=state.mirror_schema_version,
        )
        entries.append(entry)
    return tuple(entries), unreadable


def _entry_columns(
    ports: RunPorts, registry: Registry, state: TableState, comments: Mapping[str, str]
) -> tuple[EntryColumn, ...]:
    version = ports.mirrors.version(state.mirror) if registry.catalog.has_columns else None
    if version is None:
        return ()
    comments_by_lower_name = {name.lower(): comment for name, comment in comments.items()}
    return tuple(
        EntryColumn(
            field.name, sql_type(field.type), comments_by_lower_name.get(field.name.lower(), "")
        )
        for field in ports.mirrors.schema(state.mirror, version)
    )
