"""Registering mirrors in a catalog, step by step.

Belongs here: asking the catalog what is there, deciding by that, and the order in which ledger and
catalog are told. Does not: which steps there are (`pipeline.catalog.plan`), when this is done.

An entry is noted before it is made and again once it was, so that whatever a killed run left is
known, and the next run goes on with it. What is under a name and is not Lockstep's is left alone,
whatever that name. No row of a mirror depends on any of this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from pipeline.catalog.naming import Left
from pipeline.catalog.plan import Drop, Put, Rename, Step, Wanted, plan
from pipeline.catalog.values import Entry, EntryName, Found, Registered, at_one_of, marked
from pipeline.decisions import Lease
from pipeline.errors import CatalogRefused, LockstepError
from pipeline.ports.catalog import Registry
from pipeline.runs.context import Workplace
from pipeline.runs.registering.gather import GatheredEntries, gather
from pipeline.runs.registering.outcome import CatalogReport, Deed, Done
from pipeline.table import TableName

_TAKEN = "rename that table, or have mirrors go elsewhere with schemas under [catalog]"
_OF_LOCKSTEP = "`lockstep catalog --yes` takes it over"


_TELL_SECONDS = 10.0
"""So often it is said how far it is."""

_RUN_SECONDS = 60.0
"""So long a run takes for it; the next one goes on."""


def register(
    work: Workplace, lease: Lease, registry: Registry, *, every: bool = False
) -> CatalogReport:
    """Bring the catalog up to date. `every`: a person asks: all entries are looked at, and those
    of before that point at our mirrors are taken over. Errors are in the report, never raised."""
    registering = _Registering(work, registry, _kept(work, lease, registry), takes=every)
    return registering.all(every=every)


def register_after(work: Workplace, lease: Lease) -> CatalogReport | None:
    """What a run does at its end; None where mirrors are not registered. Trouble with it is told,
    and ends no run."""
    try:
        registry = work.registry()
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
    """What `register` would do with every entry; the catalog is asked, and nothing is changed."""
    return _Registering(work, registry, None, takes=True).all(every=True)


@dataclass(frozen=True, slots=True)
class _Books:
    """What is noted in the ledger."""

    note: Callable[[Registered], None]
    forget: Callable[[TableName], None]
    up_to: Callable[[int], None]


def _kept(work: Workplace, lease: Lease, registry: Registry) -> _Books:
    ledger, catalog = work.ledger, registry.catalog.identity
    return _Books(
        note=lambda entry: ledger.note_registration(lease, catalog, entry.table, entry),
        forget=lambda table: ledger.note_registration(lease, catalog, table, None),
        up_to=lambda statement: ledger.note_registered_up_to(lease, catalog, statement),
    )


@dataclass(slots=True)
class _Registering:
    """`books` None: nothing is changed anywhere. `takes`: entries that point at our mirrors and
    were not made by this ledger become ours; `freed`: names that were let go;
    `refused`: the catalog said no about an entry, which is tried again."""

    work: Workplace
    registry: Registry
    books: _Books | None
    takes: bool
    done: list[Done] = field(default_factory=list)
    freed: set[EntryName] = field(default_factory=set)
    left: list[Left] = field(default_factory=list)
    fine: int = 0
    waiting: int = 0
    refused: bool = False

    def all(self, *, every: bool) -> CatalogReport:
        clock = perf_counter()
        trouble: LockstepError | None = None
        try:
            found = gather(self.work, self.registry, every=every)
            self.left += found.left
            steps, told = plan(found.wanted, found.registered, found.gone), clock
            for number, step in enumerate(steps):
                if perf_counter() - told > _TELL_SECONDS:
                    told = perf_counter()
                    self.work.progress.note(f"catalog: {number:,} of {len(steps):,} entries")
                if not every and perf_counter() - clock > _RUN_SECONDS:
                    self.waiting = len(steps) - number
                    break
                try:
                    self._carry_out(step, every=every)
                except CatalogRefused as error:
                    self._refused(step, error)
            self._looked(found)
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

    def _looked(self, found: GatheredEntries) -> None:
        whole = not self.waiting and not self.refused
        if self.books is not None and whole and found.statement != found.seen:
            self.books.up_to(found.statement)

    def _refused(self, step: Step, error: CatalogRefused) -> None:
        """The others go on."""
        self.refused = True
        match step:
            case Drop(known):
                self.left.append(Left(known.table, known.name, error.message, error.hint))
            case Rename(_, wanted) | Put(wanted, _):
                entry = wanted.entry
                self.left.append(Left(entry.table, entry.name, error.message, error.hint))

    def _carry_out(self, step: Step, *, every: bool) -> None:
        match step:
            case Drop(known):
                self._drop(known)
            case Rename(known, wanted):
                self._rename(known, wanted)
            case Put(wanted, known) if not every and _is_as(known, wanted):
                self._note(wanted)
            case Put(wanted, known):
                self._put(wanted, known)

    def _drop(self, known: Registered) -> None:
        found = self._find(known.name)
        if found is not None and self._ours(found, known):
            self._announce(known, known.location)
            if self.books is not None:
                self.registry.catalog.drop(known.name)
            self.freed.add(known.name)
            self.done.append(Done(Deed.DROPPED, known.table, known.name))
        if self.books is not None:
            self.books.forget(known.table)

    def _rename(self, known: Registered, wanted: Wanted) -> None:
        """Where either name is not as it was left, the entry of the new one is made as any other,
        and the old one is let go. So it is with a table's own entry that has no marks: the ledger
        knows one name of a table, and a killed run would leave the other."""
        entry, catalog = wanted.entry, self.registry.catalog
        own = known.table == entry.table
        found = self._find(known.name)
        as_left = found is not None and self._ours(found, known)
        if not as_left or (own and not catalog.marks) or self._find(entry.name) is not None:
            self._drop(known)
            self._put(wanted, None)
            return
        self._announce(known if own else entry, known.location)
        if self.books is not None:
            catalog.rename(known.name, entry)
        self.done.append(Done(Deed.RENAMED, entry.table, entry.name))
        if self.books is not None and not own:
            self.books.forget(known.table)
        self._note(wanted)

    def _put(self, wanted: Wanted, known: Registered | None) -> None:
        entry, catalog = wanted.entry, self.registry.catalog
        found = self._find(entry.name)
        if (
            found is not None
            and not self._ours(found, known, entry)
            and not self._takes(found, entry)
        ):
            self._leave(entry, found, known)
            return
        if found is None or not _says(found, known, entry):
            deed = Deed.REGISTERED if found is None else Deed.CHANGED
            self._announce(entry, entry.location if known is None else known.location)
            if self.books is not None:
                (catalog.create if found is None else catalog.change)(entry)
            self.done.append(Done(deed, entry.table, entry.name))
        else:
            self.fine += 1
        self._note(wanted)

    def _find(self, name: EntryName) -> Found | None:
        return None if name in self.freed else self.registry.catalog.find(name)

    def _ours(self, found: Found, known: Registered | None, entry: Entry | None = None) -> bool:
        catalog, source = self.registry.catalog, self.work.source.name
        if catalog.marks:
            return marked(found, source, catalog.location(""), known)
        places = (*((known.location,) if known else ()), *((entry.location,) if entry else ()))
        return known is not None and at_one_of(found, places)

    def _takes(self, found: Found, entry: Entry) -> bool:
        return self.takes and at_one_of(found, (entry.location,))

    def _leave(self, entry: Entry, found: Found, known: Registered | None) -> None:
        if at_one_of(found, (entry.location,)):
            why, hint = "somebody else registered the mirror under that name", _OF_LOCKSTEP
        else:
            whose = f"one of {found.source}" if found.source else "not Lockstep's"
            why, hint = f"another table has that name in the catalog, {whose}", _TAKEN
        self.left.append(Left(entry.table, entry.name, why, hint))
        if known is not None and self.books is not None:
            self.books.forget(known.table)

    def _announce(self, entry: Entry | Registered, location: str) -> None:
        """From here on it may be there or not, at `location` or where it shall be: whoever wants it
        has to look."""
        if self.books is not None:
            self.books.note(Registered(entry.table, entry.name, location))

    def _note(self, wanted: Wanted) -> None:
        entry = wanted.entry
        if self.books is not None:
            self.books.note(
                Registered(entry.table, entry.name, entry.location, entry.content, wanted.shows)
            )


def _is_as(known: Registered | None, wanted: Wanted) -> bool:
    """Whether the ledger says that the entry is as it should be."""
    return known is not None and known.content == wanted.entry.content


def _says(found: Found, known: Registered | None, entry: Entry) -> bool:
    """Whether the entry says what it should; where it has no mark, the ledger knows."""
    content = found.content or (known.content if known is not None else None)
    return content == entry.content and at_one_of(found, (entry.location,))
