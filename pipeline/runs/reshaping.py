"""Tables of which the settings show something else than the lake has.

Such a table is read from the source again, as a table is that stopped: whatever the lake showed of
it before counts no more from there on. So a change of settings needs no mechanism of its own, and
what it costs is what a reload costs. If less is shown than before, the ledger notes up to where
the lake has more of the table, and `clear` takes that away.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.decisions import Lease
from pipeline.errors import TableError
from pipeline.ports.ledger import Ledger
from pipeline.runs.context import Workplace
from pipeline.runs.cures import owed
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.shape.strictness import ShapeChange
from pipeline.table import TableName
from pipeline.table_state import Quarantine, TableCondition, TableState
from pipeline.tables import TablePatterns
from pipeline.upkeep.clearing import Tightening

_FOLLOWED = (TableCondition.ACTIVE, TableCondition.LOADING)


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
    for table, state in sorted(work.ledger.table_states(source).items()):
        if state.condition not in _FOLLOWED or not work.source.patterns.matches(table):
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
    newest = work.ledger.schema_at(work.source.name, table)
    change = ShapeChange() if newest is None else work.shaping.change(newest)
    less = Tightening(table, 0, change.tightened, change.rows_tightened, change.rehashed)
    if not less.shows_less:
        return None
    reason = _keep_clear(work, table)
    until = "the run that reads it again clears them, once nobody needs them"
    if reason is not None:
        until = f"they stay, as `keep_clear` says: {reason}"
    return f"{less.told} stand in clear in what was captured before: {until}"


def tightened(work: Workplace) -> Iterator[Tightening]:
    """Tables of which the settings show less than the lake has, those that stopped among them, as
    far as that is not known yet."""
    source, shaping = work.source.name, work.shaping
    cursor = work.ledger.cursors(source).captured
    if cursor is None or not shaping.hides:
        return
    # Of a table that was read again since, less may be shown once more.
    notes = [note for note in work.ledger.in_clear(source) if note.stale]
    known = {(note.table, _less(note.tightening)) for note in notes}
    tables = [
        table
        for table, state in sorted(work.ledger.table_states(source).items())
        if state.condition is not TableCondition.DROPPED
        and work.source.patterns.matches(table)
        and shaping.rules_of(table) is not None
    ]
    newest = {
        version.table: version
        for version in work.ledger.schema_versions(source, *tables)
        if version.knowledge is Knowledge.KNOWN
    }
    for version in newest.values():
        try:
            change = shaping.change(version)
        except TableError:  # it cannot be shown as the settings say, and stops
            continue
        tightening = Tightening(
            version.table,
            cursor.batch,
            change.tightened,
            change.rows_tightened,
            change.rehashed,
            _keep_clear(work, version.table),
        )
        if tightening.shows_less and (version.table, _less(tightening)) not in known:
            yield tightening


def _less(tightening: Tightening) -> tuple[tuple[str, ...], bool, bool]:
    return tightening.columns, tightening.rows, tightening.rehashed


def _keep_clear(work: Workplace, table: TableName) -> str | None:
    rules = work.shaping.rules_of(table)
    return None if rules is None else rules.keep_clear
