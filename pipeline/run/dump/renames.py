"""Renamed tables: their rows are already in the lake, in the mirror (the Delta table
with the current rows) of the former name. This module gathers the facts from which
`pipeline.supply` decides whether the rows are copied from there or read from MySQL
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.mirror.merging import contents_since_settled, is_rewritten
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import TableCondition, TableEventKind, TableState
from lockstep.pipeline.ports.ledger import stale_tables, table_contents
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.schema.consequences import RENAMED_RULE, Action, Consequence
from lockstep.pipeline.schema.effects import Effect, Renamed
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.supply import FormerName, FromMirror, supply_after_rename
from lockstep.pipeline.values.table import TableName

DecideCopies = Callable[[Sequence[Effect]], Mapping[TableName, FromMirror | str]]
"""Returns, for each table that a statement renamed, the mirror from which its rows are
copied, or the reason to read them from MySQL. The argument has all effects of the
statement."""


def origins_by_table(effects: Sequence[Effect]) -> dict[TableName, TableName]:
    """Return the renamed tables, each with its name before the statement. Return
    nothing if the statement also has other effects."""
    origins: dict[TableName, TableName] = {}
    for effect in effects:
        if not isinstance(effect, Renamed):
            return {}
        origins[effect.to] = origins.pop(effect.table, effect.table)
    return {table: origin for table, origin in origins.items() if table != origin}


def with_copy_decisions(
    by_table: Mapping[TableName, Consequence], supplies: Mapping[TableName, FromMirror | str]
) -> dict[TableName, Consequence]:
    """Return the consequences of a statement after it was decided how renamed tables
    get their rows: from a mirror (the action COPY), or from MySQL, with the reason for
    that."""
    consequences = dict(by_table)
    for table, supply in supplies.items():
        consequence = by_table.get(table)
        if (
            consequence is None
            or consequence.rule_name != RENAMED_RULE
            or consequence.action is not Action.REREAD
        ):
            continue
        if isinstance(supply, FromMirror):
            consequences[table] = replace(consequence, action=Action.COPY)
        else:
            consequences[table] = replace(consequence, reason=f"{consequence.reason}: {supply}")
    return consequences


_DETERMINE_ROWS: Final = (
    TableEventKind.CREATED,
    TableEventKind.TRUNCATED,
    TableEventKind.COPIED,
)
"""Events after which all rows of a table are known without reading it from MySQL."""


class CopyDecider:
    """Decides for one capture whether renamed tables are copied (a `DecideCopies`)."""

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        run_start = basis.run_start
        self._continues_log = run_start.decision.continues_log and not run_start.leave_out
        self._logs_temporary_tables = run_start.facts.flavour == "mariadb"

    def __call__(self, effects: Sequence[Effect]) -> Mapping[TableName, FromMirror | str]:
        origins = origins_by_table(effects)
        if not origins:
            renamed = (effect.to for effect in effects if isinstance(effect, Renamed))
            return dict.fromkeys(renamed, "the statement does more than rename it")
        return {table: self._supply(table, origin) for table, origin in origins.items()}

    def _supply(self, table: TableName, origin: TableName) -> FromMirror | str:
        source, former = self._basis.ports.source, self._basis.tables[origin]
        state = former.state
        is_followed = former.is_wanted and (former.is_known or former.has_determined_rows)
        if not source.patterns.matches(origin) or not is_followed:
            return supply_after_rename(FormerName(origin, is_captured=False))
        return supply_after_rename(
            FormerName(
                origin,
                is_captured=True,
                continues_log=self._continues_log,
                may_be_temporary=self._logs_temporary_tables,
                reason_incomplete=self._reason_incomplete(table, origin),
                has_mirror=former.has_determined_rows or self._has_all_rows(state),
                is_shown_alike=self._is_shown_alike(
                    table, origin, None if state is None else state.mirror_schema_version
                ),
                policies=source.policies_of(origin),
                new_policies=source.policies_of(table),
            )
        )

    def _reason_incomplete(self, table: TableName, origin: TableName) -> str | None:
        """Return why the mirror of the former name lacks rows of the table, even after
        all captured changes are applied; None if it lacks none."""
        tables = self._basis.tables
        for name in (origin, table):
            if tables[name].is_busy or tables[name].is_loading or self._is_being_rewritten(name):
                return f"{name} is being read from MySQL, or its mirror is written again"
            if name in self._stale_mirrors:
                return f"the mirror of {name} shows more than its settings allow"
        if (end_of_missed_log := tables.end_of_missed_log(origin)) is not None:
            return f"the patterns of earlier runs left {origin} out, up to {end_of_missed_log}"
        state = tables[origin].state
        is_dropped = state is not None and state.condition is TableCondition.DROPPED
        return f"the mirror of {origin} is of a table that was dropped" if is_dropped else None

    @cached_property
    def _stale_mirrors(self) -> frozenset[TableName]:
        # Read once: while a batch is captured, no other run of the source can change
        # this set.
        return stale_tables(self._basis.ports.ledger, self._basis.ports.source.name)

    def _has_all_rows(self, state: TableState | None) -> bool:
        """Return whether the mirror has, or will have, all rows of the table: the
        ledger knows a version of it, or a batch that is not merged yet determines all
        rows."""
        if state is None:
            return False
        ledger, source = self._basis.ports.ledger, self._basis.ports.source.name
        app_id = application_id(source, state, "mirror")
        if ledger.newest_writes(source, [app_id])[app_id].settled_write is not None:
            return True
        contents = self._waiting_contents(state.table)
        return any(
            event.kind in _DETERMINE_ROWS for content in contents for event in content.events
        )

    def _is_being_rewritten(self, table: TableName) -> bool:
        """Return whether batches that are not merged yet rewrite the table's rows."""
        return is_rewritten(contents_since_settled(self._waiting_contents(table)))

    def _waiting_contents(self, table: TableName) -> Sequence[TableContent]:
        """Return the table's content in the batches that are not merged yet."""
        ledger, source = self._basis.ports.ledger, self._basis.ports.source.name
        batch_ids = ledger.pending_batches(source).get(table)
        if not batch_ids:
            return ()
        return table_contents(ledger, source, table, batch_ids[0], batch_ids[-1])

    def _is_shown_alike(
        self, table: TableName, origin: TableName, mirror_schema_version: int | None
    ) -> bool:
        """Return whether the settings hide and change the same values under both names.
        `mirror_schema_version`: the version of the structure in the former name's
        mirror."""
        ports, structures = self._basis.ports, self._basis.structures
        current = structures.version(table)
        if current is None or current.schema is None:
            return False
        if current.shown_as is None and not ports.shaping.has_rules:
            return True
        recorded = ports.ledger.schema_versions(ports.source.name, origin)
        new = [version for version in structures.history.versions if version.table == origin]
        before_rename = [
            version
            for version in (*recorded, *new)
            if version.knowledge is Knowledge.KNOWN and version.since != current.since
        ]
        versions = [version for version in recorded if version.version == mirror_schema_version]
        versions += before_rename[-1:]
        shapes = {version.shape_fingerprint for version in versions}
        return shapes == {current.shape_fingerprint}
