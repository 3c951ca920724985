"""`lockstep release`: bring back a table that is set aside; once, recorded."""

from __future__ import annotations

import argparse
from pathlib import Path

from lockstep.desk import Desk, Outcome
from lockstep.grammar import UsageError
from lockstep.table_orders import order
from pipeline.table_state import OrderKind


def perform(arguments: argparse.Namespace, desk: Desk) -> Outcome:
    """One order in the ledger; 5 where the table is not set aside, 2 for a structure that
    cannot be taken."""
    statement = _read(Path(arguments.schema)) if arguments.schema else None
    return order(arguments, desk, OrderKind.RELEASE, statement)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read as UTF-8 text.",
            hint="give a file with what `show create table` prints",
        ) from error
