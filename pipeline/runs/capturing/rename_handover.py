"""Renames that leave data where they are: which tables go on with the mirror of another name.

With `renames = "keep-path"` a rename hands mirrors over if, where it stands,

| | else |
|---|---|
| the run goes on behind the batch before it | read from the source |
| that batch and all others are acknowledged: every mirror shows all there was | read |
| the capture has nothing of these tables yet | the run ends there, and the next begins so |
| every name is captured, and no mirror is kept under a name that is taken | read |
| no `into` names another place for the table's new name | read |
| the statement does nothing else, and the mirror has the columns of the table | read |
| the server is not MariaDB, which logs RENAME TABLE of temporary tables too, and alike | read |

All mirrors of a statement change hands, or none. So no write of one name is ever open in a
folder that has another's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.changes.layout import application_id, lies_at
from pipeline.decisions import Continuity
from pipeline.policies import DroppedTables, Renames
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.capturing.captured_tables import TakenOver
from pipeline.schema.evolve import evolve
from pipeline.schema.evolving.effects import Effect, Renamed
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState


def whence(effects: Sequence[Effect]) -> dict[TableName, TableName]:
    """For each name that has another table's rows behind a statement, the name they had
    before it; empty where it does anything but rename."""
    came: dict[TableName, TableName] = {}
    for effect in effects:
        if not isinstance(effect, Renamed):
            return {}
        came[effect.to] = came.pop(effect.table, effect.table)
    return {table: origin for table, origin in came.items() if table != origin}


@dataclass(frozen=True, slots=True)
class _Books:
    """What the ledger says where the capture begins."""

    alone: bool
    states: Mapping[TableName, TableState]
    busy: frozenset[TableName]


class HandingOver:
    """The renames of one capture."""

    def __init__(self, basis: Basis) -> None:
        self._work = basis.work
        self._tables = basis.tables
        self._structures = basis.structures
        self._batch = basis.batch
        run_start, decision = basis.run_start, basis.run_start.decision
        goes_on = decision.predecessor is not None or (
            decision.continuity is Continuity.CONTIGUOUS and not run_start.leave_out
        )
        keeps_path = any(
            policies.renames is Renames.KEEP_PATH for policies in basis.work.source.all_policies
        )
        self._wanted = goes_on and keeps_path and run_start.facts.flavour != "mariadb"

    def cuts(self, logged: LoggedStatement) -> str | None:
        """Why the run ends before this statement: the tables that it renames have changes
        that are to be merged first."""
        if not self._wanted:
            return None
        read = read_change(logged.text, logged.context)
        if isinstance(read, Irrelevant | NotUnderstood):
            return None
        came = self._captured(evolve(self._structures.whole(), read, logged.context).effects)
        names = {*came, *came.values()}
        if not any(self._tables.concerns(name) for name in names):
            return None
        for table, origin in came.items():
            if not (self._may_take(table, origin, came) or self._is_going(table)):
                return None
        listed = ", ".join(sorted(str(origin) for origin in came.values()))
        return f"{listed} get other names there, and what came before is merged first"

    def taken(
        self, effects: Sequence[Effect], *, busy: Collection[TableName]
    ) -> Mapping[TableName, TakenOver]:
        """The tables that go on with the mirror of another name, behind the statement that
        did this; `busy`: tables that are read from the source or from a place of their own."""
        came = self._captured(effects) if self._wanted else {}
        names = {*came, *came.values()}
        if not came or any(name in busy or self._tables.concerns(name) for name in names):
            return {}
        if not self._known.alone or names & self._known.busy:
            return {}
        found = {table: self._taken(table, origin, came) for table, origin in came.items()}
        taken = {table: one for table, one in found.items() if one is not None}
        if len(taken) < len(came):
            return {}
        return taken

    def _captured(self, effects: Sequence[Effect]) -> dict[TableName, TableName]:
        """`whence`, of captured names; empty where one of two is captured, or where the folder of
        some table's new name is not to be the old one."""
        source = self._work.source
        matches = source.patterns.matches
        came = {
            table: origin
            for table, origin in whence(effects).items()
            if matches(table) or matches(origin)
        }
        keeps = all(source.policies_of(table).renames is Renames.KEEP_PATH for table in came)
        return came if keeps and all(map(matches, {*came, *came.values()})) else {}

    @cached_property
    def _known(self) -> _Books:
        """Asked once: while a batch is captured nobody else writes."""
        ledger, source = self._work.ledger, self._work.source.name
        alone = all(batch.id == self._batch for batch in ledger.unfinished(source))
        writes = {intent.table for intent in ledger.open_intents(source)}
        busy = frozenset(writes | ledger.pending(source).keys())
        return _Books(alone, ledger.table_states(source), busy)

    def _may_take(
        self, table: TableName, origin: TableName, came: Mapping[TableName, TableName]
    ) -> bool:
        """Whether the table may have the mirror once all there was is merged: nothing is in
        its way that would be lost."""
        if not (self._tables.wanted(table) and self._tables.wanted(origin)):
            return False
        state = self._known.states.get(table)
        gives = table in came.values()
        return (
            gives or state is None or (state.mirror_version is None and self._shown(state) is None)
        )

    def _is_going(self, table: TableName) -> bool:
        """Whether its mirror goes before the next run: it was dropped in this one."""
        state = self._known.states.get(table)
        goes = self._work.source.policies_of(table).dropped_tables is DroppedTables.DROP
        return goes and state is not None and state.condition is TableCondition.ACTIVE

    def _shown(self, state: TableState) -> int | None:
        """The Delta version of its last write, or that it took over."""
        source = self._work.source.name
        app_id = application_id(source, state, "mirror")
        settled = self._work.ledger.newest_writes(source, [app_id])[app_id].settled
        return state.adopted if settled is None else settled.delta_version

    def _taken(
        self, table: TableName, origin: TableName, came: Mapping[TableName, TableName]
    ) -> TakenOver | None:
        state, version = self._known.states.get(origin), self._structures.version(table)
        if state is None or version is None or not self._may_take(table, origin, came):
            return None
        if self._has_own_place(table, state):
            return None
        delta_version = self._shown(state)
        if delta_version is None or not self._shows(state, version):
            return None
        return TakenOver(version, origin, delta_version)

    def _has_own_place(self, table: TableName, state: TableState) -> bool:
        """Whether the settings name another place for the mirror of that table."""
        source = self._work.source
        name = source.mirror_name(table)
        return source.mirrors.given(table) and not lies_at(state.mirror, source.name, name)

    def _shows(self, state: TableState, version: SchemaVersion) -> bool:
        """Whether the mirror has the columns of that version, told apart by its key."""
        whole = state.condition is TableCondition.ACTIVE and state.behind is None
        if not whole or state.mirror_version is None or version.knowledge is not Knowledge.KNOWN:
            return False
        source = self._work.source.name
        shown = self._work.ledger.schema_version(source, state.table, state.mirror_version)
        if shown.schema is None or version.schema is None:
            return False
        if version.shown_as is not None or shown.shown_as is not None:
            alike = version.shown_as is not None and version.shown_as.same_rules(shown.shown_as)
            if not alike:
                return False
        then, now = shown.shown_structure, version.shown_structure
        return (then.columns, then.primary_key) == (now.columns, now.primary_key)
