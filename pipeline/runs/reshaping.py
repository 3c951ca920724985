"""Tables of which the settings show something else than the lake has.

Such a table is read from the source again, as a table is that stopped: whatever the lake showed of
it before counts no more from there on. So a change of settings needs no mechanism of its own, and
what it costs is what a reload costs. If less is shown than before, the ledger notes up to where
the lake has more of the table, and `clear` takes that away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from pipeline.decisions import Lease
from pipeline.errors import TableError
from pipeline.ports.ledger import Ledger
from pipeline.runs.context import Workplace
from pipeline.runs.cures import owed
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.shape.shape import ShapeChange
from pipeline.table import TableName
from pipeline.table_state import Quarantine, TableCondition, TableState
from pipeline.tables import TablePatterns
from pipeline.upkeep.clearing import InClear, Tightening


def reshape(work: Workplace, lease: Lease) -> None:
    """Have the tables read again that are to be shown otherwise. `ConfigurationError` where the
    lake was hashed with another key than the settings have: nothing is read then."""
    found = list(reshaped(work))
    # First, so that a table which is read again is always known to be in clear before.
    for tightening in tightened(work):
        work.ledger.note_tightened(lease, tightening)
        work.progress.note(f"{tightening.table}: less is shown of it: {tightening.told}")
    note_keep_clear(work, lease)
    for state, error in found:
        cursor = work.ledger.cursors(work.source.name).captured
        place = "" if cursor is None else str(cursor.position.at)
        quarantined = Quarantine.of(state.table, error, place)
        work.ledger.quarantine(lease, quarantined)
        work.progress.note(f"{state.table}: {error.reason}")


def note_keep_clear(work: Workplace, lease: Lease) -> None:
    """Have the ledger say of each tightening what `keep_clear` says now, unless clearing it has
    begun."""
    for note in work.ledger.in_clear(work.source.name):
        reason = _keep_clear(work, note.table)
        if reason != note.kept_because and not note.begun:
            work.ledger.note_keep_clear(lease, note.id, reason)


def _shown_still(work: Workplace) -> Iterator[InClear]:
    """Tightenings that `keep_clear` does not keep any more, of which the mirror itself goes on
    showing values, in rows that are gone at the source and that it kept: only another reading takes
    these."""
    for note in work.ledger.in_clear(work.source.name):
        kept_no_longer = note.kept_because is not None and _keep_clear(work, note.table) is None
        keeps_rows = work.source.policies_of(note.table).keeps_rows
        if kept_no_longer and keeps_rows and not note.stale:
            yield note


def hashed(ledger: Ledger, source: str, patterns: TablePatterns) -> Iterator[SchemaVersion]:
    """The newest versions of tables that are captured and in the lake, as far as the key counts
    that they are hashed with. It does not for a table whose key was replaced on purpose, and which
    was not read again since, as one that is paused: it will be."""
    states, replaced = ledger.table_states(source), dict[TableName, int]()
    for note in ledger.in_clear(source):
        if note.tightening.rehashed:
            replaced[note.table] = max(note.tightening.through, replaced.get(note.table, 0))
    for version in ledger.shaped_versions(source):
        table = version.table
        if table not in states or not patterns.matches(table):
            continue
        if states[table].condition is TableCondition.DROPPED:
            continue
        if version.batch > replaced.get(table, 0):
            yield version


def reshaped(work: Workplace) -> Iterator[tuple[TableState, TableError]]:
    """Tables that are to be shown otherwise, or cannot be shown as the settings say; each with
    what stops it. Raises as `reshape`."""
    source, shaping = work.source.name, work.shaping
    shaped = {version.table: version for version in work.ledger.shaped_versions(source)}
    for version in hashed(work.ledger, source, work.source.patterns):
        shaping.require_key(version)
    still = {note.table for note in _shown_still(work)}
    for table, state in sorted(work.ledger.table_states(source).items()):
        if state.condition is not TableCondition.FOLLOWING:
            continue
        if not work.source.patterns.matches(table):
            continue
        if table in still:
            yield state, owed("rows that it kept show more than its settings do")
            continue
        if table not in shaped and shaping.rules_of(table) is None:
            continue
        newest = shaped.get(table) or work.ledger.schema_at(source, table)
        if newest is None:
            continue
        try:
            why = shaping.changed(newest)
        except TableError as error:
            yield state, error
            continue
        if why is not None:
            yield state, owed(f"{why}, so it is read again")


def remaining(work: Workplace, table: TableName) -> str | None:
    """What stands in clear of a table although its settings show less than before, and until when,
    in a sentence; None where nothing does. TableError for settings that cannot be followed."""
    for note in _shown_still(work):
        if note.table == table:
            return f"{note.sentence}, also in rows that its mirror kept: those go with the others"
    newest = work.ledger.schema_at(work.source.name, table)
    change = ShapeChange() if newest is None else work.shaping.change(newest)
    less = Tightening(table, 0, change.tightened, change.rows_tightened, change.rehashed)
    if not less.shows_less:
        return None
    reason = _keep_clear(work, table)
    until = "the run that reads it again clears them, once nobody needs them"
    if reason is not None:
        until = f"they stay, as `keep_clear` says: {reason}"
    elif work.source.policies_of(table).keeps_rows:
        until += ", and rows that its mirror kept although they are gone at the source go with them"
    return f"{less.told} stand in clear in what was captured before: {until}"


def tightened(work: Workplace) -> Iterator[Tightening]:
    """Tables of which the settings show less than the lake has, as far as that is not known yet:
    also those that stopped, that are gone, or that `tables` does not have any more."""
    source, shaping = work.source.name, work.shaping
    cursor = work.ledger.cursors(source).captured
    if cursor is None or not shaping.hides:
        return
    for note in _shown_still(work):
        yield replace(note.tightening, through=cursor.batch, kept_because=None)
    # Of a table that was read again since, less may be shown once more.
    notes = [note for note in work.ledger.in_clear(source) if note.stale]
    known = {(note.table, _less(note.tightening)) for note in notes}
    states = work.ledger.table_states(source)
    gone = {table for table, state in states.items() if state.condition is TableCondition.DROPPED}
    ruled = [table for table in states if table in gone or shaping.rules_of(table) is not None]
    history = work.ledger.schema_versions(source, *ruled) if ruled else []
    for version, name in _judged(work, history, gone):
        try:
            change = shaping.change(_called(version, name))
        except TableError:  # it cannot be shown as the settings say, and stops
            continue
        tightening = Tightening(
            version.table,
            cursor.batch,
            change.tightened,
            change.rows_tightened,
            change.rehashed,
            _keep_clear(work, name),
        )
        if tightening.shows_less and (version.table, _less(tightening)) not in known:
            yield tightening


def _judged(
    work: Workplace, history: Sequence[SchemaVersion], gone: Set[TableName]
) -> Iterator[tuple[SchemaVersion, TableName]]:
    """Yield the newest known version of each table, with the table whose settings hold for it. Of
    one that is gone, which nothing is read of any more, those are its own, or those of the name
    that a RENAME gave it, and so on."""
    source, shaping = work.source.name, work.shaping
    newest = {one.table: one for one in history if one.knowledge is Knowledge.KNOWN}
    ended = {one.table: one for one in history if one.knowledge is Knowledge.DROPPED}
    for table, version in sorted(newest.items()):
        names = [table]
        if table in gone:
            while shaping.rules_of(names[-1]) is None and names[-1] in ended:
                name = _renamed_to(newest[names[-1]], ended[names[-1]], history)
                if name is None or name in names:
                    break
                names.append(name)
            if table not in ended or shaping.rules_of(names[-1]) is None:
                continue
            if work.ledger.forgotten(source, table).through >= ended[table].batch:
                continue  # all of it is cleared
        yield version, names[-1]


def _renamed_to(
    version: SchemaVersion, ended: SchemaVersion, history: Sequence[SchemaVersion]
) -> TableName | None:
    """The name that the statement which ended a table gave it, if it did."""
    for one in history:
        made = one.statement is not None and one.statement == ended.statement
        if made and one.table != ended.table and _columns(one) == _columns(version):
            return one.table
    return None


def _columns(version: SchemaVersion) -> list[str]:
    return [] if version.schema is None else [column.name for column in version.schema.columns]


def _called(version: SchemaVersion, name: TableName) -> SchemaVersion:
    """A version as if its table had that name."""
    schema = None if version.schema is None else replace(version.schema, name=name)
    return replace(version, table=name, schema=schema)


def _less(tightening: Tightening) -> tuple[tuple[str, ...], bool, bool]:
    return tightening.columns, tightening.rows, tightening.rehashed


def _keep_clear(work: Workplace, table: TableName) -> str | None:
    rules = work.shaping.rules_of(table)
    return None if rules is None else rules.keep_clear
