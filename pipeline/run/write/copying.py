"""Rows of a table that got its name by a RENAME: they are copied from the mirror (the
Delta table with the current rows) of the former name, with the changes up to the
RENAME. Nothing is read from MySQL.

The former name's mirror may be written by the same merge. So the version to copy is
chosen, and recorded with the intent (the ledger's record of a begun write), before any
mirror is written. The version ends before the batch of the RENAME; the changes of that
batch come from changelogs.

The former name may itself have got its rows by a RENAME in the same batch, as in a swap
of two or three tables. Then the rows are followed from name to name, until a mirror
version is known or the table was empty. The tables that gh-ost and
pt-online-schema-change create are empty at first, so their changelogs have all rows.
The structures and changes of all these names together are the table's history; versions
of former names get negative numbers, so that they come first.

Rows that were deleted before the RENAME are not copied, even if the mirror keeps them
with a mark. Columns that only the mirror still has are not copied either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.mirror.lineage import is_stamp
from lockstep.pipeline.mirror.merging import (
    MergePlan,
    before_copy,
    contents_since_settled,
    is_rewritten,
    plan_merge,
)
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import TableEvent
from lockstep.pipeline.ports.ledger import table_contents
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import reread_error
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.types import comparable_name
from lockstep.pipeline.values.intent import Intent, MirrorVersion
from lockstep.pipeline.values.segment import Segment
from lockstep.pipeline.values.table import TableName

_RECENT_BATCHES: Final = 100
"""Number of batches in which the structure of a mirror is looked for first; all batches
may span years."""


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The rows with which a write begins: those that the table had under former names,
    or in an earlier version of its own mirror. `origin`: the last former name, or the
    table itself. `copied_version`: the mirror version to copy; None if the table was
    empty there. `segments`: the changes under former names after that version, with
    sequences above `above` and up to `through`. `former_names`: for each former name,
    oldest first, its first and last schema version. `batches`: the batches of these
    changes, ascending."""

    origin: TableName
    copied_version: MirrorVersion | None
    above: int = 0
    through: int = 0
    segments: tuple[Segment, ...] = ()
    former_names: tuple[tuple[TableName, int, int], ...] = ()
    batches: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """A sentence that says what is copied."""
        if not self.former_names:
            return f"its mirror is written again from {self.copied_version} and its changelog since"
        if self.copied_version is None:
            return f"its rows were those of {self.origin}, whose changelog has all of them"
        return f"its rows were those of {self.origin}, copied from {self.copied_version}"


@dataclass(frozen=True, slots=True)
class _FormerName:
    """A table under one former name. `copied_version`: the version of its mirror to
    copy. `contents`: the content of batches up to the change with the number `end`;
    `plan`: how it is merged into that version."""

    table: TableName
    plan: MergePlan
    contents: tuple[TableContent, ...]
    copied_version: MirrorVersion | None
    end: int


def find_copied_rows(
    ports: RunPorts, intent: Intent, plan: MergePlan, contents: Sequence[TableContent]
) -> CopiedRows | None:
    """Return the rows with which the intent's table begins; None if no RENAME gave it
    another table's rows. Raise `TableError` if those are unknown and have to be read
    from the source. `contents`: the table's content of the covered batches; `plan`: how
    they are merged."""
    event = plan.copy_event
    if event is None:
        return None
    former_names: list[_FormerName] = []
    while event is not None:
        batch = next(content.batch for content in contents if event in content.events)
        former = _former_name(ports, intent, event, batch)
        former_names.insert(0, former)
        event, contents = former.plan.copy_event, former.contents
    first = former_names[0]
    for former in former_names:
        _require_apart(former, 0 if former is first else former.plan.above)
    if any(segment.first_sequence <= plan.above for segment in plan.segments):
        raise reread_error(f"its changes and those of {former_names[-1].table} are in one file")
    batches = {
        content.batch for former in former_names for content in former.contents if content.segments
    }
    return CopiedRows(
        former_names[-1].table,
        first.copied_version,
        above=first.plan.above,
        through=plan.above,
        segments=tuple(segment for former in former_names for segment in former.plan.segments),
        former_names=tuple(
            (former.table, *_first_and_last_version(ports, former)) for former in former_names
        ),
        batches=tuple(sorted(batches)),
    )


def _former_name(ports: RunPorts, intent: Intent, event: TableEvent, batch: int) -> _FormerName:
    """Return what a table had under a former name, up to the RENAME of `event` in that
    batch."""
    table = event.origin
    assert table is not None, "rows were copied from somewhere"
    base = _copied_version(ports, intent, table, batch)
    first_batch = 1 if base is None else base.last_batch + 1
    all_contents = table_contents(ports.ledger, ports.source.name, table, first_batch, batch)
    # If the intent records no version, a second try reads the contents of all batches.
    # Since the event that settles all rows, these are the same as at the first try.
    contents = tuple(contents_since_settled(before_copy(all_contents, event)))
    deletion = ports.ledger.deletion_notes(ports.source.name, table).newest
    if deletion is not None and any(content.batch <= deletion.last_batch for content in contents):
        raise reread_error(f"{deletion.sentence}, which it had as {table}")
    plan = plan_merge(contents)
    if is_rewritten(contents):
        raise reread_error(f"rows that were read of it as {table} had not been merged")
    if not plan.replaces_rows and base is None:
        raise reread_error(f"no version of the mirror that it had as {table} is known")
    return _FormerName(table, plan, contents, None if plan.replaces_rows else base, event.sequence)


def _copied_version(
    ports: RunPorts, intent: Intent, table: TableName, batch: int
) -> MirrorVersion | None:
    """Return the newest version of the former name's mirror before that batch. If the
    write was begun before, return the version that its intent records."""
    ledger, source = ports.ledger, ports.source.name
    if intent.is_recorded:
        if intent.copied_write_id is None:
            return None
        recorded = ledger.mirror_version(source, intent.copied_write_id)
        return recorded if recorded is not None and recorded.table == table else None
    state = ledger.table_states(source).get(table)
    if state is None:
        return None
    generations = range(1, state.mirror_generation + 1)
    states = (replace(state, mirror_generation=generation) for generation in generations)
    applications = [application_id(source, state, "mirror") for state in states]
    return ledger.newest_version_before(source, applications, batch)


def _require_apart(former: _FormerName, above: int) -> None:
    """Raise `TableError` if one file has changes from both sides of a RENAME."""
    for segment in former.plan.segments:
        if segment.last_sequence > former.end or segment.first_sequence <= above:
            raise reread_error(
                f"its changes as {former.table} are in one file with those of another table"
            )


def _first_and_last_version(ports: RunPorts, former: _FormerName) -> tuple[int, int]:
    """Return the first and the last schema version that the former name's rows went
    through."""
    plan, base = former.plan, former.copied_version
    if base is None:
        assert plan.first_version is not None, "the log says what all its rows were"
        return plan.first_version, plan.final_version
    for first_batch in (max(1, base.last_batch - _RECENT_BATCHES), 1):
        contents = table_contents(
            ports.ledger, ports.source.name, former.table, first_batch, base.last_batch
        )
        if contents and (shown_version := plan_merge(contents).final_version):
            return shown_version, plan.final_version or shown_version
    raise reread_error(f"it is not known which structure its mirror had as {former.table}")


def spliced_history(
    former_names: Sequence[Sequence[SchemaVersion]], own_versions: Sequence[SchemaVersion]
) -> tuple[tuple[SchemaVersion, ...], dict[tuple[TableName, int], int]]:
    """Return one history: the versions of the former names, then the table's
    `own_versions`. Return also the number that each former version has in this history.
    Raise `TableError` if a RENAME came with other columns."""
    former_versions = [version for versions in former_names for version in versions]
    new_numbers = {
        (version.table, version.version): new_number - len(former_versions)
        for new_number, version in enumerate(former_versions)
    }
    history: list[SchemaVersion] = []
    for versions in former_names:
        for index, version in enumerate(versions):
            renamed = version if index else _as_renamed(history, version)
            number = new_numbers[version.table, version.version]
            history.append(replace(renamed, version=number))
    return (*history, _as_renamed(history, own_versions[0]), *own_versions[1:]), new_numbers


def _as_renamed(history: Sequence[SchemaVersion], version: SchemaVersion) -> SchemaVersion:
    """Return the first version under a name, marked as keeping the rows of the former
    name."""
    if not history:
        return version
    last_version = history[-1]
    assert last_version.schema is not None and version.schema is not None, "they are known"
    names = tuple(column.name for column in version.schema.columns)
    if {*names} != {column.name for column in last_version.schema.columns}:
        raise reread_error(f"its columns are not those that it had as {last_version.table}")
    if version.shape_fingerprint != last_version.shape_fingerprint:
        raise reread_error(f"the settings show it differently than {last_version.table}")
    return replace(version, columns_from=names)


def own_columns(mirror: pa.Schema, version: SchemaVersion) -> pa.Schema:
    """Return the mirror's columns that its table has in that version, and the stamps
    (the columns with time, number and GTID of a row's last change)."""
    assert version.shown_schema is not None, "the version is known"
    names = {comparable_name(column.name) for column in version.shown_schema.columns}
    return pa.schema(
        [column for column in mirror if comparable_name(column.name) in names or is_stamp(column)]
    )
