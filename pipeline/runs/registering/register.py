"""Registering mirrors in a catalog, step by step.

Belongs here: asking the catalog what is there, deciding by that, the order in which ledger and
catalog are told, and the report. Does not: which steps there are (`pipeline.catalog.plan`), when
this is done.

An entry is noted before it is made and again once it was, so that whatever a killed run left is
known, and the next run goes on with it. What is under a name and is not Lockstep's is left alone,
whatever that name. No row of a mirror depends on any of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter

from pipeline.catalog.plan import Left, Step, plan
from pipeline.catalog.values import Entry, EntryName, Found, Registered, at_one_of, marked
from pipeline.decisions import Lease
from pipeline.errors import CatalogRefused, LockstepError
from pipeline.ports.catalog import Registry
from pipeline.runs.context import Workplace
from pipeline.runs.registering.gather import gather
from pipeline.table import TableName

_TAKEN = "rename that table, or have mirrors go elsewhere with schemas under [catalog]"
_OF_LOCKSTEP = "`lockstep catalog --yes` takes it over"

_TELL_SECONDS = 10.0
"""So often it is said how far it is."""

_RUN_SECONDS = 60.0
"""So long a run takes for it; the next one goes on."""


class Deed(StrEnum):
    """What became of an entry."""

    REGISTERED = "registered"
    CHANGED = "changed"
    RENAMED = "renamed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Done:
    """Something that was done, or would be."""

    deed: Deed
    table: TableName
    name: EntryName


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """`done`: what was changed in the catalog; `left`: tables that are not registered, or not as
    they should be; `fine`: how many are as they should be, of those that were looked at;
    `waiting`: what a run had no time for; `trouble`: what ended it too early. The next run goes on
    with both."""

    catalog: str
    done: tuple[Done, ...] = ()
    left: tuple[Left, ...] = ()
    fine: int = 0
    waiting: int = 0
    trouble: LockstepError | None = None
    seconds: float = 0.0

    def told(self) -> Iterator[str]:
        """What a run did in the catalog; of what it could not do, how to see why."""
        deeds = Counter(one.deed.value for one in self.done)
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
    """Bring the catalog up to date. `every`: a person asks: all entries are looked at, and those
    of before that point at our mirrors are taken over. Errors are in the report, never raised."""
    return _Registering(work, registry, lease, every).all()


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
    return _Registering(work, registry, None, every=True).all()


@dataclass(slots=True)
class _Registering:
    """`lease` None: nothing is changed anywhere. `every`: entries that point at our mirrors and
    were not made by this ledger become ours; `freed`: names that were let go;
    `refused`: the catalog said no about an entry, which is tried again."""

    work: Workplace
    registry: Registry
    lease: Lease | None
    every: bool
    done: list[Done] = field(default_factory=list)
    freed: set[EntryName] = field(default_factory=set)
    left: list[Left] = field(default_factory=list)
    fine: int = 0
    waiting: int = 0
    refused: bool = False

    def all(self) -> CatalogReport:
        clock = perf_counter()
        trouble: LockstepError | None = None
        try:
            found = gather(self.work, self.registry, every=self.every)
            self.left += found.left
            self._carry_all_out(plan(found.wanted, found.registered, found.gone), clock)
            whole = not self.waiting and not self.refused
            if self.lease is not None and whole and found.statement != found.seen:
                catalog = self.registry.catalog.identity
                self.work.ledger.note_registered_up_to(self.lease, catalog, found.statement)
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
        told = clock
        for number, step in enumerate(steps):
            if perf_counter() - told > _TELL_SECONDS:
                told = perf_counter()
                self.work.progress.note(f"catalog: {number:,} of {len(steps):,} entries")
            if not self.every and perf_counter() - clock > _RUN_SECONDS:
                self.waiting = len(steps) - number
                return
            try:
                self._carry_out(step.known, step.wanted)
            except CatalogRefused as error:  # the others go on
                self.refused = True
                about = step.wanted or step.known
                assert about is not None, "a step has one or the other"
                self.left.append(Left(about.table, about.name, error.message, error.hint))

    def _carry_out(self, known: Registered | None, wanted: Entry | None) -> None:
        if wanted is None:
            assert known is not None, "what is not wanted is known"
            self._drop(known)
        elif known is not None and known.name != wanted.name:
            self._rename(known, wanted)
        elif known is not None and not self.every and known.content == wanted.content:
            self._made(wanted)
        else:
            self._put(wanted, known)

    def _drop(self, known: Registered) -> None:
        found = self._find(known.name)
        if found is not None and self._ours(found, known):
            self._announce(known, known.location)
            if self.lease is not None:
                self.registry.catalog.drop(known.name)
            self.freed.add(known.name)
            self.done.append(Done(Deed.DROPPED, known.table, known.name))
        self._note(known.table, None)

    def _rename(self, known: Registered, entry: Entry) -> None:
        """Where either name is not as it was left, the entry of the new one is made as any other,
        and the old one is let go. So it is with a table's own entry that has no marks: the ledger
        knows one name of a table, and a killed run would leave the other."""
        own = known.table == entry.table
        found = self._find(known.name)
        as_left = found is not None and self._ours(found, known)
        unmarked = own and not self.registry.catalog.marks
        if not as_left or unmarked or self._find(entry.name) is not None:
            self._drop(known)
            self._put(entry, None)
            return
        self._announce(known if own else entry, known.location)
        self._tell(entry, known.name, Deed.RENAMED)
        if not own:
            self._note(known.table, None)
        self._made(entry)

    def _put(self, entry: Entry, known: Registered | None) -> None:
        found = self._find(entry.name)
        here = found is not None and at_one_of(found, (entry.location,))
        if found is not None and not self._ours(found, known, entry) and not (here and self.every):
            self._leave(entry, found, known)
            return
        content = found.content if found is not None else None
        if not content and known is not None:
            content = known.content  # an entry without marks: the ledger knows
        if here and content == entry.content:
            self.fine += 1
        else:
            self._announce(entry, entry.location if known is None else known.location)
            if found is None:
                self._tell(entry, None, Deed.REGISTERED)
            else:
                self._tell(entry, entry.name, Deed.CHANGED)
        self._made(entry)

    def _find(self, name: EntryName) -> Found | None:
        return None if name in self.freed else self.registry.catalog.find(name)

    def _ours(self, found: Found, known: Registered | None, entry: Entry | None = None) -> bool:
        catalog, source = self.registry.catalog, self.work.source.name
        if catalog.marks:
            return marked(found, source, catalog.location(""), known)
        places = (*((known.location,) if known else ()), *((entry.location,) if entry else ()))
        return known is not None and at_one_of(found, places)

    def _leave(self, entry: Entry, found: Found, known: Registered | None) -> None:
        if at_one_of(found, (entry.location,)):
            why, hint = "somebody else registered the mirror under that name", _OF_LOCKSTEP
        else:
            whose = f"one of {found.source}" if found.source else "not Lockstep's"
            why, hint = f"another table has that name in the catalog, {whose}", _TAKEN
        self.left.append(Left(entry.table, entry.name, why, hint))
        if known is not None:
            self._note(known.table, None)

    def _tell(self, entry: Entry, known: EntryName | None, deed: Deed) -> None:
        if self.lease is not None:
            self.registry.catalog.put(entry, known)
        self.done.append(Done(deed, entry.table, entry.name))

    def _announce(self, entry: Entry | Registered, location: str) -> None:
        """From here on it may be there or not, at `location` or where it shall be: whoever wants it
        has to look."""
        self._note(entry.table, Registered(entry.table, entry.name, location))

    def _made(self, entry: Entry) -> None:
        made = Registered(entry.table, entry.name, entry.location, entry.content, entry.shows)
        self._note(entry.table, made)

    def _note(self, table: TableName, entry: Registered | None) -> None:
        if self.lease is not None:
            catalog = self.registry.catalog.identity
            self.work.ledger.note_registration(self.lease, catalog, table, entry)
