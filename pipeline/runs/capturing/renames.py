"""Names that have another table's rows since a RENAME: whether these are copied inside the lake, or
have to be read from MySQL. Gathers what `pipeline.supply.plan` decides by.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from pipeline.changes.layout import application_id
from pipeline.decisions import Continuity
from pipeline.ports.ledger import contents_of
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.known_batches import stale_tables
from pipeline.schema.consequences import RENAMED, Action, Consequence
from pipeline.schema.evolving.effects import Effect, Renamed
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.supply.plan import FormerName, FromMirror, copied
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableEventKind, TableState

Copies = Callable[[Sequence[Effect], Collection[TableName]], Mapping[TableName, FromMirror | str]]
"""What supplies the rows of each table that has another name after a statement that did this, or
why its rows are read from MySQL; the tables beside it have no rows that follow the log."""


def whence(effects: Sequence[Effect]) -> dict[TableName, TableName]:
    """For each name that has another table's rows after a statement, the name they had before it;
    empty where it does anything but rename."""
    came: dict[TableName, TableName] = {}
    for effect in effects:
        if not isinstance(effect, Renamed):
            return {}
        came[effect.to] = came.pop(effect.table, effect.table)
    return {table: origin for table, origin in came.items() if table != origin}


def with_supplies(
    found: Mapping[TableName, Consequence], supplies: Mapping[TableName, FromMirror | str]
) -> dict[TableName, Consequence]:
    """What follows from a statement, with where the rows of renamed tables come from."""
    decided = dict(found)
    for table, supply in supplies.items():
        one = found.get(table)
        if one is None or one.rule != RENAMED or one.action is not Action.REREAD:
            continue
        if isinstance(supply, FromMirror):
            decided[table] = replace(one, action=Action.COPY)
        else:
            decided[table] = replace(one, reason=f"{one.reason}: {supply}")
    return decided


_TOLD: Final = (TableEventKind.CREATED, TableEventKind.TRUNCATED, TableEventKind.COPIED)
"""What says in the log what all rows of a table are."""


class Renames:
    """The renames of one capture."""

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        run_start, decision = basis.run_start, basis.run_start.decision
        goes_on = decision.predecessor is not None or (
            decision.continuity is Continuity.CONTIGUOUS and not run_start.leave_out
        )
        self._goes_on = goes_on and run_start.known_until is None
        self._temporary = run_start.facts.flavour == "mariadb"

    def __call__(
        self, effects: Sequence[Effect], busy: Collection[TableName]
    ) -> Mapping[TableName, FromMirror | str]:
        came = whence(effects)
        if not came:
            others = (effect.to for effect in effects if isinstance(effect, Renamed))
            return dict.fromkeys(others, "the statement does more than rename it")
        return {table: self._supply(table, origin, busy) for table, origin in came.items()}

    def _supply(
        self, table: TableName, origin: TableName, busy: Collection[TableName]
    ) -> FromMirror | str:
        basis, source = self._basis, self._basis.work.source
        tables, known = basis.tables, basis.tables.states.get(origin)
        followed = tables.wanted(origin) and (tables.known(origin) or tables.told(origin))
        if not source.patterns.matches(origin) or not followed:
            return copied(FormerName(origin, captured=False))
        return copied(
            FormerName(
                origin,
                captured=True,
                goes_on=self._goes_on,
                temporary=self._temporary,
                lacks=self._lacks(table, origin, busy),
                written=tables.told(origin) or self._is_written(known),
                alike=self._alike(table, origin, None if known is None else known.mirror_version),
                policies=source.policies_of(origin),
                new_policies=source.policies_of(table),
            )
        )

    def _lacks(
        self, table: TableName, origin: TableName, busy: Collection[TableName]
    ) -> str | None:
        """Why the rows under the former name are not those of its mirror with what the log has."""
        tables = self._basis.tables
        for one in (origin, table):
            if one in busy or tables.loading(one):
                return f"rows or columns of {one} are being read from MySQL"
            if one in self._stale:
                return f"the mirror of {one} shows more than its settings do"
        if (missed := tables.missed(origin)) is not None:
            return f"the patterns of earlier runs left {origin} out, up to {missed}"
        known = tables.states.get(origin)
        ended = known is not None and known.condition is TableCondition.DROPPED
        return f"the mirror of {origin} is of a table that was dropped" if ended else None

    @cached_property
    def _stale(self) -> frozenset[TableName]:
        """Asked once, since nobody else writes while a batch is captured."""
        return stale_tables(self._basis.work.ledger, self._basis.work.source.name)

    def _is_written(self, state: TableState | None) -> bool:
        """Whether this ledger knows a version of its mirror, or a batch that is not merged yet says
        what all of its rows are."""
        if state is None:
            return False
        ledger, source = self._basis.work.ledger, self._basis.work.source.name
        app_id = application_id(source, state, "mirror")
        if ledger.newest_writes(source, [app_id])[app_id].settled is not None:
            return True
        waiting = ledger.pending(source).get(state.table)
        parts = contents_of(ledger, source, state.table, waiting[0], waiting[-1]) if waiting else ()
        return any(event.kind in _TOLD for part in parts for event in part.events)

    def _alike(self, table: TableName, origin: TableName, shown: int | None) -> bool:
        """Whether the lake shows the table as it showed the one of the former name."""
        now = self._basis.structures.version(table)
        if now is None or now.schema is None:
            return False
        if now.shown_as is None and not self._basis.work.shaping.hides:
            return True
        work, history = self._basis.work, self._basis.structures.history.versions
        recorded = work.ledger.schema_versions(work.source.name, origin)
        before = [
            *(one for one in recorded if one.version == shown),
            *[
                one
                for one in (*recorded, *(one for one in history if one.table == origin))
                if one.knowledge is Knowledge.KNOWN and one.since != now.since
            ][-1:],
        ]
        return bool(before) and all(_shows_alike(one, now) for one in before)


def _shows_alike(one: SchemaVersion, other: SchemaVersion) -> bool:
    if one.shown_as is None:
        return other.shown_as is None
    return one.shown_as.same_rules(other.shown_as)
