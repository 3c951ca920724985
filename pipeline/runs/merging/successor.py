"""A mirror's successor: the folder that a table gets for its mirror beside the one it had.

Belongs here: when a table whose rows are all written anew gets one, and recording it. Does not:
writing it (`mirror_write`), what brings a table's rows together (`rejoining`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.batch import Batch
from pipeline.changes.layout import mirror_path
from pipeline.decisions import Lease
from pipeline.life.events import MirrorReplaced
from pipeline.policies import Readers
from pipeline.runs.context import Workplace
from pipeline.table import TableName
from pipeline.table_state import TableEventKind, TableState

_ANEW = frozenset({TableEventKind.REBUILT, TableEventKind.REREAD})


def written_anew(
    work: Workplace, lacking: Mapping[TableName, Sequence[Batch]]
) -> frozenset[TableName]:
    """The tables of which all rows are among what their mirrors lack."""
    lacks = {(table, batch.id) for table, batches in lacking.items() for batch in batches}
    return frozenset(
        event.table
        for number in sorted({number for _, number in lacks})
        for event in work.ledger.table_events(work.source.name, number)
        if event.kind in _ANEW and (event.table, number) in lacks
    )


def made_for_others(work: Workplace, state: TableState) -> str | None:
    """Why a mirror that is there is not the one to write all rows into: a Delta table keeps what
    it once asked of its readers."""
    made, wanted = work.mirrors.made_for(state.mirror), work.source.lake.readers
    if state.mirror_version is None or made is None or made == wanted:
        return None
    words = {Readers.SPARK: "for Spark", Readers.ANY: "for any reader"}
    return f'{state.mirror} was made {words[made]}, and `readers` is "{wanted}"'


def renew(work: Workplace, lease: Lease, table: TableName, why: str) -> None:
    """From now on the table's mirror is another; the one before stays as it is."""
    ledger, source = work.ledger, work.source.name
    state = ledger.table_states(source)[table]
    number = state.mirror_generation + 1
    mirror = mirror_path(source, table, state.generation, number)
    ledger.give_up(lease, table)
    ledger.record_event(lease, table, MirrorReplaced(mirror))
    work.progress.note(f"the mirror of {table} is {mirror} from now on: {why}")
