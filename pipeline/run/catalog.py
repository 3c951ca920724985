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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter

from lockstep.pipeline.catalog import (
    CatalogEntry,
    Entry,
    EntryColumn,
    EntryName,
    Registered,
    Step,
    Unregistered,
    at_one_of,
    entry_name,
    entry_names,
    marked,
    place,
    plan,
)
from lockstep.pipeline.mirror.lineage import own_comments
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.catalog import Catalog, Registry
from lockstep.pipeline.ports.ledger import Ledger, Writes
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import CatalogRefused, LockstepError, TableError
from lockstep.pipeline.values.mirror_names import MirrorNames
from lockstep.pipeline.values.table import TableName

_STATEMENTS = 500
"""Number of statements that are read from the ledger at a time."""

_WORD = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class GatheredEntries:
    """The entries to examine.

    - `registered`: all entries that the ledger has recorded.
    - `wanted`: the entries as they should be. `gone`: registered tables whose mirrors are gone.
    - `left`: tables that cannot be registered.
    - `statement`: id of the newest statement in the ledger. `seen`: the same at the last complete
      registration.
    """

    registered: Mapping[TableName, Registered]
    wanted: tuple[Entry, ...] = ()
    gone: tuple[TableName, ...] = ()
    left: tuple[Unregistered, ...] = ()
    statement: int = 0
    seen: int = 0


def gather(work: Workplace, registry: Registry, *, every: bool = False) -> GatheredEntries:
    """Gather the entries of tables whose registration may have changed, or of all
    tables (`every`). MySQL is only asked for the comments of these tables."""
    ledger, source = work.ledger, work.source.name
    seen = ledger.registrations(source, registry.catalog.identity).statement
    statement, texts = _statements(work, seen)
    words = frozenset(word for text in texts for word in _WORD.findall(text))
    states = ledger.table_states(source)
    registered, names, left, differing = _compared(ledger, work.source.mirrors, registry, states)
    stays = {
        table
        for table, state in states.items()
        if table in names
        or (state.condition is not TableCondition.DROPPED and not _is_shown(state))
    }
    gone = [table for table in registered if table not in stays]
    due = [
        states[table]
        for table in names
        if every or table in differing or _named_in(table.name.lower(), words, texts)
    ]
    wanted: tuple[Entry, ...] = ()
    if due:
        wanted, unread = _wanted(work, registry, due, names)
        left += unread
    return GatheredEntries(registered, wanted, tuple(gone), tuple(left), statement, seen)


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


def stand(ledger: Ledger, mirrors: MirrorNames, registry: Registry) -> CatalogStanding:
    """Return the state of a source's registrations. Only the ledger is read."""
    states = ledger.table_states(mirrors.source)
    registered, _, left, differing = _compared(ledger, mirrors, registry, states)
    count = sum(1 for entry in registered.values() if entry.content is not None)
    unnamed = tuple(entry.table for entry in left)
    return CatalogStanding(registry.catalog.identity, count, tuple(sorted(differing)), unnamed)


def _compared(
    ledger: Writes, mirrors: MirrorNames, registry: Registry, states: Mapping[TableName, TableState]
) -> tuple[
    Mapping[TableName, Registered],
    dict[TableName, EntryName],
    list[Unregistered],
    frozenset[TableName],
]:
    """Return the registered entries, the names for all tables with a mirror, the tables
    that can have no name, and the tables whose registered entry has to be changed."""
    catalog, source = registry.catalog, mirrors.source
    registered = ledger.registrations(source, catalog.identity).entries
    shown = [table for table, state in states.items() if _is_shown(state)]

    def named(table: TableName) -> EntryName:
        return entry_name(registry.schema_template, source, mirrors.of(table))

    names, left = entry_names(shown, named, catalog.reason_refused, registered)
    differing = frozenset(
        table
        for table, name in names.items()
        if _differs(registered.get(table), states[table], name, catalog)
    )
    return registered, names, left, differing


def _statements(work: Workplace, seen: int) -> tuple[int, list[str]]:
    """Return the id of the newest statement, and the lower-case texts of those after
    `seen`."""
    texts: list[str] = []
    while True:
        statements = work.ledger.schema_statements(work.source.name, limit=_STATEMENTS, after=seen)
        texts += [statement.text.lower() for statement in statements]
        seen = max((statement.id for statement in statements), default=seen)
        if len(statements) < _STATEMENTS:
            return seen, texts


def _named_in(name: str, words: Collection[str], texts: Collection[str]) -> bool:
    """Return whether a statement may concern a table of this name."""
    if _WORD.fullmatch(name):
        return name in words
    return any(name in text for text in texts)


def _is_shown(state: TableState) -> bool:
    """Return whether the lake has a mirror that shows the table. While a mirror is
    being rewritten in another folder, this is false, and the table's entry stays as it
    is."""
    return state.mirror_version is not None and state.condition is not TableCondition.DROPPED


def _differs(
    registered: Registered | None, state: TableState, name: EntryName, catalog: Catalog
) -> bool:
    if registered is None or registered.name != name or registered.shows != state.mirror_version:
        return True
    return place(registered.location) != place(catalog.location(state.mirror))


def _wanted(
    work: Workplace,
    registry: Registry,
    states: Collection[TableState],
    names: Mapping[TableName, EntryName],
) -> tuple[tuple[Entry, ...], list[Unregistered]]:
    """Return the entries of tables, and the tables whose mirrors cannot be read."""
    tables = frozenset(state.table for state in states)
    table_comments = work.server.table_comments(tables)
    column_comments = work.server.comments(tables) if registry.catalog.has_columns else {}
    entries, left = [], []
    for state in states:
        try:
            comments = own_comments(work.source.policies_of(state.table))
            comments |= column_comments.get(state.table, {})
            columns = _columns(work, registry, state, comments)
        except TableError as error:
            left.append(Unregistered(state.table, names[state.table], error.reason, error.hint))
            continue
        entry = Entry(
            source=work.source.name,
            table=state.table,
            name=names[state.table],
            location=registry.catalog.location(state.mirror),
            comment=table_comments.get(state.table, ""),
            columns=columns,
            shows=state.mirror_version,
        )
        entries.append(entry)
    return tuple(entries), left


def _columns(
    work: Workplace, registry: Registry, state: TableState, comments: Mapping[str, str]
) -> tuple[EntryColumn, ...]:
    version = work.mirrors.version(state.mirror) if registry.catalog.has_columns else None
    if version is None:
        return ()
    folded = {name.lower(): comment for name, comment in comments.items()}
    return tuple(
        EntryColumn(field.name, sql_type(field.type), folded.get(field.name.lower(), ""))
        for field in work.mirrors.schema(state.mirror, version)
    )


_TAKEN = "rename that table, or choose other schemas for mirrors under [catalog]"
_OF_LOCKSTEP = "`lockstep catalog --yes` takes it over"

_REPORT_SECONDS = 10.0
"""Shortest time between two progress messages, in seconds."""

_RUN_SECONDS = 60.0
"""Longest time that a run spends on registrations, in seconds. The next run continues."""


class CatalogStep(StrEnum):
    """How a catalog entry was changed."""

    REGISTERED = "registered"
    CHANGED = "changed"
    RENAMED = "renamed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class EntryChange:
    """A change of a catalog entry that was made, or would be made (`differences`)."""

    deed: CatalogStep
    table: TableName
    name: EntryName


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """The outcome of a registration.

    - `done`: the changes in the catalog. `fine`: number of entries that needed no change.
    - `left`: tables that could not be registered or changed.
    - `waiting`: number of entries for which there was no time, and which the next run examines.
    - `trouble`: the error that ended the registration early. The next run tries again.
    """

    catalog: str
    done: tuple[EntryChange, ...] = ()
    left: tuple[Unregistered, ...] = ()
    fine: int = 0
    waiting: int = 0
    trouble: LockstepError | None = None
    seconds: float = 0.0

    def lines(self) -> Iterator[str]:
        """Yield sentences for people about changes, and about entries that were not
        changed."""
        deeds = Counter(change.deed.value for change in self.done)
        if deeds:
            yield ", ".join(f"{count:,} {deed}" for deed, count in sorted(deeds.items()))
        if self.left:
            tables = "1 table" if len(self.left) == 1 else f"{len(self.left):,} tables"
            yield f"{tables} could not be registered: `lockstep catalog` says why"
        if self.waiting:
            yield f"{self.waiting:,} more with the next run"
        if self.trouble is not None:
            yield self.trouble.message


def register(
    work: Workplace, lease: Lease, registry: Registry, *, every: bool = False
) -> CatalogReport:
    """Bring the catalog up to date. Errors are reported and not raised. `every`: a
    person ordered to examine all entries, and to take over entries of others that point
    at Lockstep's mirrors."""
    return _Registering(work, registry, lease, every).all()


def register_after(work: Workplace, lease: Lease) -> CatalogReport | None:
    """Register mirrors at the end of a run, if a catalog is configured. An error is
    reported and does not end the run."""
    try:
        registry = work.open_registry()
    except LockstepError as error:
        report = CatalogReport("The catalog", trouble=error)
    else:
        if registry is None:
            return None
        report = register(work, lease, registry)
    if report.trouble is not None:
        work.progress.note(f"mirrors wait to be registered: {report.trouble.message}")
    return report


def differences(work: Workplace, registry: Registry) -> CatalogReport:
    """Return the report that `register` would return for all entries, and change
    nothing."""
    return _Registering(work, registry, None, every=True).all()


@dataclass(slots=True)
class _Registering:
    """One registration, with its results so far. `lease`: None if nothing may be
    changed. `every`: as in `register`. `freed`: names of entries that were dropped, or
    would be. `refused`: the catalog refused an entry, which the next run tries
    again."""

    work: Workplace
    registry: Registry
    lease: Lease | None
    every: bool
    done: list[EntryChange] = field(default_factory=list)
    freed: set[EntryName] = field(default_factory=set)
    left: list[Unregistered] = field(default_factory=list)
    fine: int = 0
    waiting: int = 0
    refused: bool = False

    def all(self) -> CatalogReport:
        clock = perf_counter()
        trouble: LockstepError | None = None
        try:
            entries = gather(self.work, self.registry, every=self.every)
            self.left += entries.left
            self._carry_all_out(plan(entries.wanted, entries.registered, entries.gone), clock)
            complete = not self.waiting and not self.refused
            if self.lease is not None and complete and entries.statement != entries.seen:
                catalog = self.registry.catalog.identity
                self.work.ledger.note_registered_up_to(self.lease, catalog, entries.statement)
        except LockstepError as error:
            trouble = error
        return CatalogReport(
            self.registry.catalog.identity,
            tuple(self.done),
            tuple(self.left),
            self.fine,
            self.waiting,
            trouble,
            perf_counter() - clock,
        )

    def _carry_all_out(self, steps: list[Step], clock: float) -> None:
        reported = clock
        for number, step in enumerate(steps):
            if perf_counter() - reported > _REPORT_SECONDS:
                reported = perf_counter()
                self.work.progress.note(f"catalog: {number:,} of {len(steps):,} entries")
            if not self.every and perf_counter() - clock > _RUN_SECONDS:
                self.waiting = len(steps) - number
                return
            try:
                self._carry_out(step.known, step.wanted)
            except CatalogRefused as error:  # The other entries are still examined.
                self.refused = True
                entry = step.wanted or step.known
                assert entry is not None, "a step has one or the other"
                self.left.append(Unregistered(entry.table, entry.name, error.message, error.hint))

    def _carry_out(self, registered: Registered | None, wanted: Entry | None) -> None:
        if wanted is None:
            assert registered is not None, "a step has one or the other"
            self._drop(registered)
        elif registered is not None and registered.name != wanted.name:
            self._rename(registered, wanted)
        elif registered is not None and not self.every and registered.content == wanted.content:
            self._record(wanted)
        else:
            self._put(wanted, registered)

    def _drop(self, registered: Registered) -> None:
        existing = self._find(registered.name)
        if existing is not None and self._ours(existing, registered):
            self._announce(registered, registered.location)
            if self.lease is not None:
                self.registry.catalog.drop(registered.name)
            self.freed.add(registered.name)
            self.done.append(EntryChange(CatalogStep.DROPPED, registered.table, registered.name))
        self._note(registered.table, None)

    def _rename(self, registered: Registered, entry: Entry) -> None:
        """Rename an entry. Drop the old entry and make a new one instead if the old one
        is not Lockstep's or the new name is taken.

        Do so too for a table's own entry in a catalog without marks (properties that
        say who made an entry). The ledger records one name per table, so after a killed
        run, an entry under the other name could not be recognized."""
        own = registered.table == entry.table
        existing = self._find(registered.name)
        as_recorded = existing is not None and self._ours(existing, registered)
        unmarked = own and not self.registry.catalog.has_marks
        if not as_recorded or unmarked or self._find(entry.name) is not None:
            self._drop(registered)
            self._put(entry, None)
            return
        self._announce(registered if own else entry, registered.location)
        self._write(entry, registered.name, CatalogStep.RENAMED)
        if not own:
            self._note(registered.table, None)
        self._record(entry)

    def _put(self, entry: Entry, registered: Registered | None) -> None:
        """Make or change an entry, unless it is as it should be or its name is taken."""
        existing = self._find(entry.name)
        in_place = existing is not None and at_one_of(existing, (entry.location,))
        may_take = in_place and self.every
        if existing is not None and not may_take and not self._ours(existing, registered, entry):
            self._leave(entry, existing, registered)
            return
        content = existing.content if existing is not None else None
        if not content and registered is not None:
            content = registered.content  # An entry without marks: the ledger has its content.
        if in_place and content == entry.content:
            self.fine += 1
        else:
            self._announce(entry, entry.location if registered is None else registered.location)
            if existing is None:
                self._write(entry, None, CatalogStep.REGISTERED)
            else:
                self._write(entry, entry.name, CatalogStep.CHANGED)
        self._record(entry)

    def _find(self, name: EntryName) -> CatalogEntry | None:
        return None if name in self.freed else self.registry.catalog.find(name)

    def _ours(
        self, existing: CatalogEntry, registered: Registered | None, entry: Entry | None = None
    ) -> bool:
        """Return whether Lockstep made an entry. In a catalog without marks, this is
        true if the ledger has registered the table and the entry has its location."""
        catalog, source = self.registry.catalog, self.work.source.name
        if catalog.has_marks:
            return marked(existing, source, catalog.location(""), registered)
        locations = [item.location for item in (registered, entry) if item is not None]
        return registered is not None and at_one_of(existing, locations)

    def _leave(self, entry: Entry, existing: CatalogEntry, registered: Registered | None) -> None:
        """Report that the name is taken by an entry of somebody else."""
        if at_one_of(existing, (entry.location,)):
            why, hint = "somebody else registered the mirror under that name", _OF_LOCKSTEP
        else:
            whose = f"one of {existing.source}" if existing.source else "not Lockstep's"
            why, hint = f"another table has that name in the catalog, {whose}", _TAKEN
        self.left.append(Unregistered(entry.table, entry.name, why, hint))
        if registered is not None:
            self._note(registered.table, None)

    def _write(self, entry: Entry, name: EntryName | None, deed: CatalogStep) -> None:
        if self.lease is not None:
            self.registry.catalog.put(entry, name)
        self.done.append(EntryChange(deed, entry.table, entry.name))

    def _announce(self, entry: Entry | Registered, location: str) -> None:
        """Record that the catalog may have the entry from now on, at `location` or at
        its new place. It is recorded without content, so that the next run examines it
        after a crash."""
        self._note(entry.table, Registered(entry.table, entry.name, location))

    def _record(self, entry: Entry) -> None:
        """Record that the catalog has the entry."""
        registered = Registered(entry.table, entry.name, entry.location, entry.content, entry.shows)
        self._note(entry.table, registered)

    def _note(self, table: TableName, entry: Registered | None) -> None:
        if self.lease is not None:
            catalog = self.registry.catalog.identity
            self.work.ledger.note_registration(self.lease, catalog, table, entry)
