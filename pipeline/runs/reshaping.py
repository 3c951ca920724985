"""Tables of which the settings show something else than the lake has.

Such a table is read from the source again, as a table is that stopped: whatever the lake showed of
it before counts no more from there on. So a change of settings needs no mechanism of its own, and
what it costs is what a reload costs.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.decisions import Lease
from pipeline.errors import TableError
from pipeline.runs.context import Workplace
from pipeline.runs.cures import owed
from pipeline.table import TableName
from pipeline.table_state import Quarantine, TableCondition, TableState

_FOLLOWED = (TableCondition.ACTIVE, TableCondition.LOADING)


def reshape(work: Workplace, lease: Lease) -> None:
    """Have the tables read again that are to be shown otherwise. `ConfigurationError` where the
    lake was hashed with another key than the settings have: nothing is read then."""
    for state, error in reshaped(work):
        cursor = work.ledger.cursors(work.source.name).captured
        place = "" if cursor is None else str(cursor.position.at)
        quarantined = Quarantine.of(state.table, error, place)
        work.ledger.quarantine(lease, quarantined)
        work.progress.note(f"{state.table}: {error.reason}")


def reshaped(work: Workplace) -> Iterator[tuple[TableState, TableError]]:
    """Tables that are to be shown otherwise, or cannot be shown as the settings say; each with
    what stops it. Raises as `reshape`."""
    source, shaping = work.source.name, work.shaping
    shaped = {version.table: version for version in work.ledger.shaped_versions(source)}
    for version in shaped.values():
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
    """What the lake keeps of a table although its settings show less than before, in a sentence;
    None where they do not. TableError for settings that cannot be followed."""
    newest = work.ledger.schema_at(work.source.name, table)
    if newest is None:
        return None
    change = work.shaping.change(newest)
    more = [f"values of {', '.join(change.tightened)}"] if change.tightened else []
    more += ["rows that are left out from now on"] if change.rows_tightened else []
    if not more:
        return None
    return (
        f"{' and '.join(more)} stay as they were in older versions of the mirror and in the "
        "changelog, until those are purged"
    )
