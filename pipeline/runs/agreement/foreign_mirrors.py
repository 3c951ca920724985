"""Delta tables at the places of mirrors that no Lockstep wrote: kept out until somebody says what
becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from pipeline.changes.layout import mirror_path
from pipeline.errors import MirrorRefused
from pipeline.runs.context import Workplace
from pipeline.table import TableName

_COMMITS: Final = 50
"""So many of the newest commits are looked through for one of ours."""


def foreign_mirrors(work: Workplace, tables: Iterable[TableName]) -> dict[TableName, str]:
    """Those of the tables, of which the ledger knows nothing yet, that have such a mirror, and
    that nobody ordered to be read from the source; each with the sentence that says why it is left
    out. One whose place in the lake cannot be read is left out like them."""
    source = work.source.name
    known = work.ledger.table_states(source).keys()
    looked = work.ledger.looked(source)
    ordered = {load.table for load in work.ledger.open_loads(source)}
    found = {}
    for table in tables:
        mirror = mirror_path(source, table)
        if table in known or table in ordered or mirror in looked:
            continue
        try:
            if is_foreign(work, mirror):
                why = f"somebody else made {mirror} in the lake; {cure(table)}"
                found[table] = f"{table} is left out: {why}"
        except MirrorRefused as error:
            found[table] = f"{table} is left out: {error.reason}"
    return found


def is_foreign(work: Workplace, folder: str) -> bool:
    """Whether there is a Delta table of which none of the newest commits is a Lockstep's."""
    if work.mirrors.version(folder) is None:
        return False
    return not any(commit.ours for commit in islice(work.mirrors.history(folder), _COMMITS))


def cure(table: TableName) -> str:
    return (
        f"`lockstep adopt {table} --reason …` compares it with MySQL and goes on with it; "
        f"`lockstep snapshot {table} --reason …` rewrites it from the source"
    )
