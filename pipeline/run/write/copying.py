"""The rows of a table that got its name by a RENAME: a version of the mirror that had these rows,
and the changes since, up to the RENAME. Nothing is asked of MySQL.

That mirror goes on, under its own name, as soon as it is written. So the version is chosen, and
recorded with the intent, before any mirror of the same merge is written; and it ends before the
batch of the RENAME, whose changes come from changelogs.

The other table may itself have got its rows by a RENAME in the same batch: a swap is two such
tables, or three. Then the rows are followed back, name by name, to one of which a version is known,
or which was empty: what gh-ost and pt-online-schema-change make is in its changelog alone. The
structures and changes of all these names, one after the other, are the history of the table. Those
of the former names get negative numbers, so that they come before its own.

Rows that were deleted before the RENAME stay behind, also where the mirror keeps them marked, and
so do columns that only the mirror still has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.mirror.lineage import is_stamp
from lockstep.pipeline.mirror.merging import MergePlan, before_copy, parts_since_settled, plan_merge
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import TableEvent, TableEventKind
from lockstep.pipeline.ports.ledger import contents_of
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.stop_errors import read_by_next_run
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.types import folded
from lockstep.pipeline.values.intent import Intent, MirrorVersion
from lockstep.pipeline.values.segment import Segment
from lockstep.pipeline.values.table import TableName

_RECENT: Final = 100
"""Number of batches in which the structure that a mirror shows is looked for first; all batches
may span years."""


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """What a table had under its former names, or had earlier. `origin`: the last of the names, or
    the table itself. `pinned`: the version of a mirror that it begins with, where rows count from
    the change `above` on; None if it was empty there. `segments`: the changes since under former
    names, up to the change `through`; `links`: for each former name, the oldest first, the versions
    between which its structure went. `batches`: those of which changes count."""

    origin: TableName
    pinned: MirrorVersion | None
    above: int
    through: int
    segments: tuple[Segment, ...]
    links: tuple[tuple[TableName, int, int], ...]
    batches: tuple[int, ...]

    @property
    def told(self) -> str:
        if not self.links:
            return f"its mirror is written again from {self.pinned} and its changelog since"
        if self.pinned is None:
            return f"its rows were those of {self.origin}, whose changelog has all of them"
        return f"its rows were those of {self.origin}, copied from {self.pinned}"


@dataclass(frozen=True, slots=True)
class _Link:
    """What a table had under one former name: `parts`, merged by `plan` over the version `base`, up
    to the change `end`."""

    table: TableName
    plan: MergePlan
    parts: tuple[TableContent, ...]
    base: MirrorVersion | None
    end: int


def copied_rows(
    work: Workplace, intent: Intent, plan: MergePlan, parts: Sequence[TableContent]
) -> CopiedRows | None:
    """Return what the intent's table begins with, by that plan over these parts; None if it does
    not have another table's rows. `TableError` if those are not known: then they are read from the
    source."""
    event, own = plan.copied, parts
    if event is None:
        return None
    links: list[_Link] = []
    while event is not None:
        batch = next(part.batch for part in own if event in part.events)
        link = _link(work, intent, event, batch)
        links.insert(0, link)
        event, own = link.plan.copied, link.parts
    first = links[0]
    for link in links:
        _require_apart(link, 0 if link is first else link.plan.above)
    if any(segment.first_sequence <= plan.above for segment in plan.segments):
        raise read_by_next_run(f"its changes and those of {links[-1].table} are in one file")
    return CopiedRows(
        links[-1].table,
        first.base,
        first.plan.above,
        plan.above,
        tuple(segment for link in links for segment in link.plan.segments),
        tuple((link.table, *_versions(work, link)) for link in links),
        tuple(sorted({part.batch for link in links for part in link.parts if part.segments})),
    )


def _link(work: Workplace, intent: Intent, event: TableEvent, batch: int) -> _Link:
    """Return what a table had under a former name, up to the statement of `event`, which lies in
    that batch."""
    table = event.origin
    assert table is not None, "rows were copied from somewhere"
    base = _base(work, intent, table, batch)
    begins = 1 if base is None else base.last_batch + 1
    captured = contents_of(work.ledger, work.source.name, table, begins, batch)
    # A second try has no version recorded if the log says what all rows were: then the parts are
    # the same.
    parts = tuple(parts_since_settled(before_copy(captured, event)))
    gone = work.ledger.forgotten(work.source.name, table).newest
    if gone is not None and any(part.batch <= gone.through for part in parts):
        raise read_by_next_run(f"{gone.told}, which it had as {table}")
    plan = plan_merge(parts)
    kinds = {event.kind for part in parts for event in part.events}
    if plan.snapshot or plan.completion or TableEventKind.REBUILT in kinds:
        raise read_by_next_run(f"what was read of it as {table} had not been merged")
    if not plan.replaces and base is None:
        raise read_by_next_run(f"no version of the mirror that it had as {table} is known")
    return _Link(table, plan, parts, None if plan.replaces else base, event.sequence)


def _base(work: Workplace, intent: Intent, table: TableName, batch: int) -> MirrorVersion | None:
    """Return the newest version of the table's mirror that shows nothing of that batch; the version
    that was recorded with the intent if the write was begun before."""
    ledger, source = work.ledger, work.source.name
    if intent.id:
        pinned = None if intent.copies is None else ledger.pinned(source, write=intent.copies)
        return pinned if pinned is not None and pinned.table == table else None
    state = ledger.table_states(source).get(table)
    if state is None:
        return None
    mirrors = (replace(state, mirror_generation=n + 1) for n in range(state.mirror_generation))
    applications = [application_id(source, one, "mirror") for one in mirrors]
    return ledger.pinned(source, applications=applications, before=batch)


def _require_apart(link: _Link, above: int) -> None:
    """`TableError` if a file has changes both of before and of after one of the statements."""
    for segment in link.plan.segments:
        if segment.last_sequence > link.end or segment.first_sequence <= above:
            raise read_by_next_run(
                f"its changes as {link.table} are in one file with those of another table"
            )


def _versions(work: Workplace, link: _Link) -> tuple[int, int]:
    """Return the first and the last version of the table's structure that count."""
    plan, base = link.plan, link.base
    if base is None:
        assert plan.first is not None, "the log says what all its rows were"
        return plan.first, plan.final
    for first in (max(1, base.last_batch - _RECENT), 1):
        parts = contents_of(work.ledger, work.source.name, link.table, first, base.last_batch)
        if parts and (shown := plan_merge(parts).final):
            return shown, plan.final or shown
    raise read_by_next_run(f"it is not known which structure its mirror had as {link.table}")


def spliced(
    links: Sequence[Sequence[SchemaVersion]], own: Sequence[SchemaVersion]
) -> tuple[tuple[SchemaVersion, ...], dict[tuple[TableName, int], int]]:
    """Return the versions of former names, then a table's `own`, as one history, and the number
    that each of the former has in it. `TableError` if columns changed with a RENAME."""
    former = [version for link in links for version in link]
    numbers = {
        (version.table, version.version): number - len(former)
        for number, version in enumerate(former)
    }
    history: list[SchemaVersion] = []
    for versions in (*links, own):
        for at, version in enumerate(versions):
            number = version.version if versions is own else numbers[version.table, version.version]
            after = version if at else _as_rename(history, version)
            history.append(replace(after, version=number))
    return tuple(history), numbers


def _as_rename(history: Sequence[SchemaVersion], version: SchemaVersion) -> SchemaVersion:
    """Return the first version under a name as one that keeps the rows of the former name."""
    if not history:
        return version
    before = history[-1]
    assert before.schema is not None and version.schema is not None, "they are known"
    names = tuple(column.name for column in version.schema.columns)
    if {*names} != {column.name for column in before.schema.columns}:
        raise read_by_next_run(f"its columns are not those that it had as {before.table}")
    alike = before.shown_as is None and version.shown_as is None
    if not alike and not (version.shown_as and version.shown_as.same_rules(before.shown_as)):
        raise read_by_next_run(f"it is shown otherwise than it was as {before.table}")
    return replace(version, columns_from=names)


def own_columns(mirror: pa.Schema, version: SchemaVersion) -> pa.Schema:
    """Return the columns of a mirror that its table has in that version, and the stamps."""
    assert version.shown is not None, "the version is known"
    names = {folded(column.name) for column in version.shown.columns}
    return pa.schema(
        [column for column in mirror if folded(column.name) in names or is_stamp(column)]
    )
